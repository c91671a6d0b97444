//! Which pods get the images of the set next, and what else their updates need.

use std::collections::{BTreeMap, BTreeSet};

use kruise_api::rollout::ScatterTerm;

use super::{
    Limits, Plan, Purpose, condition, hot, patch,
    pods::{Member, View},
    purpose, taken,
};
use crate::{
    effect::Effect,
    object::ObjectKey,
    plan::Part,
    pod::Pod,
    update_order::{Strategy, strategic_order},
    waiting::{self, Reason, text},
};

/// Plans the next step of updating. Hot upgrades that were begun are ended before others begin.
pub(super) fn run(view: &View<'_>, revision: &str) -> Plan {
    let (mut plan, mut written) = reset(view);
    if written.is_empty() {
        let round = Round::of(view, &mut plan);
        for Chosen { member, annotations } in round.chosen {
            let effect = patch::update(view, member, annotations, revision);
            let purpose = Purpose::Update { pod: member.pod.reference(), revision: revision.into() };
            plan.add(effect, purpose, "it has older sidecars");
            written.insert(member.key());
        }
        plan.join(tell_not_upgradable(view, &round.not_upgradable));
    }
    plan.join(tell_upgradable(view, &written));
    plan
}

/// Ends hot upgrades whose new twin works. The pods that are written to.
fn reset(view: &View<'_>) -> (Plan, BTreeSet<ObjectKey>) {
    let (mut plan, mut written) = (Plan::default(), BTreeSet::new());
    let mut under_way = Vec::new();
    for member in &view.pods {
        if !hot::is_reset_due(member, view.desired) && !hot::is_stuck(member, view.desired) {
            if member.is_updated && hot::is_under_way(member, view.desired) {
                under_way.push(member);
            }
            continue;
        }
        if member.pod.metadata.unreadable || is_held(view, member, &mut plan) {
            continue;
        }
        let purpose = Purpose::Reset { pod: member.pod.reference() };
        plan.add(patch::reset(view, member), purpose, "its new twin is ready");
        written.insert(member.key());
    }
    if !under_way.is_empty() {
        let why = "both images of a hot upgrade run until the new one is ready";
        plan.waits.add(Reason::InPlaceUpdateRunning, updating(&under_way, why));
    }
    (plan, written)
}

/// That updates in place of pods are not complete.
fn updating(members: &[&Member<'_>], why: &str) -> String {
    format!("{} being updated in place ({}): {why}", text::pods_are(members.len()), keys(members))
}

/// The pods by namespace and name.
fn keys(members: &[&Member<'_>]) -> String {
    let keys: Vec<String> = members.iter().map(|member| member.key().to_string()).collect();
    text::names(keys.iter().map(String::as_str))
}

/// Whether a pod must not be written now.
fn is_held(view: &View<'_>, member: &Member<'_>, plan: &mut Plan) -> bool {
    let Some(held) = view.seen.held.get(&member.key()) else { return false };
    if held.by_budget {
        plan.waits.add(Reason::BudgetRefuses, held.why.as_str());
    }
    plan.reasons.push(format!("pod {} cannot be updated now: {}", member.key(), held.why));
    plan.wake(held.left);
    true
}

/// What a pass finds to do.
struct Round<'v, 'a> {
    /// The pods that are updated now, in order.
    chosen: Vec<Chosen<'v, 'a>>,
    /// The pods that differ in more than images.
    not_upgradable: Vec<&'v Member<'a>>,
}

/// A pod that is updated now.
struct Chosen<'v, 'a> {
    member: &'v Member<'a>,
    /// Annotations of the set that it gets.
    annotations: BTreeMap<String, String>,
}

impl<'v, 'a> Round<'v, 'a> {
    fn of(view: &'v View<'a>, plan: &mut Plan) -> Self {
        let desired = view.desired;
        let (candidates, left): (Vec<&Member<'_>>, Vec<&Member<'_>>) =
            view.pods.iter().filter(|member| !member.is_updated).partition(|member| {
                desired
                    .selector
                    .as_ref()
                    .is_none_or(|one| one.accepts(|key| member.pod.metadata.labels.text(key)))
            });
        if !left.is_empty() {
            plan.reasons.push(format!("{} pods are not chosen by the selector of the update", left.len()));
        }
        let (upgradable, not_upgradable): (Vec<&Member<'_>>, Vec<&Member<'_>>) =
            candidates.into_iter().partition(|member| member.is_upgradable);
        if !not_upgradable.is_empty() {
            let (count, all) = (not_upgradable.len(), text::pods(view.pods.len()));
            let keys = keys(&not_upgradable);
            let sentence = format!(
                "{count} of {all} cannot be updated in place ({keys}): more than images changed; they get it when they are \
                 re-created"
            );
            plan.waits.add(Reason::SidecarNotUpdatable, sentence);
        }
        let (waiting, unsettled): (Vec<&Member<'_>>, Vec<&Member<'_>>) =
            upgradable.into_iter().partition(|member| {
                // One that cannot be read counts, but nobody touches it.
                member.is_settled(desired) && !member.pod.metadata.unreadable
            });
        if !unsettled.is_empty() {
            let why = "an earlier image does not run yet";
            plan.waits.add(Reason::InPlaceUpdateRunning, updating(&unsettled, why));
        }
        let limits = Limits::of(desired.partition, desired.max_unavailable, view.pods.len());
        let ordered = partitioned(view, &waiting, &limits, plan);
        Self { chosen: budgeted(view, ordered, unsettled.len(), &limits, plan), not_upgradable }
    }
}

/// The waiting pods in order, without those that the partition holds back.
fn partitioned<'v, 'a>(
    view: &'v View<'a>,
    waiting: &[&'v Member<'a>],
    limits: &Limits,
    plan: &mut Plan,
) -> Vec<&'v Member<'a>> {
    let all = view.all();
    let strategy = Strategy { scatter: terms(&view.desired.scatter, &all), ..view.desired.order.clone() };
    let pods: Vec<&Pod> = waiting.iter().map(|member| member.pod).collect();
    let ordered = strategic_order(&pods, &all, &strategy);
    let kept = limits.kept.min(ordered.len());
    if kept > 0 && kept == ordered.len() {
        let updated = view.pods.iter().filter(|member| member.is_updated).count();
        waiting::partition(updated, all.len(), &view.desired.spelled_partition, kept, &mut plan.waits);
    }
    let members: BTreeMap<ObjectKey, &Member<'_>> =
        waiting.iter().map(|member| (member.key(), *member)).collect();
    let going = ordered.iter().take(ordered.len() - kept);
    going.filter_map(|pod| members.get(&pod.metadata.key()).copied()).collect()
}

/// As many of the pods as may be unavailable. Those that cannot be written are left out and cost nothing: one pod never
/// holds the others.
fn budgeted<'v, 'a>(
    view: &View<'_>,
    ordered: Vec<&'v Member<'a>>,
    unsettled: usize,
    limits: &Limits,
    plan: &mut Plan,
) -> Vec<Chosen<'v, 'a>> {
    // Pods that an earlier image took down count too, and so do those that are in the middle of a hot upgrade: the original
    // forgets them when the image changes again, and takes more pods down than it may. They are mended first, whatever their
    // weight, or the others would wait for ever.
    let is_down = |member: &Member<'_>| member.is_down_by_update() || hot::is_under_way(member, view.desired);
    let mut ordered = ordered;
    ordered.sort_by_key(|member| !is_down(member));
    let down = ordered.iter().filter(|member| is_down(member)).count();
    let updated = view.pods.iter().filter(|member| member.is_updated);
    let used = updated.filter(|member| !(member.is_consistent && member.is_ready)).count() + down + unsettled;
    let mut free = Vec::with_capacity(ordered.len());
    for member in ordered {
        if is_held(view, member, plan) {
            continue;
        }
        match patch::annotations(view, member) {
            Ok(annotations) => free.push(Chosen { member, annotations }),
            Err(error) => {
                plan.fail(Part::Update, format!("pod {} cannot be updated: {error}", member.key()));
            }
        }
    }
    let count = taken(free.iter().map(|one| one.member.is_ready), used, limits);
    if let Some(Chosen { member: next, .. }) = free.get(count) {
        let now_down = used + free.iter().take(count).filter(|one| one.member.is_ready).count();
        let value = &view.desired.spelled_max_unavailable;
        let next = next.key().to_string();
        waiting::max_unavailable(now_down, limits.max_unavailable, value, &next, &mut plan.waits);
    }
    free.truncate(count);
    free
}

/// What is spread: a term for every value counts once.
fn terms(scatter: &[ScatterTerm], all: &[&Pod]) -> Vec<ScatterTerm> {
    let mut terms: Vec<ScatterTerm> = Vec::new();
    for term in scatter {
        let expanded = match term.value.as_str() {
            "*" => {
                let values = all.iter().filter_map(|pod| pod.metadata.labels.text(&term.key));
                values.map(|value| ScatterTerm { key: term.key.clone(), value: value.to_owned() }).collect()
            }
            _ => vec![term.clone()],
        };
        for term in expanded {
            if !terms.contains(&term) {
                terms.push(term);
            }
        }
    }
    terms
}

/// Marks the pods that cannot be updated. People hear of it when that is new.
fn tell_not_upgradable(view: &View<'_>, members: &[&Member<'_>]) -> Plan {
    let mut plan = Plan::default();
    let writes: Vec<Effect> = members
        .iter()
        .filter_map(|member| condition::write(member.pod, view.desired.name, false, view.seen.now))
        .collect();
    if !writes.is_empty() {
        let event = Effect::Event(purpose::not_upgradable(&view.set, members.len()));
        plan.add(event, Purpose::Quiet, "more than images changed");
    }
    for write in writes {
        plan.add(write, Purpose::Quiet, "more than images changed");
    }
    plan
}

/// Marks the pods that were updated in place, or were said to be impossible to update and now are what they should be.
fn tell_upgradable(view: &View<'_>, written: &BTreeSet<ObjectKey>) -> Plan {
    let mut plan = Plan::default();
    for member in view.pods.iter().filter(|member| member.is_updated) {
        let is_told = condition::says(member.pod, view.desired.name);
        if is_told == Some(true)
            || (is_told.is_none() && !member.was_updated)
            || written.contains(&member.key())
        {
            continue;
        }
        if let Some(effect) = condition::write(member.pod, view.desired.name, true, view.seen.now) {
            plan.add(effect, Purpose::Quiet, "it can be updated in place");
        }
    }
    plan
}

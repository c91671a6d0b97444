//! Which pods get the images of the set next, and what else their updates need.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kruise_api::rollout::ScatterTerm;

use super::{
    Limits, Plan, Purpose, condition, hot, patch,
    pods::{Member, View},
    purpose, taken,
};
use crate::{
    effect::Effect,
    object::ObjectKey,
    pod::Pod,
    update_order::{Strategy, strategic_order},
};

/// When to look again after a pod that must not be written now.
const HELD_RETRY: Duration = Duration::from_secs(1);

/// Plans the next step of updating. Hot upgrades that were begun are ended before others begin.
pub(super) fn run(view: &View<'_>, revision: &str, plan: &mut Plan) {
    let mut written = reset(view, plan);
    if written.is_empty() {
        let round = Round::of(view, plan);
        for Chosen { member, annotations } in round.chosen {
            let effect = patch::update(view, member, annotations, revision);
            plan.add(effect, Purpose::Update { pod: member.pod.reference() });
            written.insert(member.key());
        }
        tell_not_upgradable(view, &round.not_upgradable, plan);
    }
    tell_upgradable(view, &written, plan);
}

/// Ends hot upgrades whose new twin works. The pods that are written to.
fn reset(view: &View<'_>, plan: &mut Plan) -> BTreeSet<ObjectKey> {
    let mut written = BTreeSet::new();
    let mut under_way = 0;
    for member in &view.pods {
        if !hot::is_reset_due(member, view.desired) && !hot::is_stuck(member, view.desired) {
            under_way += usize::from(member.is_updated && hot::is_under_way(member, view.desired));
            continue;
        }
        if is_held(view, member, plan) {
            continue;
        }
        plan.add(patch::reset(view, member), Purpose::Reset { pod: member.pod.reference() });
        written.insert(member.key());
    }
    if under_way > 0 {
        plan.reasons
            .push(format!("{under_way} pods run both images of a hot upgrade until the new one is ready"));
    }
    written
}

/// Whether a pod must not be written now.
fn is_held(view: &View<'_>, member: &Member<'_>, plan: &mut Plan) -> bool {
    let Some(why) = view.seen.held.get(&member.key()) else { return false };
    plan.reasons.push(format!("pod {} cannot be updated now: {why}", member.key()));
    plan.wake(HELD_RETRY);
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
            let count = not_upgradable.len();
            plan.reasons.push(format!("{count} pods must be made anew: more than images changed"));
        }
        let (waiting, unsettled): (Vec<&Member<'_>>, Vec<&Member<'_>>) =
            upgradable.into_iter().partition(|member| member.is_settled(desired));
        if !unsettled.is_empty() {
            plan.reasons.push(format!("{} pods are still on their way to an earlier image", unsettled.len()));
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
    if kept > 0 {
        plan.reasons.push(format!(
            "{kept} pods stay as they are: the partition keeps {} of {}",
            limits.kept,
            all.len()
        ));
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
            Err(error) => plan.failures.push(format!("pod {} cannot be updated: {error}", member.key())),
        }
    }
    let count = taken(free.iter().map(|one| one.member.is_ready), used, limits);
    if let Some(Chosen { member: next, .. }) = free.get(count) {
        let now_down = used + free.iter().take(count).filter(|one| one.member.is_ready).count();
        plan.reasons.push(format!(
            "pod {} waits for its update: {now_down} pods are unavailable, {} may be",
            next.key(),
            limits.max_unavailable
        ));
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
fn tell_not_upgradable(view: &View<'_>, members: &[&Member<'_>], plan: &mut Plan) {
    let writes: Vec<Effect> = members
        .iter()
        .filter_map(|member| condition::write(member.pod, view.desired.name, false, view.seen.now))
        .collect();
    if !writes.is_empty() {
        plan.add(Effect::Event(purpose::not_upgradable(&view.set, members.len())), Purpose::Quiet);
    }
    writes.into_iter().for_each(|write| plan.add(write, Purpose::Quiet));
}

/// Marks the pods that were updated in place, or were said to be impossible to update and now are what they should be.
fn tell_upgradable(view: &View<'_>, written: &BTreeSet<ObjectKey>, plan: &mut Plan) {
    for member in view.pods.iter().filter(|member| member.is_updated) {
        let is_told = condition::says(member.pod, view.desired.name);
        if is_told == Some(true)
            || (is_told.is_none() && !member.was_updated)
            || written.contains(&member.key())
        {
            continue;
        }
        if let Some(effect) = condition::write(member.pod, view.desired.name, true, view.seen.now) {
            plan.add(effect, Purpose::Quiet);
        }
    }
}

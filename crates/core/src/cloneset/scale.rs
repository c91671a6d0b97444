//! Adding and removing pods.

use std::collections::BTreeSet;

use kruise_api::{gates::Gate, lifecycle::State};

use super::{
    Numbers, Plan, Purpose, numbers,
    plan::is_preparing_delete,
    pods,
    purpose::event,
    status::FAILED_SCALE,
    view::{View, instance_id},
};
use crate::{
    claims, conditions,
    deletion_order::{Placement, deletion_order},
    effect::{Effect, Level},
    lifecycle,
    plan::Part,
    pod::Pod,
    pod_deletion,
    revision::{Revision, Revisions, is_on},
    text::Text,
    waiting::{Reason, text},
};

/// What scaling does next.
#[derive(Default)]
pub(super) struct Scaled {
    pub(super) plan: Plan,
    /// Pods are added or removed: then no update begins in this reconcile.
    pub(super) stops: bool,
    /// The ids of pods to come. Their claims may be there before them.
    pub(super) ids: Vec<Text>,
}

/// Removing pods stops updates, if any is removed.
impl From<Plan> for Scaled {
    fn from(plan: Plan) -> Self {
        Self { stops: !plan.steps.is_empty(), plan, ids: Vec::new() }
    }
}

/// How many pods with claims of their own a pass makes. What there is room for changes from pass to pass, and with it would
/// change for which ids claims are made; this number does not.
const WITH_CLAIMS_AT_ONCE: usize = 50;

/// Plans the next step of scaling.
pub(super) fn run(view: &View<'_>, revisions: &Revisions<'_>) -> Scaled {
    let cancelled = cancel_deletions(view);
    if !cancelled.steps.is_empty() {
        return cancelled.into();
    }
    let treat_as_new = view.gate(Gate::PreparingUpdateAsUpdate);
    let is_new = |pod: &Pod| {
        is_on(pod, &revisions.update) || (treat_as_new && lifecycle::is(pod, &State::PreparingUpdate))
    };
    let numbers = numbers(&view.limits(revisions), &view.counts(&is_new));
    if numbers.up > 0 {
        return scale_out(view, revisions, &numbers);
    }
    let released = delete_released(view);
    if !released.steps.is_empty() {
        return released.into();
    }
    let mut budget = numbers.delete_ready;
    let goes = |pod: &&Pod| view.is_specified(pod) && !is_preparing_delete(pod) && !pod.metadata.unreadable;
    let specified: Vec<&Pod> = view.pods.iter().copied().filter(goes).collect();
    // Pods that are not available are deleted at once, but the budget counted them as if they were.
    budget -= i64::try_from(specified.iter().filter(|pod| !view.serves(pod)).count()).unwrap_or(i64::MAX);
    let mut plan = remove(view, &specified, &mut budget, &deletion, "its deletion was asked for");
    if !plan.steps.is_empty() {
        return plan.into();
    }
    let someone_goes = view
        .pods
        .iter()
        .any(|pod| (view.is_specified(pod) || is_preparing_delete(pod)) && !pod.metadata.unreadable);
    if numbers.down > 0 && !someone_goes {
        let surplus = surplus(view, &numbers, &is_new);
        plan.join(remove(view, &surplus, &mut budget, &deletion, "more pods than replicas"));
    }
    plan.into()
}

/// Pods that wait for their deletion are kept when they are needed again.
fn cancel_deletions(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    if !lifecycle::can_cancel(view.desired.lifecycle.as_ref()) {
        return plan;
    }
    let count = |pods: usize| i64::try_from(pods).unwrap_or(i64::MAX);
    let going = view.pods.iter().filter(|pod| view.is_specified(pod) || is_preparing_delete(pod)).count();
    let needed = view.desired.replicas - count(view.pods.len()) + count(going);
    let waiting = view
        .pods
        .iter()
        .filter(|pod| is_preparing_delete(pod) && !view.is_specified(pod) && !pod.metadata.unreadable);
    for pod in waiting.take(usize::try_from(needed).unwrap_or(0)) {
        if let Some(effect) = lifecycle::cancel_delete(pod, view.now()) {
            plan.add(effect, Purpose::Quiet(Part::Scale), "it is needed again");
        }
    }
    plan
}

fn scale_out(view: &View<'_>, revisions: &Revisions<'_>, numbers: &Numbers) -> Scaled {
    let limit = numbers.up_limit;
    let at_most =
        if view.desired.claims.is_empty() { view.seen.write_budget.pods } else { WITH_CLAIMS_AT_ONCE };
    let ids = pods::ids(view, usize::try_from(limit).unwrap_or(0), at_most);
    let mut plan = Plan::default();
    pods::next_patience(view).into_iter().for_each(|patience| plan.wake(patience));
    if numbers.up > limit {
        let message = format!("scaleUp is limited because of scaleStrategy.maxUnavailable, limit: {limit}");
        let most = usize::try_from(view.desired.scale_max_unavailable).unwrap_or(usize::MAX);
        let sentence = format!(
            "{} unavailable (scaleStrategy.maxUnavailable: {}); {} still missing",
            text::of_at_most(view.unavailable(), most),
            view.desired.spelled.scale_max_unavailable,
            text::pods_are(usize::try_from(numbers.up).unwrap_or(0)),
        );
        plan.waits.add(Reason::MaxUnavailableReached, sentence);
        let event = Effect::Event(event(&view.set, Level::Warning, "ScaleUpLimited", message));
        plan.add(event, Purpose::Quiet(Part::Housekeeping), "scaleStrategy.maxUnavailable is reached");
    }
    let old = usize::try_from(numbers.up_old).unwrap_or(0);
    for (index, id) in ids.iter().enumerate() {
        let revision = if index < old { &revisions.current } else { &revisions.update };
        plan.join(create(view, revision, id));
    }
    if ids.is_empty() && limit > 0 {
        let going = view.seen.claims.iter().filter(|claim| claim.is_deleting());
        if let Some(claim) = going.min_by(|left, right| left.name.cmp(&right.name)) {
            let pod = instance_id(claim).map(|id| pods::name(view, id)).unwrap_or_default();
            let sentence =
                format!("claim {} is being deleted; pod {pod} is created when it is gone", claim.name);
            plan.waits.add(Reason::ClaimTerminating, sentence);
        }
    }
    // Pods that cannot be made, for instance because of a quota, must not hold up the update of those that exist.
    Scaled { stops: !ids.is_empty() && !is_failing(view), plan, ids }
}

fn is_failing(view: &View<'_>) -> bool {
    let status = view.seen.set.status.as_ref();
    status.is_some_and(|status| conditions::is_true(&status.conditions, FAILED_SCALE))
}

/// Makes the claims of a pod, and in a later reconcile, when they are there, the pod: one without its claims would wait
/// for ever.
fn create(view: &View<'_>, revision: &Revision, id: &str) -> Plan {
    let mut plan = Plan::default();
    let claims = pods::claims(view, id);
    if claims.is_empty() {
        let purpose = Purpose::CreatePod(pods::name(view, id).into());
        plan.add(pods::pod(view, revision, id), purpose, "fewer pods than replicas");
    }
    for (name, effect) in claims {
        plan.add(effect, Purpose::CreateClaim(name), "a pod that comes next needs it");
    }
    plan
}

/// Deletes pods whose hook lets them go. Those that still wait are held not ready, if that is wanted.
fn delete_released(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    for pod in view.pods.iter().filter(|pod| is_preparing_delete(pod) && !pod.metadata.unreadable) {
        plan.join(delete(view, pod, false, deletion(pod), "its preDelete hook holds it no longer"));
    }
    plan
}

fn deletion(pod: &Pod) -> Purpose {
    Purpose::DeletePod(pod.metadata.name.clone())
}

/// Deletes pods of which an update makes new ones, as if they had been asked to go and were looked at again: the budget
/// counts those that stay.
pub(super) fn replace(view: &View<'_>, pods: &[&Pod], revision: &Revision) -> Plan {
    let count = |pods: usize| i64::try_from(pods).unwrap_or(i64::MAX);
    let replaced: BTreeSet<&Text> = pods.iter().map(|pod| &pod.metadata.uid).collect();
    let goes = |pod: &Pod| view.is_specified(pod) || replaced.contains(&pod.metadata.uid);
    let is_away = |pod: &&&Pod| is_preparing_delete(pod) || (!goes(pod) && !view.is_available(pod));
    let away = count(view.pods.iter().filter(is_away).count());
    let spare = view.desired.max_unavailable + count(view.pods.len()) - view.desired.replicas;
    let mut budget = (spare - away).max(0);
    budget -= count(view.pods.iter().filter(|pod| goes(pod) && !view.serves(pod)).count());
    let purpose = |pod: &Pod| Purpose::Replace {
        pod: pod.metadata.name.clone(),
        revision: revision.metadata.name.clone(),
    };
    remove(view, pods, &mut budget, &purpose, "it is replaced by a pod of the new revision")
}

/// Removes pods: those that serve nobody at once, the others as far as the budget goes.
fn remove(
    view: &View<'_>,
    pods: &[&Pod],
    budget: &mut i64,
    purpose: &dyn Fn(&Pod) -> Purpose,
    why: &'static str,
) -> Plan {
    let mut plan = Plan::default();
    let mut held_back: Option<&Pod> = None;
    for pod in pods {
        let serves = view.serves(pod);
        if serves && *budget <= 0 {
            held_back.get_or_insert(pod);
            continue;
        }
        // One that begins to serve just now must not go where nobody may: then it has another version.
        let only_as_seen = !serves && *budget <= 0;
        *budget -= i64::from(serves);
        plan.join(delete(view, pod, only_as_seen, purpose(pod), why));
    }
    if let Some(next) = held_back {
        let most = usize::try_from(view.desired.max_unavailable).unwrap_or(0);
        let sentence = format!(
            "{} unavailable (maxUnavailable: {}); next to delete: {}",
            text::of_at_most(view.down(i64::try_from(view.unavailable()).unwrap_or(0)), most),
            view.desired.spelled.max_unavailable,
            next.metadata.name,
        );
        plan.waits.add(Reason::MaxUnavailableReached, sentence);
    }
    plan
}

/// The pods that are too many: first from the old side as far as it has too many, then from the new side.
fn surplus<'a>(view: &View<'a>, numbers: &Numbers, is_new: &dyn Fn(&Pod) -> bool) -> Vec<&'a Pod> {
    // One that cannot be read counts, but nobody touches it: others go in its place.
    let known = view.pods.iter().copied().filter(|pod| !pod.metadata.unreadable);
    let (new, old): (Vec<&Pod>, Vec<&Pod>) = known.partition(|pod| is_new(pod));
    let from_old = numbers.down.min(numbers.down_old);
    let mut chosen = first(view, &old, from_old);
    chosen.extend(first(view, &new, numbers.down - from_old));
    chosen
}

fn first<'a>(view: &View<'_>, candidates: &[&'a Pod], wanted: i64) -> Vec<&'a Pod> {
    let wanted = usize::try_from(wanted).unwrap_or(0);
    if wanted >= candidates.len() {
        return candidates.to_vec();
    }
    let placement = Placement {
        is_available: &|pod| view.is_available(pod),
        topology_keys: &view.desired.topology_keys,
        nodes: &view.seen.nodes,
    };
    deletion_order(candidates, &placement).into_iter().take(wanted).collect()
}

/// Deletes a pod with its claims, or asks its hook first.
fn delete(view: &View<'_>, pod: &Pod, only_as_seen: bool, purpose: Purpose, why: &'static str) -> Plan {
    let mut plan = Plan::default();
    let hook = view.desired.lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_delete.as_ref());
    match pod_deletion::next(pod, hook, view.now()) {
        pod_deletion::Step::Wait(write) => {
            if let Some(effect) = write {
                plan.add(effect, Purpose::Quiet(Part::Scale), "its preDelete hook is asked");
            }
            return plan;
        }
        pod_deletion::Step::Delete(_) if only_as_seen => {
            plan.add(pod_deletion::delete_as_seen(pod), purpose, why);
        }
        pod_deletion::Step::Delete(effect) => plan.add(effect, purpose, why),
    }
    let Some(id) = instance_id(&pod.metadata) else { return plan };
    let own = view.seen.claims.iter();
    let mut own: Vec<_> =
        own.filter(|claim| !claim.is_deleting() && instance_id(claim) == Some(id)).collect();
    own.sort_by(|left, right| left.name.cmp(&right.name));
    for claim in own {
        let purpose = Purpose::DeleteClaim(claim.name.clone());
        plan.add(claims::delete_with_pod(claim), purpose, "its pod is deleted");
    }
    plan
}

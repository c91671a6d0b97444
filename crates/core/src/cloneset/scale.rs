//! Adding and removing pods.

use std::collections::BTreeSet;

use kruise_api::{gates::Gate, lifecycle::State};

use super::{
    Numbers, Part, Plan, Purpose, claims, numbers,
    plan::is_preparing_delete,
    pods,
    purpose::event,
    status::FAILED_SCALE,
    view::{Revisions, View, instance_id, is_on},
};
use crate::{
    deletion_order::{Placement, deletion_order},
    effect::{Effect, Level, Target},
    lifecycle,
    object::{PERSISTENT_VOLUME_CLAIM, POD},
    pod::Pod,
    revision::Revision,
    text::Text,
};

/// What scaling did to a plan.
pub(super) struct Scaled {
    /// It changes something: then no pod is updated in this pass.
    pub(super) stops: bool,
    /// The ids of pods to come. Their claims may be there before them.
    pub(super) ids: Vec<Text>,
}

/// How many pods with claims of their own a pass makes. What there is room for changes from pass to pass, and with it would
/// change for which ids claims are made; this number does not.
const WITH_CLAIMS_AT_ONCE: usize = 50;

/// Plans the next step of scaling.
pub(super) fn run(view: &View<'_>, revisions: &Revisions<'_>, plan: &mut Plan) -> Scaled {
    let mut ids = Vec::new();
    let stops = step(view, revisions, &mut ids, plan);
    Scaled { stops, ids }
}

fn step(view: &View<'_>, revisions: &Revisions<'_>, ids: &mut Vec<Text>, plan: &mut Plan) -> bool {
    let before = plan.effects.len();
    cancel_deletions(view, plan);
    if plan.effects.len() > before {
        return true;
    }
    let treat_as_new = view.gate(Gate::PreparingUpdateAsUpdate);
    let is_new = |pod: &Pod| {
        is_on(pod, &revisions.update) || (treat_as_new && lifecycle::is(pod, &State::PreparingUpdate))
    };
    let numbers = numbers(&view.limits(revisions), &view.counts(&is_new));
    if numbers.up > 0 {
        let room = if view.desired.claims.is_empty() { view.seen.room.pods } else { WITH_CLAIMS_AT_ONCE };
        *ids = pods::ids(view, usize::try_from(numbers.up_limit).unwrap_or(0), room);
        if let Some(patience) = pods::next_patience(view) {
            plan.wake(patience);
        }
        return scale_out(view, revisions, &numbers, ids, plan);
    }
    delete_released(view, plan);
    if plan.effects.len() > before {
        return true;
    }
    let mut budget = numbers.delete_ready;
    let specified: Vec<&Pod> =
        view.pods.iter().copied().filter(|pod| view.is_specified(pod) && !is_preparing_delete(pod)).collect();
    // Pods that serve nobody go at once, but the budget counted them as if they did.
    budget -= i64::try_from(specified.iter().filter(|pod| !view.serves(pod)).count()).unwrap_or(i64::MAX);
    remove(view, &specified, &mut budget, &deletion, plan);
    if plan.effects.len() > before {
        return true;
    }
    let someone_goes = view.pods.iter().any(|pod| view.is_specified(pod) || is_preparing_delete(pod));
    if numbers.down > 0 && !someone_goes {
        remove(view, &surplus(view, &numbers, &is_new), &mut budget, &deletion, plan);
    }
    plan.effects.len() > before
}

/// Pods that wait for their deletion are kept when they are needed again.
fn cancel_deletions(view: &View<'_>, plan: &mut Plan) {
    if !lifecycle::can_cancel(view.desired.lifecycle.as_ref()) {
        return;
    }
    let count = |pods: usize| i64::try_from(pods).unwrap_or(i64::MAX);
    let going = view.pods.iter().filter(|pod| view.is_specified(pod) || is_preparing_delete(pod)).count();
    let needed = view.desired.replicas - count(view.pods.len()) + count(going);
    let waiting = view.pods.iter().filter(|pod| is_preparing_delete(pod) && !view.is_specified(pod));
    for pod in waiting.take(usize::try_from(needed).unwrap_or(0)) {
        if let Some(effect) = lifecycle::cancel_delete(pod, view.now()) {
            plan.add(effect, Purpose::Quiet(Part::Scale));
        }
    }
}

fn scale_out(
    view: &View<'_>,
    revisions: &Revisions<'_>,
    numbers: &Numbers,
    ids: &[Text],
    plan: &mut Plan,
) -> bool {
    let limit = numbers.up_limit;
    if numbers.up > limit {
        let message = format!("scaleUp is limited because of scaleStrategy.maxUnavailable, limit: {limit}");
        plan.reasons.push(format!("{} pods are missing, but only {limit} may be made now", numbers.up));
        plan.add(
            Effect::Event(event(&view.set, Level::Warning, "ScaleUpLimited", message)),
            Purpose::Quiet(Part::Housekeeping),
        );
    }
    let old = usize::try_from(numbers.up_old).unwrap_or(0);
    let mut changed = false;
    for (index, id) in ids.iter().enumerate() {
        let revision = if index < old { &revisions.current } else { &revisions.update };
        create(view, revision, id, plan);
        changed = true;
    }
    if !changed && limit > 0 {
        plan.reasons.push(
            "a pod that is to come back with its claims waits until what is deleted has gone".to_owned(),
        );
    }
    // Pods that cannot be made, for instance because of a quota, must not hold up the update of those that exist.
    changed && !is_failing(view)
}

fn is_failing(view: &View<'_>) -> bool {
    let conditions = view.seen.set.status.as_ref().map(|status| status.conditions.as_slice());
    conditions
        .unwrap_or_default()
        .iter()
        .any(|condition| condition.kind == FAILED_SCALE && condition.status == "True")
}

/// Makes the claims of a pod, and in a later pass, when they are there, the pod: one without its claims would wait for
/// ever.
fn create(view: &View<'_>, revision: &Revision, id: &str, plan: &mut Plan) {
    let namespace = &view.set.key.namespace;
    let claims = pods::claims(view, id);
    if claims.is_empty() {
        let object = pods::pod(view, revision, id);
        let effect = Effect::Create { resource: POD, namespace: namespace.clone(), object };
        plan.add(effect, Purpose::CreatePod(pods::name(view, id).into()));
    }
    for (name, object) in claims {
        let effect =
            Effect::Create { resource: PERSISTENT_VOLUME_CLAIM, namespace: namespace.clone(), object };
        plan.add(effect, Purpose::CreateClaim(name));
    }
}

/// Deletes pods whose hook lets them go. Those that still wait are held not ready, if that is wanted.
fn delete_released(view: &View<'_>, plan: &mut Plan) {
    for pod in view.pods.iter().filter(|pod| is_preparing_delete(pod)) {
        delete(view, pod, false, deletion(pod), plan);
    }
}

fn deletion(pod: &Pod) -> Purpose {
    Purpose::DeletePod(pod.metadata.name.clone())
}

/// Deletes pods of which an update makes new ones, as if they had been asked to go and were looked at again: the budget
/// counts those that stay.
pub(super) fn replace(view: &View<'_>, pods: &[&Pod], revision: &Revision, plan: &mut Plan) {
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
    remove(view, pods, &mut budget, &purpose, plan);
}

/// Removes pods: those that serve nobody at once, the others as far as the budget goes.
fn remove(
    view: &View<'_>,
    pods: &[&Pod],
    budget: &mut i64,
    purpose: &dyn Fn(&Pod) -> Purpose,
    plan: &mut Plan,
) {
    let mut held_back = 0;
    for pod in pods {
        let serves = view.serves(pod);
        if serves && *budget <= 0 {
            held_back += 1;
            continue;
        }
        // One that begins to serve just now must not go where nobody may: then it has another version.
        let only_as_seen = !serves && *budget <= 0;
        *budget -= i64::from(serves);
        delete(view, pod, only_as_seen, purpose(pod), plan);
    }
    if held_back > 0 {
        plan.reasons.push(format!(
            "{held_back} ready pods are to go, but no more than {} may be unavailable",
            view.desired.max_unavailable
        ));
    }
}

/// The pods that are too many: first from the old side as far as it has too many, then from the new side.
fn surplus<'a>(view: &View<'a>, numbers: &Numbers, is_new: &dyn Fn(&Pod) -> bool) -> Vec<&'a Pod> {
    let (new, old): (Vec<&Pod>, Vec<&Pod>) = view.pods.iter().copied().partition(|pod| is_new(pod));
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
fn delete(view: &View<'_>, pod: &Pod, only_as_seen: bool, purpose: Purpose, plan: &mut Plan) {
    let hook = view.desired.lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_delete.as_ref());
    if lifecycle::is_hooked(hook, pod) {
        if let Some(effect) = lifecycle::prepare_delete(pod, hook, view.now()) {
            plan.add(effect, Purpose::Quiet(Part::Scale));
        }
        return;
    }
    let mut target = Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone());
    if only_as_seen {
        target = target.at_version(pod.metadata.resource_version.clone());
    }
    plan.add(Effect::Delete { target, grace: None, follows: false }, purpose);
    let Some(id) = instance_id(&pod.metadata) else { return };
    let mut own: Vec<_> = view
        .seen
        .claims
        .iter()
        .filter(|claim| !claim.is_deleting() && instance_id(claim) == Some(id))
        .collect();
    own.sort_by(|left, right| left.name.cmp(&right.name));
    for claim in own {
        plan.add(claims::delete_with_pod(claim), Purpose::DeleteClaim(claim.name.clone()));
    }
}

//! What to do next.

use std::sync::Arc;

use kruise_api::lifecycle::State;
use serde_json::json;

use super::{
    CLONE_SET, Claim, Desired, Observed, Purpose, Standing, claims, pre_download, scale, update,
    view::{self, View},
};
use crate::{
    availability::time_until_available,
    causes,
    effect::{Effect, Patch, Target},
    in_place, lifecycle, ownership,
    plan::{self, Part, Step},
    pod::Pod,
    revision::{self, Revision, Revisions},
    text::Text,
    waiting::Reason,
};

/// What to do next, as data.
pub type Plan = plan::Plan<Purpose>;

/// Decides one safe step, and says how things stand: both from one look at the pods.
pub fn decide(seen: &Observed) -> (Plan, Standing) {
    let desired = match Desired::of(seen) {
        Ok(desired) => desired,
        Err(error) => {
            let error = causes::told(&error);
            let mut plan = Plan::default();
            let sentence = format!("the spec cannot be carried out: {error}");
            plan.waits.add(Reason::SpecInvalid, sentence);
            plan.fail(Part::Scale, error.as_str());
            return (plan, Standing::broken(error));
        }
    };
    let view = View::new(seen, &desired);
    let revisions = view.revisions();
    let standing = Standing::new(&view, &revisions);
    if seen.set.metadata.deletion_timestamp.is_some() {
        return (Plan::default(), standing);
    }
    let mut plan = next(&view, &revisions);
    if let Some(deadline) = standing.deadline(seen) {
        plan.wake(deadline);
    }
    (plan, standing)
}

/// Decides one safe step.
pub fn plan(seen: &Observed) -> Plan {
    decide(seen).0
}

fn next(view: &View<'_>, revisions: &Revisions<'_>) -> Plan {
    let mut plan = Plan::default();
    // A revision comes before everything that refers to it.
    if let Some(effect) = revisions.write(&view.set.key.namespace) {
        plan.add(effect, Purpose::Quiet(Part::Update), "the template has no newest revision");
        return plan;
    }
    plan.join(release(view));
    plan.join(pre_download::run(view, revisions));
    let scaled = scale::run(view, revisions);
    plan.join(scaled.plan);
    plan.join(claims::clean_up(view, &scaled.ids, &claims::deleted(&plan)));
    plan.join(update::run(view, revisions, scaled.stops, &plan));
    plan.join(forget_names(view));
    plan.join(truncate(view, revisions));
    let left = view.pods.iter();
    let left = left.filter_map(|pod| time_until_available(pod, view.desired.min_ready, view.now())).min();
    left.into_iter().for_each(|left| plan.wake(left));
    plan.waits.wake_after().into_iter().for_each(|left| plan.wake(left));
    // Claims come a reconcile before their pods and belong to ids of this very plan: then no pod may be left out.
    let has_claims = !view.desired.claims.is_empty();
    let must_stay = |step: &Step<Purpose>| has_claims && matches!(step.effect, Effect::Create { .. });
    plan.keep_to(view.seen.write_budget, &must_stay);
    plan
}

/// Releases pods whose labels were changed. They run on without us, with their claims, which come first: once the pod is
/// released, nothing shows any more whose they are.
fn release(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    let has_claims = |pod: &&&Pod| {
        view::instance_id(&pod.metadata).is_some_and(|id| {
            let is_its = |claim: &Arc<Claim>| !claim.is_deleting() && view::instance_id(claim) == Some(id);
            view.seen.claims.iter().any(is_its)
        })
    };
    for pod in view.released.iter().filter(|pod| !has_claims(pod)) {
        let effect = ownership::release(pod, &view.set);
        plan.add(effect, Purpose::Quiet(Part::Scale), "the selector does not match it any more");
    }
    plan
}

/// Removes names from `podsToDelete` that are no active pods any more.
fn forget_names(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    let metadata = &view.seen.set.metadata;
    let names = view.seen.set.spec.scale_strategy.as_ref().map(|scale| scale.pods_to_delete.as_slice());
    let names = names.unwrap_or_default();
    let is_there = |name: &&String| view.pods.iter().any(|pod| pod.metadata.name == name.as_str());
    let kept: Vec<&String> = names.iter().filter(is_there).collect();
    if kept.len() == names.len() {
        return plan;
    }
    let target = Target::with_uid(CLONE_SET, view.set.key.clone(), view.set.uid.clone())
        .at_version(Text::from(metadata.resource_version.as_deref().unwrap_or_default()));
    let patch = Patch::Merge(json!({"spec": {"scaleStrategy": {"podsToDelete": kept}}}));
    let effect = Effect::Patch { target, subresource: None, patch };
    plan.add(effect, Purpose::Quiet(Part::Housekeeping), "a pod in podsToDelete is gone");
    plan
}

/// Deletes revisions that nobody needs, beyond those that are kept for going back.
fn truncate(view: &View<'_>, revisions: &Revisions<'_>) -> Plan {
    // A pod whose update is under way may have to go back.
    let updating = view.pods.iter().filter(|pod| lifecycle::is(pod, &State::Updating));
    let left: Vec<Text> =
        updating.filter_map(|pod| Some(in_place::state::read(pod).ok()??.previous_revision)).collect();
    let is_used = |one: &Revision| {
        left.iter().any(|left| *left == *one.name()) || view.pods.iter().any(|pod| revision::is_on(pod, one))
    };
    let mut plan = Plan::default();
    for effect in revisions.truncate(view.desired.history_limit, &is_used) {
        plan.add(effect, Purpose::Quiet(Part::Housekeeping), "beyond revisionHistoryLimit");
    }
    plan
}

pub(super) fn is_preparing_delete(pod: &Pod) -> bool {
    lifecycle::is(pod, &State::PreparingDelete)
}

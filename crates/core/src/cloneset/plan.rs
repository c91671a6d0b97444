//! What to do next.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use kruise_api::lifecycle::State;
use serde_json::json;

use super::{
    CLONE_SET, Claim, Desired, Failures, Observed, Part, Purpose, Room, Standing, claims, pre_download,
    scale, update,
    view::{self, Revisions, View},
};
use crate::{
    causes,
    effect::{Effect, Patch, Target},
    lifecycle,
    object::CONTROLLER_REVISION,
    pod::Pod,
    revision::{self, Found},
    text::Text,
};

/// What to do next, as data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes, in any order.
    pub effects: Vec<Effect>,
    /// What each of them is for, in the same order.
    pub purposes: Vec<Purpose>,
    /// When to look again, if nothing happens before.
    pub wake_after: Option<Duration>,
    /// Why something waits, with the numbers.
    pub reasons: Vec<String>,
    /// What cannot be done as things stand: errors without a write.
    pub failures: Failures,
}

impl Plan {
    pub(super) fn add(&mut self, effect: Effect, purpose: Purpose) {
        self.effects.push(effect);
        self.purposes.push(purpose);
    }

    /// Leaves what has no room to a later pass. Claims come a pass before their pods and belong to ids of this very plan:
    /// then no pod may be left out.
    fn keep_to(&mut self, mut room: Room, has_claims: bool) {
        let both = std::mem::take(&mut self.effects).into_iter().zip(std::mem::take(&mut self.purposes));
        let mut fits = true;
        let kept = both.filter(|(effect, _)| {
            // What follows another write goes or stays with it.
            if !matches!(effect, Effect::Delete { follows: true, .. }) {
                fits = room.take(effect) || (has_claims && matches!(effect, Effect::Create { .. }));
            }
            fits
        });
        (self.effects, self.purposes) = kept.unzip();
    }

    pub(super) fn wake(&mut self, after: Duration) {
        self.wake_after = Some(self.wake_after.map_or(after, |known| known.min(after)));
    }
}

/// Decides one safe step, and says how things stand: both from one look at the pods.
pub fn decide(seen: &Observed) -> (Plan, Standing) {
    let desired = match Desired::of(seen) {
        Ok(desired) => desired,
        Err(error) => {
            let error = causes::told(&error);
            let failures = Failures { scale: Some(error.clone()), ..Failures::default() };
            let plan = Plan { failures, reasons: vec![error.clone()], ..Plan::default() };
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
    match &revisions.found {
        Found::Missing(new) => {
            let effect = Effect::Create {
                resource: CONTROLLER_REVISION,
                namespace: view.set.key.namespace.clone(),
                object: new.object.clone(),
            };
            plan.add(effect, Purpose::Quiet(Part::Update));
            return plan;
        }
        Found::Older(_, effect) => {
            plan.add(effect.clone(), Purpose::Quiet(Part::Update));
            return plan;
        }
        Found::Newest(_) => {}
    }
    release(view, &mut plan);
    pre_download::run(view, revisions, &mut plan);
    let scaled = scale::run(view, revisions, &mut plan);
    claims::clean_up(view, &scaled.ids, &mut plan);
    update::run(view, revisions, scaled.stops, &mut plan);
    forget_names(view, &mut plan);
    truncate(view, revisions, &mut plan);
    wake_when_ready(view, &mut plan);
    plan.keep_to(view.seen.room, !view.desired.claims.is_empty());
    plan
}

/// Lets go of pods whose labels were changed. They run on without us, with their claims, which come first: once the pod
/// is let go, nothing tells any more whose they are.
fn release(view: &View<'_>, plan: &mut Plan) {
    let has_claims = |pod: &&&Pod| {
        view::instance_id(&pod.metadata).is_some_and(|id| {
            let is_its = |claim: &Arc<Claim>| !claim.is_deleting() && view::instance_id(claim) == Some(id);
            view.seen.claims.iter().any(is_its)
        })
    };
    for pod in view.released.iter().filter(|pod| !has_claims(pod)) {
        let change = json!({"metadata": {"ownerReferences": [{"$patch": "delete", "uid": view.set.uid}]}});
        plan.add(lifecycle::patch(pod, change), Purpose::Quiet(Part::Scale));
    }
}

/// Removes names from `podsToDelete` that are no active pods any more.
fn forget_names(view: &View<'_>, plan: &mut Plan) {
    let metadata = &view.seen.set.metadata;
    let names = view.seen.set.spec.scale_strategy.as_ref().map(|scale| scale.pods_to_delete.as_slice());
    let names = names.unwrap_or_default();
    let is_there = |name: &&String| view.pods.iter().any(|pod| pod.metadata.name == name.as_str());
    let kept: Vec<&String> = names.iter().filter(is_there).collect();
    if kept.len() == names.len() {
        return;
    }
    let target = Target::with_uid(CLONE_SET, view.set.key.clone(), view.set.uid.clone())
        .at_version(Text::from(metadata.resource_version.as_deref().unwrap_or_default()));
    let patch = Patch::Merge(json!({"spec": {"scaleStrategy": {"podsToDelete": kept}}}));
    plan.add(Effect::Patch { target, subresource: None, patch }, Purpose::Quiet(Part::Housekeeping));
}

/// Deletes revisions that nobody needs, beyond those that are kept for going back.
fn truncate(view: &View<'_>, revisions: &Revisions<'_>, plan: &mut Plan) {
    let is_live = |one: &revision::Revision| {
        one.name() == revisions.update.name()
            || one.name() == revisions.current.name()
            || view.pods.iter().any(|pod| view::is_on(pod, one))
    };
    for old in revision::outdated(&revisions.all, view.desired.history_limit, &is_live) {
        let target = Target::with_uid(CONTROLLER_REVISION, old.metadata.key(), old.metadata.uid.clone());
        plan.add(Effect::Delete { target, grace: None, follows: false }, Purpose::Quiet(Part::Housekeeping));
    }
}

/// Looks again when the next pod has been ready for long enough.
fn wake_when_ready(view: &View<'_>, plan: &mut Plan) {
    let left = view
        .pods
        .iter()
        .filter(|pod| view::is_ready(pod) && lifecycle::is_in_service(pod) && !view.is_available(pod));
    let left = left.filter_map(|pod| {
        let ready = view::ready_for(pod, view.now())?;
        Duration::try_from(view.desired.min_ready.saturating_sub(ready).max(SignedDuration::ZERO)).ok()
    });
    if let Some(left) = left.min() {
        // A pod is available when it has been ready for longer than that.
        plan.wake(left + Duration::from_millis(10));
    }
}

pub(super) fn is_preparing_delete(pod: &Pod) -> bool {
    lifecycle::is(pod, &State::PreparingDelete)
}

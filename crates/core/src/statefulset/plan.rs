//! What to do next.

use super::{Desired, Observed, Purpose, Standing, claims, pre_download, scale, update, view::View, waits};
use crate::{
    causes,
    effect::{Effect, Patch, Target},
    in_place, lifecycle,
    object::CONTROLLER_REVISION,
    ownership,
    plan::Part,
    revision::{self, Revisions},
    text::Text,
    waiting::{Reason, Waits},
};
use kruise_api::lifecycle::State;
use serde_json::json;

/// What to do next, as data.
pub type Plan = crate::plan::Plan<Purpose>;

/// Decides one safe step, and says how things stand: both from one look at the pods.
pub fn decide(seen: &Observed) -> (Plan, Standing) {
    let desired = match Desired::of(seen) {
        Ok(desired) => desired,
        Err(error) => {
            let mut waits = Waits::default();
            let error = causes::told(&error);
            waits.add(Reason::SpecInvalid, format!("the spec cannot be carried out: {error}"));
            return (Plan { waits, ..Plan::default() }, Standing::default());
        }
    };
    let view = View::new(seen, &desired);
    let revisions = view.revisions();
    let mut waits = Waits::default();
    let mut plan = if seen.set.metadata.deletion_timestamp.is_some() {
        Plan::default()
    } else {
        next(&view, &revisions, &mut waits)
    };
    plan.waits = waits;
    (plan, Standing::new(&view, &revisions))
}

/// Decides one safe step.
pub fn plan(seen: &Observed) -> Plan {
    decide(seen).0
}

fn next(view: &View<'_>, revisions: &Revisions<'_>, waits: &mut Waits) -> Plan {
    let mut plan = Plan::default();
    // A revision comes before everything that refers to it.
    if let Some(effect) = revisions.write(&view.set.key.namespace) {
        plan.add(effect, Purpose::Quiet(Part::Update), "the template has changed");
        return plan;
    }
    adopt_revisions(view, revisions, &mut plan);
    for pod in &view.released {
        let effect = ownership::release(pod, &view.set);
        plan.add(effect, Purpose::Quiet(Part::Scale), "the selector does not match it any more");
    }
    for pod in &view.orphans {
        let purpose = Purpose::Adopt(pod.metadata.name.clone());
        plan.add(ownership::adopt(pod, &view.set), purpose, "it has no controller");
    }
    pre_download::run(view, revisions, &mut plan);
    let held = claims::keep_wanted(view, &mut plan);
    let stop = scale::run(view, revisions, waits, &mut plan);
    update::run(view, revisions, stop, waits, &mut plan);
    plan.steps.retain(|step| !matches!(&step.purpose, Purpose::DeletePod(pod) if held.contains(pod)));
    waits::of_set(view, revisions, stop, waits);
    truncate(view, revisions, &mut plan);
    keep_to_budget(view, &mut plan);
    plan
}

/// Claims come a pass before their pods, and belong to slots: no order is lost when a later pass creates the rest.
fn keep_to_budget(view: &View<'_>, plan: &mut Plan) {
    plan.keep_to(view.seen.budget, &|_| false);
}

/// Takes revisions that belong to nobody. They are deleted with the set then.
fn adopt_revisions(view: &View<'_>, revisions: &Revisions<'_>, plan: &mut Plan) {
    for revision in revisions.all.iter().filter(|revision| revision.metadata.controller().is_none()) {
        let metadata = &revision.metadata;
        let target = Target::with_uid(CONTROLLER_REVISION, metadata.key(), metadata.uid.clone())
            .at_version(metadata.resource_version.clone());
        let patch =
            Patch::Strategic(json!({"metadata": {"ownerReferences": [view.set.controller_reference()]}}));
        let purpose = Purpose::Adopt(metadata.name.clone());
        plan.add(Effect::Patch { target, subresource: None, patch }, purpose, "it has no controller");
    }
}

/// Deletes revisions that nobody needs, beyond those that are kept for going back.
fn truncate(view: &View<'_>, revisions: &Revisions<'_>, plan: &mut Plan) {
    // A pod whose update is under way may have to go back.
    let updating = view.pods().filter(|pod| lifecycle::is(pod, &State::Updating));
    let left: Vec<Text> =
        updating.filter_map(|pod| Some(in_place::state::read(pod).ok()??.previous_revision)).collect();
    let is_used = |one: &revision::Revision| {
        left.iter().any(|left| *left == *one.name()) || view.pods().any(|pod| revision::is_on(pod, one))
    };
    for effect in revisions.truncate(view.desired.history_limit, &is_used) {
        plan.add(effect, Purpose::Quiet(Part::Housekeeping), "revisionHistoryLimit");
    }
}

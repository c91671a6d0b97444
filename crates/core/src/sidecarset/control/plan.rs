//! What to do next.

use kruise_api::sidecarset::v1beta1::Status;

use super::{Desired, Observed, Purpose, Updates, pods::View, status, update};
use crate::{
    causes,
    plan::{self, Part},
    sidecarset::revision::{self, Registered},
    waiting::{self, Reason},
};

/// What to do next, as data.
pub type Plan = plan::Plan<Purpose>;

/// Decides one safe step, and says how things stand: both from one look at the pods.
pub fn decide(seen: &Observed) -> (Plan, Status) {
    let desired = match Desired::of(&seen.set) {
        Ok(desired) => desired,
        Err(error) => {
            let mut plan = Plan::default();
            let error = causes::told(&error);
            let sentence = format!("the spec cannot be carried out: {error}");
            plan.waits.add(Reason::SpecInvalid, sentence);
            plan.fail(Part::Update, error);
            return (plan, seen.set.status.clone().unwrap_or_default());
        }
    };
    let view = View::new(seen, &desired);
    let registered = registered(&view);
    let status = status::of(&view, &registered);
    if seen.set.metadata.deletion_timestamp.is_some() {
        return (Plan::default(), status);
    }
    (next(&view, registered), status)
}

/// Decides one safe step.
pub fn plan(seen: &Observed) -> Plan {
    decide(seen).0
}

fn next(view: &View<'_>, registered: Registered) -> Plan {
    let Registered { latest, effects, .. } = registered;
    let mut plan = Plan::default();
    for effect in effects {
        plan.add(effect, Purpose::Quiet, "revisions follow the spec");
    }
    // A revision comes before the pods that refer to it.
    if view.seen.revisions.iter().all(|known| known.name() != latest) {
        return plan;
    }
    let outdated = view.pods.iter().filter(|member| !member.is_updated);
    let (old, all) = (outdated.map(|member| member.pod).collect::<Vec<_>>(), view.pods.len());
    match view.desired.updates {
        Updates::Never if old.is_empty() => {}
        Updates::Never => waiting::on_delete(&old, all, "NotUpdate", &mut plan.waits),
        Updates::Paused if old.is_empty() => {}
        Updates::Paused => {
            let updated = all - old.len();
            waiting::paused("spec.updateStrategy.paused", updated, all, &latest, &mut plan.waits);
        }
        Updates::Rolling => plan.join(update::run(view, &latest)),
    }
    plan
}

/// The revision of the set, and what has to be written for it.
fn registered(view: &View<'_>) -> Registered {
    let is_used = |name: &str| {
        let mut entries = view.pods.iter().filter_map(|member| member.entry.as_ref());
        entries.any(|entry| entry.controller_revision == name)
    };
    revision::register(&view.seen.set, &view.seen.revisions, &view.seen.manager_namespace, &is_used)
}

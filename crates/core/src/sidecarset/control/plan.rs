//! What to do next.

use std::time::Duration;

use kruise_api::sidecarset::v1beta1::Status;

use super::{Desired, Observed, Purpose, Updates, pods::View, status, update};
use crate::{
    causes,
    effect::Effect,
    sidecarset::revision::{self, Registered},
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
    pub failures: Vec<String>,
}

impl Plan {
    pub(super) fn add(&mut self, effect: Effect, purpose: Purpose) {
        self.effects.push(effect);
        self.purposes.push(purpose);
    }

    pub(super) fn wake(&mut self, after: Duration) {
        self.wake_after = Some(self.wake_after.map_or(after, |known| known.min(after)));
    }
}

/// Decides one safe step, and says how things stand: both from one look at the pods.
pub fn decide(seen: &Observed) -> (Plan, Status) {
    let desired = match Desired::of(&seen.set) {
        Ok(desired) => desired,
        Err(error) => {
            let plan = Plan { failures: vec![causes::told(&error)], ..Plan::default() };
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
        plan.add(effect, Purpose::Quiet);
    }
    // A revision comes before the pods that refer to it.
    if view.seen.revisions.iter().all(|known| known.name() != latest) {
        return plan;
    }
    match view.desired.updates {
        Updates::Never => {}
        Updates::Paused => {
            let waiting = view.pods.iter().filter(|member| !member.is_updated).count();
            if waiting > 0 {
                let total = view.pods.len();
                plan.reasons.push(format!("the update is paused: {waiting} of {total} pods wait"));
            }
        }
        Updates::Rolling => update::run(view, &latest, &mut plan),
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

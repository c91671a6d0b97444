//! The status: what the nodes and their pods are like.

use kruise_api::{
    conditions::IN_PLACE_UPDATE_READY,
    daemonset::v1beta1::{DaemonSet, Status},
};

use super::{Observed, reference, view::View};
use crate::{
    availability, conditions,
    effect::Effect,
    pod::{Condition, Pod},
    waiting::{self, Waits},
};

/// The numbers of a status, as a reconcile saw them; nothing of a spec that cannot be carried out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing(Option<Counted>);

#[derive(Clone, Debug, PartialEq)]
struct Counted {
    status: Status,
    /// The reconcile did all that it wanted; otherwise only what has to come first.
    is_whole: bool,
}

impl Standing {
    pub(super) fn new(view: &View<'_>, is_whole: bool) -> Self {
        Self(Some(Counted { status: counted(view), is_whole }))
    }

    /// How many nodes that should have a pod have none.
    pub fn missing(&self) -> usize {
        let missing = |Counted { status, .. }: &Counted| {
            status.desired_number_scheduled - status.current_number_scheduled
        };
        self.0.as_ref().map_or(0, |counted| usize::try_from(missing(counted)).unwrap_or(0))
    }

    /// The status after the reconcile that saw this and waits for this. One that could not do everything does not claim to have
    /// observed the generation.
    pub fn status(&self, seen: &Observed, is_complete: bool, waits: &Waits) -> Status {
        let mut previous = seen.set.status.clone().unwrap_or_default();
        let Some(Counted { status, is_whole }) = &self.0 else {
            waiting::set_condition(&mut previous.conditions, waits, seen.now);
            return previous;
        };
        let observed = if is_complete && *is_whole {
            seen.set.metadata.generation
        } else {
            previous.observed_generation
        };
        let mut status =
            Status { observed_generation: observed, conditions: previous.conditions, ..status.clone() };
        waiting::set_condition(&mut status.conditions, waits, seen.now);
        status
    }
}

/// The write that brings a status up to date, if one is needed.
pub fn status_write(set: &DaemonSet, status: &Status) -> Option<Effect> {
    conditions::status_write(&reference(set), set.status.as_ref(), status)
}

fn counted(view: &View<'_>) -> Status {
    let mut status = Status {
        update_revision: Some(view.revisions.hash().to_string()),
        collision_count: view.revisions.collision_count(view.seen),
        ..Status::default()
    };
    let mut available = 0;
    for place in view.places.values().filter(|place| place.node.is_some()) {
        let Some(stands_for) = place.pods.first() else {
            status.desired_number_scheduled += i32::from(place.fit.should_run);
            continue;
        };
        if !place.fit.should_run {
            status.number_misscheduled += 1;
            continue;
        }
        status.desired_number_scheduled += 1;
        status.current_number_scheduled += 1;
        status.number_ready += i32::from(is_ready(stands_for));
        status.updated_number_scheduled += i32::from(view.is_updated(stands_for));
        available += i32::from(is_available(view, stands_for));
    }
    // The original leaves these two out when they are zero.
    status.number_available = Some(available).filter(|count| *count != 0);
    status.number_unavailable = Some(status.desired_number_scheduled - available).filter(|count| *count != 0);
    status
}

/// By its condition alone, as the original counts: the phase of a pod may lag behind.
fn is_ready(pod: &Pod) -> bool {
    !pod.metadata.unreadable && pod.condition("Ready").is_some_and(Condition::is_true)
}

/// A pod that a hook holds is available as long as it is ready.
fn is_available(view: &View<'_>, pod: &Pod) -> bool {
    is_ready(pod)
        && pod.condition(IN_PLACE_UPDATE_READY).is_none_or(Condition::is_true)
        && availability::has_been_ready_for(pod, view.desired.min_ready, view.now())
}

//! How things stand.

use kruise_api::sidecarset::v1beta1::{SidecarSet, Status};

use super::{
    Observed, decide,
    pods::{Member, View},
};
use crate::{conditions, effect::Effect, sidecarset::revision::Registered};

/// The status after a pass that saw this. A spec that cannot be carried out leaves it as it was.
pub fn status(seen: &Observed) -> Status {
    decide(seen).1
}

pub(super) fn of(view: &View<'_>, registered: &Registered) -> Status {
    let count = |wanted: &dyn Fn(&Member<'_>) -> bool| -> i32 {
        i32::try_from(view.pods.iter().filter(|member| wanted(member)).count()).unwrap_or(i32::MAX)
    };
    let is_ready = |member: &Member<'_>| member.is_consistent && member.is_ready;
    Status {
        observed_generation: view.seen.set.metadata.generation,
        matched_pods: count(&|_| true),
        updated_pods: count(&|member| member.is_updated),
        ready_pods: count(&is_ready),
        updated_ready_pods: Some(count(&|member| member.is_updated && is_ready(member))),
        latest_revision: Some(registered.latest.clone()),
        collision_count: Some(registered.collision_count),
    }
}

/// The write that brings a status up to date, if one is needed.
pub fn status_write(set: &SidecarSet, status: &Status) -> Option<Effect> {
    conditions::status_write(&crate::sidecarset::reference(set), set.status.as_ref(), status)
}

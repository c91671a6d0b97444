//! How things stand.

use kruise_api::sidecarset::v1beta1::{SidecarSet, Status};
use serde_json::json;

use super::{
    Observed, decide,
    pods::{Member, View},
};
use crate::{
    effect::{Effect, Patch, Target},
    merge_patch,
    object::ObjectRef,
    sidecarset::revision::Registered,
};

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
        // The original leaves this one out when it is zero.
        updated_ready_pods: Some(count(&|member| member.is_updated && is_ready(member)))
            .filter(|count| *count != 0),
        latest_revision: Some(registered.latest.clone()),
        collision_count: Some(registered.collision_count),
    }
}

/// The write that brings a status up to date, if one is needed. Nobody else writes it, so it needs no version.
pub fn status_write(set: &SidecarSet, status: &Status) -> Option<Effect> {
    let value = |status: &Status| serde_json::to_value(status).unwrap_or_default();
    let before = set.status.as_ref().map(value).unwrap_or_default();
    let change = merge_patch::between(&before, &value(status))?;
    let ObjectRef { resource, key, uid } = crate::sidecarset::reference(set);
    let patch = Patch::Merge(json!({"status": change}));
    Some(Effect::Patch { target: Target::with_uid(resource, key, uid), subresource: Some("status"), patch })
}

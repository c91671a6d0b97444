//! The write of a status.

use kruise_api::persistentpodstate::v1beta1::{PersistentPodState, Status};
use serde_json::json;

use super::{PERSISTENT_POD_STATE, reference};
use crate::{
    effect::{Effect, Patch, Target},
    merge_patch,
};

/// Writes what differs, only while the object has the version that was read: records of another view are never lost.
pub fn status_write(state: &PersistentPodState, status: &Status) -> Option<Effect> {
    let new = serde_json::to_value(status).unwrap_or_default();
    let change = match &state.status {
        Some(old) => merge_patch::between(&serde_json::to_value(old).unwrap_or_default(), &new)?,
        None => new,
    };
    let found = reference(state);
    let version = state.metadata.resource_version.as_deref().unwrap_or_default();
    let target = Target::with_uid(PERSISTENT_POD_STATE, found.key, found.uid).at_version(version.into());
    let patch = Patch::Merge(json!({"status": change}));
    Some(Effect::Patch { target, subresource: Some("status"), patch })
}

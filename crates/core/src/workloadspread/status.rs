//! The write of a status.

use kruise_api::workloadspread::v1beta1::{Status, WorkloadSpread};
use serde_json::{Value, json};

use super::{WORKLOAD_SPREAD, reference};
use crate::{
    effect::{Effect, Patch, Target},
    merge_patch,
};

/// Writes what differs, only while the object has the version that was read: two writers never both succeed.
pub fn status_write(object: &WorkloadSpread, status: &Status) -> Option<Effect> {
    let value = |status: &Status| serde_json::to_value(status).unwrap_or_default();
    let old = object.status.as_ref().map_or_else(|| json!({}), value);
    let new = value(status);
    if object.status.is_some() && old == new || new == Value::Object(serde_json::Map::new()) {
        return None;
    }
    let change = merge_patch::between(&old, &new)?;
    let found = reference(object);
    let version = object.metadata.resource_version.as_deref().unwrap_or_default();
    let target = Target::with_uid(WORKLOAD_SPREAD, found.key, found.uid).at_version(version.into());
    Some(Effect::Patch {
        target,
        subresource: Some("status"),
        patch: Patch::Merge(json!({"status": change})),
    })
}

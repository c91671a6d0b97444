//! The write of a status.

use kruise_api::podunavailablebudget::v1beta1::{PodUnavailableBudget, Status};
use serde_json::json;

use super::{POD_UNAVAILABLE_BUDGET, reference};
use crate::{
    effect::{Effect, Patch, Target},
    merge_patch,
};

/// Writes what differs, only while the object has the version that was read: two writers never both succeed.
pub fn status_write(object: &PodUnavailableBudget, status: &Status) -> Option<Effect> {
    let old = serde_json::to_value(object.status.clone().unwrap_or_default()).unwrap_or_default();
    let new = serde_json::to_value(status).unwrap_or_default();
    // A status that was never written is written as a whole, also when all of it is zero.
    let change = match &object.status {
        Some(_) => merge_patch::between(&old, &new)?,
        None => new,
    };
    let found = reference(object);
    let version = object.metadata.resource_version.as_deref().unwrap_or_default();
    let target = Target::with_uid(POD_UNAVAILABLE_BUDGET, found.key, found.uid).at_version(version.into());
    Some(Effect::Patch {
        target,
        subresource: Some("status"),
        patch: Patch::Merge(json!({"status": change})),
    })
}

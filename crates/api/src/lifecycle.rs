//! Hooks in the life of a pod: points where a workload waits until someone outside says go.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Points in the life of a pod at which the workload waits.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// Waits before a pod is deleted, for instance until its traffic has moved away.
    pub pre_delete: Option<Hook>,
    /// Waits before a pod is updated in place, and again before it counts as normal after the update.
    pub in_place_update: Option<Hook>,
    /// Waits after a pod was created, before it counts as available.
    pub pre_normal: Option<Hook>,
}

/// What must be present on a pod, or be removed from it, while the workload waits.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// Labels that hold the pod. Whoever handles the hook adds or removes them with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels_handler: BTreeMap<String, String>,
    /// Finalizers that hold the pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers_handler: Vec<String>,
    /// Makes the pod not ready while the hook waits, so that services stop sending traffic to it.
    pub mark_pod_not_ready: Option<bool>,
}

open_enum! {
    /// Where a pod stands between its hooks: the values of the label `lifecycle.apps.kruise.io/state`.
    pub enum State {
        /// In service.
        Normal = "Normal",
        /// Made, and waiting for `preNormal`.
        PreparingNormal = "PreparingNormal",
        /// Waiting for `inPlaceUpdate` before it is changed.
        PreparingUpdate = "PreparingUpdate",
        /// Being changed in place.
        Updating = "Updating",
        /// Changed, and waiting for `inPlaceUpdate` again.
        Updated = "Updated",
        /// Waiting for `preDelete`.
        PreparingDelete = "PreparingDelete",
    }
}

//! PersistentPodState v1beta1, the hub.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{names::APPS_GROUP, target::TargetReference};

crate::kind! {
    /// Remembers on which nodes the pods of a StatefulSet ran and brings them back there.
    PersistentPodState { group: APPS_GROUP, version: "v1beta1", plural: "persistentpodstates", scope: Namespaced,
        spec: Spec, status: Status }
}

/// Whose pods are remembered, and what of them.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The workload whose pods are remembered. It never changes.
    pub target_ref: TargetReference,
    /// Pod annotations whose values are recorded. They are not written back to new pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persistent_pod_annotations: Vec<PodAnnotation>,
    /// Node labels that a pod must find again on its next node with the recorded values.
    pub required_persistent_topology: Option<NodeTopology>,
    /// Node labels that a pod should find again on its next node if possible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferred_persistent_topology: Vec<PreferredTopology>,
    /// When a record is dropped: WhenScaled as soon as scaling in removes the pod, WhenDeleted with the workload.
    /// WhenScaled unless given.
    #[schemars(extend("enum" = ["WhenScaled", "WhenDeleted"]))]
    pub persistent_pod_state_retention_policy: Option<RetentionPolicy>,
}

open_enum! {
    /// When the record of a pod is dropped.
    pub enum RetentionPolicy {
        /// When scaling in removes the pod.
        WhenScaled = "WhenScaled",
        /// When the workload is deleted.
        WhenDeleted = "WhenDeleted",
    }
}

/// A pod annotation that is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodAnnotation {
    /// The key of the annotation.
    pub key: String,
}

/// Node labels whose values are recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeTopology {
    /// The keys of the node labels, such as `kubernetes.io/hostname`.
    pub keys: Vec<String>,
}

/// A wish to return to nodes with the recorded labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreferredTopology {
    /// The node labels that should be the same again.
    pub preference: NodeTopology,
    /// How much the wish counts for the scheduler. Between 1 and 100.
    #[schemars(extend("minimum" = 0))]
    pub weight: i32,
}

/// What is remembered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The generation of the spec that this status is about.
    pub observed_generation: i64,
    /// One record for each pod, by the name of the pod.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_states: BTreeMap<String, PodState>,
}

/// Where one pod ran.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodState {
    /// The node on which the pod was last ready.
    pub node_name: Option<String>,
    /// The recorded labels of that node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_topology_labels: BTreeMap<String, String>,
    /// The recorded annotations of the pod.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

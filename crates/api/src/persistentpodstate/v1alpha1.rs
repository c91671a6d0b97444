//! PersistentPodState v1alpha1: the node label keys have another name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::v1beta1::{PodAnnotation, PodState, RetentionPolicy, Status};
use crate::{names::APPS_GROUP, target::TargetReference};

crate::kind! {
    /// Remembers on which nodes the pods of a StatefulSet ran and brings them back there.
    PersistentPodState { group: APPS_GROUP, version: "v1alpha1", plural: "persistentpodstates", scope: Namespaced,
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
    pub persistent_pod_state_retention_policy: Option<RetentionPolicy>,
}

/// Node labels whose values are recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeTopology {
    /// The keys of the node labels, such as `kubernetes.io/hostname`.
    pub node_topology_keys: Vec<String>,
}

/// A wish to return to nodes with the recorded labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreferredTopology {
    /// The node labels that should be the same again.
    pub preference: NodeTopology,
    /// How much the wish counts for the scheduler. Between 1 and 100.
    pub weight: i32,
}

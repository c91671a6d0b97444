//! PodUnavailableBudget v1beta1, the hub.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{int_or_percent::IntOrString, names::POLICY_GROUP, selector::LabelSelector, time::Time};

crate::kind! {
    /// Limits how many pods of an application may be unavailable at the same time.
    PodUnavailableBudget { group: POLICY_GROUP, version: "v1beta1", plural: "podunavailablebudgets",
        scope: Namespaced, spec: Spec, status: Status }
}

/// Which pods are protected, and how much.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Chooses the protected pods by their labels. Either this or `targetRef` is given.
    pub selector: Option<LabelSelector>,
    /// The workload whose pods are protected. Either this or `selector` is given.
    pub target_ref: Option<TargetReference>,
    /// How many pods may be unavailable at most: a number or a percentage. Either this or `minAvailable` is given.
    pub max_unavailable: Option<IntOrString>,
    /// How many pods stay available at least: a number or a percentage. Either this or `maxUnavailable` is given.
    pub min_available: Option<IntOrString>,
    /// The operations that the budget limits: DELETE, UPDATE, EVICT, RESIZE. The first three unless given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("items" = { "type": "string", "enum": ["DELETE", "UPDATE", "EVICT", "RESIZE"] }))]
    pub protect_operations: Vec<Operation>,
    /// The number of pods that percentages refer to. Taken from the workloads of the pods unless given.
    #[schemars(extend("minimum" = 1))]
    pub protect_total_replicas: Option<i32>,
    /// Pods with these labels are never held back by this budget.
    pub ignored_pod_selector: Option<LabelSelector>,
}

/// A workload in the same namespace.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetReference {
    /// The API version of the workload, such as `apps/v1`. Only the group counts.
    pub api_version: Option<String>,
    /// The kind of the workload, such as `Deployment`.
    pub kind: Option<String>,
    /// The name of the workload.
    pub name: Option<String>,
}

open_enum! {
    /// What someone does to a pod that makes it unavailable.
    pub enum Operation {
        /// The pod is deleted.
        Delete = "DELETE",
        /// The pod is updated in place.
        Update = "UPDATE",
        /// The pod is evicted.
        Evict = "EVICT",
        /// The resources of the pod are changed in place.
        Resize = "RESIZE",
    }
}

/// What is left of the budget.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Pods whose deletion or eviction was admitted but not seen yet, with the time of the admission.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub disrupted_pods: BTreeMap<String, Time>,
    /// Pods whose update was admitted but not seen yet, with the time of the admission.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable_pods: BTreeMap<String, Time>,
    /// Pods that may become unavailable now.
    pub unavailable_allowed: i32,
    /// Pods that are available.
    pub current_available: i32,
    /// Pods that must stay available.
    pub desired_available: i32,
    /// Pods that the budget covers.
    pub total_replicas: i32,
}

//! WorkloadSpread v1alpha1: other names of the node selectors, and looser conditions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::v1beta1::{Adaptive, ScheduleStrategy, ScheduleType, TargetFilter};
use crate::{
    condition::Condition,
    int_or_percent::IntOrString,
    names::APPS_GROUP,
    placement::{NodeSelectorTerm, PreferredNodes, Toleration},
    raw::Raw,
    target::TargetReference,
    time::Time,
};

crate::kind! {
    /// Spreads the pods of one workload over ordered subsets of nodes without changing the workload.
    WorkloadSpread { group: APPS_GROUP, version: "v1alpha1", plural: "workloadspreads", scope: Namespaced,
        spec: Spec, status: Status }
}

/// Which workload is spread, and over what.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The workload whose pods are spread. It lives in the same namespace and cannot be exchanged for another.
    pub target_ref: TargetReference,
    /// Narrows down which pods of the workload are spread. All of them unless given.
    pub target_filter: Option<TargetFilter>,
    /// The subsets, the preferred ones first. At least one.
    pub subsets: Vec<Subset>,
    /// What happens to pods that cannot be scheduled in their subset. They stay unless given.
    pub schedule_strategy: Option<ScheduleStrategy>,
}

/// One part of the pods and where it runs.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subset {
    /// The name of the subset. Every name occurs once.
    pub name: String,
    /// The nodes on which pods of this subset must run.
    pub required_node_selector_term: Option<NodeSelectorTerm>,
    /// The nodes on which pods of this subset should run if possible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferred_node_selector_terms: Vec<PreferredNodes>,
    /// Taints that pods of this subset accept, in addition to their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// How many pods this subset takes: a number or a percentage of the replicas, rounded up. No limit unless given.
    pub max_replicas: Option<IntOrString>,
    /// A strategic merge patch for each pod of this subset.
    pub patch: Option<Raw>,
}

/// How the pods are spread at the moment.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// The accounts of each subset over all versions of the pods, in the order of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subset_statuses: Vec<SubsetStatus>,
    /// The accounts of each subset, apart for each version of the pods. New pods are placed by these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versioned_subset_statuses: BTreeMap<String, Vec<SubsetStatus>>,
}

/// The account of one subset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubsetStatus {
    /// The name of the subset.
    pub name: String,
    /// Pods in this subset that exist and are not ending.
    pub replicas: i32,
    /// Pods that this subset still takes: zero when it is full, -1 when it has no limit.
    pub missing_replicas: i32,
    /// Pods whose creation was admitted but which were not seen yet, with the time of the admission.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub creating_pods: BTreeMap<String, Time>,
    /// Pods whose deletion was admitted but which are still seen, with the time of the admission.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deleting_pods: BTreeMap<String, Time>,
    /// Facts about the subset. Schedulable tells whether pods find nodes in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

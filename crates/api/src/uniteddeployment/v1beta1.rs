//! UnitedDeployment v1beta1, the hub.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::schedule::ScheduleType;
use crate::{
    cloneset,
    condition::Condition,
    int_or_percent::IntOrString,
    names::APPS_GROUP,
    placement::{NodeSelectorTerm, Toleration},
    raw::Raw,
    selector::LabelSelector,
    statefulset,
    time::Time,
};

crate::kind! {
    /// Runs one application in several subsets of nodes, with one workload for each subset.
    UnitedDeployment { group: APPS_GROUP, version: "v1beta1", plural: "uniteddeployments", scope: Namespaced,
        spec: Spec, status: Status }
}

/// What runs in the subsets, and how the pods are divided among them.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// How many pods are wanted in all subsets together. One unless given.
    pub replicas: Option<i32>,
    /// Chooses the pods that belong to this UnitedDeployment. It must match the labels of the template.
    pub selector: LabelSelector,
    /// The workload that each subset gets. Exactly one kind of workload is given.
    pub template: Option<Template>,
    /// The subsets and how the pods are divided among them.
    pub topology: Option<Topology>,
    /// How the subsets move to a new template.
    pub update_strategy: Option<UpdateStrategy>,
    /// How many old revisions are kept for going back. Ten unless given.
    pub revision_history_limit: Option<i32>,
}

/// The workload that each subset gets. Exactly one of the fields is given.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// A StatefulSet of Kubernetes for each subset.
    pub stateful_set_template: Option<Workload<Raw>>,
    /// A StatefulSet of `apps.kruise.io` for each subset.
    pub advanced_stateful_set_template: Option<Workload<statefulset::v1beta1::Spec>>,
    /// A CloneSet for each subset.
    pub clone_set_template: Option<Workload<cloneset::v1beta1::Spec>>,
    /// A Deployment of Kubernetes for each subset.
    pub deployment_template: Option<Workload<Raw>>,
}

/// A workload as it is made for each subset.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Workload<S> {
    /// Labels and annotations of the workload.
    pub metadata: Option<Raw>,
    /// The spec of the workload. Each subset gets replicas and placement of its own in it.
    pub spec: S,
}

/// The subsets and how the pods are divided among them.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Topology {
    /// The subsets. Their order decides who gets pods first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subsets: Vec<Subset>,
    /// What happens to pods that cannot be scheduled in their subset. They stay unless given.
    pub schedule_strategy: Option<ScheduleStrategy>,
}

/// One part of the pods and where it runs.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subset {
    /// The name of the subset. Every name occurs once and is part of the name of the workload.
    pub name: String,
    /// The nodes on which pods of this subset run. It never changes.
    pub node_selector_term: Option<NodeSelectorTerm>,
    /// Taints that pods of this subset accept, in addition to their own. They never change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// How many pods this subset has: a number or a percentage. Subsets without it share the rest evenly.
    pub replicas: Option<IntOrString>,
    /// How many pods this subset has at least: a number or a percentage. It is filled before subsets behind it.
    pub min_replicas: Option<IntOrString>,
    /// How many pods this subset has at most: a number or a percentage. No limit unless given.
    pub max_replicas: Option<IntOrString>,
    /// A strategic merge patch for the pod template of this subset.
    pub patch: Option<Raw>,
}

/// What happens to pods that cannot be scheduled in their subset.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleStrategy {
    /// Fixed leaves pods in their subset. Adaptive moves them. Fixed unless given.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["Adaptive", "Fixed", ""]))]
    pub kind: Option<ScheduleType>,
    /// Options for the type Adaptive.
    pub adaptive: Option<Adaptive>,
}

/// When pods move to another subset, and when a subset is tried again.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Adaptive {
    /// Seconds that a pod may wait for a node before its place moves to another subset. 30 unless given.
    pub reschedule_critical_seconds: Option<i32>,
    /// Seconds after which a subset without free nodes is tried again. 300 unless given.
    pub unschedulable_duration: Option<i32>,
    /// Keeps pods that wait for a node, and runs others in their place until a node is found. Off unless given.
    pub reserve_unschedulable_pods: Option<bool>,
}

/// How the subsets move to a new template.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// Who decides how far each subset is updated. Manual is the only way.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["Manual", ""]))]
    pub kind: Option<UpdateType>,
    /// How far each subset is updated.
    pub manual_update: Option<ManualUpdate>,
}

open_enum! {
    /// Who decides how far each subset is updated.
    pub enum UpdateType {
        /// The author of the object, by partitions.
        Manual = "Manual",
    }
}

/// How far each subset is updated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManualUpdate {
    /// How many pods of each subset stay on the old revision, by the name of the subset. None unless given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub partitions: BTreeMap<String, i32>,
}

/// What the controller last saw of the subsets.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Pods that exist, without those that are kept waiting for a node.
    pub replicas: i32,
    /// Pods that are ready.
    pub ready_replicas: Option<i32>,
    /// Pods on the newest revision.
    pub updated_replicas: i32,
    /// Pods on the newest revision that are ready.
    pub updated_ready_replicas: Option<i32>,
    /// Pods that are kept while they wait for a node.
    pub reserved_pods: Option<i32>,
    /// The revision that all pods had before the running update.
    pub current_revision: String,
    /// The newest revision.
    pub updated_revision: Option<String>,
    /// How often the name of a revision was taken already. Part of the hash of revision names.
    pub collision_count: Option<i32>,
    /// The selector as text, for autoscalers.
    pub label_selector: Option<String>,
    /// Facts about the subsets as a whole, with reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<LooseCondition>,
    /// How far each subset is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subset_statuses: Vec<SubsetStatus>,
}

/// One fact about the subsets, with the time and the reason of its last change.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LooseCondition {
    /// Which fact this is about.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Whether it holds: True, False or Unknown.
    pub status: Option<String>,
    /// When the status last changed.
    pub last_transition_time: Option<Time>,
    /// A short word for why, made for programs.
    pub reason: Option<String>,
    /// Why, made for people.
    pub message: Option<String>,
}

/// How far one subset is.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubsetStatus {
    /// The name of the subset.
    pub name: Option<String>,
    /// Pods that this subset should have.
    pub replicas: Option<i32>,
    /// Pods of this subset that are ready.
    pub ready_replicas: Option<i32>,
    /// Pods of this subset that stay on the old revision.
    pub partition: Option<i32>,
    /// Pods of this subset that are kept while they wait for a node.
    pub reserved_pods: Option<i32>,
    /// Facts about the subset, with reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

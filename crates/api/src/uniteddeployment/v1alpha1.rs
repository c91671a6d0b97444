//! UnitedDeployment v1alpha1: some of the status has another shape, and a CloneSet template may be written in the
//! shape of either version of CloneSet.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::v1beta1::{
    Adaptive, LooseCondition, ManualUpdate, ScheduleStrategy, ScheduleType, Subset, SubsetStatus, Topology,
    UpdateStrategy, UpdateType, Workload,
};
use crate::{
    cloneset,
    int_or_percent::IntOrString,
    lifecycle::Lifecycle,
    names::APPS_GROUP,
    raw::Raw,
    rollout::{InPlaceUpdateStrategy, PriorityStrategy, ScatterTerm},
    selector::LabelSelector,
    statefulset,
};

crate::kind! {
    /// Runs one application in several subsets of nodes, with one workload for each subset.
    UnitedDeployment { group: APPS_GROUP, version: "v1alpha1", plural: "uniteddeployments", scope: Namespaced,
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
    /// A CloneSet for each subset, in the shape of CloneSet v1alpha1 or v1beta1.
    pub clone_set_template: Option<Workload<CloneSetSpec>>,
    /// A Deployment of Kubernetes for each subset.
    pub deployment_template: Option<Workload<Raw>>,
}

/// A CloneSet spec in the shape of either version.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloneSetSpec {
    /// Ignored: each subset has its own number of pods.
    pub replicas: Option<i32>,
    /// Chooses the pods that belong to the CloneSet. It must match the labels of the template.
    pub selector: LabelSelector,
    /// The pod that is made. A change of it starts an update.
    pub template: Raw,
    /// Volume claims that each pod gets for itself. A change alone updates no pod.
    pub volume_claim_templates: Option<Raw>,
    /// How pods are added and removed.
    pub scale_strategy: Option<CloneSetScaleStrategy>,
    /// How pods move to a new template.
    pub update_strategy: Option<CloneSetUpdateStrategy>,
    /// How many old revisions are kept for going back. Ten unless given.
    pub revision_history_limit: Option<i32>,
    /// Seconds that a pod must be ready before it counts as available. Zero unless given.
    pub min_ready_seconds: Option<i32>,
    /// Seconds after which an update that does not move is reported as stuck. It changes nothing else.
    pub progress_deadline_seconds: Option<i32>,
    /// Points at which a pod waits for someone outside.
    pub lifecycle: Option<Lifecycle>,
}

/// How pods are added and removed, in the shape of either version.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloneSetScaleStrategy {
    /// The settings of v1beta1.
    #[serde(flatten)]
    pub newer: cloneset::v1beta1::ScaleStrategy,
    /// The older form of `enablePVCReuse`: true gives each new pod new volume claims.
    #[serde(rename = "disablePVCReuse")]
    pub disable_pvc_reuse: Option<bool>,
}

/// How pods move to a new template, in the shape of either version.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloneSetUpdateStrategy {
    /// RollingUpdate or OnDelete; or, in the older form, what happens to each pod: ReCreate, InPlaceIfPossible or
    /// InPlaceOnly.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// How a rolling update goes. A setting in here wins over the same setting in the older form.
    pub rolling_update: Option<cloneset::v1beta1::RollingUpdate>,
    /// Older form: how many pods stay on the old revision, a number or a percentage.
    pub partition: Option<IntOrString>,
    /// Older form: how many pods may be unavailable during an update, a number or a percentage.
    pub max_unavailable: Option<IntOrString>,
    /// Older form: how many pods may exist above the wanted number during an update, a number or a percentage.
    pub max_surge: Option<IntOrString>,
    /// Older form: stops the update where it is.
    pub paused: Option<bool>,
    /// Older form: which pods are updated first.
    pub priority_strategy: Option<PriorityStrategy>,
    /// Older form: pods with these labels are spread over the whole update.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scatter_strategy: Vec<ScatterTerm>,
    /// Older form: options for updates in place.
    pub in_place_update_strategy: Option<InPlaceUpdateStrategy>,
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
    /// How often the name of a revision was taken already. Part of the hash of revision names.
    pub collision_count: Option<i32>,
    /// The selector as text, for autoscalers.
    pub label_selector: Option<String>,
    /// Facts about the subsets as a whole, with reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<LooseCondition>,
    /// Pods that each subset should have, by the name of the subset.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub subset_replicas: BTreeMap<String, i32>,
    /// How far each subset is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subset_statuses: Vec<SubsetStatus>,
    /// How far the update is.
    pub update_status: Option<UpdateStatus>,
}

/// How far the update is.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStatus {
    /// The newest revision.
    pub updated_revision: Option<String>,
    /// Pods of each subset that stay on the old revision, by the name of the subset.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub current_partitions: BTreeMap<String, i32>,
}

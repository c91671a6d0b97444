//! DaemonSet v1beta1, the hub.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::rollout::UpdateType;
use crate::{
    condition::Condition, int_or_percent::IntOrString, lifecycle::Lifecycle, names::APPS_GROUP, raw::Raw,
    selector::LabelSelector,
};

crate::kind! {
    /// Keeps one pod on each node that fits and updates the pods in parts, by node or in place.
    DaemonSet { group: APPS_GROUP, version: "v1beta1", plural: "daemonsets", scope: Namespaced,
        spec: Spec, status: Status }
}

/// Which pods are wanted on the nodes, and how they are made and updated.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Chooses the pods that belong to this DaemonSet. It must match the labels of the template and never changes.
    pub selector: LabelSelector,
    /// The pod that is made on each node. Its node selector, affinity and tolerations say which nodes fit. A change of
    /// it starts an update.
    pub template: Raw,
    /// How pods move to a new template.
    pub update_strategy: Option<UpdateStrategy>,
    /// Seconds that a pod must be ready before it counts as available. Zero unless given.
    pub min_ready_seconds: Option<i32>,
    /// How many pods are made, deleted or updated at once: a number or a percentage of the nodes. 250 unless given.
    pub burst_replicas: Option<IntOrString>,
    /// How many old revisions are kept for going back. Ten unless given.
    pub revision_history_limit: Option<i32>,
    /// Points at which a pod waits for someone outside. Only preDelete has an effect.
    pub lifecycle: Option<Lifecycle>,
    /// How pods are made on nodes that have none.
    pub scale_strategy: Option<ScaleStrategy>,
}

/// How pods are made on nodes that have none.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleStrategy {
    /// Lets the partition of the update hold back new pods too. They are made on all nodes unless given.
    pub partitioned_scaling: Option<bool>,
}

/// How pods move to a new template.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// RollingUpdate moves the pods by itself. OnDelete waits until someone deletes them. RollingUpdate unless given.
    #[serde(rename = "type")]
    pub kind: Option<UpdateType>,
    /// How a rolling update goes.
    pub rolling_update: Option<RollingUpdate>,
}

/// How a rolling update goes.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdate {
    /// What happens to each pod: Standard makes it anew, InPlaceIfPossible changes it where the change allows that.
    /// Standard unless given.
    pub rolling_update_type: Option<RollingUpdateType>,
    /// On how many nodes the pod may be unavailable during an update: a number or a percentage of the nodes. One, if
    /// maxSurge is not given either.
    pub max_unavailable: Option<IntOrString>,
    /// On how many nodes a new pod may run beside the old one during an update: a number or a percentage of the nodes.
    /// Not together with maxUnavailable. Zero unless given.
    pub max_surge: Option<IntOrString>,
    /// Chooses the nodes whose pods are updated. All nodes unless given.
    pub selector: Option<LabelSelector>,
    /// How many pods stay on the old revision: a number or a percentage of the nodes. Zero unless given.
    pub partition: Option<IntOrString>,
    /// Stops the update where it is. New nodes still get pods.
    pub paused: Option<bool>,
}

open_enum! {
    /// What happens to a pod that is updated.
    pub enum RollingUpdateType {
        /// It is deleted and made again.
        Standard = "Standard",
        /// It is changed in place if the change allows that, and made again otherwise.
        InPlaceIfPossible = "InPlaceIfPossible",
        /// Old name in v1alpha1 for Standard with a surge.
        Surging = "Surging",
    }
}

/// What the controller last saw of the nodes and their pods.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Nodes that should run a pod.
    pub desired_number_scheduled: i32,
    /// Of those, nodes that have a pod.
    pub current_number_scheduled: i32,
    /// Nodes that have a pod and should not.
    pub number_misscheduled: i32,
    /// Nodes whose pod is ready.
    pub number_ready: i32,
    /// Nodes whose pod has been ready for minReadySeconds.
    pub number_available: Option<i32>,
    /// Nodes that should run a pod and have none that is available.
    pub number_unavailable: Option<i32>,
    /// Nodes whose pod is on the newest revision.
    pub updated_number_scheduled: i32,
    /// The hash of the newest revision.
    pub update_revision: Option<String>,
    /// How often the name of a revision was taken already. Part of the hash of revision names.
    pub collision_count: Option<i32>,
    /// Facts about the DaemonSet, with reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

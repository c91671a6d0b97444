//! CloneSet v1beta1, the hub.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::rollout::{PodUpdatePolicy, UpdateType};
use crate::{
    condition::ProgressCondition,
    int_or_percent::IntOrString,
    lifecycle::Lifecycle,
    names::APPS_GROUP,
    raw::Raw,
    rollout::{InPlaceUpdateStrategy, PriorityStrategy, ScatterTerm},
    selector::LabelSelector,
};

crate::kind! {
    /// Keeps a number of identical pods running and updates them in place where possible.
    CloneSet { group: APPS_GROUP, version: "v1beta1", plural: "clonesets", scope: Namespaced,
        spec: Spec, status: Status }
}

/// Which pods are wanted, and how they are scaled and updated.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// How many pods are wanted. One unless given.
    pub replicas: Option<i32>,
    /// Chooses the pods that belong to this CloneSet. It must match the labels of the template and never changes.
    pub selector: LabelSelector,
    /// The pod that is made. A change of it starts an update.
    pub template: Raw,
    /// Volume claims that each pod gets for itself. A change alone updates no pod.
    pub volume_claim_templates: Option<Raw>,
    /// How pods are added and removed.
    pub scale_strategy: Option<ScaleStrategy>,
    /// How pods move to a new template.
    pub update_strategy: Option<UpdateStrategy>,
    /// How many old revisions are kept for going back. Ten unless given.
    pub revision_history_limit: Option<i32>,
    /// Seconds that a pod must be ready before it counts as available. Zero unless given.
    pub min_ready_seconds: Option<i32>,
    /// Seconds after which an update that does not move is reported as stuck. It changes nothing else.
    pub progress_deadline_seconds: Option<i32>,
    /// Points at which a pod waits for someone outside.
    pub lifecycle: Option<Lifecycle>,
}

/// How pods are added and removed.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleStrategy {
    /// Names of pods to delete. Together with a smaller number of replicas they go first; otherwise each is replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods_to_delete: Vec<String>,
    /// How many pods may be unavailable while the CloneSet grows: a number or a percentage of the replicas. Without
    /// it all pods are made at once.
    pub max_unavailable: Option<IntOrString>,
    /// Keeps the volume claims of a deleted pod for the pod that replaces it.
    #[serde(rename = "enablePVCReuse")]
    #[schemars(extend("default" = false))]
    pub enable_pvc_reuse: Option<bool>,
    /// Does not count pods that wait for their deletion, so that their replacements are made at once.
    pub exclude_preparing_delete: Option<bool>,
}

/// How pods move to a new template.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// RollingUpdate moves the pods by itself. OnDelete waits until someone deletes them.
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
    /// What happens to each pod: ReCreate, InPlaceIfPossible or InPlaceOnly. ReCreate unless given.
    pub pod_update_policy: Option<PodUpdatePolicy>,
    /// How many pods stay on the old revision: a number or a percentage. None unless given.
    pub partition: Option<IntOrString>,
    /// How many pods may be unavailable during an update: a number or a percentage. 20% unless given.
    pub max_unavailable: Option<IntOrString>,
    /// How many pods may exist above the wanted number during an update: a number or a percentage. None unless given.
    pub max_surge: Option<IntOrString>,
    /// Stops the update where it is. Scaling goes on.
    pub paused: Option<bool>,
    /// Which pods are updated first.
    pub priority_strategy: Option<PriorityStrategy>,
    /// Pods with these labels are spread over the whole update.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scatter_strategy: Vec<ScatterTerm>,
    /// Options for updates in place.
    pub in_place_update_strategy: Option<InPlaceUpdateStrategy>,
}

/// What the controller last saw of the pods.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Pods that exist and are not ending.
    pub replicas: i32,
    /// Pods that are ready.
    pub ready_replicas: i32,
    /// Pods that have been ready for minReadySeconds.
    pub available_replicas: i32,
    /// Pods on the newest revision.
    pub updated_replicas: i32,
    /// Pods on the newest revision that are ready.
    pub updated_ready_replicas: i32,
    /// Pods on the newest revision that have been ready for minReadySeconds.
    pub updated_available_replicas: Option<i32>,
    /// How many pods will be on the newest revision when the update has reached its partition.
    pub expected_updated_replicas: Option<i32>,
    /// The newest revision.
    pub update_revision: Option<String>,
    /// The revision that all pods had before the running update.
    pub current_revision: Option<String>,
    /// How often the name of a revision was taken already. Part of the hash of revision names.
    pub collision_count: Option<i32>,
    /// Facts about scaling and updating, with reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ProgressCondition>,
    /// The selector as text, for autoscalers.
    pub label_selector: Option<String>,
}

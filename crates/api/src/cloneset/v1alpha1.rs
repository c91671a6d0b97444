//! CloneSet v1alpha1: the older shape, with a flat update strategy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::v1beta1::Status;
use crate::{
    int_or_percent::IntOrString,
    lifecycle::Lifecycle,
    names::APPS_GROUP,
    raw::Raw,
    rollout::{InPlaceUpdateStrategy, PriorityStrategy, ScatterTerm},
    selector::LabelSelector,
};

crate::kind! {
    /// Keeps a number of identical pods running and updates them in place where possible.
    CloneSet { group: APPS_GROUP, version: "v1alpha1", plural: "clonesets", scope: Namespaced,
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
    /// Gives each new pod new volume claims. Without it the claims of a deleted pod are kept for its replacement.
    #[serde(rename = "disablePVCReuse")]
    pub disable_pvc_reuse: Option<bool>,
}

/// How pods move to a new template.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// What happens to each pod: ReCreate, InPlaceIfPossible, InPlaceOnly or OnDelete. ReCreate unless given.
    #[serde(rename = "type")]
    pub kind: Option<UpdateType>,
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

open_enum! {
    /// What happens to a pod that is updated.
    pub enum UpdateType {
        /// It is deleted and made again.
        ReCreate = "ReCreate",
        /// It is changed in place if the change allows that, and made again otherwise.
        InPlaceIfPossible = "InPlaceIfPossible",
        /// It is changed in place; other changes of the template are refused.
        InPlaceOnly = "InPlaceOnly",
        /// Nothing, until someone deletes it.
        OnDelete = "OnDelete",
    }
}

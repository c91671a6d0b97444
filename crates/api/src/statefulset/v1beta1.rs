//! StatefulSet v1beta1, the hub.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::rollout::{PodUpdatePolicy, UpdateType};
use crate::{
    condition::Condition,
    int_or_percent::IntOrString,
    lifecycle::Lifecycle,
    names::APPS_GROUP,
    raw::Raw,
    rollout::{InPlaceUpdateStrategy, PriorityStrategy},
    selector::LabelSelector,
};

crate::kind! {
    /// Keeps numbered pods with storage of their own and updates them one by one, in parallel or in place.
    StatefulSet { group: APPS_GROUP, version: "v1beta1", plural: "statefulsets", scope: Namespaced,
        spec: Spec, status: Status }
}

/// Which pods are wanted, how they are numbered, and how they are scaled and updated.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// How many pods are wanted. Reserved numbers do not count. One unless given.
    pub replicas: Option<i32>,
    /// Chooses the pods that belong to this StatefulSet. It must match the labels of the template and never changes.
    pub selector: LabelSelector,
    /// The pod that is made. A change of it starts an update.
    pub template: Raw,
    /// Volume claims that each pod gets for itself and finds again after it was made anew.
    pub volume_claim_templates: Option<Raw>,
    /// What a change of the claim templates does to claims that exist already.
    pub volume_claim_update_strategy: Option<VolumeClaimUpdateStrategy>,
    /// The headless service that gives the pods their names in DNS. It never changes.
    pub service_name: Option<String>,
    /// OrderedReady makes pods one after the other and waits for each; Parallel does not wait. It never changes.
    /// OrderedReady unless given.
    pub pod_management_policy: Option<PodManagementPolicy>,
    /// How pods move to a new template.
    pub update_strategy: Option<UpdateStrategy>,
    /// How many old revisions are kept for going back. Ten unless given.
    pub revision_history_limit: Option<i32>,
    /// Numbers that no pod gets: single ones, or ranges such as "3-5" with both ends included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserve_ordinals: Vec<IntOrString>,
    /// Points at which a pod waits for someone outside.
    pub lifecycle: Option<Lifecycle>,
    /// How fast pods are added.
    pub scale_strategy: Option<ScaleStrategy>,
    /// What happens to the claims of pods that are gone. They are kept unless given.
    pub persistent_volume_claim_retention_policy: Option<ClaimRetentionPolicy>,
    /// How the pods are numbered.
    pub ordinals: Option<Ordinals>,
}

open_enum! {
    /// Whether pods wait for each other when they are made and deleted.
    pub enum PodManagementPolicy {
        /// Each pod waits until the one before it is ready.
        OrderedReady = "OrderedReady",
        /// No pod waits for another.
        Parallel = "Parallel",
    }
}

/// What a change of the claim templates does to claims that exist already.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeClaimUpdateStrategy {
    /// OnDelete waits until someone deletes a claim. OnPodRollingUpdate changes claims together with their pods.
    #[serde(rename = "type")]
    pub kind: Option<VolumeClaimUpdateType>,
}

open_enum! {
    /// When existing claims follow a change of their template.
    pub enum VolumeClaimUpdateType {
        /// When someone deletes them.
        OnDelete = "OnDelete",
        /// When their pod is updated.
        OnPodRollingUpdate = "OnPodRollingUpdate",
    }
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
    /// How many pods stay on the old revision. Zero unless given.
    pub partition: Option<i32>,
    /// How many pods may be unavailable during an update: a number or a percentage. One unless given.
    pub max_unavailable: Option<IntOrString>,
    /// What happens to each pod: ReCreate, InPlaceIfPossible or InPlaceOnly. ReCreate unless given.
    pub pod_update_policy: Option<PodUpdatePolicy>,
    /// Stops the update where it is. Scaling goes on.
    pub paused: Option<bool>,
    /// Updates the pods in another order than from the highest number down. Needs the Parallel policy.
    pub unordered_update: Option<UnorderedUpdate>,
    /// Options for updates in place.
    pub in_place_update_strategy: Option<InPlaceUpdateStrategy>,
    /// Seconds that a pod must be ready before it counts as available, at most 300. Zero unless given.
    pub min_ready_seconds: Option<i32>,
}

/// The order of an update that does not go by number.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnorderedUpdate {
    /// Which pods are updated first.
    pub priority_strategy: Option<PriorityStrategy>,
}

/// How fast pods are added.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleStrategy {
    /// How many pods may be unavailable while the StatefulSet grows: a number or a percentage of the replicas. Without
    /// it all pods are made at once, as far as the policy allows.
    pub max_unavailable: Option<IntOrString>,
}

/// What happens to the claims of pods that are gone.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimRetentionPolicy {
    /// When the StatefulSet is deleted: Retain keeps its claims, Delete deletes them. Retain unless given.
    pub when_deleted: Option<ClaimRetention>,
    /// When a pod is removed by scaling: Retain keeps its claims, Delete deletes them. Retain unless given.
    pub when_scaled: Option<ClaimRetention>,
}

open_enum! {
    /// What happens to a claim that nobody uses any more.
    pub enum ClaimRetention {
        /// It stays.
        Retain = "Retain",
        /// It is deleted.
        Delete = "Delete",
    }
}

/// How the pods are numbered.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ordinals {
    /// The number of the first pod. Zero unless given.
    pub start: Option<i32>,
}

/// What the controller last saw of the pods.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Pods that exist, ending ones included.
    pub replicas: i32,
    /// Pods that are ready.
    pub ready_replicas: i32,
    /// Pods that have been ready for minReadySeconds.
    pub available_replicas: i32,
    /// Pods on the revision from before the running update.
    pub current_replicas: i32,
    /// Pods on the newest revision.
    pub updated_replicas: i32,
    /// Pods on the newest revision that are ready.
    pub updated_ready_replicas: Option<i32>,
    /// Pods on the newest revision that have been ready for minReadySeconds.
    pub updated_available_replicas: Option<i32>,
    /// The revision that all pods had before the running update.
    pub current_revision: Option<String>,
    /// The newest revision.
    pub update_revision: Option<String>,
    /// How often the name of a revision was taken already. Part of the hash of revision names.
    pub collision_count: Option<i32>,
    /// Facts about making and updating pods, with reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The selector as text, for autoscalers.
    pub label_selector: Option<String>,
    /// How far the claims follow their templates, one entry for each template.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_claims: Vec<VolumeClaimStatus>,
}

/// How far the claims of one template follow it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeClaimStatus {
    /// The name of the claim template.
    pub volume_claim_name: String,
    /// Claims that fit the template.
    pub compatible_replicas: i32,
    /// Claims that fit the template and have their full size.
    pub compatible_ready_replicas: i32,
}

//! SidecarSet v1beta1, the hub.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::container::SidecarContainer;
use crate::{
    int_or_percent::IntOrString,
    names::APPS_GROUP,
    raw::Raw,
    rollout::{PriorityStrategy, ScatterTerm},
    selector::LabelSelector,
};

crate::kind! {
    /// Adds containers to pods of other workloads when they are made, and updates those containers in place.
    SidecarSet { group: APPS_GROUP, version: "v1beta1", plural: "sidecarsets", scope: Cluster,
        spec: Spec, status: Status }
}

/// Which pods get which containers, and how a change reaches pods that have them already.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Chooses the pods by their labels. It must be given and must not be empty.
    pub selector: Option<LabelSelector>,
    /// Chooses the namespaces by their labels. Pods of all namespaces are meant unless given.
    pub namespace_selector: Option<LabelSelector>,
    /// Init containers that are added to new pods. Pods that exist keep theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<SidecarContainer>,
    /// Containers that are added to new pods. A new image of them reaches pods that exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<SidecarContainer>,
    /// Volumes for the added containers. A pod gets those that its added containers mount.
    pub volumes: Option<Raw>,
    /// How a new image reaches pods that exist.
    pub update_strategy: Option<UpdateStrategy>,
    /// Whether and in which revision new pods get the containers.
    pub injection_strategy: Option<InjectionStrategy>,
    /// Pull secrets that are added to new pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<PullSecret>,
    /// How many old revisions are kept for going back. Ten unless given.
    pub revision_history_limit: Option<i32>,
    /// Annotations that are put on the pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patch_pod_metadata: Vec<PatchPodMetadata>,
    /// The author's name for this state of the sidecars, by which it can be injected later.
    pub custom_version: Option<String>,
}

/// How a new image reaches pods that exist.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// RollingUpdate changes the images in pods that exist. NotUpdate leaves them alone. RollingUpdate unless given.
    #[serde(rename = "type")]
    pub kind: Option<UpdateType>,
    /// Stops the update where it is.
    pub paused: Option<bool>,
    /// Chooses the pods that are updated, by their labels. All pods of the set unless given.
    pub selector: Option<LabelSelector>,
    /// How many pods keep the old image: a number or a percentage. Zero unless given.
    pub partition: Option<IntOrString>,
    /// How many pods may be unavailable during an update: a number or a percentage. One unless given.
    pub max_unavailable: Option<IntOrString>,
    /// Which pods are updated first.
    pub priority_strategy: Option<PriorityStrategy>,
    /// Pods with these labels are spread over the whole update.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scatter_strategy: Vec<ScatterTerm>,
}

open_enum! {
    /// Whether pods that exist get a new image.
    pub enum UpdateType {
        /// They get it.
        RollingUpdate = "RollingUpdate",
        /// They keep what they have.
        NotUpdate = "NotUpdate",
    }
}

/// Whether and in which revision new pods get the containers.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InjectionStrategy {
    /// Adds nothing to new pods. The update of pods that exist goes on.
    pub paused: Option<bool>,
    /// Injects a fixed revision into new pods. The newest one unless given.
    pub revision: Option<InjectionRevision>,
}

/// The revision that new pods get. The name of the revision wins over the custom version.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InjectionRevision {
    /// Takes the newest revision that carries this custom version.
    pub custom_version: Option<String>,
    /// Takes the ControllerRevision with this name.
    pub revision_name: Option<String>,
    /// Always gives this revision to every new pod. Partial gives it to those that the update strategy holds back;
    /// the others get the newest one.
    #[schemars(extend("default" = "Always", "enum" = ["Always", "Partial"]))]
    pub policy: Option<InjectionPolicy>,
}

open_enum! {
    /// Which new pods get a fixed revision.
    pub enum InjectionPolicy {
        /// All of them.
        Always = "Always",
        /// Those that the update strategy holds back.
        Partial = "Partial",
    }
}

/// A secret with which images are pulled.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct PullSecret {
    /// The name of the secret in the namespace of the pod.
    #[schemars(extend("default" = ""))]
    pub name: Option<String>,
}

/// Annotations that are put on the pods.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchPodMetadata {
    /// The annotations with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// What happens when a pod has the annotation already: Retain keeps it, Overwrite replaces it, MergePatchJson merges
    /// both as JSON. Retain unless given.
    pub patch_policy: Option<PatchPolicy>,
}

open_enum! {
    /// What happens to an annotation that a pod has already.
    pub enum PatchPolicy {
        /// It stays.
        Retain = "Retain",
        /// It is replaced.
        Overwrite = "Overwrite",
        /// Ours is merged into it; both are JSON.
        MergePatchJson = "MergePatchJson",
    }
}

/// What the controller last saw of the pods.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Pods that carry the sidecars.
    pub matched_pods: i32,
    /// Of those, pods with the newest sidecars.
    pub updated_pods: i32,
    /// Of those that carry the sidecars, pods that are ready.
    pub ready_pods: i32,
    /// Pods with the newest sidecars that are ready.
    pub updated_ready_pods: Option<i32>,
    /// The name of the newest ControllerRevision.
    pub latest_revision: Option<String>,
    /// How often the name of a revision was taken already. Part of the hash of revision names.
    pub collision_count: Option<i32>,
}

//! SidecarSet v1alpha1: the older form, with one namespace by name and the custom version in a label.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::container::SidecarContainer;
pub use super::v1beta1::{
    InjectionRevision, InjectionStrategy, PatchPodMetadata, PullSecret, Status, UpdateStrategy,
};
use crate::{names::APPS_GROUP, raw::Raw, selector::LabelSelector};

crate::kind! {
    /// Adds containers to pods of other workloads when they are made, and updates those containers in place.
    SidecarSet { group: APPS_GROUP, version: "v1alpha1", plural: "sidecarsets", scope: Cluster,
        spec: Spec, status: Status }
}

/// Which pods get which containers, and how a change reaches pods that have them already.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Chooses the pods by their labels. It must be given and must not be empty.
    pub selector: Option<LabelSelector>,
    /// The one namespace whose pods are meant. Wins over namespaceSelector.
    pub namespace: Option<String>,
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
}

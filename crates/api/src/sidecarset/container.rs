//! The containers of a SidecarSet: Kubernetes containers with a few fields more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::Object;

/// A container as in a pod, with rules for adding it to pods and for changing it there.
///
/// The fields of the Kubernetes container stand beside ours and stay as they were written.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct SidecarContainer {
    /// Where it stands among the containers of the pod: BeforeAppContainer or AfterAppContainer. Containers go before,
    /// init containers after, unless given.
    pub pod_inject_policy: Option<PodInjectPolicy>,
    /// How its image is changed in a pod that runs.
    pub upgrade_strategy: Option<UpgradeStrategy>,
    /// Whether it gets the volume mounts of all containers of the pod. It does not unless given.
    pub share_volume_policy: Option<ShareVolumePolicy>,
    /// Whether it gets the volume devices of all containers of the pod. It does not unless given.
    pub share_volume_device_policy: Option<ShareVolumePolicy>,
    /// Environment variables that it takes over from containers of the pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfer_env: Vec<TransferEnv>,
    /// Computes its resources from those of the pod's containers.
    pub resources_policy: Option<ResourcesPolicy>,
    /// Everything that a Kubernetes container has.
    #[serde(flatten)]
    pub container: Object,
}

open_enum! {
    /// Where an added container stands.
    pub enum PodInjectPolicy {
        /// Before the containers that came with the pod.
        BeforeAppContainer = "BeforeAppContainer",
        /// After them.
        AfterAppContainer = "AfterAppContainer",
    }
}

/// How the image of an added container is changed.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeStrategy {
    /// ColdUpgrade restarts the container with the new image. HotUpgrade starts the new image in a second container
    /// before the old one ends. ColdUpgrade unless given.
    pub upgrade_type: Option<UpgradeType>,
    /// The image of the second container while it has nothing to do. Needed for HotUpgrade.
    pub hot_upgrade_empty_image: Option<String>,
}

open_enum! {
    /// How an image is changed.
    pub enum UpgradeType {
        /// The container restarts.
        ColdUpgrade = "ColdUpgrade",
        /// A second container takes over.
        HotUpgrade = "HotUpgrade",
    }
}

/// Whether volumes of the pod's containers are shared.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShareVolumePolicy {
    /// Either enabled or disabled. Disabled unless given.
    #[serde(rename = "type")]
    pub kind: Option<ShareVolumeType>,
}

open_enum! {
    /// Whether volumes are shared.
    pub enum ShareVolumeType {
        /// They are not.
        Disabled = "disabled",
        /// They are.
        Enabled = "enabled",
    }
}

/// Environment variables that are taken over from one container of the pod.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransferEnv {
    /// The container they come from.
    pub source_container_name: Option<String>,
    /// Reads the name of that container from the pod. Wins over sourceContainerName.
    pub source_container_name_from: Option<ContainerNameSource>,
    /// The name of one variable.
    pub env_name: Option<String>,
    /// The names of more variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_names: Vec<String>,
}

/// Where in the pod the name of a container is found.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerNameSource {
    /// A label or an annotation of the pod.
    pub field_ref: Option<FieldRef>,
}

/// A field of the pod.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct FieldRef {
    /// The version in which the path is written. It is v1 unless given.
    pub api_version: Option<String>,
    /// The path: metadata.labels['KEY'] or metadata.annotations['KEY'].
    pub field_path: String,
}

/// Computes resources from those of the pod's containers.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesPolicy {
    /// How the values of several containers become one: their sum or the largest.
    #[schemars(extend("enum" = ["sum", "max"]))]
    pub target_containers_mode: TargetContainersMode,
    /// A regular expression for the names of the containers that count. All unless given.
    #[schemars(extend("default" = ".*"))]
    pub target_containers_name_regex: Option<String>,
    /// Formulas for requests and limits.
    pub resources_expr: ResourcesExpr,
}

open_enum! {
    /// How the values of several containers become one.
    pub enum TargetContainersMode {
        /// All added up.
        Sum = "sum",
        /// The largest.
        Max = "max",
    }
}

/// Formulas for requests and limits.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesExpr {
    /// Formulas for the limits.
    pub limits: Option<ResourceExpressions>,
    /// Formulas for the requests.
    pub requests: Option<ResourceExpressions>,
}

/// One formula for each resource.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceExpressions {
    /// The formula for CPU, with the variable cpu.
    pub cpu: Option<String>,
    /// The formula for memory, with the variable memory.
    pub memory: Option<String>,
}

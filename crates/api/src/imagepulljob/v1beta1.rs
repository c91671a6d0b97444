//! ImagePullJob v1beta1, the hub.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::image_pull::Template;
use crate::{names::APPS_GROUP, time::Time};

crate::kind! {
    /// Pulls one image on many nodes before pods need it.
    ImagePullJob { group: APPS_GROUP, version: "v1beta1", plural: "imagepulljobs", scope: Namespaced,
        spec: Spec, status: Status }
}

/// Which image is pulled, where and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The image, as a container names it: by tag or by digest.
    pub image: String,
    /// Where and how it is pulled.
    #[serde(flatten)]
    pub template: Template,
}

/// How far the job is.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// When the job started.
    pub start_time: Option<Time>,
    /// When every node was done, or the deadline was over. Absent while the job runs.
    pub completion_time: Option<Time>,
    /// How many nodes are to pull.
    pub desired: i32,
    /// How many nodes pull now.
    pub active: Option<i32>,
    /// How many nodes have the image.
    pub succeeded: Option<i32>,
    /// How many nodes could not pull.
    pub failed: Option<i32>,
    /// How far the job is, made for people.
    pub message: Option<String>,
    /// The names of the nodes that could not pull.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_nodes: Vec<String>,
}

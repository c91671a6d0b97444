//! ImageListPullJob v1beta1, the hub.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::image_pull::Template;
use crate::{names::APPS_GROUP, time::Time};

crate::kind! {
    /// Pulls several images on many nodes before pods need them.
    ImageListPullJob { group: APPS_GROUP, version: "v1beta1", plural: "imagelistpulljobs", scope: Namespaced,
        spec: Spec, status: Status }
}

/// Which images are pulled, where and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The images, each once and at most 255. Every one gets an ImagePullJob of its own.
    pub images: Vec<String>,
    /// What holds for each of these ImagePullJobs.
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
    /// When every image was done. Absent while the job runs.
    pub completion_time: Option<Time>,
    /// How many images are wanted.
    pub desired: i32,
    /// How many images are being pulled somewhere.
    pub active: Option<i32>,
    /// How many images are done on every node, well or not.
    pub completed: Option<i32>,
    /// How many images every node has pulled.
    pub succeeded: Option<i32>,
    /// The images that failed on some node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_image_statuses: Vec<FailedImageStatus>,
}

/// An image that failed on some node.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedImageStatus {
    /// The ImagePullJob of this image, which names the nodes.
    pub image_pull_job: Option<String>,
    /// The image that failed.
    pub name: Option<String>,
    /// What to look at next, made for people.
    pub message: Option<String>,
}

//! NodeImage v1beta1, the hub.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::image_pull::{ImagePullPolicy, SandboxConfig};
use crate::{names::APPS_GROUP, time::Time};

crate::kind! {
    /// The images that one node is to pull, and how far it is.
    NodeImage { group: APPS_GROUP, version: "v1beta1", plural: "nodeimages", scope: Cluster,
        spec: Spec, status: Status }
}

/// Which images the node is to pull.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The images by name, without tag; at most 256. The short form of the name: nginx, not docker.io/library/nginx.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub images: BTreeMap<String, Image>,
}

/// The tags of one image, and how to get at it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Secrets with the credentials of the registry, in a namespace that the node daemon may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pull_secrets: Vec<PullSecret>,
    /// The tags that are wanted, sorted.
    pub tags: Vec<Tag>,
    /// Labels and annotations that the container runtime gets along with the pull.
    pub sandbox_config: Option<SandboxConfig>,
}

/// A secret with the credentials of a registry.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullSecret {
    /// The namespace of the secret.
    pub namespace: Option<String>,
    /// The name of the secret.
    pub name: Option<String>,
    /// What ends this entry: with 'batch' it lives as long as the image, otherwise as long as the secret.
    pub mode: Option<String>,
}

/// One tag that is wanted.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tag {
    /// The tag, or a digest such as sha256:...
    pub tag: String,
    /// When the tag came in. The time it is given when it has none.
    pub created_at: Option<Time>,
    /// How long the pull may take, how often it is tried, and when the entry goes.
    pub pull_policy: Option<PullPolicy>,
    /// The jobs that want this tag. It goes when the last of them is gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
    /// Counts the rounds: a higher number makes the node pull again. Zero unless given.
    pub version: Option<i64>,
    /// Always asks the registry again; IfNotPresent is done when the node has the image.
    pub image_pull_policy: Option<ImagePullPolicy>,
}

/// How long a pull may take, how often it is tried, and when its entry goes.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullPolicy {
    /// Seconds after which one attempt counts as failed. 600 unless given.
    pub timeout_seconds: Option<i32>,
    /// How often a failed pull is tried again. Three times unless given.
    pub backoff_limit: Option<i32>,
    /// Seconds after which a finished tag is taken out of the list. It must be given.
    pub ttl_seconds_after_finished: Option<i32>,
    /// Seconds after which the tag counts as failed, whatever is going on. No limit unless given.
    pub active_deadline_seconds: Option<i64>,
}

/// The job that wants a tag.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct OwnerReference {
    /// Group and version of the job.
    pub api_version: Option<String>,
    /// The kind of the job.
    pub kind: Option<String>,
    /// The namespace of the job.
    pub namespace: Option<String>,
    /// The name of the job.
    pub name: Option<String>,
    /// The uid of the job: a namesake made later is someone else.
    pub uid: Option<String>,
    /// The version of the job that was meant. Not used here.
    pub resource_version: Option<String>,
    /// A part of the job that was meant. Not used here.
    pub field_path: Option<String>,
}

/// How far the node is.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// How many tags are wanted.
    pub desired: i32,
    /// How many tags the node has pulled.
    pub succeeded: Option<i32>,
    /// How many tags the node could not pull.
    pub failed: Option<i32>,
    /// How many tags the node pulls now.
    pub pulling: Option<i32>,
    /// How many tags wait for their turn.
    pub waiting: Option<i32>,
    /// The tags of each image, by the name of the image.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub image_statuses: BTreeMap<String, ImageStatus>,
    /// How the first list of this node ended. Written once.
    pub first_sync_status: Option<FirstSyncStatus>,
}

/// How far one image is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageStatus {
    /// Its tags, sorted.
    pub tags: Vec<TagStatus>,
}

/// How far one tag is.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TagStatus {
    /// The tag, or a digest.
    pub tag: String,
    /// Waiting, Pulling, Succeeded or Failed.
    pub phase: Phase,
    /// How much is there, in percent. 0 while it runs, 100 when it is done: runtimes tell no more.
    pub progress: Option<i32>,
    /// When the pull started.
    pub start_time: Option<Time>,
    /// When it succeeded or failed.
    pub completion_time: Option<Time>,
    /// The round that this is about, as in the spec.
    pub version: Option<i64>,
    /// The image that the runtime got.
    #[serde(rename = "imageID")]
    pub image_id: Option<String>,
    /// Why it failed, made for people.
    pub message: Option<String>,
}

open_enum! {
    /// How far a pull is.
    pub enum Phase {
        /// It waits for its turn.
        Waiting = "Waiting",
        /// It runs.
        Pulling = "Pulling",
        /// The node has the image.
        Succeeded = "Succeeded",
        /// The last attempt failed, or the deadline is over.
        Failed = "Failed",
    }
}

/// How the first list of a node ended.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FirstSyncStatus {
    /// When every tag of the list was done.
    pub sync_at: Option<Time>,
    /// Succeeded, or Failed when some tag failed.
    pub status: Option<FirstSyncState>,
    /// Which tags failed, made for people.
    pub message: Option<String>,
}

open_enum! {
    /// How the first list of a node ended.
    pub enum FirstSyncState {
        /// The node has every image.
        Succeeded = "Succeeded",
        /// Some image failed.
        Failed = "Failed",
    }
}

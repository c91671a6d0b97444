//! How images are pulled ahead of their use: the part that ImagePullJob and ImageListPullJob share.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{int_or_percent::IntOrString, selector::LabelSelector};

/// Seconds after which one attempt to pull counts as failed, unless given.
pub const DEFAULT_TIMEOUT_SECONDS: i32 = 600;
/// How often a failed pull is tried again, unless given.
pub const DEFAULT_BACKOFF_LIMIT: i32 = 3;

/// Everything about a pull but the image itself.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// Names of secrets in the namespace of the job that hold the credentials of registries. Never changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pull_secrets: Vec<String>,
    /// The nodes that pull, by name or by label. All nodes unless given.
    pub selector: Option<NodeSelector>,
    /// Pulls on the nodes where the pods with these labels run. It cannot be given together with selector.
    pub pod_selector: Option<LabelSelector>,
    /// How many nodes pull at once: a whole number. One unless given; zero pauses the job.
    pub parallelism: Option<IntOrString>,
    /// How long one attempt may take and how often it is tried again.
    pub pull_policy: Option<PullPolicy>,
    /// When the job is done, and what happens to it then.
    pub completion_policy: CompletionPolicy,
    /// Labels and annotations that the container runtime gets along with the pull.
    pub sandbox_config: Option<SandboxConfig>,
    /// Always asks the registry again; IfNotPresent skips nodes that have the image. IfNotPresent unless given.
    pub image_pull_policy: Option<ImagePullPolicy>,
}

/// Chooses nodes by name or by label, not both. An empty one chooses all nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct NodeSelector {
    /// Names of nodes, in the order in which they pull.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Labels of the nodes.
    #[serde(flatten)]
    pub labels: LabelSelector,
}

/// How long one attempt may take and how often it is tried again.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullPolicy {
    /// Seconds after which one attempt counts as failed. 600 unless given.
    pub timeout_seconds: Option<i32>,
    /// How often a failed pull is tried again on a node. Three times unless given.
    pub backoff_limit: Option<i32>,
}

/// When a job is done, and what happens to it then.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompletionPolicy {
    /// Always ends when every node has succeeded or failed. Never goes on and pulls again about once a day. Always
    /// unless given.
    #[serde(rename = "type")]
    pub kind: Option<CompletionType>,
    /// Seconds after which the job ends and the nodes that are not done count as failed. No limit unless given. Only
    /// for Always.
    pub active_deadline_seconds: Option<i64>,
    /// Seconds after which a job that has ended is deleted. It stays unless given. Only for Always.
    pub ttl_seconds_after_finished: Option<i32>,
}

open_enum! {
    /// Whether a job ends.
    pub enum CompletionType {
        /// It ends when every node has succeeded or failed.
        Always = "Always",
        /// It goes on for ever.
        Never = "Never",
    }
}

open_enum! {
    /// Whether an image that a node has already is pulled again.
    pub enum ImagePullPolicy {
        /// It is not.
        IfNotPresent = "IfNotPresent",
        /// It is: a tag may point to something newer.
        Always = "Always",
    }
}

/// Labels and annotations that the container runtime gets along with a pull.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxConfig {
    /// Labels for plugins of the runtime.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations for plugins of the runtime.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// Fills in the defaults of a pull policy at a path. What is set stays.
pub(crate) fn default_pull_policy(object: &mut serde_json::Value, path: &[&str]) {
    let field = |name| [path, &[name]].concat();
    crate::json::default_at(object, &field("timeoutSeconds"), DEFAULT_TIMEOUT_SECONDS);
    crate::json::default_at(object, &field("backoffLimit"), DEFAULT_BACKOFF_LIMIT);
}

//! BroadcastJob v1beta1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{int_or_percent::IntOrString, names::APPS_GROUP, raw::Raw, time::Time};

crate::kind! {
    /// Runs one pod to its end on every node that fits, once or for every node that joins.
    BroadcastJob { group: APPS_GROUP, version: "v1beta1", plural: "broadcastjobs", scope: Namespaced,
        spec: Spec, status: Status }
}

/// Which pod runs on the nodes, how many at once, and when the job ends.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// How many pods may run at once: a number or a percentage of the nodes that fit. All at once unless given.
    pub parallelism: Option<IntOrString>,
    /// The pod that runs on each node. Its node selector, affinity, tolerations and requests say which nodes fit. A
    /// change of it reaches only pods that are made later.
    pub template: Raw,
    /// When the job ends and what becomes of it then.
    pub completion_policy: Option<CompletionPolicy>,
    /// Makes no new pods while it is true. Pods that run go on.
    pub paused: Option<bool>,
    /// What a failed pod means for the job.
    pub failure_policy: Option<FailurePolicy>,
}

/// When the job ends and what becomes of it then.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompletionPolicy {
    /// Always ends the job when the pods of all nodes have ended. Never keeps it for nodes that join later. Always
    /// unless given.
    #[serde(rename = "type")]
    pub kind: Option<CompletionType>,
    /// Seconds from its start after which a job that still runs fails. Only with Always. No limit unless given.
    pub active_deadline_seconds: Option<i64>,
    /// Seconds after its end when the job is deleted. Zero deletes it at once. Only with Always. It is kept unless
    /// given.
    pub ttl_seconds_after_finished: Option<i32>,
}

open_enum! {
    /// Whether a job ends.
    pub enum CompletionType {
        /// It ends with the pods of all nodes.
        Always = "Always",
        /// It goes on for nodes that join later.
        Never = "Never",
    }
}

/// What a failed pod means for the job.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailurePolicy {
    /// FailFast fails the job with its first failed pod, Continue goes on, Pause waits for someone to look. FailFast
    /// unless given.
    #[serde(rename = "type")]
    pub kind: Option<FailureType>,
    /// How often the containers of one pod may restart before it counts as failed. Zero unless given.
    pub restart_limit: Option<i32>,
}

open_enum! {
    /// What a job does when a pod failed.
    pub enum FailureType {
        /// It fails too.
        FailFast = "FailFast",
        /// It goes on with the other nodes.
        Continue = "Continue",
        /// It pauses itself.
        Pause = "Pause",
    }
}

/// What the controller last saw of the job.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// How the job ended, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// When the job was first seen.
    pub start_time: Option<Time>,
    /// When the job ended.
    pub completion_time: Option<Time>,
    /// Pods that run.
    pub active: Option<i32>,
    /// Pods that ended well.
    pub succeeded: Option<i32>,
    /// Pods that failed.
    pub failed: Option<i32>,
    /// Nodes on which a pod should run.
    pub desired: Option<i32>,
    /// Where the job stands: running, paused, completed or failed.
    pub phase: Option<Phase>,
}

open_enum! {
    /// Where a job stands.
    pub enum Phase {
        /// Pods are made and run.
        Running = "running",
        /// No pods are made until someone lets it go on.
        Paused = "paused",
        /// All pods have ended.
        Completed = "completed",
        /// It ended early.
        Failed = "failed",
    }
}

/// How a job ended.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Complete or Failed.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds: True, False or Unknown.
    pub status: String,
    /// When it was last looked at.
    pub last_probe_time: Option<Time>,
    /// When the status last changed.
    pub last_transition_time: Option<Time>,
    /// A short word for why, made for programs.
    pub reason: Option<String>,
    /// Why, made for people.
    pub message: Option<String>,
}

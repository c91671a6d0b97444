//! EphemeralJob v1alpha1, the only version.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{names::APPS_GROUP, raw::Raw, selector::LabelSelector, time::Time};

/// How many pods are worked on at once, unless given.
pub const DEFAULT_PARALLELISM: i32 = 1;
/// Seconds after which a job that has ended is deleted, unless given.
pub const DEFAULT_TTL_SECONDS: i32 = 1800;

crate::kind! {
    /// Adds ephemeral containers to running pods.
    EphemeralJob { group: APPS_GROUP, version: "v1alpha1", plural: "ephemeraljobs", scope: Namespaced,
        spec: Spec, status: Status }
}

/// Which pods get which containers.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Chooses the pods in this namespace. It must not be empty and never changes.
    pub selector: LabelSelector,
    /// At most this many pods are taken, the oldest first. All of them unless given.
    pub replicas: Option<i32>,
    /// How many pods may have containers of this job that are not done. One unless given.
    pub parallelism: Option<i32>,
    /// What each pod gets. Never changes.
    pub template: Template,
    /// Stops giving containers to more pods. What runs goes on.
    pub paused: Option<bool>,
    /// Seconds after its start at which the job ends as failed. No limit unless given.
    pub active_deadline_seconds: Option<i64>,
    /// Seconds after which a job that has ended is deleted. 1800 unless given; zero means at once.
    pub ttl_seconds_after_finished: Option<i32>,
}

/// What each pod gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// The ephemeral containers, at least one. They stay in a pod as long as the pod lives.
    pub ephemeral_containers: Raw,
}

/// How far the job is.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Waiting, Running, Paused, Succeeded, Failed, Error or Unknown.
    pub phase: Option<Phase>,
    /// When the job started.
    pub start_time: Option<Time>,
    /// When the job ended. Absent while it goes on.
    pub completion_time: Option<Time>,
    /// How many pods the job works on.
    #[serde(rename = "match")]
    pub matched: Option<i32>,
    /// How many pods have containers of this job that run.
    pub running: Option<i32>,
    /// How many pods have containers of this job that all ended well.
    pub succeeded: Option<i32>,
    /// How many pods have containers of this job that have not started yet.
    pub waiting: Option<i32>,
    /// How many pods have a container of this job that failed.
    pub failed: Option<i32>,
    /// Facts about the job, with reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

open_enum! {
    /// How far a job is.
    pub enum Phase {
        /// There is no pod yet, or no container has started.
        Waiting = "Waiting",
        /// Containers run.
        Running = "Running",
        /// Every container ended well.
        Succeeded = "Succeeded",
        /// Some container failed, or the deadline is over.
        Failed = "Failed",
        /// Someone paused the job.
        Paused = "Paused",
        /// The job cannot run as it is written. Only in objects of older versions.
        Error = "Error",
        /// The outcome cannot be told. Only in objects of older versions.
        Unknown = "Unknown",
    }
}

/// One fact about a job, with the times of its last change and its last confirmation.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Initialized, MatchedEmpty, JobSucceeded, JobFailed or JobError.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds: True, False or Unknown.
    pub status: String,
    /// When the fact was last confirmed.
    pub last_probe_time: Option<Time>,
    /// When the status last changed.
    pub last_transition_time: Option<Time>,
    /// A short word for why, made for programs.
    pub reason: Option<String>,
    /// Why, made for people.
    pub message: Option<String>,
}

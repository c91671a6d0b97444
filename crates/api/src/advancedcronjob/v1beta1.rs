//! AdvancedCronJob v1beta1, the hub.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{names::APPS_GROUP, raw::Raw, time::Time};

crate::kind! {
    /// Makes a Job, a BroadcastJob or an ImageListPullJob whenever its schedule says so.
    AdvancedCronJob { group: APPS_GROUP, version: "v1beta1", plural: "advancedcronjobs", scope: Namespaced,
        spec: Spec, status: Status }
}

/// When jobs are made, and which.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// When jobs are made, in the form of cron: minute, hour, day of month, month, day of week.
    #[schemars(extend("minLength" = 0))]
    pub schedule: String,
    /// The time zone of the schedule, such as Asia/Shanghai. The zone of the manager unless given.
    pub time_zone: Option<String>,
    /// Seconds that a job may start late. A job that missed this is left out. No limit unless given.
    pub starting_deadline_seconds: Option<i64>,
    /// What happens when a job is due and the one before still runs: Allow runs both, Forbid leaves the new one out,
    /// Replace ends the old one. Allow unless given, and Replace for image jobs.
    #[schemars(extend("enum" = ["Allow", "Forbid", "Replace"]))]
    pub concurrency_policy: Option<ConcurrencyPolicy>,
    /// Makes no new jobs while it is true. Jobs that run go on.
    pub paused: Option<bool>,
    /// How many jobs that ended well are kept. Three unless given.
    pub successful_jobs_history_limit: Option<i32>,
    /// How many failed jobs are kept. One unless given.
    pub failed_jobs_history_limit: Option<i32>,
    /// The job that is made. Exactly one kind must be given.
    pub template: Template,
}

open_enum! {
    /// What happens when a job is due and the one before still runs.
    pub enum ConcurrencyPolicy {
        /// Both run.
        Allow = "Allow",
        /// The new one is left out.
        Forbid = "Forbid",
        /// The old one ends.
        Replace = "Replace",
    }
}

/// The job that is made.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// A Job of Kubernetes.
    pub job_template: Option<Raw>,
    /// A BroadcastJob, which runs on every node.
    pub broadcast_job_template: Option<BroadcastJobTemplate>,
    /// An ImageListPullJob, which pulls images on nodes.
    pub image_list_pull_job_template: Option<ImageListPullJobTemplate>,
}

/// A BroadcastJob that is made on schedule.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BroadcastJobTemplate {
    /// Labels and annotations of the jobs.
    pub metadata: Option<TemplateMetadata>,
    /// What the jobs do.
    pub spec: Option<crate::broadcastjob::v1beta1::Spec>,
}

/// An ImageListPullJob that is made on schedule.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageListPullJobTemplate {
    /// Labels and annotations of the jobs.
    pub metadata: Option<TemplateMetadata>,
    /// What the jobs do.
    pub spec: Option<crate::imagelistpulljob::v1beta1::Spec>,
}

/// What a template says about the metadata of the jobs. Their names come from the schedule.
///
/// The original describes no field here, so that its API server drops what users write.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Labels that every job gets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations that every job gets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// What the controller last saw of the jobs.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The kind of the jobs: Job, BroadcastJob or ImageListPullJob.
    #[serde(rename = "type")]
    pub kind: Option<JobKind>,
    /// Jobs that have not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub active: Vec<ObjectReference>,
    /// When the last job was due.
    pub last_schedule_time: Option<Time>,
}

open_enum! {
    /// The kind of the jobs that are made.
    pub enum JobKind {
        /// A Job of Kubernetes.
        Job = "Job",
        /// A pod on every node.
        BroadcastJob = "BroadcastJob",
        /// Images pulled on nodes.
        ImageListPullJob = "ImageListPullJob",
    }
}

/// Points to an object.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ObjectReference {
    /// The group and version of the object.
    pub api_version: Option<String>,
    /// The kind of the object.
    pub kind: Option<String>,
    /// The namespace of the object.
    pub namespace: Option<String>,
    /// The name of the object.
    pub name: Option<String>,
    /// The uid, by which a namesake is told apart.
    pub uid: Option<String>,
    /// The version of the object that was seen.
    pub resource_version: Option<String>,
    /// The part of the object that is meant. All of it unless given.
    pub field_path: Option<String>,
}

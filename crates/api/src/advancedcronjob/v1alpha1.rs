//! AdvancedCronJob v1alpha1: the older form, without image jobs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::v1beta1::{BroadcastJobTemplate, ConcurrencyPolicy, Status};
use crate::{names::APPS_GROUP, raw::Raw};

crate::kind! {
    /// Makes a Job or a BroadcastJob whenever its schedule says so.
    AdvancedCronJob { group: APPS_GROUP, version: "v1alpha1", plural: "advancedcronjobs", scope: Namespaced,
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
    /// Replace ends the old one. Allow unless given.
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

/// The job that is made.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// A Job of Kubernetes.
    pub job_template: Option<Raw>,
    /// A BroadcastJob, which runs on every node.
    pub broadcast_job_template: Option<BroadcastJobTemplate>,
}

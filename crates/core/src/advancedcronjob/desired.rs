//! What an AdvancedCronJob wants: when, of which kind, and what happens to those that still run.

use jiff::{SignedDuration, tz::TimeZone};
use kruise_api::{
    advancedcronjob::v1beta1::{AdvancedCronJob, ConcurrencyPolicy},
    cron::{self, Schedule},
};
use serde_json::{Value, json};

use crate::{
    broadcastjob::BROADCAST_JOB,
    imagelistpulljob::IMAGE_LIST_PULL_JOB,
    object::{JOB, Resource},
};

/// A run that may start only within a few seconds would practically never start.
const LEAST_DEADLINE: SignedDuration = SignedDuration::from_secs(10);

/// The decided spec.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// When, in which zone.
    pub schedule: Schedule,
    /// How late a run may start.
    pub deadline: Option<SignedDuration>,
    /// What happens to those that still run.
    pub policy: Policy,
}

/// What happens when a run is due and one before it still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Both run.
    Allow,
    /// The new one waits for the old one.
    Forbid,
    /// The old one is deleted.
    Replace,
}

/// A spec that cannot be carried out. Admission refuses it; this one was stored before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The schedule is none.
    #[error("unparsable schedule {schedule:?}: {source}")]
    Schedule {
        /// As it is written.
        schedule: String,
        /// What is wrong.
        source: cron::Error,
    },
    /// A time zone that the database of this build does not have.
    #[error("unknown time zone {0}")]
    TimeZone(String),
}

impl Error {
    /// The reason of the event that reports it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Schedule { .. } => "UnparseableSchedule",
            Self::TimeZone(_) => "UnknownTimeZone",
        }
    }

    /// The field that is wrong.
    pub fn path(&self) -> &'static str {
        match self {
            Self::Schedule { .. } => "spec.schedule",
            Self::TimeZone(_) => "spec.timeZone",
        }
    }
}

impl Desired {
    /// What an object wants. A schedule without a zone is in `zone`.
    pub fn of(cron: &AdvancedCronJob, zone: &TimeZone) -> Result<Self, Error> {
        let spec = &cron.spec;
        let parsed = Schedule::parse(&spec.schedule)
            .map_err(|source| Error::Schedule { schedule: spec.schedule.clone(), source })?;
        let names_a_zone = spec.schedule.starts_with("TZ=") || spec.schedule.starts_with("CRON_TZ=");
        let schedule = match &spec.time_zone {
            _ if names_a_zone => parsed,
            None => parsed.in_zone(zone.clone()),
            Some(name) => {
                let zone = cron::time_zone(name).filter(|_| !name.is_empty());
                parsed.in_zone(zone.ok_or_else(|| Error::TimeZone(name.clone()))?)
            }
        };
        let deadline = spec.starting_deadline_seconds.map(SignedDuration::from_secs);
        Ok(Self {
            schedule,
            deadline: deadline.map(|deadline| deadline.max(LEAST_DEADLINE)),
            policy: match (&spec.concurrency_policy, &spec.template.image_list_pull_job_template) {
                (Some(ConcurrencyPolicy::Forbid), _) => Policy::Forbid,
                (Some(ConcurrencyPolicy::Replace), _) | (None, Some(_)) => Policy::Replace,
                _ => Policy::Allow,
            },
        })
    }
}

/// The kind of the jobs, and the template as JSON. Nothing where there is no template.
pub(super) fn template(cron: &AdvancedCronJob) -> Option<(Resource, Value)> {
    let template = &cron.spec.template;
    if let Some(job) = &template.job_template {
        return Some((JOB, job.0.clone()));
    }
    if let Some(list) = &template.image_list_pull_job_template {
        return Some((IMAGE_LIST_PULL_JOB, json!(list)));
    }
    template.broadcast_job_template.as_ref().map(|job| (BROADCAST_JOB, json!(job)))
}

/// The kind of the jobs that an object makes.
pub fn children_of(cron: &AdvancedCronJob) -> Option<Resource> {
    template(cron).map(|(resource, _)| resource)
}

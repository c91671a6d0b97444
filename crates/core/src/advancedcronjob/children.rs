//! The jobs that were made, whatever their kind: how each ended, if it has ended.

use jiff::Timestamp;
use kruise_api::{
    annotations::SCHEDULED_AT, broadcastjob::v1beta1::BroadcastJob,
    imagelistpulljob::v1beta1::ImageListPullJob,
};
use serde::Deserialize;

use crate::{
    broadcastjob::BROADCAST_JOB,
    imagelistpulljob::IMAGE_LIST_PULL_JOB,
    object::{JOB, Resource},
    pod::{Condition, Metadata, boxed, or_default},
    text::Pool,
    time,
};

/// A Job of Kubernetes, as far as schedules look at it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Job {
    /// Name, labels, owners.
    pub metadata: Metadata,
    /// What is wanted.
    #[serde(deserialize_with = "or_default")]
    pub spec: JobSpec,
    /// How far it is.
    #[serde(deserialize_with = "or_default")]
    pub status: JobStatus,
}

/// What is wanted of a Job.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct JobSpec {
    /// How many pods run at once; 1 where the author says nothing.
    pub parallelism: Option<i64>,
}

/// How far a Job is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatus {
    /// How it ended, among other things.
    #[serde(deserialize_with = "boxed")]
    pub conditions: Box<[Condition]>,
    /// When it was first seen by its controller.
    pub start_time: Option<Timestamp>,
}

impl Job {
    /// Makes equal texts one.
    pub fn share(&mut self, pool: &mut Pool) {
        self.metadata.share(pool);
    }
}

/// Whether and how a job has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It has not.
    Active,
    /// Well.
    Successful,
    /// Otherwise.
    Failed,
}

/// A job that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// The kind.
    pub resource: Resource,
    /// Name, owners.
    pub metadata: Metadata,
    /// Whether and how it has ended. One that cannot be read has not.
    pub outcome: Outcome,
    /// When it began.
    pub started: Option<Timestamp>,
}

impl Child {
    /// A Job.
    pub fn of_job(job: &Job) -> Self {
        let conditions = || job.status.conditions.iter().map(|one| (one.r#type.as_str(), one.is_true()));
        Self {
            resource: JOB,
            metadata: job.metadata.clone(),
            outcome: by_conditions(conditions()),
            started: job.status.start_time,
        }
    }

    /// A BroadcastJob.
    pub fn of_broadcast_job(metadata: &Metadata, job: Option<&BroadcastJob>) -> Self {
        let status = job.and_then(|job| job.status.as_ref());
        let conditions = status.into_iter().flat_map(|status| &status.conditions);
        let conditions = conditions.map(|one| (one.kind.as_str(), one.status == "True"));
        Self {
            resource: BROADCAST_JOB,
            metadata: metadata.clone(),
            outcome: by_conditions(conditions),
            started: status.and_then(|status| status.start_time).map(|start| start.0),
        }
    }

    /// An ImageListPullJob.
    pub fn of_list(metadata: &Metadata, list: Option<&ImageListPullJob>) -> Self {
        let status = list.and_then(|list| list.status.as_ref());
        let ended = status.filter(|status| status.completion_time.is_some());
        let outcome = match ended {
            None => Outcome::Active,
            Some(status) if status.succeeded.unwrap_or(0) == status.desired => Outcome::Successful,
            Some(_) => Outcome::Failed,
        };
        let started = status.and_then(|status| status.start_time).map(|start| start.0);
        Self { resource: IMAGE_LIST_PULL_JOB, metadata: metadata.clone(), outcome, started }
    }

    /// The time it was due, in any offset. What is no time says nothing.
    pub fn scheduled_at(&self) -> Option<Timestamp> {
        self.metadata.annotations.text(SCHEDULED_AT).and_then(time::saturating)
    }

    /// Whether a change of a child matters: that a job counts its pods does not.
    pub fn differs(old: Option<&Self>, new: Option<&Self>) -> bool {
        let facts = |child: &Self| {
            let Metadata { uid, deletion_timestamp, owner_references, .. } = &child.metadata;
            let is_deleting = deletion_timestamp.is_some();
            (child.outcome, child.scheduled_at(), uid.clone(), is_deleting, owner_references.clone())
        };
        old.map(facts) != new.map(facts)
    }
}

fn by_conditions<'c>(conditions: impl Iterator<Item = (&'c str, bool)>) -> Outcome {
    let mut outcome = Outcome::Active;
    for (kind, holds) in conditions {
        match kind {
            "Failed" if holds => return Outcome::Failed,
            "Complete" if holds => outcome = Outcome::Successful,
            _ => {}
        }
    }
    outcome
}

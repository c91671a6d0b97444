//! What a job says about itself.

use jiff::Timestamp;
use kruise_api::{
    broadcastjob::v1beta1::{BroadcastJob, Condition, Phase, Status},
    time::Time,
};

use super::{Observed, plan::event, pods::Standing, reference};
use crate::{
    conditions,
    effect::{Effect, Event, Level},
    object::ObjectRef,
};

const COMPLETE: &str = "Complete";
const FAILED: &str = "Failed";

/// How a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The pods of all nodes are over.
    Complete,
    /// A pod failed.
    FailFast,
    /// It took too long.
    Deadline,
}

/// When a job ended; nothing while it has not.
pub fn finished(job: &BroadcastJob) -> Option<Timestamp> {
    let status = job.status.as_ref()?;
    let is_end = |condition: &&Condition| {
        matches!(condition.kind.as_str(), COMPLETE | FAILED) && condition.status == "True"
    };
    let end = status.conditions.iter().find(is_end)?;
    let time = status.completion_time.or(end.last_transition_time);
    Some(time.map_or(Timestamp::UNIX_EPOCH, |time| time.0))
}

/// The status of a job that goes on.
pub(super) fn running(seen: &Observed, standing: &Standing<'_>, start: Timestamp) -> Status {
    let count = |count: usize| Some(i32::try_from(count).unwrap_or(i32::MAX));
    let counts = standing.counts();
    let before = seen.job.status.clone().unwrap_or_default();
    Status {
        conditions: before.conditions,
        start_time: Some(Time(start)),
        completion_time: before.completion_time,
        active: count(counts.active),
        succeeded: count(counts.succeeded),
        failed: count(counts.failed),
        desired: count(standing.nodes.len()),
        phase: Some(Phase::Running),
    }
}

/// The status of a job that ends now, and the event that says so.
pub(super) fn ended(seen: &Observed, job: &ObjectRef, mut status: Status, end: &End) -> (Status, Event) {
    let counts = format!(
        "{} pods succeeded, {} pods failed",
        status.succeeded.unwrap_or(0),
        status.failed.unwrap_or(0)
    );
    let fail_fast = "failure policy is FailurePolicyTypeFailFast and failed pod is found";
    let deadline = format!("Job {} was active longer than specified deadline", job.key);
    let (phase, kind, message, event) = match end {
        End::Complete => {
            let message = format!("Job {} is completed, {counts}", job.key);
            let event = event(job, Level::Normal, "JobComplete", message);
            (Phase::Completed, COMPLETE, format!("Job completed, {counts}"), event)
        }
        End::FailFast => {
            let event = event(job, Level::Warning, "failed pod is found", format!("{fail_fast}: {counts}"));
            (Phase::Failed, FAILED, fail_fast.to_owned(), event)
        }
        End::Deadline => {
            let event = event(job, Level::Warning, "DeadlineExceeded", format!("{deadline}: {counts}"));
            (Phase::Failed, FAILED, deadline, event)
        }
    };
    let now = Some(Time(seen.now));
    status.phase = Some(phase);
    status.completion_time = now;
    status.conditions.retain(|condition| condition.kind != kind);
    status.conditions.push(Condition {
        kind: kind.to_owned(),
        status: "True".to_owned(),
        last_probe_time: now,
        last_transition_time: now,
        reason: Some(kind.to_owned()),
        message: Some(message),
    });
    (status, event)
}

/// The write that brings a status up to date, if one is needed.
pub fn status_write(job: &BroadcastJob, status: &Status) -> Option<Effect> {
    conditions::status_write(&reference(job), job.status.as_ref(), status)
}

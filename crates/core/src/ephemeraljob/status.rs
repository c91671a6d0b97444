//! What a job says about itself.

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    ephemeraljob::v1alpha1::{Condition, Phase, Status},
    time::Time,
};

use super::{
    Observed,
    outcome::{Outcome, Target},
    reference,
};

const MATCHED_EMPTY: &str = "MatchedEmpty";
const JOB_SUCCEEDED: &str = "JobSucceeded";
const JOB_FAILED: &str = "JobFailed";

/// How many pods are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) matched: usize,
    pub(super) running: usize,
    pub(super) succeeded: usize,
    pub(super) waiting: usize,
    pub(super) failed: usize,
}

impl Counts {
    pub(super) fn of(targets: &[Target<'_>]) -> Self {
        let count = |wanted: Outcome| targets.iter().filter(|target| target.outcome == wanted).count();
        Self {
            matched: targets.len(),
            running: count(Outcome::Running),
            succeeded: count(Outcome::Succeeded),
            waiting: count(Outcome::Waiting),
            failed: count(Outcome::Failed),
        }
    }
}

/// When a job began; now, if it begins.
pub(super) fn start(seen: &Observed) -> Timestamp {
    seen.job.status.as_ref().and_then(|status| status.start_time).map_or(seen.now, |time| time.0)
}

/// The status of a job that had not ended before.
pub(super) fn status(seen: &Observed, counts: Counts) -> Status {
    let job = seen.job.as_ref();
    let before = job.status.clone().unwrap_or_default();
    let mut conditions = before.conditions;
    let mut set = |kind: &str, reason: &str, message: String| {
        let is_same = |present: &Condition| {
            present.kind == kind
                && present.reason.as_deref() == Some(reason)
                && present.message.as_deref() == Some(message.as_str())
        };
        if conditions.iter().any(is_same) {
            return;
        }
        conditions.retain(|present| present.kind != kind);
        conditions.push(Condition {
            kind: kind.to_owned(),
            status: "True".to_owned(),
            last_probe_time: Some(Time(seen.now)),
            last_transition_time: Some(Time(seen.now)),
            reason: Some(reason.to_owned()),
            message: Some(message.clone()),
        });
    };
    let Counts { matched, running, succeeded, waiting, failed } = counts;
    let name = reference(job).key;
    let deadline = job.spec.active_deadline_seconds.map(SignedDuration::from_secs);
    let is_late = deadline.is_some_and(|deadline| seen.now.duration_since(start(seen)) >= deadline);
    let phase = if matched == 0 {
        set(MATCHED_EMPTY, "MatchEmpty", "job match no pods".to_owned());
        Phase::Waiting
    } else if succeeded == matched {
        set(JOB_SUCCEEDED, "JobSucceeded", "job success to run all tasks".to_owned());
        Phase::Succeeded
    } else if succeeded + failed == matched {
        set(JOB_FAILED, "JobFailed", "job failed to run all tasks".to_owned());
        Phase::Failed
    } else if is_late {
        Phase::Failed
    } else {
        if failed > 0 {
            let message = format!("EphemeralJob {name} failed to create ephemeral container");
            set(JOB_FAILED, "CreateFailed", message);
        }
        if running > 0 { Phase::Running } else { Phase::Waiting }
    };
    let phase = match phase {
        Phase::Succeeded => Phase::Succeeded,
        Phase::Failed if succeeded + failed == matched => Phase::Failed,
        _ if is_late => {
            let message = format!("EphemeralJob {name} was active longer than specified deadline");
            set(JOB_FAILED, "DeadlineExceeded", message);
            Phase::Failed
        }
        _ if job.spec.paused == Some(true) => Phase::Paused,
        other => other,
    };
    if matched > 0 {
        conditions.retain(|present| present.kind != MATCHED_EMPTY);
    }
    let is_over = matches!(phase, Phase::Succeeded | Phase::Failed);
    let number = |count: usize| Some(i32::try_from(count).unwrap_or(i32::MAX));
    Status {
        phase: Some(phase),
        start_time: Some(Time(start(seen))),
        completion_time: is_over.then_some(Time(seen.now)),
        matched: number(matched),
        running: number(running),
        succeeded: number(succeeded),
        waiting: number(waiting),
        failed: number(failed),
        conditions,
    }
}

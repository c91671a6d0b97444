//! How things stand.

use std::time::Duration;

use jiff::SignedDuration;
use kruise_api::{
    cloneset::v1beta1::{CloneSet, Status},
    condition::ProgressCondition,
    time::Time,
};

use super::{Desired, Observed, decide, reference, view::View};
use crate::{
    availability::is_ready,
    conditions,
    effect::Effect,
    plan::Failures,
    revision::{Found, Revisions, is_on},
    waiting::{self, Reason, Waits},
};

/// The condition that adding or removing pods failed.
pub(super) const FAILED_SCALE: &str = "FailedScale";
const FAILED_UPDATE: &str = "FailedUpdate";
const PROGRESSING: &str = "Progressing";

const AVAILABLE: &str = "CloneSetAvailable";
const PAUSED: &str = "CloneSetPaused";
const PARTITION_AVAILABLE: &str = "ProgressPartitionAvailable";
const EXCEEDED: &str = "ProgressDeadlineExceeded";
const UPDATED: &str = "CloneSetUpdated";

/// The status after a pass that saw this, failed so, and has these reasons to wait.
pub fn status(seen: &Observed, failures: &Failures, waits: &Waits) -> Status {
    decide(seen).1.status(seen, failures, waits)
}

/// How the pods of a set stand, as a pass saw them: what a status is made of, once it is known what failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing(Result<Counted, String>);

/// The numbers, and what the spec says about them.
#[derive(Clone, Debug, PartialEq)]
struct Counted {
    status: Status,
    replicas: i64,
    paused: bool,
    deadline: Option<SignedDuration>,
}

impl Standing {
    pub(super) fn new(view: &View<'_>, revisions: &Revisions<'_>) -> Self {
        let Desired { replicas, paused, progress_deadline: deadline, .. } = *view.desired;
        Self(Ok(Counted { status: counted(view, revisions), replicas, paused, deadline }))
    }

    /// Of a spec that cannot be carried out.
    pub(super) fn broken(error: String) -> Self {
        Self(Err(error))
    }

    /// The status after the pass that saw this, failed so, and has these reasons to wait. It is written only when it
    /// differs.
    pub fn status(&self, seen: &Observed, failures: &Failures, waits: &Waits) -> Status {
        let previous = seen.set.status.clone().unwrap_or_default();
        let counted = match &self.0 {
            Ok(counted) => counted,
            Err(error) => return broken(seen, previous, error, waits),
        };
        let mut status = Status { conditions: previous.conditions.clone(), ..counted.status.clone() };
        set_failure(&mut status, FAILED_SCALE, failures.scale.as_deref(), seen);
        set_failure(&mut status, FAILED_UPDATE, failures.update.as_deref(), seen);
        set_progress(&mut status, &previous, counted, seen);
        let mut waits = waits.clone();
        let late = conditions::get(&status.conditions, PROGRESSING);
        if late.is_some_and(|late| late.reason.as_deref() == Some(EXCEEDED)) {
            let seconds = counted.deadline.unwrap_or_default().as_secs();
            let revision = status.update_revision.as_deref().unwrap_or_default();
            let sentence =
                format!("revision {revision} has not progressed for progressDeadlineSeconds {seconds}");
            waits.add(Reason::DeadlineExceeded, sentence);
        }
        waiting::set_condition(&mut status.conditions, &waits, seen.now);
        status
    }

    /// How long until the deadline of a running update.
    pub(super) fn deadline(&self, seen: &Observed) -> Option<Duration> {
        let deadline = self.0.as_ref().ok()?.deadline?;
        let status = self.status(seen, &Failures::default(), &Waits::default());
        let condition = conditions::get(&status.conditions, PROGRESSING)?;
        let start = condition.last_update_time.filter(|_| condition.reason.as_deref() == Some(UPDATED))?;
        let left = deadline.saturating_sub(seen.now.duration_since(start.0)).max(SignedDuration::ZERO);
        Some(Duration::try_from(left).ok()? + Duration::from_secs(1))
    }
}

/// Whether the last pass failed to update pods.
pub fn has_failed_update(status: &Status) -> bool {
    conditions::is_true(&status.conditions, FAILED_UPDATE)
}

/// The write that brings a status up to date, if one is needed.
pub fn status_write(set: &CloneSet, status: &Status) -> Option<Effect> {
    conditions::status_write(&reference(set), set.status.as_ref(), status)
}

/// A spec that cannot be carried out is told, and the rest stays as it was.
fn broken(seen: &Observed, mut status: Status, error: &str, waits: &Waits) -> Status {
    status.observed_generation = seen.set.metadata.generation;
    set_failure(&mut status, FAILED_SCALE, Some(error), seen);
    waiting::set_condition(&mut status.conditions, waits, seen.now);
    status
}

fn counted(view: &View<'_>, revisions: &Revisions<'_>) -> Status {
    let update = revisions.update.name();
    let previous = view.seen.set.status.as_ref().and_then(|status| status.collision_count);
    let mut status = Status {
        observed_generation: view.seen.set.metadata.generation,
        expected_updated_replicas: i32::try_from(view.desired.replicas - view.desired.partition).ok(),
        update_revision: Some(update.to_owned()),
        current_revision: Some(revisions.current.name().to_owned()),
        collision_count: Some(previous.unwrap_or(0)),
        label_selector: Some(view.desired.selector.text()),
        ..Status::default()
    };
    let mut updated_available = 0;
    for pod in &view.pods {
        let is_new = i32::from(is_on(pod, &revisions.update));
        let (is_ready, is_available) = (i32::from(is_ready(pod)), i32::from(view.is_available(pod)));
        status.replicas += 1;
        status.ready_replicas += is_ready;
        status.available_replicas += is_available;
        status.updated_replicas += is_new;
        status.updated_ready_replicas += is_new * is_ready;
        updated_available += is_new * is_available;
    }
    if let Found::Missing(new) = &revisions.found {
        status.collision_count = Some(new.collision_count);
    }
    if status.updated_replicas == status.replicas && i64::from(status.replicas) == view.desired.replicas {
        status.current_revision = Some(update.to_owned());
    }
    status.updated_available_replicas = Some(updated_available);
    status
}

fn set_failure(status: &mut Status, kind: &str, message: Option<&str>, seen: &Observed) {
    conditions::set_failure(&mut status.conditions, kind, None, message, seen.now);
}

fn set_progress(status: &mut Status, previous: &Status, counted: &Counted, seen: &Observed) {
    let before = conditions::get(&status.conditions, PROGRESSING).cloned();
    let Some(deadline) = counted.deadline else {
        conditions::remove(&mut status.conditions, PROGRESSING);
        return;
    };
    let is_same_revision = previous.update_revision == status.update_revision;
    let (reason, message) =
        progress(status, before.as_ref().filter(|_| is_same_revision), counted, deadline, seen);
    let state = if reason == EXCEEDED { "False" } else { "True" };
    let restarts = reason == UPDATED && !is_same_revision;
    let is_same = before
        .as_ref()
        .is_some_and(|before| before.status == state && before.reason.as_deref() == Some(reason));
    if is_same && !restarts {
        return;
    }
    let now = Some(Time(seen.now));
    let kept = before.as_ref().filter(|before| before.status == state);
    let condition = ProgressCondition {
        kind: PROGRESSING.to_owned(),
        status: state.to_owned(),
        last_update_time: now,
        last_transition_time: kept.map_or(now, |before| before.last_transition_time),
        reason: Some(reason.to_owned()),
        message: Some(message),
    };
    conditions::put(&mut status.conditions, condition);
}

/// Where the update stands. `before` is the last answer for the same revision.
fn progress(
    status: &Status,
    before: Option<&ProgressCondition>,
    counted: &Counted,
    deadline: SignedDuration,
    seen: &Observed,
) -> (&'static str, String) {
    let available = status.updated_available_replicas.unwrap_or(0);
    let expected = status.expected_updated_replicas.unwrap_or(0);
    let all = [status.replicas, status.updated_replicas, available];
    if status.current_revision == status.update_revision
        && all.into_iter().all(|count| i64::from(count) == counted.replicas)
    {
        return (AVAILABLE, "CloneSet is available".to_owned());
    }
    if counted.paused {
        return (PAUSED, "CloneSet is paused".to_owned());
    }
    if i64::from(expected) < counted.replicas && expected <= available {
        return (PARTITION_AVAILABLE, "CloneSet has been paused due to partition ready".to_owned());
    }
    let is_late = before.is_some_and(|before| match before.reason.as_deref() {
        Some(EXCEEDED) => true,
        Some(UPDATED) => {
            before.last_update_time.is_some_and(|start| seen.now.duration_since(start.0) > deadline)
        }
        _ => false,
    });
    if is_late {
        let revision = status.update_revision.as_deref().unwrap_or_default();
        return (EXCEEDED, format!("CloneSet revision {revision} has timed out progressing"));
    }
    (UPDATED, "CloneSet is progressing".to_owned())
}

//! How things stand.

use std::time::Duration;

use jiff::SignedDuration;
use kruise_api::{
    cloneset::v1beta1::{CloneSet, Status},
    condition::ProgressCondition,
    selector::LabelSelector,
    time::Time,
};
use serde_json::json;

use super::{
    Desired, Observed,
    plan::chain,
    reference,
    view::{self, Revisions, View},
};
use crate::{
    effect::{Effect, Patch, Target},
    merge_patch,
    object::ObjectRef,
    revision::Found,
};

/// The condition that adding or removing pods failed.
pub(super) const FAILED_SCALE: &str = "FailedScale";
const FAILED_UPDATE: &str = "FailedUpdate";
/// The condition that something waits, with the reasons.
pub const WAITING: &str = "Waiting";
const PROGRESSING: &str = "Progressing";

const AVAILABLE: &str = "CloneSetAvailable";
const PAUSED: &str = "CloneSetPaused";
const PARTITION_AVAILABLE: &str = "ProgressPartitionAvailable";
const EXCEEDED: &str = "ProgressDeadlineExceeded";
const UPDATED: &str = "CloneSetUpdated";

/// What failed in a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Adding or removing pods.
    pub scale: Option<String>,
    /// Updating pods.
    pub update: Option<String>,
}

impl Failures {
    /// Both: those of the plan itself, and those of its effects.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { scale: self.scale.or(other.scale), update: self.update.or(other.update) }
    }
}

/// The status after a pass that saw this, failed so, and has these reasons to wait. It is written only when it differs.
pub fn status(seen: &Observed, failures: &Failures, reasons: &[String]) -> Status {
    let previous = seen.set.status.clone().unwrap_or_default();
    let desired = match Desired::of(seen) {
        Ok(desired) => desired,
        Err(error) => return broken(seen, previous, &chain(&error)),
    };
    let view = View::new(seen, &desired);
    let revisions = view.revisions();
    let mut status = counted(&view, &revisions, &previous);
    status.conditions.clone_from(&previous.conditions);
    set_failure(&mut status, FAILED_SCALE, failures.scale.as_deref(), seen);
    set_failure(&mut status, FAILED_UPDATE, failures.update.as_deref(), seen);
    set_progress(&mut status, &previous, &desired, seen);
    set_waiting(&mut status, reasons, seen);
    status
}

/// The write that brings a status up to date, if one is needed. Nobody else writes it, so it needs no version.
pub fn status_write(set: &CloneSet, status: &Status) -> Option<Effect> {
    let value = |status: &Status| serde_json::to_value(status).unwrap_or_default();
    let before = set.status.as_ref().map(value).unwrap_or_default();
    let change = merge_patch::between(&before, &value(status))?;
    let ObjectRef { resource, key, uid } = reference(set);
    let patch = Patch::Merge(json!({"status": change}));
    Some(Effect::Patch { target: Target::with_uid(resource, key, uid), subresource: Some("status"), patch })
}

/// A spec that cannot be carried out is told, and the rest stays as it was.
fn broken(seen: &Observed, mut status: Status, error: &str) -> Status {
    status.observed_generation = seen.set.metadata.generation;
    set_failure(&mut status, FAILED_SCALE, Some(error), seen);
    status
}

fn counted(view: &View<'_>, revisions: &Revisions<'_>, previous: &Status) -> Status {
    let count = |wanted: &dyn Fn(&crate::pod::Pod) -> bool| -> i32 {
        i32::try_from(view.pods.iter().filter(|pod| wanted(pod)).count()).unwrap_or(i32::MAX)
    };
    let is_new = |pod: &crate::pod::Pod| view::is_on(pod, &revisions.update);
    let update = revisions.update.name();
    let mut status = Status {
        observed_generation: view.seen.set.metadata.generation,
        replicas: count(&|_| true),
        ready_replicas: count(&view::is_ready),
        available_replicas: count(&|pod| view.is_available(pod)),
        updated_replicas: count(&is_new),
        updated_ready_replicas: count(&|pod| is_new(pod) && view::is_ready(pod)),
        updated_available_replicas: Some(count(&|pod| is_new(pod) && view.is_available(pod))),
        expected_updated_replicas: i32::try_from(view.desired.replicas - view.desired.partition).ok(),
        update_revision: Some(update.to_owned()),
        current_revision: Some(revisions.current.name().to_owned()),
        collision_count: Some(previous.collision_count.unwrap_or(0)),
        conditions: Vec::new(),
        label_selector: Some(selector_text(&view.desired.selector)),
    };
    if let Found::Missing(new) = &revisions.found {
        status.collision_count = Some(new.collision_count);
    }
    if status.updated_replicas == status.replicas && i64::from(status.replicas) == view.desired.replicas {
        status.current_revision = Some(update.to_owned());
    }
    // The original leaves these two out when they are zero.
    status.updated_available_replicas = status.updated_available_replicas.filter(|count| *count != 0);
    status.expected_updated_replicas = status.expected_updated_replicas.filter(|count| *count != 0);
    status
}

fn set_failure(status: &mut Status, kind: &str, message: Option<&str>, seen: &Observed) {
    let Some(message) = message else {
        status.conditions.retain(|condition| condition.kind != kind);
        return;
    };
    let now = Some(Time(seen.now));
    match status.conditions.iter_mut().find(|condition| condition.kind == kind) {
        Some(condition) => {
            if condition.status != "True" {
                condition.last_transition_time = now;
            }
            condition.status = "True".to_owned();
            condition.message = Some(message.to_owned());
        }
        None => status.conditions.push(ProgressCondition {
            kind: kind.to_owned(),
            status: "True".to_owned(),
            last_transition_time: now,
            message: Some(message.to_owned()),
            ..ProgressCondition::default()
        }),
    }
}

/// Why something waits. One condition for all reasons: users look at one place.
fn set_waiting(status: &mut Status, reasons: &[String], seen: &Observed) {
    let message = (!reasons.is_empty()).then(|| reasons.join("; "));
    set_failure(status, WAITING, message.as_deref(), seen);
}

fn set_progress(status: &mut Status, previous: &Status, desired: &Desired, seen: &Observed) {
    let before = status.conditions.iter().find(|condition| condition.kind == PROGRESSING).cloned();
    let Some(deadline) = desired.progress_deadline else {
        status.conditions.retain(|condition| condition.kind != PROGRESSING);
        return;
    };
    let is_same_revision = previous.update_revision == status.update_revision;
    let (reason, message) =
        progress(status, before.as_ref().filter(|_| is_same_revision), desired, deadline, seen);
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
    match status.conditions.iter_mut().find(|condition| condition.kind == PROGRESSING) {
        Some(known) => *known = condition,
        None => status.conditions.push(condition),
    }
}

/// Where the update stands. `before` is the last answer for the same revision.
fn progress(
    status: &Status,
    before: Option<&ProgressCondition>,
    desired: &Desired,
    deadline: SignedDuration,
    seen: &Observed,
) -> (&'static str, String) {
    let available = status.updated_available_replicas.unwrap_or(0);
    let expected = status.expected_updated_replicas.unwrap_or(0);
    let all = [status.replicas, status.updated_replicas, available];
    if status.current_revision == status.update_revision
        && all.into_iter().all(|count| i64::from(count) == desired.replicas)
    {
        return (AVAILABLE, "CloneSet is available".to_owned());
    }
    if desired.paused {
        return (PAUSED, "CloneSet is paused".to_owned());
    }
    if i64::from(expected) < desired.replicas && expected <= available {
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

/// How long until the deadline of a running update.
pub(super) fn deadline(seen: &Observed, desired: &Desired) -> Option<Duration> {
    let deadline = desired.progress_deadline?;
    let status = status(seen, &Failures::default(), &[]);
    let condition = status.conditions.iter().find(|condition| condition.kind == PROGRESSING)?;
    let start = condition.last_update_time.filter(|_| condition.reason.as_deref() == Some(UPDATED))?;
    let left = deadline.saturating_sub(seen.now.duration_since(start.0)).max(SignedDuration::ZERO);
    Some(Duration::try_from(left).ok()? + Duration::from_secs(1))
}

/// A selector as people and autoscalers write it.
fn selector_text(selector: &LabelSelector) -> String {
    let labels = selector.match_labels.iter().map(|(key, value)| (key, format!("{key}={value}")));
    let expressions = selector.match_expressions.iter().map(|one| {
        let mut values = one.values.clone();
        values.sort();
        let (key, values) = (&one.key, values.join(","));
        let text = match one.operator.as_str() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.clone(),
        };
        (key, text)
    });
    let mut parts: Vec<(&String, String)> = labels.chain(expressions).collect();
    parts.sort_by(|left, right| left.0.cmp(right.0));
    parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

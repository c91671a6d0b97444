//! When a job has ended, and how.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::object::{condition, condition_is_true, flag, items, number, set, text, time};
use super::super::pods::{Phase, Pod};
use super::status::{Tally, push_condition};

/// How a job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Complete,
    Failed { reason: Cow<'static, str>, message: Cow<'static, str> },
}

impl Verdict {
    /// The event: type, reason and message.
    pub(super) fn event(&self) -> (&'static str, String, String) {
        match self {
            Self::Complete => ("Normal", "Completed".to_owned(), "Job completed".to_owned()),
            Self::Failed { reason, message } => ("Warning", reason.to_string(), message.to_string()),
        }
    }
}

const BACKOFF: Verdict = Verdict::Failed {
    reason: Cow::Borrowed("BackoffLimitExceeded"),
    message: Cow::Borrowed("Job has reached the specified backoff limit"),
};
const DEADLINE: Verdict = Verdict::Failed {
    reason: Cow::Borrowed("DeadlineExceeded"),
    message: Cow::Borrowed("Job was active longer than specified deadline"),
};

pub(super) fn is_finished(job: &Value) -> bool {
    condition_is_true(job, "Complete") || condition_is_true(job, "Failed")
}

/// When the job ended.
pub(super) fn end_time(job: &Value) -> Option<Timestamp> {
    let last = |kind: &str| condition(job, kind).filter(|c| text(c, "/status") == "True");
    time(last("Complete").or_else(|| last("Failed"))?, "/lastTransitionTime")
}

/// The rule. A verdict that was announced stands.
pub(super) fn verdict(job: &Value, tally: &Tally, active: i64, now: Timestamp) -> Option<Verdict> {
    if condition_is_true(job, "SuccessCriteriaMet") {
        return Some(Verdict::Complete);
    }
    if let Some(target) = condition(job, "FailureTarget").filter(|c| text(c, "/status") == "True") {
        let said = |path: &str| text(target, path).to_owned().into();
        return Some(Verdict::Failed { reason: said("/reason"), message: said("/message") });
    }
    if let Some(why) = &tally.refused {
        return Some(Verdict::Failed { reason: "PodFailurePolicy".into(), message: why.clone().into() });
    }
    if tally.worn_out || tally.failed > number(job, "/spec/backoffLimit").unwrap_or(6) {
        return Some(BACKOFF);
    }
    if deadline_in(job, now).is_some_and(|left| left.is_zero()) {
        return Some(DEADLINE);
    }
    let complete = match number(job, "/spec/completions") {
        Some(completions) => tally.succeeded >= completions,
        // A work queue is empty when one pod says so and no pod works any more.
        None => tally.succeeded > 0 && active == 0,
    };
    (complete && !(flag(job, "/spec/suspend") && tally.succeeded == 0)).then_some(Verdict::Complete)
}

/// How much of the deadline is left.
pub(super) fn deadline_in(job: &Value, now: Timestamp) -> Option<Duration> {
    if flag(job, "/spec/suspend") {
        return None;
    }
    let limit = number(job, "/spec/activeDeadlineSeconds")?;
    let left = time(job, "/status/startTime")?.as_second().saturating_add(limit) - now.as_second();
    u64::try_from(left.max(0)).ok().map(Duration::from_secs)
}

/// After failures a job waits before it tries again: ten seconds, doubling up to ten minutes.
pub(super) fn pause(pods: &[Arc<Pod>], now: Timestamp) -> Option<Duration> {
    let ended = |pod: &Pod| {
        let value = pod.record.value();
        let ends = items(&value, "/status/containerStatuses").iter();
        ends.filter_map(|c| time(c, "/state/terminated/finishedAt")).max().unwrap_or(pod.created)
    };
    let of = |phase: Phase| pods.iter().filter(move |pod| pod.phase == phase).map(|pod| ended(pod));
    let success = of(Phase::Succeeded).max();
    let failures: Vec<Timestamp> = of(Phase::Failed).filter(|at| success.is_none_or(|s| *at > s)).collect();
    let last = failures.iter().max()?;
    let times = u32::try_from(failures.len() - 1).unwrap_or(u32::MAX).min(6);
    let wait = (10_i64 << times).min(600);
    let left = last.as_second() + wait - now.as_second();
    (left > 0).then(|| Duration::from_secs(u64::try_from(left).unwrap_or(0)))
}

/// Says how the job will end, while its pods still stop.
pub(super) fn announce(job: &mut Value, verdict: &Verdict, now: &str) {
    let new = match verdict {
        Verdict::Complete => conditioned(
            "SuccessCriteriaMet",
            "CompletionsReached",
            "Reached expected number of succeeded pods",
            now,
        ),
        Verdict::Failed { reason, message } => conditioned("FailureTarget", reason, message, now),
    };
    if condition(job, text(&new, "/type")).is_none() {
        push_condition(job, new, true);
    }
}

/// Says that the job has ended.
pub(super) fn conclude(job: &mut Value, verdict: &Verdict, now: &str) {
    let new = match verdict {
        Verdict::Complete => {
            set(job, "status", "completionTime", json!(now));
            conditioned("Complete", "CompletionsReached", "Reached expected number of succeeded pods", now)
        }
        Verdict::Failed { reason, message } => conditioned("Failed", reason, message, now),
    };
    push_condition(job, new, true);
    debug_assert!(!items(job, "/status/conditions").is_empty(), "a condition was added");
}

fn conditioned(kind: &str, reason: &str, message: &str, now: &str) -> Value {
    json!({
        "type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now, "reason": reason,
        "message": message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_ends_by_its_counts_or_its_deadline() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let job = |spec: Value| json!({"spec": spec, "status": {"startTime": "2026-01-01T00:00:00Z"}});
        let tally = |succeeded, failed| Tally { succeeded, failed, ..Tally::default() };
        for (spec, counted, active, expected) in [
            (json!({"completions": 2, "backoffLimit": 0}), tally(1, 0), 0, None),
            (json!({"completions": 2, "backoffLimit": 0}), tally(2, 0), 0, Some(Verdict::Complete)),
            (json!({"completions": 2, "backoffLimit": 0}), tally(0, 1), 0, Some(BACKOFF)),
            (json!({"completions": 2, "backoffLimit": 1}), tally(0, 1), 1, None),
            (json!({"backoffLimit": 6}), tally(1, 0), 1, None),
            (json!({"backoffLimit": 6}), tally(1, 0), 0, Some(Verdict::Complete)),
            (json!({"completions": 1, "activeDeadlineSeconds": 60}), tally(0, 0), 1, Some(DEADLINE)),
            (json!({"completions": 1, "activeDeadlineSeconds": 61}), tally(0, 0), 1, None),
        ] {
            assert_eq!(verdict(&job(spec.clone()), &counted, active, now), expected, "{spec}");
        }
    }
}

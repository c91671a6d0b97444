//! What a job has done so far.
//!
//! Every pod carries a finalizer until it is counted, so that no end is missed and none counted twice: the
//! counts are written together with the uids of the pods behind them, then the pods lose their finalizer, then
//! the uids are forgotten.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::object::{child, condition, condition_is_true, items, number, set, text};
use super::super::pods::{Phase, Pod};
use super::policy::{self, Judgement};
use super::{INDEX, Seen};

/// How many pods ended, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) succeeded: i64,
    pub(super) failed: i64,
    /// The completed indexes of an indexed job.
    pub(super) indexes: BTreeSet<i64>,
    /// Uids of counted pods that still have their finalizer: succeeded and failed ones.
    pub(super) pending: (Vec<String>, Vec<String>),
    /// Whether containers were restarted in their pods as often as the job may fail.
    pub(super) worn_out: bool,
    /// Uids of failed pods that do not count by the job's own rules.
    pub(super) ignored: Vec<String>,
    /// Why a failure fails the whole job.
    pub(super) refused: Option<String>,
}

/// The index of a pod of an indexed job.
pub(super) fn index_of(pod: &Pod) -> Option<i64> {
    pod.record.label(INDEX)?.parse().ok()
}

/// Whether a pod has come to its end: finished, or told to go where that is enough.
fn has_ended(job: &Value, pod: &Pod) -> bool {
    pod.is_finished() || (pod.record.deleting && text(job, "/spec/podReplacementPolicy") != "Failed")
}

/// Where pods restart their containers themselves they do not fail; then the restarts count.
fn is_worn_out(job: &Value, pods: &[Arc<Pod>]) -> bool {
    if text(job, "/spec/template/spec/restartPolicy") != "OnFailure" {
        return false;
    }
    let limit = number(job, "/spec/backoffLimit").unwrap_or(6);
    let working = pods.iter().filter(|pod| matches!(pod.phase, Phase::Running | Phase::Pending));
    let restarts = |pod: &Arc<Pod>| -> i64 {
        let object = pod.record.value();
        let lists = ["/status/initContainerStatuses", "/status/containerStatuses"];
        let all = lists.iter().flat_map(|list| items(&object, list));
        all.filter_map(|container| number(container, "/restartCount")).sum()
    };
    let restarts: i64 = working.map(restarts).sum();
    restarts >= limit.max(1)
}

impl Tally {
    /// What the status knows, and the pods that ended since.
    pub(super) fn count(job: &Value, pods: &[Arc<Pod>]) -> Self {
        let known = |key: &str| number(job, &format!("/status/{key}")).unwrap_or(0);
        let uids = |key: &str| -> BTreeSet<&str> {
            let path = format!("/status/uncountedTerminatedPods/{key}");
            items(job, &path).iter().filter_map(Value::as_str).collect()
        };
        let (old_succeeded, old_failed) = (uids("succeeded"), uids("failed"));
        let indexed = text(job, "/spec/completionMode") == "Indexed";
        let mut tally = Self {
            succeeded: known("succeeded"),
            failed: known("failed"),
            indexes: parse_indexes(text(job, "/status/completedIndexes")),
            pending: (Vec::new(), Vec::new()),
            worn_out: is_worn_out(job, pods),
            ignored: Vec::new(),
            refused: None,
        };
        for pod in pods.iter().filter(|pod| pod.tracked && has_ended(job, pod)) {
            let uid = &*pod.record.uid;
            if pod.phase == Phase::Succeeded {
                tally.pending.0.push(uid.to_owned());
                let first = !indexed || index_of(pod).is_some_and(|index| tally.indexes.insert(index));
                tally.succeeded += i64::from(first && !old_succeeded.contains(uid));
            } else {
                // Whoever is counted stays counted, whatever becomes of the pod later.
                let judgement = match old_failed.contains(uid) {
                    true => Judgement::Counts,
                    false => policy::judge(job, pod),
                };
                match judgement {
                    Judgement::Counts => {}
                    Judgement::Ignored => {
                        tally.ignored.push(uid.to_owned());
                        continue;
                    }
                    Judgement::FailsJob(why) => {
                        tally.refused.get_or_insert(why);
                    }
                }
                tally.pending.1.push(uid.to_owned());
                tally.failed += i64::from(!old_failed.contains(uid));
            }
        }
        tally
    }

    /// Whether a pod is counted and may lose its finalizer.
    pub(super) fn has_counted(&self, pod: &Pod) -> bool {
        let uid = &*pod.record.uid;
        self.pending.0.iter().chain(&self.pending.1).chain(&self.ignored).any(|known| known == uid)
    }
}

/// `1,3-5` as numbers.
fn parse_indexes(text: &str) -> BTreeSet<i64> {
    let mut indexes = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
            indexes.extend(first..=last.min(first.saturating_add(100_000)));
        }
    }
    indexes
}

/// Numbers as `1,3-5`; two in a row stand apart.
fn write_indexes(indexes: &BTreeSet<i64>) -> String {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for index in indexes {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => runs.push((*index, *index)),
        }
    }
    let parts: Vec<String> = runs
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        })
        .collect();
    parts.join(",")
}

/// How many pods shall run now.
pub(super) fn wanted_active(job: &Value, tally: &Tally, active: i64) -> i64 {
    let parallelism = number(job, "/spec/parallelism").unwrap_or(1);
    match number(job, "/spec/completions") {
        // A work queue: once one pod succeeded, no new ones start.
        None if tally.succeeded > 0 => active.min(parallelism),
        None => parallelism,
        Some(completions) => (completions - tally.succeeded).max(0).min(parallelism),
    }
}

/// A job starts when it is first seen running; a suspended one loses its start.
pub(super) fn note_start(job: &mut Value, suspended: bool, now_text: &str) {
    let started = !text(job, "/status/startTime").is_empty();
    if suspended && started {
        if let Some(status) = child(job, "status") {
            status.remove("startTime");
        }
    } else if !suspended && !started {
        set(job, "status", "startTime", json!(now_text));
    }
}

/// A suspension and its end are told. Returns the event.
pub(super) fn note_suspension(
    job: &mut Value,
    suspended: bool,
    now: &str,
) -> Option<(&'static str, &'static str)> {
    let told = condition_is_true(job, "Suspended");
    let known = condition(job, "Suspended").is_some();
    let (status, reason, message, event) = match (suspended, told) {
        (true, false) => ("True", "JobSuspended", "Job suspended", ("Suspended", "Job suspended")),
        (false, true) => ("False", "JobResumed", "Job resumed", ("Resumed", "Job resumed")),
        _ => return None,
    };
    let new = json!({
        "type": "Suspended", "status": status, "lastProbeTime": now, "lastTransitionTime": now, "reason": reason,
        "message": message,
    });
    push_condition(job, new, known);
    Some(event)
}

pub(super) fn push_condition(job: &mut Value, new: Value, replace: bool) {
    let Some(status) = child(job, "status") else { return };
    let list = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return };
    if replace {
        list.retain(|known| known.get("type") != new.get("type"));
    }
    list.push(new);
}

/// The counts in the status; zeros are left out.
pub(super) fn write_counts(job: &mut Value, seen: &Seen) {
    let indexed = text(job, "/spec/completionMode") == "Indexed";
    let Some(status) = child(job, "status") else { return };
    let ready = seen.active.iter().filter(|pod| pod.is_ready()).count();
    let leaving = seen.pods.iter().filter(|pod| pod.record.deleting && !pod.is_finished()).count();
    let count = |number: usize| i64::try_from(number).unwrap_or(0);
    put(status, "active", count(seen.active.len()));
    put(status, "succeeded", seen.tally.succeeded);
    put(status, "failed", seen.tally.failed);
    status.insert("ready".to_owned(), json!(ready));
    status.insert("terminating".to_owned(), json!(count(leaving)));
    let mut pending = Map::new();
    for (key, uids) in [("succeeded", &seen.tally.pending.0), ("failed", &seen.tally.pending.1)] {
        if !uids.is_empty() {
            pending.insert(key.to_owned(), json!(uids));
        }
    }
    status.insert("uncountedTerminatedPods".to_owned(), Value::Object(pending));
    if indexed && !seen.tally.indexes.is_empty() {
        status.insert("completedIndexes".to_owned(), json!(write_indexes(&seen.tally.indexes)));
    }
}

fn put(status: &mut Map<String, Value>, key: &str, number: i64) {
    if number == 0 {
        status.remove(key);
    } else {
        status.insert(key.to_owned(), json!(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_short() {
        for text in ["", "1", "0,1", "1,3-5,7", "0-9"] {
            assert_eq!(write_indexes(&parse_indexes(text)), text);
        }
    }

    #[test]
    fn the_last_pods_are_not_more_than_are_missing() {
        let tally = |succeeded| Tally { succeeded, ..Tally::default() };
        let fixed = json!({"spec": {"parallelism": 3, "completions": 5}});
        assert_eq!(wanted_active(&fixed, &tally(0), 0), 3);
        assert_eq!(wanted_active(&fixed, &tally(4), 1), 1);
        assert_eq!(wanted_active(&fixed, &tally(5), 0), 0);
        let queue = json!({"spec": {"parallelism": 3}});
        assert_eq!(wanted_active(&queue, &tally(0), 0), 3);
        assert_eq!(wanted_active(&queue, &tally(1), 2), 2);
    }
}

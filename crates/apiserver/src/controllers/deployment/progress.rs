//! The status of a deployment: counts, availability and progress.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::super::object::{child, condition, flag, items, number, text, time};
use super::{available, is_complete, name, numbers, replicas, sum};

pub(super) const TIMED_OUT: &str = "ProgressDeadlineExceeded";
pub(super) const PAUSED: &str = "DeploymentPaused";
pub(super) const RESUMED: &str = "DeploymentResumed";
const COMPLETE: &str = "NewReplicaSetAvailable";
const UPDATED: &str = "ReplicaSetUpdated";

/// Whether the deployment has a deadline for progress; the biggest number means none.
pub(super) fn has_deadline(deployment: &Value) -> bool {
    number(deployment, "/spec/progressDeadlineSeconds").is_some_and(|seconds| seconds < i64::from(i32::MAX))
}

/// Sets a condition. Its times move as the real ones do: the first when the status changes, the second when
/// anything does.
pub(super) fn set(deployment: &mut Value, kind: &str, status: &str, reason: &str, message: &str, now: &str) {
    let known = condition(deployment, kind).cloned();
    if known
        .as_ref()
        .is_some_and(|known| text(known, "/status") == status && text(known, "/reason") == reason)
    {
        return;
    }
    put(deployment, known.as_ref(), kind, status, reason, message, now);
}

fn put(
    deployment: &mut Value,
    known: Option<&Value>,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: &str,
) {
    let since = known.filter(|known| text(known, "/status") == status);
    let since = since.map_or(now, |known| text(known, "/lastTransitionTime")).to_owned();
    remove(deployment, kind);
    let Some(map) = child(deployment, "status") else { return };
    let list = map.entry("conditions").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(json!({
            "type": kind, "status": status, "lastUpdateTime": now, "lastTransitionTime": since,
            "reason": reason, "message": message,
        }));
    }
}

fn remove(deployment: &mut Value, kind: &str) {
    let list = deployment.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    if let Some(list) = list {
        list.retain(|condition| text(condition, "/type") != kind);
    }
}

/// The deployment with new counts and its availability.
pub(super) fn counted(deployment: &Value, all: &[Value], new: Option<&Value>, now: &str) -> Value {
    let mut changed = deployment.clone();
    let count = |set: &Value, key: &str| number(set, &format!("/status/{key}")).unwrap_or(0);
    let total = sum(all, |set| count(set, "replicas"));
    let ready = sum(all, |set| count(set, "readyReplicas"));
    let available = sum(all, available);
    let wanted = sum(all, replicas);
    let mut status = Map::new();
    let numbers = [
        ("replicas", total),
        ("updatedReplicas", new.map_or(0, |set| count(set, "replicas"))),
        ("readyReplicas", ready),
        ("availableReplicas", available),
        ("unavailableReplicas", (wanted - available).max(0)),
        ("observedGeneration", number(deployment, "/metadata/generation").unwrap_or(0)),
    ];
    for (key, number) in numbers {
        if number != 0 {
            status.insert(key.to_owned(), json!(number));
        }
    }
    // One set that does not tell it makes the sum unknown; sets that nobody has looked at yet have no pods.
    let known = all.iter().filter(|set| count(set, "observedGeneration") > 0);
    let leaving: Option<i64> = known.map(|set| number(set, "/status/terminatingReplicas")).sum();
    if let Some(leaving) = leaving {
        status.insert("terminatingReplicas".to_owned(), json!(leaving));
    }
    for key in ["collisionCount", "conditions"] {
        if let Some(value) = deployment.get("status").and_then(|status| status.get(key)) {
            status.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(map) = changed.as_object_mut() {
        map.insert("status".to_owned(), Value::Object(status));
    }
    let floor = replicas(deployment) - numbers::max_unavailable(deployment);
    if available >= floor {
        let message = "Deployment has minimum availability.";
        set(&mut changed, "Available", "True", "MinimumReplicasAvailable", message, now);
    } else {
        let message = "Deployment does not have minimum availability.";
        set(&mut changed, "Available", "False", "MinimumReplicasUnavailable", message, now);
    }
    changed
}

/// The deployment with new counts and its progress.
pub(super) fn advanced(
    deployment: &Value,
    all: &[Value],
    new: Option<&Value>,
    now: Timestamp,
    now_text: &str,
) -> Value {
    let mut changed = counted(deployment, all, new, now_text);
    let subject = match new {
        Some(set) => format!("ReplicaSet \"{}\"", name(set)),
        None => format!("Deployment \"{}\"", name(deployment)),
    };
    if has_deadline(deployment) {
        let known = condition(deployment, "Progressing").cloned();
        let reason = known.as_ref().map(|known| text(known, "/reason")).unwrap_or_default();
        // A finished rollout that only changes its size is not a new rollout.
        let settled =
            reason == COMPLETE && count_of(&changed, "replicas") == count_of(&changed, "updatedReplicas");
        if settled {
            // Nothing to tell.
        } else if is_complete(&changed) {
            let message = format!("{subject} has successfully progressed.");
            set(&mut changed, "Progressing", "True", COMPLETE, &message, now_text);
        } else if moved(deployment, &changed) {
            let message = format!("{subject} is progressing.");
            // Progress restarts the clock even when the words stay the same.
            put(&mut changed, known.as_ref(), "Progressing", "True", UPDATED, &message, now_text);
        } else if timed_out(deployment, now) {
            let message = format!("{subject} has timed out progressing.");
            set(&mut changed, "Progressing", "False", TIMED_OUT, &message, now_text);
        }
    }
    let failure = all.iter().find_map(|set| condition(set, "ReplicaFailure"));
    match failure {
        Some(failure) => {
            let part = |path: &str| text(failure, path).to_owned();
            set(
                &mut changed,
                "ReplicaFailure",
                &part("/status"),
                &part("/reason"),
                &part("/message"),
                now_text,
            );
        }
        None => remove(&mut changed, "ReplicaFailure"),
    }
    changed
}

fn count_of(deployment: &Value, key: &str) -> i64 {
    number(deployment, &format!("/status/{key}")).unwrap_or(0)
}

/// Whether the new status is closer to the goal than the old one.
fn moved(before: &Value, after: &Value) -> bool {
    let old = |deployment: &Value| count_of(deployment, "replicas") - count_of(deployment, "updatedReplicas");
    count_of(after, "updatedReplicas") > count_of(before, "updatedReplicas")
        || old(after) < old(before)
        || count_of(after, "readyReplicas") > count_of(before, "readyReplicas")
        || count_of(after, "availableReplicas") > count_of(before, "availableReplicas")
}

fn timed_out(deployment: &Value, now: Timestamp) -> bool {
    let Some(known) = condition(deployment, "Progressing") else { return false };
    match text(known, "/reason") {
        COMPLETE => return false,
        TIMED_OUT => return true,
        _ => {}
    }
    deadline(deployment, known).is_some_and(|at| now.as_second() >= at)
}

fn deadline(deployment: &Value, known: &Value) -> Option<i64> {
    let limit = number(deployment, "/spec/progressDeadlineSeconds")?;
    Some(time(known, "/lastUpdateTime")?.as_second() + limit)
}

/// When the deadline is over, if the rollout still runs.
pub(super) fn next_check(deployment: &Value, now: Timestamp) -> Option<Duration> {
    if !has_deadline(deployment) || flag(deployment, "/spec/paused") || is_complete(deployment) {
        return None;
    }
    let known = items(deployment, "/status/conditions").iter().find(|c| text(c, "/type") == "Progressing")?;
    if matches!(text(known, "/reason"), TIMED_OUT | COMPLETE) {
        return None;
    }
    let left = deadline(deployment, known)? - now.as_second();
    u64::try_from(left.max(1)).ok().map(Duration::from_secs)
}

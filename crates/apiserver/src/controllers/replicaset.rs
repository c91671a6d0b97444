//! ReplicaSets and their elders, ReplicationControllers: so many pods of one template.

mod ranking;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::object::{
    condition, controller_of, deleting, is_terminating, items, number, or_gone, pod_from_template, text,
};
use super::pods::Pod;
use super::recorder::Involved;
use super::{Context, Key, Outcome, Work, claim};
use crate::registry::Resource;
use crate::rest::{DeleteOptions, Preconditions};
use crate::selector::Labels;
use crate::status::Status;

/// The name under which events are recorded.
fn component(sets: &Resource) -> &'static str {
    if sets.group.is_empty() { "replication-controller" } else { "replicaset-controller" }
}

/// Which pods belong to a set. A ReplicationController has plain labels.
fn selector(sets: &Resource, set: &Value) -> Option<Labels> {
    let selector = set.pointer("/spec/selector")?;
    let wrapped = if sets.group.is_empty() { json!({"matchLabels": selector}) } else { selector.clone() };
    Labels::from_object(Some(&wrapped)).ok()
}

/// Most pods that one pass creates or deletes.
const BURST: usize = 500;

/// Brings one ReplicaSet closer to what it wants.
pub(super) async fn sync(cx: &Context, key: &Key) -> Outcome {
    let sets = match key.work {
        Work::Replication => cx.client.resource("", "replicationcontrollers")?,
        _ => cx.client.resource("apps", "replicasets")?,
    };
    let Some(record) = or_gone(cx.client.get(&sets, &key.namespace, &key.name))? else { return Ok(None) };
    let set = record.value();
    let Some(selector) = selector(&sets, &set) else { return Ok(None) };
    let pods = claim::pods(cx, &sets, &set, &selector).await?;
    let leaving = pods.iter().filter(|pod| pod.record.deleting && !pod.is_finished()).count();
    // Controllers of the first generation do not tell it.
    let leaving = (key.work != Work::Replication).then_some(leaving);
    let active: Vec<Arc<Pod>> = pods.into_iter().filter(|pod| pod.is_active()).collect();
    let acted = if deleting(&set) { Ok(()) } else { scale(cx, &sets, &set, active.clone()).await };
    let again = write_status(cx, &sets, set, &Counted { active, leaving }, acted.as_ref().err()).await?;
    acted.map_err(|failure| failure.status)?;
    Ok(again)
}

/// The pods that a status tells of.
struct Counted {
    active: Vec<Arc<Pod>>,
    /// How many are on their way out.
    leaving: Option<usize>,
}

/// What went wrong, and at what.
struct Failure {
    creating: bool,
    status: Status,
}

async fn scale(
    cx: &Context,
    sets: &Arc<Resource>,
    set: &Value,
    active: Vec<Arc<Pod>>,
) -> Result<(), Failure> {
    let wanted = usize::try_from(number(set, "/spec/replicas").unwrap_or(1)).unwrap_or(0);
    if active.len() < wanted {
        let missing = (wanted - active.len()).min(BURST);
        return create(cx, sets, set, missing).await.map_err(|status| Failure { creating: true, status });
    }
    let surplus = (active.len() - wanted).min(BURST);
    if surplus == 0 {
        return Ok(());
    }
    let doomed: Vec<Arc<Pod>> = if surplus < active.len() {
        let related = related(cx, set);
        ranking::deletion_order(active, &related, cx.now()).into_iter().take(surplus).collect()
    } else {
        active
    };
    delete(cx, sets, set, &doomed).await.map_err(|status| Failure { creating: false, status })
}

/// The pods of all ReplicaSets with the same owner.
fn related(cx: &Context, set: &Value) -> Vec<Arc<Pod>> {
    let uids: Vec<String> = match controller_of(set) {
        None => vec![text(set, "/metadata/uid").to_owned()],
        Some((_, _, uid)) => {
            let keys = cx.graph().controlled("apps/replicasets", uid);
            let store = cx.client.server().store();
            keys.iter()
                .filter_map(|(table, ns, name)| store.get(table, ns, name))
                .map(|r| r.uid.to_string())
                .collect()
        }
    };
    let pods = cx.pods();
    uids.iter().flat_map(|uid| pods.controlled(uid)).collect()
}

/// Creates pods in batches that double while all goes well, so that a fault costs few requests.
async fn create(cx: &Context, sets: &Arc<Resource>, set: &Value, missing: usize) -> Result<(), Status> {
    let template = set.pointer("/spec/template").cloned().unwrap_or_default();
    let mut pod = pod_from_template(sets, set, &template);
    super::object::set(
        &mut pod,
        "metadata",
        "generateName",
        json!(format!("{}-", text(set, "/metadata/name"))),
    );
    let pods = cx.client.resource("", "pods")?;
    let namespace = text(set, "/metadata/namespace");
    let involved = Involved::of(sets, set);
    let mut left = missing;
    let mut batch = 1;
    while left > 0 {
        let now = batch.min(left);
        let made = join_all((0..now).map(|_| cx.client.create(&pods, namespace, pod.clone()))).await;
        let mut failure = None;
        for result in made {
            match result {
                Ok(record) => {
                    let message = format!("Created pod: {}", record.name);
                    cx.record(component(sets), &involved, "Normal", "SuccessfulCreate", &message).await;
                }
                // The namespace is going away, and the set with it.
                Err(status) if is_terminating(&status) => return Ok(()),
                Err(status) => {
                    let message = format!("Error creating: {}", status.message);
                    cx.record(component(sets), &involved, "Warning", "FailedCreate", &message).await;
                    failure = Some(status);
                }
            }
        }
        if let Some(status) = failure {
            return Err(status);
        }
        left -= now;
        batch *= 2;
    }
    Ok(())
}

async fn delete(cx: &Context, sets: &Arc<Resource>, set: &Value, doomed: &[Arc<Pod>]) -> Result<(), Status> {
    let pods = cx.client.resource("", "pods")?;
    let involved = Involved::of(sets, set);
    let mut failure = None;
    for pod in doomed {
        let record = &pod.record;
        let preconditions = Preconditions { uid: Some(record.uid.to_string()), resource_version: None };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        match or_gone(cx.client.delete(&pods, &record.namespace, &record.name, &options).await) {
            Ok(Some(_)) => {
                let message = format!("Deleted pod: {}", record.name);
                cx.record(component(sets), &involved, "Normal", "SuccessfulDelete", &message).await;
            }
            Ok(None) => {}
            Err(status) => {
                let message = format!("Error deleting: {}", status.message);
                cx.record(component(sets), &involved, "Warning", "FailedDelete", &message).await;
                failure = Some(status);
            }
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Writes the status if it changed. Returns when a pod becomes available by waiting alone.
async fn write_status(
    cx: &Context,
    sets: &Arc<Resource>,
    mut set: Value,
    counted: &Counted,
    failure: Option<&Failure>,
) -> Outcome {
    let now = cx.now();
    let min_ready = number(&set, "/spec/minReadySeconds").unwrap_or(0);
    let status = status(&set, counted, failure, min_ready, now, &cx.now_text());
    if set.get("status") != Some(&status) {
        if let Some(map) = set.as_object_mut() {
            map.insert("status".to_owned(), status);
        }
        or_gone(cx.client.update(sets, Some("status"), set).await)?;
    }
    Ok(next_available(&counted.active, min_ready, now))
}

/// How long until the next ready pod has been ready for long enough.
pub(super) fn next_available(pods: &[Arc<Pod>], min_ready: i64, now: Timestamp) -> Option<Duration> {
    let waits = pods.iter().filter(|pod| pod.is_ready() && !pod.is_available(min_ready, now));
    let waits = waits.filter_map(|pod| Some(pod.ready_since?.as_second() + min_ready - now.as_second()));
    waits.min().and_then(|seconds| u64::try_from(seconds.max(1)).ok()).map(Duration::from_secs)
}

fn status(
    set: &Value,
    Counted { active, leaving }: &Counted,
    failure: Option<&Failure>,
    min_ready: i64,
    now: Timestamp,
    now_text: &str,
) -> Value {
    let labels = set.pointer("/spec/template/metadata/labels").and_then(Value::as_object);
    let labelled = active.iter().filter(|pod| {
        labels.into_iter().flatten().all(|(key, value)| pod.record.label(key) == value.as_str())
    });
    let mut status = Map::new();
    status.insert("replicas".to_owned(), json!(active.len()));
    let counts = [
        ("fullyLabeledReplicas", labelled.count()),
        ("readyReplicas", active.iter().filter(|pod| pod.is_ready()).count()),
        ("availableReplicas", active.iter().filter(|pod| pod.is_available(min_ready, now)).count()),
    ];
    for (key, count) in counts {
        if count > 0 {
            status.insert(key.to_owned(), json!(count));
        }
    }
    if let Some(leaving) = leaving {
        status.insert("terminatingReplicas".to_owned(), json!(leaving));
    }
    if let Some(generation) = number(set, "/metadata/generation") {
        status.insert("observedGeneration".to_owned(), json!(generation));
    }
    let mut conditions: Vec<Value> = items(set, "/status/conditions").to_vec();
    match failure {
        None => conditions.retain(|condition| text(condition, "/type") != "ReplicaFailure"),
        Some(_) if condition(set, "ReplicaFailure").is_some() => {}
        Some(failure) => conditions.push(json!({
            "type": "ReplicaFailure", "status": "True", "lastTransitionTime": now_text,
            "reason": if failure.creating { "FailedCreate" } else { "FailedDelete" },
            "message": failure.status.message,
        })),
    }
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), Value::Array(conditions));
    }
    Value::Object(status)
}

//! Jobs: pods that run to their end, so many times.

mod finish;
mod policy;
mod status;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};

use super::graph::Meta;
use super::object::{
    deleting, flag, is_terminating, items, merge, number, or_gone, pod_from_template, set, text,
};
use super::pods::{Pod, TRACKING};
use super::recorder::Involved;
use super::{Context, Key, Outcome, claim};
use crate::registry::Resource;
use crate::rest::{DeleteOptions, Preconditions, Propagation};
use crate::selector::Labels;
use crate::status::Status;
use status::Tally;

const COMPONENT: &str = "job-controller";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Most pods that one pass creates.
const BURST: i64 = 500;

/// What one pass knows.
struct Seen {
    pods: Vec<Arc<Pod>>,
    active: Vec<Arc<Pod>>,
    tally: Tally,
}

/// Brings one job closer to its end.
pub(super) async fn sync(cx: &Context, key: &Key) -> Outcome {
    let jobs = cx.client.resource("batch", "jobs")?;
    let Some(record) = or_gone(cx.client.get(&jobs, &key.namespace, &key.name))? else { return Ok(None) };
    let mut job = record.value();
    if finish::is_finished(&job) {
        return expire(cx, &jobs, &job).await;
    }
    if !is_ours(&job) {
        return Ok(None);
    }
    let Ok(selector) = Labels::from_object(job.pointer("/spec/selector")) else { return Ok(None) };
    let pods = claim::pods(cx, &jobs, &job, &selector).await?;
    let active = pods.iter().filter(|pod| pod.is_active()).cloned().collect();
    let tally = Tally::count(&job, &pods);
    let mut seen = Seen { pods, active, tally };
    let now = cx.now();
    let suspended = flag(&job, "/spec/suspend");
    status::note_start(&mut job, suspended, &cx.now_text());
    let verdict = finish::verdict(&job, &seen.tally, i64::try_from(seen.active.len()).unwrap_or(0), now);
    let mut acted = Ok(None);
    if deleting(&job) {
        // Only the counting goes on.
    } else if let Some(verdict) = &verdict {
        // No pod may be left when the job is said to have ended.
        delete(cx, &jobs, &job, &seen.active, false).await?;
        seen.active.clear();
        finish::announce(&mut job, verdict, &cx.now_text());
    } else if suspended {
        delete(cx, &jobs, &job, &seen.active, true).await?;
        seen.active.clear();
    } else {
        acted = manage(cx, &jobs, &job, &mut seen).await;
    }
    let gone = seen.pods.iter().all(|pod| pod.is_finished() && !pod.tracked);
    let ended = verdict.is_some() && gone && !deleting(&job);
    if let Some(verdict) = verdict.as_ref().filter(|_| ended) {
        finish::conclude(&mut job, verdict, &cx.now_text());
    }
    status::write_counts(&mut job, &seen);
    let resumed = status::note_suspension(&mut job, suspended, &cx.now_text());
    let before = record.value();
    if before.get("status") != job.get("status") {
        let Some(written) = or_gone(cx.client.update(&jobs, Some("status"), job).await)? else {
            return Ok(None);
        };
        job = written.value();
        let involved = Involved::of(&jobs, &job);
        if let Some((reason, message)) = resumed {
            cx.record(COMPONENT, &involved, "Normal", reason, message).await;
        }
        if let Some(verdict) = verdict.as_ref().filter(|_| ended) {
            let (kind, reason, message) = verdict.event();
            cx.record(COMPONENT, &involved, kind, &reason, &message).await;
        }
    }
    for pod in seen.pods.iter().filter(|pod| seen.tally.has_counted(pod)) {
        untrack(cx, pod).await?;
    }
    let again = acted?;
    if finish::is_finished(&job) {
        return expire(cx, &jobs, &job).await;
    }
    let deadline = finish::deadline_in(&job, cx.now()).filter(|_| verdict.is_none());
    Ok(match (again, deadline) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    })
}

/// A pod that no job will count loses its finalizer, or it could never be deleted.
pub(super) async fn forget_pod(cx: &Context, key: &Key) -> Outcome {
    // From the store: a job may have adopted the pod since the event.
    let Some(record) = cx.client.server().store().get("/pods", &key.namespace, &key.name) else {
        return Ok(None);
    };
    let pod = Pod::read(&record);
    if pod.tracked && is_forgotten(cx, &pod) {
        untrack(cx, &pod).await?;
    }
    Ok(None)
}

/// Whether no job counts a pod with the finalizer of jobs: nobody controls it, its job is gone, or it leaves after its
/// job has ended.
pub(super) fn is_forgotten(cx: &Context, pod: &Pod) -> bool {
    let Some(owner) = &pod.controller else { return true };
    if (&*owner.api_version, &*owner.kind) != ("batch/v1", "Job") {
        return false;
    }
    let job = cx.client.server().store().get("batch/jobs", &pod.record.namespace, &owner.name);
    let Some(job) = job.filter(|job| *job.uid == *owner.uid) else { return true };
    pod.record.deleting && {
        let job = job.value();
        is_ours(&job) && finish::is_finished(&job)
    }
}

/// Whether nobody else manages the job.
fn is_ours(job: &Value) -> bool {
    matches!(text(job, "/spec/managedBy"), "" | "kubernetes.io/job-controller")
}

/// Takes the finalizer off a pod.
async fn untrack(cx: &Context, pod: &Pod) -> Result<(), Status> {
    let pods = cx.client.resource("", "pods")?;
    let record = &pod.record;
    let left: Vec<String> =
        Meta::of(record).finalizers.into_iter().filter(|finalizer| finalizer != TRACKING).collect();
    let left = if left.is_empty() { Value::Null } else { json!(left) };
    let patch = merge(json!({"metadata": {"finalizers": left, "uid": &*record.uid}}));
    or_gone(cx.client.patch(&pods, &record.namespace, &record.name, None, &patch).await).map(|_| ())
}

/// Deletes a finished job when its time has come.
async fn expire(cx: &Context, jobs: &Arc<Resource>, job: &Value) -> Outcome {
    let Some(ttl) = number(job, "/spec/ttlSecondsAfterFinished") else { return Ok(None) };
    if deleting(job) {
        return Ok(None);
    }
    let Some(ended) = finish::end_time(job) else { return Ok(None) };
    let left = ended.as_second() + ttl - cx.now().as_second();
    if left > 0 {
        return Ok(u64::try_from(left).ok().map(Duration::from_secs));
    }
    let uid = Some(text(job, "/metadata/uid").to_owned());
    let options = DeleteOptions {
        propagation: Some(Propagation::Foreground),
        preconditions: Preconditions { uid, resource_version: None },
        ..DeleteOptions::default()
    };
    let (namespace, name) = (text(job, "/metadata/namespace"), text(job, "/metadata/name"));
    or_gone(cx.client.delete(jobs, namespace, name, &options).await)?;
    Ok(None)
}

/// Creates what is missing, deletes what is too much.
async fn manage(cx: &Context, jobs: &Arc<Resource>, job: &Value, seen: &mut Seen) -> Outcome {
    let active = i64::try_from(seen.active.len()).unwrap_or(i64::MAX);
    // A pod that is on its way out still counts unless it is to be replaced at once.
    let leaving = seen.pods.iter().filter(|pod| pod.record.deleting && !pod.is_finished()).count();
    let waits = text(job, "/spec/podReplacementPolicy") == "Failed";
    let leaving = if waits { i64::try_from(leaving).unwrap_or(0) } else { 0 };
    let wanted = status::wanted_active(job, &seen.tally, active);
    if active > wanted {
        let surplus = usize::try_from(active - wanted).unwrap_or(0);
        let mut order = seen.active.clone();
        order.sort_by_key(|pod| (pod.is_ready(), std::cmp::Reverse(pod.created), pod.record.name.clone()));
        let doomed: Vec<Arc<Pod>> = order.into_iter().take(surplus).collect();
        delete(cx, jobs, job, &doomed, true).await?;
        seen.active.retain(|pod| !doomed.iter().any(|gone| gone.record.uid == pod.record.uid));
        return Ok(None);
    }
    let missing = (wanted - active - leaving).min(BURST);
    if missing <= 0 {
        return Ok(None);
    }
    if let Some(pause) = finish::pause(&seen.pods, cx.now()) {
        return Ok(Some(pause));
    }
    create(cx, jobs, job, seen, missing).await.map(|()| None)
}

async fn create(
    cx: &Context,
    jobs: &Arc<Resource>,
    job: &Value,
    seen: &mut Seen,
    missing: i64,
) -> Result<(), Status> {
    let pods = cx.client.resource("", "pods")?;
    let involved = Involved::of(jobs, job);
    let namespace = text(job, "/metadata/namespace");
    let mut plan: Vec<Value> = match text(job, "/spec/completionMode") {
        "Indexed" => {
            let taken: BTreeSet<i64> = seen.active.iter().filter_map(|pod| status::index_of(pod)).collect();
            let completions = number(job, "/spec/completions").unwrap_or(0);
            let free = (0..completions).filter(|at| !taken.contains(at) && !seen.tally.indexes.contains(at));
            free.take(usize::try_from(missing).unwrap_or(0)).map(|at| pod(jobs, job, Some(at))).collect()
        }
        _ => (0..missing).map(|_| pod(jobs, job, None)).collect(),
    };
    let mut batch = 1;
    while !plan.is_empty() {
        let now: Vec<Value> = plan.drain(..batch.min(plan.len())).collect();
        let made = join_all(now.into_iter().map(|pod| cx.client.create(&pods, namespace, pod))).await;
        let mut failure = None;
        for result in made {
            match result {
                Ok(record) => {
                    let message = format!("Created pod: {}", record.name);
                    cx.record(COMPONENT, &involved, "Normal", "SuccessfulCreate", &message).await;
                    let pod = Arc::new(Pod::read(&record));
                    seen.pods.push(pod.clone());
                    seen.active.push(pod);
                }
                Err(status) if is_terminating(&status) => return Ok(()),
                Err(status) => {
                    let message = format!("Error creating: {}", status.message);
                    cx.record(COMPONENT, &involved, "Warning", "FailedCreate", &message).await;
                    failure = Some(status);
                }
            }
        }
        if let Some(status) = failure {
            return Err(status);
        }
        batch *= 2;
    }
    Ok(())
}

/// One pod of a job. With an index it knows its index by label, annotation, name and environment.
fn pod(jobs: &Arc<Resource>, job: &Value, index: Option<i64>) -> Value {
    let name = text(job, "/metadata/name");
    let mut pod = pod_from_template(jobs, job, job.pointer("/spec/template").unwrap_or(&Value::Null));
    if let Some(meta) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
        let list = meta.entry("finalizers").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(json!(TRACKING));
        }
    }
    let Some(index) = index else {
        set(&mut pod, "metadata", "generateName", json!(format!("{name}-")));
        return pod;
    };
    set(&mut pod, "metadata", "generateName", json!(format!("{name}-{index}-")));
    if let Some(meta) = pod.get_mut("metadata") {
        set(meta, "annotations", INDEX, json!(index.to_string()));
        set(meta, "labels", INDEX, json!(index.to_string()));
    }
    set(&mut pod, "spec", "hostname", json!(format!("{name}-{index}")));
    for list in ["containers", "initContainers"] {
        let containers = pod.pointer_mut(&format!("/spec/{list}")).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let known =
                items(container, "/env").iter().any(|entry| text(entry, "/name") == "JOB_COMPLETION_INDEX");
            let Some(map) = container.as_object_mut().filter(|_| !known) else { continue };
            let source = json!({"fieldRef": {"fieldPath": format!("metadata.labels['{INDEX}']")}});
            let entry = json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": source});
            if let Some(env) = map.entry("env").or_insert_with(|| json!([])).as_array_mut() {
                env.push(entry);
            }
        }
    }
    pod
}

/// Deletes pods; those that shall not count as failures lose their finalizer first.
async fn delete(
    cx: &Context,
    jobs: &Arc<Resource>,
    job: &Value,
    doomed: &[Arc<Pod>],
    uncounted: bool,
) -> Result<(), Status> {
    let pods = cx.client.resource("", "pods")?;
    let involved = Involved::of(jobs, job);
    for pod in doomed {
        let record = &pod.record;
        if uncounted && pod.tracked {
            untrack(cx, pod).await?;
        }
        let preconditions = Preconditions { uid: Some(record.uid.to_string()), resource_version: None };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        if or_gone(cx.client.delete(&pods, &record.namespace, &record.name, &options).await)?.is_some() {
            let message = format!("Deleted pod: {}", record.name);
            cx.record(COMPONENT, &involved, "Normal", "SuccessfulDelete", &message).await;
        }
    }
    Ok(())
}

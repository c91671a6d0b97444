//! The next step of the manager for a request.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    conditions::SIDECAR_TERMINATED,
    containerrecreaterequest::v1beta1::{ContainerRecreateRequest, ContainerSnapshot, Phase, StatusContext},
    labels,
};
use serde_json::{Map, Value, json};

use super::{
    Observed,
    hold::{self, Step},
    is_over,
};
use crate::{
    effect::{Effect, Patch},
    pod::{ContainerStatus, Pod},
    readiness::seconds,
};

/// How long the daemon of a node has until it takes a request up.
const DAEMON_PATIENCE: SignedDuration = SignedDuration::from_secs(60);
/// When to look at the containers again while they are recreated: news of a pod may come late behind its hooks.
const LOOK_AGAIN: Duration = Duration::from_secs(3);

/// What to do next, as data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes, in any order.
    pub effects: Vec<Effect>,
    /// When to look again, if nothing happens before.
    pub wake_after: Option<Duration>,
    /// What the request waits for, if it waits.
    pub waits: Option<Waits>,
}

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// The daemon of the node has not looked at it.
    ForDaemon,
    /// Another request for the same pod is carried out.
    ForOtherRequest,
    /// The daemon is at work.
    ForContainers,
    /// It has ended and is kept for a while.
    ForItsTime,
}

impl Waits {
    /// The reason in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ForDaemon => "the daemon of the node has not taken the request up",
            Self::ForOtherRequest => "another request for the pod is carried out",
            Self::ForContainers => "the daemon recreates the containers",
            Self::ForItsTime => "the request has ended and is kept for ttlSecondsAfterFinished",
        }
    }
}

/// Decides the next step for a request.
pub fn plan(seen: &Observed) -> Plan {
    let request = seen.request.as_ref();
    let is_deleting = request.metadata.deletion_timestamp.is_some();
    if is_deleting || is_over(request) {
        return clean_up(seen, is_deleting);
    }
    let pod = match living_pod(seen) {
        Ok(pod) => pod,
        Err(message) => return complete(seen, message),
    };
    let phase = request.status.as_ref().map(|status| &status.phase);
    let is_unseen = phase.is_none_or(|phase| phase.as_str().is_empty());
    let patience = is_unseen.then_some(DAEMON_PATIENCE);
    let deadline = request.spec.active_deadline_seconds.map(SignedDuration::from_secs);
    let mut wake_after = None;
    for (limit, message) in [
        (patience, "daemon has not responded for a long time"),
        (deadline, "recreating has exceeded the activeDeadlineSeconds"),
    ] {
        let Some(limit) = limit else { continue };
        match left(made(seen), limit, seen.now) {
            None => return complete(seen, message),
            Some(rest) => wake_after = Some(wake_after.map_or(rest, |other: Duration| other.min(rest))),
        }
    }
    match phase {
        Some(Phase::Recreating) => {
            let again = Some(wake_after.map_or(LOOK_AGAIN, |rest| rest.min(LOOK_AGAIN)));
            Plan { effects: accompany(seen, pod), wake_after: again, waits: Some(Waits::ForContainers) }
        }
        _ if is_unseen => Plan { wake_after, waits: Some(Waits::ForDaemon), ..Plan::default() },
        _ => Plan { wake_after, waits: Some(Waits::ForOtherRequest), ..Plan::default() },
    }
}

/// The pod that the request is about while it lives, or why the request cannot go on.
pub(super) fn living_pod(seen: &Observed) -> Result<&Pod, &'static str> {
    let wanted = label(&seen.request, labels::CRR_POD_UID);
    let pod = seen.pod.as_deref();
    let pod = pod.filter(|pod| !pod.metadata.is_deleting() && Some(pod.metadata.uid.as_str()) == wanted);
    let pod = pod.ok_or("pod has gone")?;
    match pod.status.phase.as_str() {
        // Sidecars of a job are ended after its pod was declared finished.
        "Succeeded" | "Failed"
            if pod.condition(SIDECAR_TERMINATED).is_some() && is_any_running(seen, pod) =>
        {
            Ok(pod)
        }
        // Its containers never start again, so nothing would end the request.
        "Succeeded" | "Failed" => Err("pod has terminated"),
        _ => Ok(pod),
    }
}

fn is_any_running(seen: &Observed, pod: &Pod) -> bool {
    let statuses = seen.request.spec.containers.iter().filter_map(|one| container_status(pod, &one.name));
    statuses.into_iter().any(|status| status.state.running.is_some())
}

/// What is left of a request that has ended or is to go, one thing after the other.
fn clean_up(seen: &Observed, is_deleting: bool) -> Plan {
    let request = seen.request.as_ref();
    if let Some(effect) = hold::release(seen) {
        return Plan { effects: vec![effect], ..Plan::default() };
    }
    if is_deleting {
        return Plan::default();
    }
    if label(request, labels::CRR_ACTIVE).is_some() {
        let effect = Effect::Patch {
            target: hold::target(request),
            subresource: None,
            patch: Patch::Merge(json!({"metadata": {"labels": {labels::CRR_ACTIVE: null}}})),
        };
        return Plan { effects: vec![effect], ..Plan::default() };
    }
    let ended = request.status.as_ref().and_then(|status| status.completion_time);
    let Some((ttl, ended)) = request.spec.ttl_seconds_after_finished.zip(ended) else {
        return Plan::default();
    };
    match left(ended.0, SignedDuration::from_secs(ttl.into()), seen.now) {
        Some(rest) => Plan { wake_after: Some(rest), waits: Some(Waits::ForItsTime), ..Plan::default() },
        None => {
            let target = hold::target(request);
            Plan { effects: vec![Effect::Delete { target, grace: None, follows: false }], ..Plan::default() }
        }
    }
}

/// Ends a request. What the daemon has begun it finishes, and it may still say so.
fn complete(seen: &Observed, message: &str) -> Plan {
    let status = json!({"phase": Phase::Completed, "completionTime": seconds(seen.now), "message": message});
    Plan { effects: vec![write_status(&seen.request, status)], ..Plan::default() }
}

/// What the daemon needs from the manager while it works: the new containers, and the hold.
fn accompany(seen: &Observed, pod: &Pod) -> Vec<Effect> {
    let mut status = Map::new();
    if let Some(snapshot) = changed_snapshot(seen, pod) {
        status.insert("containerStatusSnapshot".to_owned(), json!(snapshot));
    }
    match hold::acquire(seen, pod) {
        Step::Done => {}
        Step::Write(effect) => return vec![effect],
        Step::Conditions(conditions) => {
            status.insert("conditions".to_owned(), conditions);
        }
    }
    if status.is_empty() { Vec::new() } else { vec![write_status(&seen.request, status.into())] }
}

/// The containers of the request that run and are others than those of which it was made, if they differ from what it says.
/// A list that was written once never becomes empty again.
///
/// The time of the start comes from the clock of the node, which may be behind: a container with another id counts as well.
fn changed_snapshot(seen: &Observed, pod: &Pod) -> Option<Vec<ContainerSnapshot>> {
    let request = seen.request.as_ref();
    let made = made(seen);
    let is_new = |status: &&ContainerStatus, before: Option<&StatusContext>| {
        let Some(running) = status.state.running.as_ref() else { return false };
        let is_other = before.is_some_and(|before| {
            before.container_id != *status.container_id || status.restart_count > before.restart_count
        });
        is_other || running.started_at.is_some_and(|start| start >= made)
    };
    let snapshot: Vec<ContainerSnapshot> = request
        .spec
        .containers
        .iter()
        .filter_map(|container| {
            let before = container.status_context.as_ref();
            container_status(pod, &container.name).filter(|status| is_new(status, before))
        })
        .map(|status| ContainerSnapshot {
            name: status.name.to_string(),
            ready: status.ready,
            restart_count: status.restart_count,
            container_id: Some(status.container_id.to_string()).filter(|id| !id.is_empty()),
        })
        .collect();
    let present = request.status.as_ref().map(|status| status.container_status_snapshot.as_slice());
    (!snapshot.is_empty() && present != Some(&snapshot)).then_some(snapshot)
}

fn container_status<'a>(pod: &'a Pod, name: &str) -> Option<&'a ContainerStatus> {
    let statuses = pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
    statuses.into_iter().find(|status| status.name == *name)
}

fn write_status(request: &ContainerRecreateRequest, status: Value) -> Effect {
    Effect::Patch {
        target: hold::target(request),
        subresource: Some("status"),
        patch: Patch::Merge(json!({"status": status})),
    }
}

fn label<'a>(request: &'a ContainerRecreateRequest, key: &str) -> Option<&'a str> {
    request.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

fn made(seen: &Observed) -> Timestamp {
    seen.request.metadata.creation_timestamp.as_ref().map_or(seen.now, |time| time.0)
}

/// What is left of a time, if anything.
fn left(since: Timestamp, limit: SignedDuration, now: Timestamp) -> Option<Duration> {
    let rest = limit.saturating_sub(now.duration_since(since));
    Duration::try_from(rest).ok().filter(|rest| !rest.is_zero())
}

//! Whether containers that fail are restarted now.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_api::{
    containerrecreaterequest::v1beta1::ContainerRecreateRequest, labels::CRR_POD_NAME,
    nodepodprobe::v1alpha1::ProbeState, probe::State,
};
use serde_json::{Value, json};

use super::{
    Taken,
    pace::{Backoff, Limiter},
    probe_name, taken,
};
use crate::{
    containerrecreaterequest::{CONTAINER_RECREATE_REQUEST, is_over},
    effect::{Effect, Event, Level},
    pod::{ContainerStatus, Pod},
    text::Text,
};

/// When a restart that a budget did not allow is tried again.
const BLOCKED_RETRY: Duration = Duration::from_secs(10);
/// How long a request stays after its end.
const KEPT_SECONDS: u32 = 300;

/// Everything that is known about one pod.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The pod.
    pub pod: Arc<Pod>,
    /// What its node says about its probes.
    pub states: Vec<ProbeState>,
    /// The requests for the pod.
    pub requests: Vec<Arc<ContainerRecreateRequest>>,
    /// A budget that covers the pod and allows no further pod to be down, if there is one.
    pub exhausted_budget: Option<String>,
    /// The time.
    pub now: Timestamp,
}

/// What is remembered between passes: the pace of all restarts, and of each container.
#[derive(Clone, Debug)]
pub struct Memory {
    /// How fast containers are restarted over all.
    pub limiter: Limiter,
    /// Which containers failed before, by the uid of their pod and their name.
    pub backoff: BTreeMap<(Text, String), Backoff>,
}

/// What to do next, as data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes: one request at most, and events.
    pub effects: Vec<Effect>,
    /// When to look again, if nothing happens before.
    pub wake_after: Option<Duration>,
    /// Why a container that fails is not restarted now.
    pub waits: Vec<Waits>,
}

/// Why a container that fails is not restarted now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Its startup probe has not passed.
    Starting,
    /// It was started after the probe failed, or in the same second.
    RestartedAlready,
    /// Another container of the pod, or this one, is being restarted.
    OtherRequest,
    /// It failed a short time ago.
    Backoff,
    /// A budget allows no further pod to be down.
    Budget(String),
    /// Many containers are being restarted.
    Limit,
}

/// Decides which container of a pod is restarted, if one is. At most one is at a time.
pub fn decide(seen: &Observed, memory: &mut Memory) -> Plan {
    let (pod, mut plan) = (seen.pod.as_ref(), Plan::default());
    if !pod.is_active() {
        return plan;
    }
    for taken in taken(pod) {
        let name = probe_name(&pod.metadata.name, &taken.name);
        let failed = seen.states.iter().find(|state| state.name == name && state.state == State::Failed);
        let Some(failed) = failed else { continue };
        match obstacle(seen, &taken.name, failed, memory) {
            None => {
                let status = container_status(pod, &taken.name);
                plan.effects.push(restart(pod, &taken, status));
                plan.effects.push(unhealthy(pod, failed));
                let key = (pod.metadata.uid.clone(), taken.name.clone());
                let before = memory.backoff.get(&key).copied();
                memory.backoff.insert(key, Backoff::after(before, seen.now));
                return plan;
            }
            Some((waits, retry)) => {
                if let Waits::Budget(budget) = &waits {
                    plan.effects.push(blocked(pod, budget));
                }
                plan.waits.push(waits);
                plan.wake_after = [plan.wake_after, retry].into_iter().flatten().min();
            }
        }
    }
    plan
}

/// What stands against a restart, and when to look again where nothing else tells.
fn obstacle(
    seen: &Observed,
    container: &str,
    failed: &ProbeState,
    memory: &mut Memory,
) -> Option<(Waits, Option<Duration>)> {
    let pod = seen.pod.as_ref();
    let status = container_status(pod, container);
    if status.is_none_or(|status| status.started != Some(true)) {
        return Some((Waits::Starting, None));
    }
    let started = status.and_then(|status| status.state.running.as_ref()?.started_at);
    let since = failed.last_transition_time.map(|time| time.0);
    // Both are whole seconds, and no probe fails within the second in which its container was started.
    if started.zip(since).is_some_and(|(started, since)| started >= since) {
        return Some((Waits::RestartedAlready, None));
    }
    let name = request_name(pod, container, status);
    let is_in_the_way = |request: &Arc<ContainerRecreateRequest>| {
        !is_over(request) || request.metadata.name.as_deref() == Some(name.as_str())
    };
    if seen.requests.iter().any(is_in_the_way) {
        return Some((Waits::OtherRequest, None));
    }
    let key = (pod.metadata.uid.clone(), container.to_owned());
    if let Some(left) = memory.backoff.get(&key).and_then(|backoff| backoff.left(seen.now)) {
        return Some((Waits::Backoff, Some(left)));
    }
    let is_ready = pod.condition("Ready").is_some_and(crate::pod::Condition::is_true);
    if let Some(budget) = seen.exhausted_budget.as_ref().filter(|_| is_ready) {
        return Some((Waits::Budget(budget.clone()), Some(BLOCKED_RETRY)));
    }
    memory.limiter.take(seen.now).err().map(|wait| (Waits::Limit, Some(wait)))
}

fn container_status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    pod.status.container_statuses.iter().find(|status| status.name == *container)
}

/// The same for the same instance of a container, so that its request is made once whoever looks.
fn request_name(pod: &Pod, container: &str, status: Option<&ContainerStatus>) -> String {
    let id = status.map(|status| status.container_id.as_str()).unwrap_or_default();
    let hash = fingerprint(&format!("{}/{container}/{id}", pod.metadata.uid));
    format!("{}-{:012x}", pod.metadata.name, hash & 0xffff_ffff_ffff)
}

/// FNV-1a of 64 bits.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn restart(pod: &Pod, taken: &Taken, status: Option<&ContainerStatus>) -> Effect {
    let mut strategy = json!({"failurePolicy": "Fail"});
    if let Some(grace) = taken.liveness_probe.termination_grace_period_seconds {
        kruise_api::json::set(&mut strategy, &["terminationGracePeriodSeconds"], grace);
    }
    let owner: Value = json!({
        "apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.metadata.uid, "controller": true,
        "blockOwnerDeletion": true,
    });
    // A name that is too long for a label would keep the request from being made.
    let labels = match pod.metadata.name.len() {
        0..=63 => json!({CRR_POD_NAME: pod.metadata.name}),
        _ => json!({}),
    };
    let object = json!({
        "metadata": {
            "name": request_name(pod, &taken.name, status),
            "namespace": pod.metadata.namespace,
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": {
            "podName": pod.metadata.name,
            "containers": [{"name": taken.name}],
            "strategy": strategy,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
        },
    });
    Effect::Create { resource: CONTAINER_RECREATE_REQUEST, namespace: pod.metadata.namespace.clone(), object }
}

fn unhealthy(pod: &Pod, failed: &ProbeState) -> Effect {
    let message = format!("Liveness probe failed: {}", failed.message.as_deref().unwrap_or_default());
    event(pod, "Unhealthy", message)
}

fn blocked(pod: &Pod, budget: &str) -> Effect {
    event(pod, "LivenessRestartBlocked", budget.to_owned())
}

fn event(pod: &Pod, reason: &str, message: String) -> Effect {
    Effect::Event(Event { regarding: pod.reference(), level: Level::Warning, reason: reason.into(), message })
}

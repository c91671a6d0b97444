//! Which key of the barrier comes next.

use std::{collections::BTreeSet, sync::Arc};

use kruise_api::annotations::CONTAINER_LAUNCH_PRIORITY_COMPLETED;
use serde_json::{Map, Value, json};

use super::{Barrier, barrier_key, barrier_name};
use crate::{
    effect::{Effect, Patch, Target},
    object::{CONFIG_MAP, ObjectKey, POD},
    pod::{Container, ContainerStatus, Pod},
};

/// Why a kubelet does not start a container whose key is missing.
const WAITS_FOR_KEY: &str = "CreateContainerConfigError";

/// Everything a pass may know.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The pod.
    pub pod: Arc<Pod>,
    /// Its barrier: the ConfigMap of [that name](super::barrier_name), whoever made it.
    pub barrier: Option<Arc<Barrier>>,
}

/// What to do next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Changes of the cluster.
    pub effects: Vec<Effect>,
    /// Whether there is more to do as soon as these are seen.
    pub again: bool,
}

/// Whether a pass would do something for a pod: what events of pods are asked.
pub fn concerns(pod: &Pod, barrier: Option<&Barrier>) -> bool {
    // Almost all pods have no barrier; that is found out without looking further.
    pod.spec.containers.iter().any(|container| container.env.priority.is_some())
        && !decide(pod, barrier).effects.is_empty()
}

/// Decides the next step.
pub fn plan(seen: &Observed) -> Plan {
    decide(&seen.pod, seen.barrier.as_deref())
}

fn decide(pod: &Pod, barrier: Option<&Barrier>) -> Plan {
    let is_over = matches!(pod.status.phase.as_str(), "Succeeded" | "Failed");
    if pod.metadata.is_deleting() || is_over {
        return Plan::default();
    }
    let is_completed = pod.metadata.annotations.text(CONTAINER_LAUNCH_PRIORITY_COMPLETED) == Some("true");
    let missing = if is_completed { lost(pod, barrier) } else { next(pod, barrier) };
    match missing {
        Step::Nothing => Plan::default(),
        Step::Complete => Plan { effects: vec![complete(pod)], again: false },
        Step::Keys { keys, is_last } => add(pod, barrier, &keys, is_last),
    }
}

/// What a pod needs.
enum Step {
    Nothing,
    /// All keys are there: the pod is marked, and is not looked at any more.
    Complete,
    Keys {
        keys: BTreeSet<i32>,
        /// Whether no other will be needed.
        is_last: bool,
    },
}

/// The next key of a pod that starts.
fn next(pod: &Pod, barrier: Option<&Barrier>) -> Step {
    let pending: BTreeSet<i32> = pod
        .spec
        .containers
        .iter()
        .filter(|container| !is_ready(pod, container))
        .filter_map(|container| container.env.priority)
        .collect();
    let has_order = pod.spec.containers.iter().any(|container| container.env.priority.is_some());
    let (Some(low), Some(high)) = (pending.first(), pending.last()) else {
        return if has_order { Step::Complete } else { Step::Nothing };
    };
    let has = |priority: &i32| has_key(pod, barrier, *priority);
    if has(low) {
        Step::Complete
    } else if has(high) {
        Step::Nothing
    } else {
        Step::Keys { keys: [*high].into(), is_last: low == high }
    }
}

/// The keys that a pod needs again because someone deleted its barrier: a container that restarts reads its key anew.
fn lost(pod: &Pod, barrier: Option<&Barrier>) -> Step {
    let waits = |container: &&Container| {
        let waiting = status(pod, container).and_then(|status| status.state.waiting.as_ref());
        waiting.is_some_and(|waiting| waiting.reason == WAITS_FOR_KEY)
    };
    let mut waiting = pod.spec.containers.iter().filter(waits).filter_map(|container| container.env.priority);
    if waiting.all(|priority| has_key(pod, barrier, priority)) {
        return Step::Nothing;
    }
    let all = pod.spec.containers.iter().filter_map(|container| container.env.priority);
    Step::Keys { keys: all.filter(|priority| !has_key(pod, barrier, *priority)).collect(), is_last: false }
}

fn has_key(pod: &Pod, barrier: Option<&Barrier>, priority: i32) -> bool {
    barrier.is_some_and(|barrier| barrier.is_of(pod) && barrier.keys.contains(barrier_key(priority).as_str()))
}

fn status<'a>(pod: &'a Pod, container: &Container) -> Option<&'a ContainerStatus> {
    pod.status.container_statuses.iter().find(|status| status.name == container.name)
}

/// Whether others may start after a container: it is ready, or it did its work and will not run again.
fn is_ready(pod: &Pod, container: &Container) -> bool {
    let ends = matches!(pod.spec.restart_policy.as_str(), "OnFailure" | "Never");
    status(pod, container).is_some_and(|status| {
        let ended = status.state.terminated.as_ref();
        status.ready || (ends && ended.is_some_and(|ended| ended.exit_code == 0))
    })
}

fn add(pod: &Pod, barrier: Option<&Barrier>, keys: &BTreeSet<i32>, is_last: bool) -> Plan {
    let data: Map<String, Value> =
        keys.iter().map(|priority| (barrier_key(*priority), Value::from("true"))).collect();
    let key = ObjectKey::new(pod.metadata.namespace.clone(), barrier_name(&pod.metadata.name));
    match barrier {
        None => {
            let owner = json!({"apiVersion": POD.api_version(), "kind": POD.kind,
                "name": pod.metadata.name, "uid": pod.metadata.uid});
            let object = json!({
                "apiVersion": CONFIG_MAP.api_version(),
                "kind": CONFIG_MAP.kind,
                "metadata": {"name": key.name, "namespace": key.namespace, "ownerReferences": [owner]},
                "data": data,
            });
            let create = Effect::Create { resource: CONFIG_MAP, namespace: key.namespace, object };
            Plan { effects: vec![create], again: is_last }
        }
        Some(barrier) => {
            let target = Target::with_uid(CONFIG_MAP, key, barrier.metadata.uid.clone());
            if !barrier.is_of(pod) {
                // It belonged to an earlier pod of this name, whose keys would start everything at once.
                let delete = Effect::Delete { target, grace: None, follows: false };
                return Plan { effects: vec![delete], again: true };
            }
            let patch = Patch::Merge(json!({"data": data}));
            Plan { effects: vec![Effect::Patch { target, subresource: None, patch }], again: is_last }
        }
    }
}

fn complete(pod: &Pod) -> Effect {
    Effect::Patch {
        target: Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone()),
        subresource: None,
        patch: Patch::Merge(
            json!({"metadata": {"annotations": {CONTAINER_LAUNCH_PRIORITY_COMPLETED: "true"}}}),
        ),
    }
}

#[cfg(test)]
mod tests;

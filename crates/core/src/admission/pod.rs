//! Admission of pods: steps that change a new pod, and checks of what is done to a pod later.
//!
//! The order is part of the contract with users: a spread may add labels by which sidecars are chosen, sidecars must be
//! there before containers get their start order, and so on. Each feature joins with one line in [`STEPS`] or
//! [`CHECKS`], at the [`Position`] that the contract gives it; a test keeps the lists in that order.

mod launch;
mod readiness;
mod sidecars;
#[cfg(test)]
mod tests;

use kruise_api::{
    gates::{Gate, Gates},
    json,
};
use serde_json::Value;

use super::{Answer, Operation, Request, kinds::Context};
use crate::{
    enhanced_liveness::take, object::ObjectKey, persistentpodstate, podprobemarker, podunavailablebudget,
    workloadspread,
};

/// The places in the chain that changes a new pod, first to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Position {
    /// The readiness gate `KruisePodReady`. Needs nothing; later steps see all gates.
    ReadinessGate,
    /// WorkloadSpread chooses a subset and patches the pod. Not on a dry run. May change labels.
    WorkloadSpread,
    /// SidecarSets inject containers and volumes. Needs the final labels.
    SidecarSet,
    /// The start order of containers. Needs all containers; may have to make the name of the pod.
    LaunchPriority,
    /// Which PodUnavailableBudget the pod belongs to. Needs the final labels.
    UnavailableBudget,
    /// PersistentPodState chooses nodes. Needs the name and the owner.
    PersistentState,
    /// Liveness probes that the node daemon runs. Needs all containers.
    EnhancedLiveness,
    /// Probes of PodProbeMarkers on serverless nodes. Needs all containers.
    ServerlessProbes,
}

/// What a step may know.
#[derive(Clone, Copy)]
pub struct PodContext<'a> {
    /// The request about the pod.
    pub request: &'a Request,
    /// Gates, caches, time.
    pub context: &'a Context<'a>,
}

/// One step of the chain that changes a new pod.
pub struct Step {
    /// Where it stands in the chain.
    pub position: Position,
    /// Whether it runs with these gates.
    pub runs: fn(&Gates) -> bool,
    /// Changes the pod. An error ends the chain: the pod is refused and not changed.
    pub run: fn(&mut Value, &PodContext<'_>) -> Result<(), String>,
}

/// The steps that exist, in order.
pub const STEPS: &[Step] = &[
    Step { position: Position::ReadinessGate, runs: |_| true, run: readiness::gate },
    Step {
        position: Position::WorkloadSpread,
        runs: |gates| gates.enabled(Gate::WorkloadSpread),
        run: workloadspread::step,
    },
    Step { position: Position::SidecarSet, runs: |_| true, run: sidecars::inject },
    Step { position: Position::LaunchPriority, runs: |_| true, run: launch::order },
    Step {
        position: Position::UnavailableBudget,
        runs: podunavailablebudget::is_on,
        run: podunavailablebudget::stamp,
    },
    Step { position: Position::PersistentState, runs: |_| true, run: persistentpodstate::step },
    Step { position: Position::EnhancedLiveness, runs: take::runs, run: take::step },
    Step {
        position: Position::ServerlessProbes,
        runs: |gates| gates.enabled(Gate::EnablePodProbeMarkerOnServerless),
        run: podprobemarker::serverless::step,
    },
];

/// Whether the labels of the pod's namespace must be looked up before [`mutate`], because a step depends on them and no
/// cache has them yet.
pub fn needs_namespace(request: &Request, context: &Context<'_>) -> bool {
    is_new_pod(request) && not_a_pod(request).is_none() && sidecars::needs_namespace(request, context)
}

/// Changes a new pod. Everything but the creation of a pod passes as it is.
pub fn mutate(request: &Request, context: &Context<'_>) -> Answer {
    mutate_by(STEPS, request, context)
}

fn mutate_by(steps: &[Step], request: &Request, context: &Context<'_>) -> Answer {
    if let Some(answer) = not_a_pod(request) {
        return answer;
    }
    if !is_new_pod(request) {
        return Answer::allowed();
    }
    if !request.object.is_object() {
        return Answer::bad_object("there is no Pod in the request");
    }
    let mut pod = request.object.clone();
    let said = json::at(&pod, &["metadata", "namespace"]).cloned();
    json::set(&mut pod, &["metadata", "namespace"], request.namespace.as_str());
    for step in steps.iter().filter(|step| (step.runs)(context.gates)) {
        if let Err(error) = (step.run)(&mut pod, &PodContext { request, context }) {
            return Answer::internal(error);
        }
    }
    // The server knows the namespace and adds it itself, so this is no change of ours.
    if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
        match said {
            Some(said) => metadata.insert("namespace".to_owned(), said),
            None => metadata.remove("namespace"),
        };
    }
    Answer::changed(&request.object, pod)
}

/// What is done to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Touch {
    /// It is changed, such as by an update in place.
    Update,
    /// Its resources are changed through `pods/resize`.
    Resize,
    /// It is deleted.
    Delete,
    /// It is evicted: deleted with respect for budgets.
    Evict,
}

/// The places in the chain that judges what is done to a pod, first to last. Budgets are asked before all of these, because
/// their answer is a write: whoever counts pods that go must not count one that a budget keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckPosition {
    /// WorkloadSpread counts pods that go.
    WorkloadSpread,
}

/// One check of the chain that judges what is done to a pod.
pub struct Check {
    /// Where it stands in the chain.
    pub position: CheckPosition,
    /// Whether it runs for this touch with these gates.
    pub runs: fn(Touch, &Gates) -> bool,
    /// The refusal, if any. An error refuses with 400.
    pub run: fn(&Value, Touch, &PodContext<'_>) -> Result<Option<Answer>, String>,
}

/// The checks that exist, in order.
pub const CHECKS: &[Check] = &[];

/// Judges what is done to a pod.
pub fn validate(request: &Request, context: &Context<'_>) -> Answer {
    validate_by(CHECKS, request, context)
}

fn validate_by(checks: &[Check], request: &Request, context: &Context<'_>) -> Answer {
    if let Some(answer) = not_a_pod(request) {
        return answer;
    }
    let touch = match (request.operation, request.subresource.as_str()) {
        (Operation::Update, "") => Touch::Update,
        (Operation::Update, "resize") => Touch::Resize,
        (Operation::Delete, "") => Touch::Delete,
        (Operation::Create, "eviction") => Touch::Evict,
        _ => return Answer::allowed(),
    };
    let mut checks = checks.iter().filter(|check| (check.runs)(touch, context.gates)).peekable();
    if checks.peek().is_none() {
        return Answer::allowed();
    }
    let pod = match touch {
        // An eviction carries only the name.
        Touch::Evict => {
            let key = ObjectKey::new(request.namespace.as_str(), request.name.as_str());
            if context.cluster.pod(&key).is_none() {
                return Answer::pod_check_failed(format!("pods {:?} not found", request.name));
            }
            &request.object
        }
        Touch::Delete if !request.old_object.is_object() => return Answer::allowed(),
        Touch::Delete => &request.old_object,
        Touch::Update | Touch::Resize => &request.object,
    };
    for check in checks {
        match (check.run)(pod, touch, &PodContext { request, context }) {
            Ok(None) => {}
            Ok(Some(refusal)) => return refusal,
            Err(error) => return Answer::pod_check_failed(error),
        }
    }
    Answer::allowed()
}

fn is_new_pod(request: &Request) -> bool {
    request.operation == Operation::Create && request.subresource.is_empty()
}

fn not_a_pod(request: &Request) -> Option<Answer> {
    let resource = &request.resource;
    let is_pod = resource.group.is_empty() && resource.resource == "pods";
    (!is_pod).then(|| {
        let what = format!("{} {}", resource.group, resource.resource);
        Answer::bad_object(format!("this path is about pods and the request about {:?}", what.trim()))
    })
}

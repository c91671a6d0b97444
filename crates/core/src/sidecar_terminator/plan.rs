//! The next step for a pod.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    conditions::SIDECAR_TERMINATED,
    containerrecreaterequest::v1beta1::ContainerRecreateRequest,
    env,
    labels::{NODE_TYPE, VIRTUAL_KUBELET},
};
use serde_json::json;

use super::{
    Observed, Purpose, REQUEST,
    containers::{is_interesting, main, sidecars, status, terminated},
    purpose,
};
use crate::{
    effect::{Effect, Event, Patch, Target},
    object::{ObjectKey, POD},
    pod::{Container, Pod},
    readiness::seconds,
};

/// How long to wait before sidecars that came back are killed again.
const AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(60);
/// How long after the deletion of a request the next one is made. Nothing of the pod changes by it, so nobody else says so.
const AFTER_DELETION: Duration = Duration::from_secs(1);
const FINISHED: &str = "Terminated by Sidecar Terminator";

/// What to do next, as data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes, in any order.
    pub effects: Vec<Effect>,
    /// What each of them is for, in the same order.
    pub purposes: Vec<Purpose>,
    /// What people should hear once: the same text need not be told again for this pod.
    pub notice: Option<Event>,
    /// When to look again, if nothing happens before.
    pub wake_after: Option<Duration>,
    /// What cannot be decided as things stand. Trying again later may help.
    pub problem: Option<String>,
}

impl Plan {
    fn add(&mut self, effect: Effect, purpose: Purpose) {
        self.effects.push(effect);
        self.purposes.push(purpose);
    }
}

/// The name of the request that kills the sidecars of a pod.
pub fn request_name(pod: &Pod) -> String {
    format!("sidecar-termination-{}", pod.metadata.uid)
}

/// Decides the next step for a pod.
pub fn plan(seen: &Observed) -> Plan {
    let (pod, mut plan) = (seen.pod.as_ref(), Plan::default());
    if !is_interesting(pod) || is_ended_by_others(pod) {
        return plan;
    }
    let Some(node) = &seen.node else {
        plan.problem =
            Some(format!("node {} of pod {} is not known", pod.spec.node_name, pod.metadata.key()));
        return plan;
    };
    let groups = Groups::of(pod, node.text(NODE_TYPE) == Some(VIRTUAL_KUBELET));
    replace_images(pod, &groups.in_place, &mut plan);
    kill(seen, &groups.normal, &mut plan);
    let others_ended = groups.normal.iter().chain(&groups.in_place).all(|one| terminated(pod, one).is_some());
    if !groups.ignore_code.is_empty() && others_ended {
        if is_finished(pod) {
            kill(seen, &groups.ignore_code, &mut plan);
        } else {
            // Requests for a pod that ended are accepted only once its condition says that we ended it.
            plan.add(finish(pod, seen.now), Purpose::Quiet);
        }
    }
    plan.notice = groups.notice(pod);
    plan
}

/// The sidecars by what is done to them.
#[derive(Default)]
struct Groups<'a> {
    is_virtual: bool,
    normal: Vec<&'a Container>,
    ignore_code: Vec<&'a Container>,
    in_place: Vec<&'a Container>,
    /// Nothing, because of the kind of their node.
    left: Vec<&'a Container>,
}

impl<'a> Groups<'a> {
    fn of(pod: &'a Pod, is_virtual: bool) -> Self {
        let mut groups = Self { is_virtual, ..Self::default() };
        for (container, marks) in sidecars(pod) {
            let group = match (is_virtual, marks.kill, marks.ignore_exit_code) {
                (true, ..) if !marks.image.is_empty() => &mut groups.in_place,
                (true, ..) | (false, false, _) => &mut groups.left,
                (false, true, true) => &mut groups.ignore_code,
                (false, true, false) => &mut groups.normal,
            };
            group.push(container);
        }
        groups
    }

    fn notice(&self, pod: &Pod) -> Option<Event> {
        let names = names(running(pod, &self.left));
        if names.is_empty() {
            return None;
        }
        let (node, missing) = if self.is_virtual {
            ("a virtual-kubelet node", env::TERMINATE_SIDECAR_WITH_IMAGE)
        } else {
            ("a node with a daemon", env::TERMINATE_SIDECAR)
        };
        Some(purpose::cannot(pod, &names, node, missing))
    }
}

fn running<'a>(pod: &Pod, containers: &[&'a Container]) -> Vec<&'a Container> {
    containers.iter().copied().filter(|container| terminated(pod, container).is_none()).collect()
}

fn names(containers: Vec<&Container>) -> Vec<String> {
    let mut names: Vec<String> = containers.into_iter().map(|container| container.name.to_string()).collect();
    names.sort();
    names
}

fn is_over(pod: &Pod) -> bool {
    matches!(pod.status.phase.as_str(), "Succeeded" | "Failed")
}

fn is_finished(pod: &Pod) -> bool {
    is_over(pod) && pod.condition(SIDECAR_TERMINATED).is_some()
}

/// A pod that was evicted, or whose deadline came, is stopped by its kubelet.
fn is_ended_by_others(pod: &Pod) -> bool {
    is_over(pod) && pod.condition(SIDECAR_TERMINATED).is_none()
}

fn replace_images(pod: &Pod, containers: &[&Container], plan: &mut Plan) {
    let image = |container: &Container| container.env.termination.as_ref().map(|marks| marks.image.clone());
    let mut changed: Vec<&Container> = running(pod, containers);
    changed.retain(|container| image(container).is_some_and(|image| image != container.image));
    if changed.is_empty() {
        return;
    }
    let images: Vec<_> = changed
        .iter()
        .map(|one| json!({"name": one.name, "image": image(one).unwrap_or_default()}))
        .collect();
    let effect = Effect::Patch {
        target: Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone()),
        subresource: None,
        patch: Patch::Strategic(json!({"spec": {"containers": images}})),
    };
    plan.add(effect, Purpose::ReplaceImage { pod: pod.reference(), sidecars: names(changed) });
}

/// One request for a pod, made once; again only when sidecars that it killed came back.
fn kill(seen: &Observed, containers: &[&Container], plan: &mut Plan) {
    let pod = seen.pod.as_ref();
    let targets = running(pod, containers);
    if targets.is_empty() {
        return;
    }
    let Some(request) = &seen.request else {
        let sidecars = names(targets);
        let effect = Effect::Create {
            resource: REQUEST,
            namespace: pod.metadata.namespace.clone(),
            object: request_for(pod, &sidecars),
        };
        plan.add(effect, Purpose::Kill { pod: pod.reference(), sidecars });
        return;
    };
    if !came_back(pod, request, &targets) {
        return;
    }
    let made = request.metadata.creation_timestamp.as_ref().map_or(seen.now, |time| time.0);
    let left = AGAIN_AFTER - seen.now.duration_since(made);
    if let Some(left) = Duration::try_from(left).ok().filter(|left| !left.is_zero()) {
        plan.wake_after = Some(left);
        return;
    }
    // The next pass, which finds none, makes the new one.
    let key = ObjectKey::new(pod.metadata.namespace.clone(), request_name(pod));
    let target = Target::with_uid(REQUEST, key, request.metadata.uid.as_deref().unwrap_or_default().into());
    plan.add(Effect::Delete { target, grace: None, follows: false }, Purpose::Quiet);
    plan.wake_after = Some(AFTER_DELETION);
}

/// Whether a sidecar that a finished request named runs again: one that ends with an error is started again by its
/// kubelet under `OnFailure`.
fn came_back(pod: &Pod, request: &ContainerRecreateRequest, targets: &[&Container]) -> bool {
    let is_complete = request.status.as_ref().is_some_and(|status| status.completion_time.is_some());
    let Some(made) = request.metadata.creation_timestamp.as_ref() else { return false };
    is_complete
        && targets.iter().any(|container| {
            let is_named = request.spec.containers.iter().any(|named| container.name == named.name.as_str());
            let started = status(pod, container).and_then(|status| status.state.running.as_ref()?.started_at);
            is_named && started.is_some_and(|started| started >= made.0)
        })
}

fn request_for(pod: &Pod, sidecars: &[String]) -> serde_json::Value {
    let containers: Vec<_> = sidecars.iter().map(|name| json!({"name": name})).collect();
    json!({
        "apiVersion": REQUEST.api_version(),
        "kind": REQUEST.kind,
        "metadata": {
            "name": request_name(pod),
            "namespace": pod.metadata.namespace,
            "ownerReferences": [pod.reference().controller_reference()],
        },
        "spec": {
            "podName": pod.metadata.name,
            "containers": containers,
            "strategy": {"forceRecreate": true, "failurePolicy": "Ignore"},
        },
    })
}

/// Ends a pod by the codes of its main containers alone.
fn finish(pod: &Pod, now: Timestamp) -> Effect {
    let succeeded =
        main(pod).all(|container| terminated(pod, container).is_some_and(|end| end.exit_code == 0));
    let condition = json!({
        "type": SIDECAR_TERMINATED, "status": "True", "lastTransitionTime": seconds(now), "message": FINISHED,
    });
    Effect::Patch {
        target: Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone()),
        subresource: Some("status"),
        patch: Patch::Strategic(json!({"status": {
            "phase": if succeeded { "Succeeded" } else { "Failed" }, "conditions": [condition],
        }})),
    }
}

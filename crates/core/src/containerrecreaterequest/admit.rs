//! What a request must look like, and what it gets from its pod when it is made.
//!
//! The first mistake is told, as the original does, in its words.

use std::{collections::BTreeSet, sync::Arc};

use kruise_api::{annotations, conditions::SIDECAR_TERMINATED, json, labels};
use serde_json::{Value, json};

use crate::{
    admission::{Answer, Operation, Request, kinds::Context},
    object::ObjectKey,
};

const IMMUTABLE_LABELS: [&str; 2] = [labels::CRR_POD_UID, labels::CRR_NODE_NAME];

/// Judges a request that is made or changed, and completes one that is made.
pub fn complete(object: &mut Value, request: &Request, context: &Context<'_>) -> Result<(), Answer> {
    if request.operation == Operation::Update {
        return unchanged(request);
    }
    plausible(object).map_err(Answer::bad_object)?;
    let pod = living_pod(object, request, context)?;
    let node_name = json::text(&pod, &["spec", "nodeName"]).unwrap_or_default().to_owned();
    let node = context
        .cluster
        .node(&node_name)
        .map_err(|error| Answer::bad_object(format!("failed to get Node {node_name}: {error}")))?;
    containers(object, &pod).map_err(Answer::bad_object)?;
    label(object, labels::CRR_ACTIVE, "true");
    label(object, labels::CRR_POD_UID, json::text(&pod, &["metadata", "uid"]).unwrap_or_default());
    label(object, labels::CRR_NODE_NAME, &node_name);
    if node.text(labels::NODE_TYPE) == Some(labels::VIRTUAL_KUBELET) {
        label(object, labels::NODE_TYPE, labels::VIRTUAL_KUBELET);
    }
    json::default_text(object, &["spec", "strategy", "failurePolicy"], "Fail");
    if let Some(grace) = json::at(&pod, &["spec", "terminationGracePeriodSeconds"]) {
        json::default_at(object, &["spec", "strategy", "terminationGracePeriodSeconds"], grace.clone());
    }
    Ok(())
}

/// What a request says is what the daemon works on: it stays.
fn unchanged(request: &Request) -> Result<(), Answer> {
    let refused = |message: String| Err(Answer::Denied { code: 403, message });
    let (new, old) = (&request.object, &request.old_object);
    if json::at(new, &["spec"]) != json::at(old, &["spec"]) {
        return refused("spec of ContainerRecreateRequest is immutable".to_owned());
    }
    let of = |object: &Value, member: &str, key: &str| {
        json::text(object, &["metadata", member, key]).unwrap_or_default().to_owned()
    };
    for key in IMMUTABLE_LABELS {
        if of(new, "labels", key) != of(old, "labels", key) {
            return refused(format!("not allowed to update immutable label {key}"));
        }
    }
    // In the newer version this is a condition, which only the status can change.
    let key = annotations::CRR_UNREADY_ACQUIRED;
    let held = of(old, "annotations", key);
    if request.kind.version == "v1alpha1" && !held.is_empty() && of(new, "annotations", key) != held {
        return refused(format!("not allowed to update immutable annotation {key}"));
    }
    Ok(())
}

/// What can be said without looking at the pod.
fn plausible(object: &Value) -> Result<(), String> {
    if json::text(object, &["spec", "podName"]).unwrap_or_default().is_empty() {
        return Err("podName can not be empty".to_owned());
    }
    if json::at(object, &["spec", "containers"]).and_then(Value::as_array).is_none_or(Vec::is_empty) {
        return Err("containers list can not be null".to_owned());
    }
    let number = |path: &[&str]| json::at(object, path).and_then(Value::as_i64);
    if number(&["spec", "activeDeadlineSeconds"]).is_some_and(|seconds| seconds < 3) {
        return Err("activeDeadlineSeconds can not be less than 3s".to_owned());
    }
    for field in ["terminationGracePeriodSeconds", "unreadyGracePeriodSeconds"] {
        if number(&["spec", "strategy", field]).is_some_and(|seconds| seconds < 0) {
            return Err(format!("{field} must be non-negative integer"));
        }
    }
    match json::text(object, &["spec", "strategy", "failurePolicy"]).unwrap_or_default() {
        "" | "Fail" | "Ignore" => Ok(()),
        other => Err(format!("unknown failurePolicy {other}")),
    }
}

/// The pod, if its containers can be recreated.
fn living_pod(object: &Value, request: &Request, context: &Context<'_>) -> Result<Arc<Value>, Answer> {
    let name = json::text(object, &["spec", "podName"]).unwrap_or_default();
    let key = ObjectKey::new(request.namespace.as_str(), name);
    let pod = match context.cluster.whole_pod(&key) {
        Ok(Some(pod)) => pod,
        Ok(None) => return Err(Answer::bad_object(format!("no found Pod named {name}"))),
        Err(error) => return Err(Answer::internal(format!("failed to find Pod {name}: {error}"))),
    };
    let phase = json::text(&pod, &["status", "phase"]).unwrap_or_default();
    let is_over = matches!(phase, "Succeeded" | "Failed")
        || json::at(&pod, &["metadata", "deletionTimestamp"]).is_some();
    // Sidecars of a job are ended through requests after its pod was declared finished.
    if is_over && !has_condition(&pod, SIDECAR_TERMINATED) {
        return Err(Answer::bad_object("not allowed to recreate containers in an inactive Pod"));
    }
    if json::text(&pod, &["spec", "nodeName"]).unwrap_or_default().is_empty() {
        return Err(Answer::bad_object("not allowed to recreate containers in a pending Pod"));
    }
    Ok(pod)
}

fn has_condition(pod: &Value, kind: &str) -> bool {
    list(pod, &["status", "conditions"]).any(|condition| json::text(condition, &["type"]) == Some(kind))
}

/// What of a container is copied from the pod and cannot be given.
const COPIED: [&str; 3] = ["preStop", "ports", "statusContext"];

/// Judges the containers of a request and copies to each what the daemon must know of it.
fn containers(object: &mut Value, pod: &Value) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for container in json::items_mut(object, &["spec", "containers"]) {
        let name = json::text(container, &["name"]).unwrap_or_default().to_owned();
        if !seen.insert(name.clone()) {
            return Err(format!("can not recreate {name} multi times"));
        }
        let is_full = |value: &&Value| value.as_array().is_none_or(|list| !list.is_empty());
        let given = |field: &str| json::at(container, &[field]).filter(is_full);
        let is_given = COPIED.iter().any(|field| given(field).is_some());
        let copy = copied(pod, &name);
        // A server may ask again about what we have answered: then it is all there.
        let is_ours = |copy: &Value| COPIED.iter().all(|field| given(field) == json::at(copy, &[field]));
        if is_given && !copy.as_ref().is_ok_and(is_ours) {
            return Err("preStop, ports, statusContext in container are ready-only fields".to_owned());
        }
        let copy = copy?;
        for field in COPIED {
            if let Some(value) = json::at(&copy, &[field]) {
                json::set(container, &[field], value.clone());
            }
        }
    }
    Ok(())
}

/// What the daemon must know of a container.
fn copied(pod: &Value, name: &str) -> Result<Value, String> {
    let (spec, statuses) = in_pod(pod, name).ok_or(format!("container {name} not found in Pod"))?;
    let status = list(pod, &["status", statuses]).find(|status| is_named(status, name));
    let status = status.ok_or(format!("not found {name} containerStatus in Pod Status"))?;
    let id = json::text(status, &["containerID"]).filter(|id| !id.is_empty());
    let id = id.ok_or(format!(
        "no containerID in {name} containerStatus, maybe the container has not been initialized"
    ))?;
    let restarts = json::at(status, &["restartCount"]).and_then(Value::as_i64).unwrap_or_default();
    let mut copy = json!({"statusContext": {"containerID": id, "restartCount": restarts}});
    if let Some(hook) = json::at(spec, &["lifecycle", "preStop"]) {
        json::set(&mut copy, &["preStop"], hook.clone());
        let asks = json::at(hook, &["httpGet"]).is_some();
        if let Some(ports) = json::at(spec, &["ports"]).filter(|_| asks) {
            json::set(&mut copy, &["ports"], ports.clone());
        }
    }
    Ok(copy)
}

/// A container that the kubelet starts again, and the list that holds its status: a regular one or a native sidecar.
fn in_pod<'a>(pod: &'a Value, name: &str) -> Option<(&'a Value, &'static str)> {
    let regular = list(pod, &["spec", "containers"]).find(|container| is_named(container, name));
    let sidecar = || {
        list(pod, &["spec", "initContainers"]).find(|container| {
            is_named(container, name) && json::text(container, &["restartPolicy"]) == Some("Always")
        })
    };
    regular
        .map(|container| (container, "containerStatuses"))
        .or_else(|| sidecar().map(|container| (container, "initContainerStatuses")))
}

fn is_named(object: &Value, name: &str) -> bool {
    json::text(object, &["name"]) == Some(name)
}

fn list<'a>(object: &'a Value, path: &[&str]) -> impl Iterator<Item = &'a Value> {
    json::at(object, path).and_then(Value::as_array).into_iter().flatten()
}

fn label(object: &mut Value, key: &str, value: &str) {
    json::set(object, &["metadata", "labels", key], value);
}

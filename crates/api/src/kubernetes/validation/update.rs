//! What may change in a pod that exists.

use super::resources::{is_qos_kept, quality};
use super::{Violation, Violations, get, list, text};
use crate::kubernetes::quantity::Quantity;
use serde_json::{Map, Value};

const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// The annotation of a pod that a node made from a file of its own.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What is wrong with a change of a pod through its main resource.
pub fn pod_update(new: &Value, old: &Value) -> Violations {
    let null = Value::Null;
    let (new, old) = (new.get("spec").unwrap_or(&null), old.get("spec").unwrap_or(&null));
    let mut found = Violations::new();
    for kind in ["containers", "initContainers"] {
        if list(new, kind).len() != list(old, kind).len() {
            let detail = "pod updates may not add or remove containers";
            found.push(Violation::forbidden(format!("spec.{kind}"), detail));
            return found;
        }
        for (index, container) in list(new, kind).iter().enumerate() {
            let (path, image) = (format!("spec.{kind}[{index}].image"), text(container, "image"));
            if image.is_empty() {
                found.push(Violation::required(path, ""));
            } else if image.trim() != image {
                found.push(Violation::invalid(path, image, "must not have leading or trailing whitespace"));
            }
        }
    }
    if deadline(&mut found, new, old) {
        return found;
    }
    added_tolerations(&mut found, list(new, "tolerations"), list(old, "tolerations"));
    for (index, gate) in list(new, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        if !list(old, "schedulingGates").iter().any(|old| text(old, "name") == name) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            found.push(Violation::forbidden(format!("spec.schedulingGates[{index}].name"), detail));
        }
    }
    let mut masked = new.clone();
    mask(&mut found, &mut masked, old);
    let differences = differences(&masked, old, "spec");
    if !differences.is_empty() {
        found.push(Violation::forbidden("spec", format!("{UPDATABLE}\n{}", differences.join("\n"))));
    }
    found
}

/// Whether the deadline breaks a rule that ends all further checks.
fn deadline(found: &mut Violations, new: &Value, old: &Value) -> bool {
    let path = "spec.activeDeadlineSeconds";
    let seconds = |spec: &Value| get(spec, "activeDeadlineSeconds").and_then(Value::as_i64);
    match (seconds(new), seconds(old)) {
        (Some(now), _) if !(0..=i64::from(i32::MAX)).contains(&now) => {
            found.push(Violation::invalid(
                path,
                now,
                format!("must be between 0 and {}, inclusive", i32::MAX),
            ));
            true
        }
        (Some(now), Some(before)) if before < now => {
            found.push(Violation::invalid(path, now, "must be less than or equal to previous value"));
            true
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            found.push(Violation::invalid(path, Value::Null, detail));
            false
        }
        _ => false,
    }
}

fn added_tolerations(found: &mut Violations, new: &[Value], old: &[Value]) {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(members) = toleration.as_object_mut() {
            members.remove("tolerationSeconds");
        }
        toleration
    };
    let kept = old.iter().all(|old| {
        let old = without_seconds(old);
        new.iter().any(|new| without_seconds(new) == old)
    });
    if !kept {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        found.push(Violation::forbidden("spec.tolerations", detail));
    }
}

/// Puts the old values of everything that may change into the new spec, so that the rest can be compared.
fn mask(found: &mut Violations, new: &mut Value, old: &Value) {
    for kind in ["containers", "initContainers"] {
        let images: Vec<Option<Value>> =
            list(old, kind).iter().map(|container| container.get("image").cloned()).collect();
        let containers = new.get_mut(kind).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, image) in containers.zip(images) {
            set(container, "image", image);
        }
    }
    for member in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        set(new, member, old.get(member).cloned());
    }
    let grace = |spec: &Value| get(spec, "terminationGracePeriodSeconds").and_then(Value::as_i64);
    if grace(old).is_some_and(|seconds| seconds < 0) && grace(new) == Some(1) {
        set(new, "terminationGracePeriodSeconds", old.get("terminationGracePeriodSeconds").cloned());
    }
    if list(old, "schedulingGates").is_empty() {
        return;
    }
    // A gated pod may still become pickier about its node.
    let selector =
        |spec: &Value| spec.get("nodeSelector").and_then(Value::as_object).cloned().unwrap_or_default();
    let (now, before) = (selector(new), selector(old));
    if before.iter().any(|(key, value)| now.get(key) != Some(value)) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        found.push(Violation::invalid("spec.nodeSelector", Value::Object(now), detail));
    }
    set(new, "nodeSelector", old.get("nodeSelector").cloned());
}

fn set(owner: &mut Value, member: &str, value: Option<Value>) {
    let Some(owner) = owner.as_object_mut() else { return };
    match value {
        Some(value) => owner.insert(member.to_owned(), value),
        None => owner.remove(member),
    };
}

/// The members that differ, one line each.
fn differences(new: &Value, old: &Value, path: &str) -> Vec<String> {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            let keys: std::collections::BTreeSet<&String> = new.keys().chain(old.keys()).collect();
            let member = |map: &Map<String, Value>, key: &str| map.get(key).cloned().unwrap_or_default();
            keys.into_iter()
                .flat_map(|key| differences(&member(new, key), &member(old, key), &format!("{path}.{key}")))
                .collect()
        }
        (Value::Array(new), Value::Array(old)) if new.len() == old.len() => new
            .iter()
            .zip(old)
            .enumerate()
            .flat_map(|(index, (new, old))| differences(new, old, &format!("{path}[{index}]")))
            .collect(),
        (new, old) if new == old || (empty(new) && empty(old)) || same_amount(new, old, path) => Vec::new(),
        (new, old) => vec![format!("- {path}: {old}"), format!("+ {path}: {new}")],
    }
}

/// `1` and `1000m` are the same amount.
fn same_amount(new: &Value, old: &Value, path: &str) -> bool {
    (path.contains(".limits.") || path.contains(".requests."))
        && matches!((Quantity::from_json(new), Quantity::from_json(old)), (Ok(new), Ok(old)) if new == old)
}

/// What is wrong with a change through `ephemeralcontainers`: containers may be added, nothing else.
pub fn ephemeral_containers_update(new: &Value, old: &Value) -> Violations {
    let null = Value::Null;
    let containers = |pod: &Value| list(pod.get("spec").unwrap_or(&null), "ephemeralContainers").to_vec();
    let new = containers(new);
    let mut found = Violations::new();
    for old in containers(old) {
        let name = text(&old, "name");
        match new.iter().find(|container| text(container, "name") == name) {
            None => {
                let detail = format!("existing ephemeral containers {name:?} may not be removed\n");
                found.push(Violation::forbidden("spec.ephemeralContainers", detail));
            }
            Some(same) => {
                let lines = differences(same, &old, "");
                if !lines.is_empty() {
                    let detail = format!(
                        "existing ephemeral containers {name:?} may not be changed\n{}",
                        lines.join("\n")
                    );
                    found.push(Violation::forbidden("spec.ephemeralContainers", detail));
                }
            }
        }
    }
    found
}

/// What is wrong with a change through `resize`: only cpu and memory of containers and sidecars may change. These are the
/// rules of Kubernetes 1.34 and later, where memory limits may also shrink and come without a restart.
pub fn resize(new: &Value, old: &Value) -> Violations {
    let null = Value::Null;
    let status = old.get("status").unwrap_or(&null);
    if let Some(detail) = never_resized(new, old) {
        return vec![Violation::forbidden("", detail)];
    }
    let (new, old) = (new.get("spec").unwrap_or(&null), old.get("spec").unwrap_or(&null));
    let mut found = Violations::new();
    if !is_qos_kept(new, old) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        found.push(Violation::invalid("spec", quality(old), detail));
    }
    let running = list(status, "containerStatuses")
        .iter()
        .find(|container| container.get("state").and_then(|state| get(state, "running")).is_some());
    if running.is_some_and(|container| get(container, "resources").is_none()) {
        found.push(Violation::forbidden("spec", "Pod running on node without support for resize"));
    }
    let before = found.len();
    for kind in ["containers", "initContainers"] {
        same_order(&mut found, kind, list(new, kind), list(old, kind));
    }
    if found.len() > before {
        return found;
    }
    let is_sidecar = |container: &Value| text(container, "restartPolicy") == "Always";
    for kind in ["initContainers", "containers"] {
        for (index, (after, before)) in list(new, kind).iter().zip(list(old, kind)).enumerate() {
            if kind == "containers" || is_sidecar(before) {
                removed(&mut found, after, before, &format!("spec.{kind}[{index}].resources"));
            }
        }
    }
    let mut masked = new.clone();
    for (kind, detail) in [
        ("containers", "only cpu and memory resources are mutable"),
        ("initContainers", "only cpu and memory resources for sidecar containers are mutable"),
    ] {
        for (index, before) in list(old, kind).iter().enumerate() {
            let Some(container) = masked.get_mut(kind).and_then(|list| list.get_mut(index)) else { continue };
            let is_fixed = kind == "initContainers" && !is_sidecar(before);
            if !is_fixed {
                keep_cpu_and_memory(container, before);
            }
            if !differences(container, before, ".limits.").is_empty() {
                let fixed = "resources for non-sidecar init containers are immutable";
                found.push(Violation::forbidden("spec", if is_fixed { fixed } else { detail }));
            }
        }
    }
    if found.is_empty() && !differences(&masked, old, "spec").is_empty() {
        found.push(Violation::forbidden("spec", "only cpu and memory resources are mutable"));
    }
    found
}

/// Why no pod of this sort is ever resized. Nothing else is checked then.
fn never_resized(new: &Value, old: &Value) -> Option<&'static str> {
    let has_own = |pod: &Value| {
        let resources = pod.get("spec").and_then(|spec| get(spec, "resources"));
        let some = |part: &str| {
            resources
                .and_then(|own| own.get(part))
                .and_then(Value::as_object)
                .is_some_and(|map| !map.is_empty())
        };
        some("requests") || some("limits")
    };
    if has_own(old) || has_own(new) {
        return Some("pods with pod-level resources cannot be resized");
    }
    if old.pointer("/metadata/annotations").is_some_and(|all| all.get(MIRROR).is_some()) {
        return Some("static pods cannot be resized");
    }
    let is_windows = old.pointer("/spec/os/name").and_then(Value::as_str) == Some("windows");
    is_windows.then_some("windows pods cannot be resized")
}

fn same_order(found: &mut Violations, kind: &str, new: &[Value], old: &[Value]) {
    if new.len() != old.len() {
        let detail = format!("{kind} may not be added or removed on resize");
        found.push(Violation::forbidden(format!("spec.{kind}"), detail));
        return;
    }
    for (index, (new, old)) in new.iter().zip(old).enumerate() {
        if text(new, "name") != text(old, "name") {
            let detail = format!("{kind} may not be renamed or reordered on resize");
            found.push(Violation::forbidden(format!("spec.{kind}[{index}].name"), detail));
        }
    }
}

fn amounts(container: &Value, kind: &str) -> Map<String, Value> {
    let list =
        container.get("resources").and_then(|resources| resources.get(kind)).and_then(Value::as_object);
    list.cloned().unwrap_or_default()
}

/// Requests and limits that are set stay set.
fn removed(found: &mut Violations, new: &Value, old: &Value, path: &str) {
    for (kind, detail) in
        [("requests", "resource requests cannot be removed"), ("limits", "resource limits cannot be removed")]
    {
        let now = amounts(new, kind);
        if amounts(old, kind).keys().any(|name| !now.contains_key(name)) {
            found.push(Violation::forbidden(format!("{path}.{kind}"), detail));
        }
    }
}

fn keep_cpu_and_memory(container: &mut Value, old: &Value) {
    for kind in ["limits", "requests"] {
        let before = amounts(old, kind);
        let Some(list) = container
            .get_mut("resources")
            .and_then(|resources| resources.get_mut(kind))
            .and_then(Value::as_object_mut)
        else {
            continue;
        };
        for name in ["cpu", "memory"] {
            match before.get(name) {
                Some(value) => list.insert(name.to_owned(), value.clone()),
                None => list.remove(name),
            };
        }
    }
}

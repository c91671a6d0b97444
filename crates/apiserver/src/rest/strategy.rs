//! What each kind does to an object before it is stored: which parts a client may write where, and when
//! `metadata.generation` counts.

pub(super) mod service;

use kruise_api::annotations::DAEMONSET_TEMPLATE_GENERATION;
use kruise_api::json::pointer as at;
use serde_json::{Map, Value, json};

use crate::registry::{Resource, StatusPart};
use crate::server::ApiServer;

/// Clears what a create may not set and fills what it always gets.
pub(super) fn prepare_create(server: &ApiServer, resource: &Resource, object: &mut Value) {
    let Some(map) = object.as_object_mut() else { return };
    if resource.status == StatusPart::Separate {
        match initial_status(resource) {
            Some(status) => map.insert("status".to_owned(), status),
            None => map.remove("status"),
        };
    }
    if let Some(meta) = map.get_mut("metadata").and_then(Value::as_object_mut) {
        if resource.generation {
            meta.insert("generation".to_owned(), json!(1));
        } else if meta.get("generation") == Some(&json!(0)) {
            // Where nobody counts, a given number stays; zero is none.
            meta.remove("generation");
        }
    }
    match resource.table.as_ref() {
        "/namespaces" => namespace(map),
        "/services" => service::allocate(server, object, None),
        "apps/daemonsets" => set_template_generation(object, 1),
        _ => {}
    }
    resource.rules.prepare_create(resource, object);
}

/// The status of a new object: what the typed zero value of the kind writes.
fn initial_status(resource: &Resource) -> Option<Value> {
    if resource.custom {
        return None;
    }
    Some(match resource.kind.as_ref() {
        "Pod" | "PersistentVolumeClaim" | "PersistentVolume" => json!({"phase": "Pending"}),
        "Namespace" => json!({"phase": "Active"}),
        "Service" | "Ingress" => json!({"loadBalancer": {}}),
        "ReplicaSet" | "ReplicationController" => json!({"replicas": 0}),
        "StatefulSet" => json!({"availableReplicas": 0, "replicas": 0}),
        "DaemonSet" => json!({
            "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0
        }),
        "PodDisruptionBudget" => json!({
            "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0
        }),
        "HorizontalPodAutoscaler" if resource.version == "v1" => {
            json!({"currentReplicas": 0, "desiredReplicas": 0})
        }
        "HorizontalPodAutoscaler" => json!({"currentMetrics": null, "desiredReplicas": 0}),
        _ => json!({}),
    })
}

/// DaemonSets count the changes of their template in an annotation, which is the server's.
fn template_generation(set: &Value) -> i64 {
    let annotations = at(set, "/metadata/annotations");
    let known = annotations.and_then(|annotations| annotations.get(DAEMONSET_TEMPLATE_GENERATION));
    known.and_then(Value::as_str).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn set_template_generation(set: &mut Value, generation: i64) {
    let Some(meta) = set.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if let Some(annotations) = meta.entry("annotations").or_insert_with(|| json!({})).as_object_mut() {
        annotations.insert(DAEMONSET_TEMPLATE_GENERATION.to_owned(), json!(generation.to_string()));
    }
}

/// Every namespace carries its name as a label.
fn namespace(map: &mut Map<String, Value>) {
    let Some(meta) = map.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let name = meta.get("name").cloned().unwrap_or_default();
    if let Some(labels) = meta.entry("labels").or_insert_with(|| json!({})).as_object_mut() {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name);
    }
}

/// Takes over from the old object what this write may not change.
pub(super) fn prepare_update(
    server: &ApiServer,
    resource: &Resource,
    subresource: Option<&str>,
    object: &mut Value,
    old: &Value,
) {
    system_metadata(object, old);
    match subresource {
        None => {
            if resource.status != StatusPart::None {
                carry(object, old, "status");
            }
            if resource.table.as_ref() == "/services" {
                service::keep(object, old);
                service::allocate(server, object, Some(old));
            }
            if resource.table.as_ref() == "apps/daemonsets" {
                let changed = at(object, "/spec/template") != at(old, "/spec/template");
                set_template_generation(object, template_generation(old) + i64::from(changed));
            }
            if resource.kind == "Namespace" && resource.group.is_empty() {
                carry_path(object, old, "spec", "finalizers");
            }
        }
        Some("status") => status_write(resource, object, old),
        Some("ephemeralcontainers") => only_spec_part(object, old, ephemeral_containers),
        Some("resize") => only_spec_part(object, old, resized),
        Some("finalize") => {
            carry(object, old, "status");
        }
        Some(_) => {}
    }
    if resource.generation {
        let generation = at(old, "/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
        let bump = subresource != Some("status") && counts(resource, object, old);
        set_meta(object, "generation", json!(generation + i64::from(bump)));
    } else {
        carry_meta(object, old, "generation");
    }
}

/// uid and timestamps are the server's; a write that leaves them out keeps them.
fn system_metadata(object: &mut Value, old: &Value) {
    for key in ["creationTimestamp", "deletionTimestamp"] {
        carry_meta(object, old, key);
    }
    for key in ["uid", "deletionGracePeriodSeconds"] {
        let missing = object
            .pointer(&format!("/metadata/{key}"))
            .is_none_or(|value| value.is_null() || value.as_str() == Some(""));
        if missing {
            carry_meta(object, old, key);
        }
    }
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        // A field of long ago; servers neither store nor show it.
        meta.remove("selfLink");
    }
}

/// `/status` writes status only. Pods may also change labels, annotations and finalizers there, as kubelets do;
/// for other kinds the metadata stays as it was.
fn status_write(resource: &Resource, object: &mut Value, old: &Value) {
    let is = |group: &str, kind: &str| resource.group == group && resource.kind == kind;
    if is("", "Pod") {
        carry(object, old, "spec");
        carry_meta(object, old, "ownerReferences");
        let qos = at(object, "/status/qosClass").and_then(Value::as_str).unwrap_or_default();
        if qos.is_empty()
            && let Some(qos) = at(old, "/status/qosClass").cloned()
            && let Some(status) = object.get_mut("status").and_then(Value::as_object_mut)
        {
            status.insert("qosClass".to_owned(), qos);
        }
        keep_observed_generations(object, old);
        return;
    }
    // Kinds whose strategy protects the spec only; the others reset the metadata too.
    let metadata_is_free = matches!(
        (resource.group.as_ref(), resource.kind.as_ref()),
        (
            "",
            "Node" | "Namespace" | "PersistentVolume" | "PersistentVolumeClaim" | "ResourceQuota" | "Service"
        ) | ("apps" | "batch" | "policy" | "autoscaling" | "networking.k8s.io", _)
    );
    let status = object.get("status").cloned();
    if metadata_is_free {
        carry(object, old, "spec");
        if matches!(resource.kind.as_ref(), "Deployment") {
            carry_meta(object, old, "labels");
        }
        return;
    }
    let mut result = old.clone();
    if let (Some(map), Some(meta)) = (result.as_object_mut(), at(object, "/metadata/managedFields").cloned())
        && let Some(into) = map.get_mut("metadata").and_then(Value::as_object_mut)
    {
        into.insert("managedFields".to_owned(), meta);
    }
    if let Some(map) = result.as_object_mut() {
        match status {
            Some(status) => map.insert("status".to_owned(), status),
            None => map.remove("status"),
        };
    }
    *object = result;
}

/// A client that does not know which generation of a pod was seen does not make it unseen.
fn keep_observed_generations(pod: &mut Value, old: &Value) {
    const KEY: &str = "observedGeneration";
    fn seen(part: &Value) -> Option<&Value> {
        part.get(KEY).filter(|seen| seen.as_i64().is_some_and(|seen| seen != 0))
    }
    fn keep(part: &mut Value, before: &Value) {
        if let (None, Some(before)) = (seen(part), seen(before))
            && let Some(part) = part.as_object_mut()
        {
            part.insert(KEY.to_owned(), before.clone());
        }
    }
    let (Some(status), Some(before)) = (pod.get_mut("status"), old.get("status")) else { return };
    keep(status, before);
    let list = |status: &Value| -> Vec<Value> {
        status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let mut known: Vec<Value> =
        list(before).into_iter().filter(|condition| condition.get(KEY).is_some()).collect();
    if known.is_empty() {
        return;
    }
    for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        // There may be several of one type; they are told apart by their order.
        let same = |known: &Value| known.get("type") == condition.get("type");
        if let Some(at) = known.iter().position(same) {
            keep(condition, &known.remove(at));
        }
    }
}

/// Keeps everything of the old object except what `merge` takes from the new spec.
fn only_spec_part(object: &mut Value, old: &Value, merge: fn(&Value, &mut Value)) {
    let mut result = old.clone();
    if let (Some(new), Some(into)) = (object.get("spec"), result.get_mut("spec")) {
        merge(new, into);
    }
    *object = result;
}

fn ephemeral_containers(new: &Value, into: &mut Value) {
    let Some(into) = into.as_object_mut() else { return };
    match new.get("ephemeralContainers") {
        Some(containers) => into.insert("ephemeralContainers".to_owned(), containers.clone()),
        None => into.remove("ephemeralContainers"),
    };
}

/// Containers may not come, go or change places here; where they did, the new list is kept whole so that
/// validation can refuse it.
fn resized(new: &Value, into: &mut Value) {
    for list in ["containers", "initContainers"] {
        let (Some(new), Some(old)) = (new.get(list).and_then(Value::as_array), into.get_mut(list)) else {
            continue;
        };
        let Some(old) = old.as_array_mut() else { continue };
        let same =
            new.len() == old.len() && new.iter().zip(old.iter()).all(|(a, b)| a.get("name") == b.get("name"));
        if !same {
            old.clone_from(new);
            continue;
        }
        for (new, old) in new.iter().zip(old.iter_mut()) {
            let Some(old) = old.as_object_mut() else { continue };
            for key in ["resources", "resizePolicy"] {
                match new.get(key) {
                    Some(value) => old.insert(key.to_owned(), value.clone()),
                    None => old.remove(key),
                };
            }
        }
    }
}

/// Whether the change is one that `metadata.generation` counts.
fn counts(resource: &Resource, object: &Value, old: &Value) -> bool {
    if resource.custom || resource.status == StatusPart::None {
        // Everything but metadata counts; status only where it has no subresource of its own.
        let skip = |key: &str| key == "metadata" || (key == "status" && resource.status != StatusPart::None);
        let content = |value: &Value| -> Map<String, Value> {
            let map = value.as_object().cloned().unwrap_or_default();
            map.into_iter().filter(|(key, _)| !skip(key)).collect()
        };
        return content(object) != content(old);
    }
    let annotations_count = resource.group == "apps" && resource.kind == "Deployment";
    object.get("spec") != old.get("spec")
        || (annotations_count && at(object, "/metadata/annotations") != at(old, "/metadata/annotations"))
}

fn carry(object: &mut Value, old: &Value, key: &str) {
    let Some(map) = object.as_object_mut() else { return };
    if map.get(key) == old.get(key) {
        return;
    }
    match old.get(key) {
        Some(value) => map.insert(key.to_owned(), value.clone()),
        None => map.remove(key),
    };
}

fn carry_path(object: &mut Value, old: &Value, outer: &str, key: &str) {
    let Some(map) = object.as_object_mut() else { return };
    let Some(inner) = map.entry(outer).or_insert_with(|| json!({})).as_object_mut() else { return };
    match old.get(outer).and_then(|o| o.get(key)) {
        Some(value) => inner.insert(key.to_owned(), value.clone()),
        None => inner.remove(key),
    };
}

pub(super) fn set_meta(object: &mut Value, key: &str, value: Value) {
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.insert(key.to_owned(), value);
    }
}

pub(super) fn carry_meta(object: &mut Value, old: &Value, key: &str) {
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    match old.get("metadata").and_then(|m| m.get(key)) {
        Some(value) => meta.insert(key.to_owned(), value.clone()),
        None => meta.remove(key),
    };
}

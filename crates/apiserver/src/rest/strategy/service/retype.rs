//! A service of a new type loses what only its old type had.
//!
//! A field goes if the server may have filled it in and the client left it as it was. What the client changed together
//! with the type stays, for the rules of the kind to refuse.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{may_have_node_ports, text};

type Spec = Map<String, Value>;

pub(super) fn drop_what_went_with_the_type(service: &mut Value, old: &Value) {
    if service.pointer("/spec/type").and_then(Value::as_str) != Some("LoadBalancer")
        && let Some(status) = service.get_mut("status").and_then(Value::as_object_mut)
    {
        status.insert("loadBalancer".to_owned(), json!({}));
    }
    let spec = service.get_mut("spec").and_then(Value::as_object_mut);
    let (Some(spec), Some(old)) = (spec, old.get("spec").and_then(Value::as_object)) else { return };
    let lost = |has: fn(&Spec) -> bool, now: &Spec| has(old) && !has(now);
    if lost(has_address, spec) {
        let addresses = ["clusterIP", "clusterIPs"];
        if addresses.iter().all(|key| is_left(spec, old, key)) {
            addresses.iter().for_each(|key| drop(spec.remove(*key)));
        }
        drop_left(spec, old, &["ipFamilies", "ipFamilyPolicy"]);
    }
    if lost(may_have_node_ports, spec) && node_ports(spec).is_subset(&node_ports(old)) {
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            port.as_object_mut().map(|port| port.remove("nodePort"));
        }
    }
    if lost(is_health_checked, spec) {
        drop_left(spec, old, &["healthCheckNodePort"]);
    }
    if lost(is_balanced, spec) {
        drop_left(spec, old, &["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if lost(is_open, spec) {
        drop_left(spec, old, &["externalTrafficPolicy"]);
    }
}

/// Whether the client left a field as it was, or took it off itself.
fn is_left(spec: &Spec, old: &Spec, key: &str) -> bool {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    spec.get(key).is_none_or(|value| empty(value) || old.get(key) == Some(value))
}

fn drop_left(spec: &mut Spec, old: &Spec, keys: &[&str]) {
    for key in keys {
        if is_left(spec, old, key) {
            spec.remove(*key);
        }
    }
}

fn has_address(spec: &Spec) -> bool {
    text(spec, "type") != "ExternalName"
}

fn is_balanced(spec: &Spec) -> bool {
    text(spec, "type") == "LoadBalancer"
}

fn is_health_checked(spec: &Spec) -> bool {
    is_balanced(spec) && text(spec, "externalTrafficPolicy") == "Local"
}

/// Whether the service is reached from outside.
fn is_open(spec: &Spec) -> bool {
    let addresses = spec.get("externalIPs").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    match text(spec, "type") {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => addresses,
        _ => false,
    }
}

fn node_ports(spec: &Spec) -> BTreeSet<i64> {
    super::ports(spec).filter_map(super::node_port).collect()
}

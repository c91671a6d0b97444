//! Rows of settings and rights: namespaces, secrets, accounts, roles, classes and policies.

use super::read::{
    NONE, UNSET, age, containers, labels, list, name, number, selector_or_none, size, text, text_or,
};
use jiff::Timestamp;
use serde_json::Value;

pub(super) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object).into(), text(object, "/status/phase").into(), age(object, now).into()]
}

pub(super) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object).into(),
        text(object, "/type").into(),
        size(object, "/data").into(),
        age(object, now).into(),
    ]
}

pub(super) fn service_account(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object).into(), age(object, now).into()]
}

pub(super) fn pod_template(object: &Value, _now: Timestamp) -> Vec<Value> {
    let (names, images) = containers(object, "/template/spec/containers");
    vec![name(object).into(), names.into(), images.into(), labels(object, "/template/metadata/labels").into()]
}

pub(super) fn role_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let subjects = |kind: &str| {
        let found = list(object, "/subjects").iter().filter(|subject| text(subject, "/kind") == kind);
        let names = found.map(|subject| match (kind, text(subject, "/namespace")) {
            ("ServiceAccount", namespace) if !namespace.is_empty() => {
                format!("{namespace}/{}", text(subject, "/name"))
            }
            _ => text(subject, "/name").to_owned(),
        });
        names.collect::<Vec<_>>().join(", ")
    };
    vec![
        name(object).into(),
        format!("{}/{}", text(object, "/roleRef/kind"), text(object, "/roleRef/name")).into(),
        age(object, now).into(),
        subjects("User").into(),
        subjects("Group").into(),
        subjects("ServiceAccount").into(),
    ]
}

pub(super) fn priority_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object).into(),
        number(object, "/value").into(),
        object.get("globalDefault").and_then(Value::as_bool).unwrap_or_default().into(),
        age(object, now).into(),
        text(object, "/preemptionPolicy").into(),
    ]
}

pub(super) fn network_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object).into(), selector_or_none(object, "/spec/podSelector").into(), age(object, now).into()]
}

pub(super) fn runtime_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object).into(), text(object, "/handler").into(), age(object, now).into()]
}

pub(super) fn volume_attributes_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object).into(), text(object, "/driverName").into(), age(object, now).into()]
}

pub(super) fn storage_capacity(object: &Value, _now: Timestamp) -> Vec<Value> {
    let capacity = text_or(object, "/capacity", UNSET);
    vec![name(object).into(), text(object, "/storageClassName").into(), capacity.into()]
}

pub(super) fn storage_driver(object: &Value, now: Timestamp) -> Vec<Value> {
    let flag = |key: &str, unset: bool| {
        object.pointer(&format!("/spec/{key}")).and_then(Value::as_bool).unwrap_or(unset)
    };
    let join =
        |texts: Vec<&str>, none: &str| if texts.is_empty() { none.to_owned() } else { texts.join(",") };
    let audiences = list(object, "/spec/tokenRequests").iter().map(|one| text(one, "/audience")).collect();
    let modes = list(object, "/spec/volumeLifecycleModes").iter().filter_map(Value::as_str).collect();
    vec![
        name(object).into(),
        flag("attachRequired", true).into(),
        flag("podInfoOnMount", false).into(),
        flag("storageCapacity", false).into(),
        join(audiences, UNSET).into(),
        flag("requiresRepublish", false).into(),
        join(modes, NONE).into(),
        age(object, now).into(),
    ]
}

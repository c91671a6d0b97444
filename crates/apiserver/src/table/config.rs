//! Rows of settings and rights: namespaces, secrets, accounts, roles, classes and policies.

use super::read::{age, containers, labels, list, name, number, selector_or_none, size, text};
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
    vec![name(object).into(), list(object, "/secrets").len().into(), age(object, now).into()]
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

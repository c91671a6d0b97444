//! The fields that field selectors may ask about.
//!
//! They are taken out of an object when it is stored, so that a selector never parses JSON.

use std::borrow::Cow;

use serde_json::Value;

use super::Resource;
use crate::store::Fields;

/// The selectable fields of an object with their values. `metadata.name` and `metadata.namespace` are not
/// among them: every record has those anyway.
pub fn of(resource: &Resource, object: &Value) -> Fields {
    Fields::new(&resource.selectable, |label| value(&resource.kind, object, label))
}

/// The text of the field that a label of a selector means.
fn value(kind: &str, object: &Value, label: &str) -> Option<String> {
    match (kind, label) {
        // A pod that does not say otherwise may be preempted for nobody and runs in the pod network.
        ("Pod", "spec.hostNetwork") => Some(text(at(object, label)).unwrap_or_else(|| "false".to_owned())),
        ("Node", "spec.unschedulable") => Some(text(at(object, label)).unwrap_or_else(|| "false".to_owned())),
        ("Job", "status.successful") => Some(number(at(object, "status.succeeded"))),
        ("ReplicationController", "status.replicas") => Some(number(at(object, label))),
        ("Event", _) => event(object, label),
        _ => text(at(object, label)),
    }
}

/// Events are stored in the core group's form; a component that nobody reports is the source's.
fn event(object: &Value, label: &str) -> Option<String> {
    let first =
        |paths: &[&str]| paths.iter().find_map(|path| text(at(object, path)).filter(|t| !t.is_empty()));
    match label {
        "reportingComponent" => first(&["reportingComponent", "source.component"]),
        "source" => first(&["source.component", "reportingComponent"]),
        _ => text(at(object, label)),
    }
}

/// The name under which a selector's field is kept, if the resource supports it.
pub fn canonical<'l>(resource: &Resource, label: &'l str) -> Option<Cow<'l, str>> {
    // Kinds without fields of their own have those of all kinds, even if they are in no namespace.
    let is_plain = !resource.custom && resource.selectable.is_empty();
    if label == "metadata.name" || (label == "metadata.namespace" && (resource.namespaced || is_plain)) {
        return Some(label.into());
    }
    let label: Cow<'l, str> = match (resource.group.as_ref(), label) {
        ("events.k8s.io", "reportingController") => "reportingComponent".into(),
        ("events.k8s.io", "reason" | "type") => label.into(),
        ("events.k8s.io", _) => format!("involvedObject.{}", label.strip_prefix("regarding.")?).into(),
        // Clients of long ago say it so.
        ("", "spec.host") if resource.kind == "Pod" => "spec.nodeName".into(),
        _ => label.into(),
    };
    resource.selectable.iter().any(|known| **known == *label).then_some(label)
}

fn at<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(object, |value, part| value.get(part))
}

/// The text of the single value at a dotted path.
pub(crate) fn text_at(object: &Value, path: &str) -> Option<String> {
    text(at(object, path))
}

fn text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn number(value: Option<&Value>) -> String {
    text(value).unwrap_or_else(|| "0".to_owned())
}

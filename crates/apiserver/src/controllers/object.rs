//! Reading and writing the parts of objects that controllers need.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::json::pointer as at;
use serde_json::{Map, Value, json};

use crate::patch::Patch;
use crate::registry::Resource;
use crate::status::Status;

/// A text at a JSON pointer; empty when there is none.
pub(super) fn text<'v>(object: &'v Value, path: &str) -> &'v str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// A whole number at a JSON pointer.
pub(super) fn number(object: &Value, path: &str) -> Option<i64> {
    at(object, path).and_then(Value::as_i64)
}

/// A truth value at a JSON pointer; false when there is none.
pub(super) fn flag(object: &Value, path: &str) -> bool {
    at(object, path).and_then(Value::as_bool).unwrap_or(false)
}

/// A time at a JSON pointer.
pub(super) fn time(object: &Value, path: &str) -> Option<Timestamp> {
    text(object, path).parse().ok()
}

/// The items of a list at a JSON pointer.
pub(super) fn items<'v>(object: &'v Value, path: &str) -> &'v [Value] {
    at(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// One annotation.
pub(super) fn annotation<'v>(object: &'v Value, name: &str) -> Option<&'v str> {
    object.get("metadata")?.get("annotations")?.get(name)?.as_str()
}

/// Whether the object is on its way out.
pub(super) fn deleting(object: &Value) -> bool {
    at(object, "/metadata/deletionTimestamp").is_some_and(|at| !at.is_null())
}

/// The object inside an object, made when it is absent.
pub(super) fn child<'v>(object: &'v mut Value, name: &str) -> Option<&'v mut Map<String, Value>> {
    object.as_object_mut()?.entry(name).or_insert_with(|| json!({})).as_object_mut()
}

/// Sets one value inside a child object.
pub(super) fn set(object: &mut Value, part: &str, key: &str, value: Value) {
    if let Some(map) = child(object, part) {
        map.insert(key.to_owned(), value);
    }
}

/// Sets one annotation. Returns whether it changed.
pub(super) fn annotate(object: &mut Value, name: &str, value: &str) -> bool {
    let Some(meta) = object.get_mut("metadata") else { return false };
    let Some(annotations) = child(meta, "annotations") else { return false };
    let value = Value::String(value.to_owned());
    annotations.insert(name.to_owned(), value.clone()) != Some(value)
}

/// The controller among the owners: kind, name and uid.
pub(super) fn controller_of(object: &Value) -> Option<(&str, &str, &str)> {
    let owner = items(object, "/metadata/ownerReferences").iter().find(|owner| flag(owner, "/controller"))?;
    Some((text(owner, "/kind"), text(owner, "/name"), text(owner, "/uid")))
}

/// The reference by which `owner` controls a dependent.
pub(super) fn controller_reference(resource: &Resource, owner: &Value) -> Value {
    json!({
        "apiVersion": resource.api_version(), "kind": resource.kind, "name": text(owner, "/metadata/name"),
        "uid": text(owner, "/metadata/uid"), "controller": true, "blockOwnerDeletion": true,
    })
}

/// A condition of the status, by type.
pub(super) fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    items(object, "/status/conditions").iter().find(|condition| text(condition, "/type") == kind)
}

/// Whether a condition of the status is true.
pub(super) fn condition_is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| text(condition, "/status") == "True")
}

/// Sets a condition of the status; its time changes only when its status does.
pub(super) fn set_condition(object: &mut Value, mut new: Value) {
    let known =
        condition(object, text(&new, "/type")).filter(|known| known.get("status") == new.get("status"));
    if let Some(since) = known.and_then(|known| known.get("lastTransitionTime")).cloned()
        && let Some(map) = new.as_object_mut()
    {
        map.insert("lastTransitionTime".to_owned(), since);
    }
    let Some(status) = child(object, "status") else { return };
    let Some(list) = status.entry("conditions").or_insert_with(|| json!([])).as_array_mut() else { return };
    match list.iter_mut().find(|known| known.get("type") == new.get("type")) {
        Some(known) => *known = new,
        None => list.push(new),
    }
}

/// A number or a percentage of `total`.
pub(super) fn int_or_percent(value: Option<&Value>, total: i64, round_up: bool) -> Option<i64> {
    match value? {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let product = percent.saturating_mul(total);
            Some(if round_up { product.saturating_add(99).div_euclid(100) } else { product.div_euclid(100) })
        }
        _ => None,
    }
}

/// A merge patch.
pub(super) fn merge(patch: Value) -> Patch {
    match patch {
        Value::Object(map) => Patch::Merge(map),
        _ => Patch::Merge(Map::new()),
    }
}

/// Whether an answer says that the object is not there (any more).
pub(super) fn is_gone(status: &Status) -> bool {
    status.code == 404
}

/// Whether a create failed only because the namespace is going away.
pub(super) fn is_terminating(status: &Status) -> bool {
    status.code == 403
        && status
            .details
            .as_ref()
            .is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"))
}

/// Takes "it is gone" for success.
pub(super) fn or_gone<T>(result: Result<T, Status>) -> Result<Option<T>, Status> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(status) if is_gone(&status) => Ok(None),
        Err(status) => Err(status),
    }
}

/// The parts of a pod made from a template, for an owner that controls it.
pub(super) fn pod_from_template(resource: &Arc<Resource>, owner: &Value, template: &Value) -> Value {
    let mut metadata = Map::new();
    for key in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template.get("metadata").and_then(|meta| meta.get(key)) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    metadata.insert("ownerReferences".to_owned(), json!([controller_reference(resource, owner)]));
    json!({"metadata": metadata, "spec": template.get("spec").cloned().unwrap_or_default()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_up_or_down_as_asked() {
        for (value, total, up, expected) in [
            (json!("25%"), 10, true, Some(3)),
            (json!("25%"), 10, false, Some(2)),
            (json!("100%"), 7, false, Some(7)),
            (json!(3), 1, false, Some(3)),
            (json!("many"), 1, false, None),
        ] {
            assert_eq!(int_or_percent(Some(&value), total, up), expected, "{value} of {total}");
        }
        assert_eq!(int_or_percent(None, 5, true), None);
    }
}

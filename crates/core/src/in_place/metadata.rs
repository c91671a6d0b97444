//! The difference between the metadata of two templates, as a patch for pods.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::state::RefMetadata;
use crate::text::Text;

/// The strategic merge patch from old to new metadata of a template, without the keys that go with containers. Labels
/// that someone put on the pod by hand are not touched by it.
pub(super) fn patch(old: &Value, new: &Value, apart: &RefMetadata) -> Option<Value> {
    let mut members = Map::new();
    for (name, apart) in [("labels", &apart.labels), ("annotations", &apart.annotations)] {
        let changed = changed_pairs(old.get(name), new.get(name), &|key| apart.contains_key(key));
        if !changed.is_empty() {
            members.insert(name.to_owned(), changed.into());
        }
    }
    let texts = |value: &Value| -> BTreeSet<String> {
        let list = value.get("finalizers").and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (before, after) = (texts(old), texts(new));
    let added: Vec<&String> = after.difference(&before).collect();
    let removed: Vec<&String> = before.difference(&after).collect();
    if !added.is_empty() {
        members.insert("finalizers".to_owned(), json!(added));
    }
    if !removed.is_empty() {
        members.insert("$deleteFromPrimitiveList/finalizers".to_owned(), json!(removed));
    }
    (!members.is_empty()).then(|| json!({"metadata": members}))
}

fn changed_pairs(
    old: Option<&Value>,
    new: Option<&Value>,
    apart: &dyn Fn(&str) -> bool,
) -> Map<String, Value> {
    let empty = Map::new();
    let old = old.and_then(Value::as_object).unwrap_or(&empty);
    let new = new.and_then(Value::as_object).unwrap_or(&empty);
    let set = new.iter().filter(|(key, value)| old.get(*key) != Some(*value) && !apart(key));
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    set.map(|(key, value)| (key.clone(), value.clone()))
        .chain(gone.map(|key| (key.clone(), Value::Null)))
        .collect()
}

/// The keys of a member that are new or have another value.
pub(super) fn added_or_changed(old: &Value, new: &Value, name: &str) -> Vec<(Text, Text)> {
    let pairs = new.get(name).and_then(Value::as_object).into_iter().flatten();
    pairs
        .filter(|(key, value)| old.get(name).and_then(|old| old.get(key.as_str())) != Some(*value))
        .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
        .collect()
}

/// Puts the members of one patch into another. What is there already stays.
pub(super) fn merge_into(patch: &mut Value, other: &Value) {
    match (patch, other) {
        (Value::Object(members), Value::Object(others)) => {
            for (name, other) in others {
                match members.get_mut(name) {
                    Some(member) => merge_into(member, other),
                    None => {
                        members.insert(name.clone(), other.clone());
                    }
                }
            }
        }
        (Value::Array(items), Value::Array(others)) => {
            for other in others {
                if !items.contains(other) {
                    items.push(other.clone());
                }
            }
        }
        _ => {}
    }
}

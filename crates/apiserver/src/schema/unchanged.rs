//! Whether a value is what it was before, as far as a schema can tell.

use std::collections::BTreeMap;

use serde_json::Value;

use super::node::{Additional, List, Node};

impl Node {
    /// The schema of a field.
    pub(super) fn below(&self, name: &str) -> Option<&Node> {
        match (self.properties.get(name), &self.additional) {
            (Some(inner), _) => Some(inner),
            (None, Additional::Schema(inner)) => Some(inner),
            _ => None,
        }
    }
}

/// Whether a value did not change. Fields that the schema does not know count as changed; the order of lists with
/// keys does not count.
pub(super) fn unchanged(node: &Node, new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            new.len() == old.len()
                && new.iter().all(|(name, value)| match (node.below(name), old.get(name)) {
                    (Some(inner), Some(old)) => unchanged(inner, value, old),
                    _ => false,
                })
        }
        (Value::Array(items), Value::Array(before)) => match (&node.list, &node.items) {
            (List::Map(_), Some(inner)) => {
                let before_by_key = OldItems::of(&node.list, Some(old));
                items.len() == before.len()
                    && items
                        .iter()
                        .all(|item| before_by_key.get(item).is_some_and(|old| unchanged(inner, item, old)))
            }
            _ => items == before,
        },
        _ => new == old,
    }
}

/// The items of an old list by their keys; only lists of type map have any.
pub(super) struct OldItems<'a> {
    keys: &'a [String],
    by_key: BTreeMap<String, &'a Value>,
}

impl<'a> OldItems<'a> {
    pub(super) fn of(list: &'a List, old: Option<&'a Value>) -> Self {
        let (List::Map(keys), Some(Value::Array(items))) = (list, old) else {
            return Self { keys: &[], by_key: BTreeMap::new() };
        };
        let mut by_key = BTreeMap::new();
        for item in items {
            by_key.entry(key(keys, item)).or_insert(item);
        }
        Self { keys, by_key }
    }

    /// The item that this one was before.
    pub(super) fn get(&self, item: &Value) -> Option<&'a Value> {
        if self.by_key.is_empty() { None } else { self.by_key.get(&key(self.keys, item)).copied() }
    }
}

fn key(keys: &[String], item: &Value) -> String {
    let values: Vec<Value> = keys.iter().map(|key| item.get(key).cloned().unwrap_or_default()).collect();
    Value::Array(values).to_string()
}

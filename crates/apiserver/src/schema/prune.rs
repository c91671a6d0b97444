//! Drops what the schema does not know.

use serde_json::Value;

use super::node::{Additional, Node};

/// Removes unknown fields and returns their paths, sorted.
pub(super) fn prune(root: &Node, object: &mut Value) -> Vec<String> {
    let mut walk = Walk { path: String::new(), unknown: Vec::new() };
    walk.value(Some(root), false, object);
    walk.unknown.sort();
    walk.unknown
}

struct Walk {
    path: String,
    unknown: Vec<String>,
}

impl Walk {
    /// `kept`: the list around this item keeps unknown fields.
    fn value(&mut self, node: Option<&Node>, kept: bool, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                let keeps_all = kept || node.is_some_and(|node| node.preserve_unknown);
                let mut gone = Vec::new();
                for (name, value) in fields.iter_mut() {
                    if node.is_some_and(|node| node.embedded) && is_meta(name) {
                        continue;
                    }
                    match node.and_then(|node| known(node, name)) {
                        Some(inner) => self.inside(&field(&self.path, name), inner, false, value),
                        None if keeps_all => {}
                        None => gone.push(name.clone()),
                    }
                }
                for name in gone {
                    fields.remove(&name);
                    self.unknown.push(field(&self.path, &name));
                }
            }
            Value::Array(items) => {
                let keeps_all = kept || node.is_some_and(|node| node.preserve_unknown);
                if keeps_all && node.is_none_or(|node| node.items.is_none()) {
                    return;
                }
                let inner = node.and_then(|node| node.items.as_deref());
                for (i, item) in items.iter_mut().enumerate() {
                    self.inside(&format!("{}[{i}]", self.path), inner, keeps_all, item);
                }
            }
            _ => {}
        }
    }

    fn inside(&mut self, path: &str, node: Option<&Node>, kept: bool, value: &mut Value) {
        let outer = std::mem::replace(&mut self.path, path.to_owned());
        self.value(node, kept, value);
        self.path = outer;
    }
}

/// The schema of a field: none if the field is unknown, none inside if it is known and nothing below it is.
fn known<'a>(node: &'a Node, name: &str) -> Option<Option<&'a Node>> {
    if let Some(property) = node.properties.get(name) {
        return Some(Some(property));
    }
    match &node.additional {
        Additional::Schema(schema) => Some(Some(schema)),
        Additional::Any => Some(None),
        Additional::Unspecified | Additional::Forbidden => None,
    }
}

fn field(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

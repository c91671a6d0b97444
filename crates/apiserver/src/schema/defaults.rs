//! Fills in defaults.
//!
//! A null where the schema does not allow null is dropped first, so that the default takes its place; without a
//! default the field is simply gone.

use serde_json::Value;

use super::node::{Additional, Node};

pub(super) fn apply(node: &Node, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                !(value.is_null()
                    && inner(node, name).is_some_and(|inner| !inner.nullable && inner.default.is_none()))
            });
            for (name, property) in &node.properties {
                let Some(default) = &property.default else { continue };
                match fields.get_mut(name) {
                    Some(value) if value.is_null() && !property.nullable => *value = default.clone(),
                    Some(_) => {}
                    None => {
                        fields.insert(name.clone(), default.clone());
                    }
                }
            }
            for (name, value) in fields.iter_mut() {
                if let Some(inner) = inner(node, name) {
                    replace_null(inner, value);
                    apply(inner, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &node.items {
                for item in items {
                    replace_null(inner, item);
                    apply(inner, item);
                }
            }
        }
        _ => {}
    }
}

fn replace_null(node: &Node, value: &mut Value) {
    if value.is_null()
        && !node.nullable
        && let Some(default) = &node.default
    {
        *value = default.clone();
    }
}

fn inner<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    node.properties.get(name).or(match &node.additional {
        Additional::Schema(schema) => Some(schema),
        _ => None,
    })
}

//! Lists that are sets or maps.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Kind, List, Node, strings};
use crate::field::{Error, Path};

pub(super) fn list(
    fields: &Map<String, Value>,
    node: &Node,
    path: &Path<'_>,
    errors: &mut Vec<Error>,
) -> List {
    let type_path = path.child("x-kubernetes-list-type");
    let keys_path = path.child("x-kubernetes-list-map-keys");
    let keys = strings(fields, "x-kubernetes-list-map-keys");
    let list_type = fields.get("x-kubernetes-list-type").and_then(Value::as_str);
    if list_type.is_some() && node.kind != Some(Kind::Array) {
        let why = "must be array if x-kubernetes-list-type is specified";
        errors.push(match node.kind {
            None => Error::required(path.child("type"), why),
            Some(kind) => Error::invalid(path.child("type"), kind.name(), why),
        });
    }
    if !keys.is_empty() && list_type != Some("map") {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => Error::required(type_path, why),
            Some(other) => Error::invalid(type_path, other, why),
        });
    }
    match list_type {
        None | Some("atomic") => List::Atomic,
        Some("set") => {
            check_set_items(fields.get("items"), path, errors);
            check_not_nullable(node, "set", path, errors);
            List::Set
        }
        Some("map") => {
            if keys.is_empty() {
                errors.push(Error::required(keys_path, "must not be empty if x-kubernetes-list-type is map"));
            }
            let Some(items) = &node.items else {
                let why = "must have a schema if x-kubernetes-list-type is map";
                errors.push(Error::required(path.child("items"), why));
                return List::Map(keys);
            };
            if keys.iter().any(|key| !items.properties.contains_key(key)) {
                let why = "entries must all be names of item properties";
                errors.push(Error::invalid(keys_path, keys.clone(), why));
            }
            if keys.iter().collect::<BTreeSet<_>>().len() != keys.len() {
                errors.push(Error::invalid(keys_path, keys.clone(), "must not contain duplicate entries"));
            }
            check_not_nullable(node, "map", path, errors);
            check_map_keys(items, &keys, path, errors);
            List::Map(keys)
        }
        Some(other) => {
            errors.push(Error::not_supported(type_path, other, &["atomic", "set", "map"]));
            List::Atomic
        }
    }
}

/// The items of a set are compared as a whole, so nobody can own a part of one.
fn check_set_items(items: Option<&Value>, path: &Path<'_>, errors: &mut Vec<Error>) {
    let text = |name: &str| items.and_then(|items| items.get(name)).and_then(Value::as_str);
    let list_type = text("x-kubernetes-list-type");
    let broken = match text("type") {
        Some("array") if list_type.is_some_and(|found| found != "atomic") => "x-kubernetes-list-type",
        Some("object") if text("x-kubernetes-map-type") != Some("atomic") => "x-kubernetes-map-type",
        _ => return,
    };
    // A real server shows the type of the list in both cases.
    let shown = list_type.map_or(Value::Null, Value::from);
    let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    errors.push(Error::invalid(path.child("items").child(broken), shown, why));
}

fn check_not_nullable(node: &Node, list_type: &str, path: &Path<'_>, errors: &mut Vec<Error>) {
    if node.items.as_ref().is_some_and(|items| items.nullable) {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(Error::forbidden(path.child("items").child("nullable"), why));
    }
}

/// The keys of a list of type map must always have a value.
pub(super) fn check_map_keys(items: &Node, keys: &[String], path: &Path<'_>, errors: &mut Vec<Error>) {
    let items_path = path.child("items");
    let properties = items_path.child("properties");
    let required = items.limits.as_ref().map(|limits| limits.required.as_slice()).unwrap_or_default();
    for key in keys {
        let Some(property) = items.properties.get(key) else { continue };
        let own = properties.key(key);
        if property.default.is_none() && !required.contains(key) {
            errors.push(Error::required(
                own.child("default"),
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                 property",
            ));
        }
        if property.nullable {
            errors.push(Error::forbidden(
                own.child("nullable"),
                "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
            ));
        }
    }
}

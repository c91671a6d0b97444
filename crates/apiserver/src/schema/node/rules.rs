//! What makes a schema structural.

use serde_json::{Map, Value};

use super::{Additional, Kind, Level, Node, flag};
use crate::field::{Error, Path};

/// Parts of JSON schema that custom resources cannot use.
pub(super) fn unsupported(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<Error>) {
    for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        if fields.contains_key(name) {
            errors.push(Error::forbidden(path.child(name), format!("{name} is not supported")));
        }
    }
    if flag(fields, "uniqueItems") {
        errors.push(Error::forbidden(
            path.child("uniqueItems"),
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ));
    }
    if fields.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        errors.push(Error::invalid(
            path.child("x-kubernetes-preserve-unknown-fields"),
            false,
            "must be true or undefined",
        ));
    }
    if let Some(map_type) = fields.get("x-kubernetes-map-type").and_then(Value::as_str)
        && !["atomic", "granular"].contains(&map_type)
    {
        let map_path = path.child("x-kubernetes-map-type");
        errors.push(Error::not_supported(map_path, map_type, &["atomic", "granular"]));
    }
}

pub(super) fn forbid_in_nested(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<Error>) {
    let mut forbid = |name: &str, why: &str| errors.push(Error::forbidden(path.child(name), why));
    for name in ["type", "title", "description", "x-kubernetes-list-map-keys"] {
        if fields.contains_key(name) {
            forbid(name, "must be empty to be structural");
        }
    }
    for name in ["additionalProperties", "default", "x-kubernetes-list-type", "x-kubernetes-map-type"] {
        if fields.contains_key(name) {
            forbid(name, "must be undefined to be structural");
        }
    }
    for name in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        if flag(fields, name) {
            forbid(name, "must be false to be structural");
        }
    }
    if fields.get("properties").and_then(|properties| properties.get("metadata")).is_some() {
        let properties = path.child("properties");
        let why = "must not be specified in a nested context";
        errors.push(Error::forbidden(properties.key("metadata"), why));
    }
}

/// Rules for levels that are a whole object with metadata.
pub(super) fn check_resource(
    fields: &Map<String, Value>,
    node: &Node,
    level: Level,
    path: &Path<'_>,
    errors: &mut Vec<Error>,
) {
    if !(level == Level::Root || node.embedded) {
        return;
    }
    let properties = path.child("properties");
    for (name, wanted, why) in [
        ("kind", Kind::String, "must be string"),
        ("apiVersion", Kind::String, "must be string"),
        ("metadata", Kind::Object, "must be object"),
    ] {
        if let Some(property) = node.properties.get(name)
            && property.kind != Some(wanted)
        {
            let found = property.kind.map_or("", Kind::name);
            errors.push(Error::invalid(properties.key(name).child("type"), found, why));
        }
    }
    if level == Level::Root {
        if let Some(metadata) = fields.get("properties").and_then(|properties| properties.get("metadata"))
            && !is_plain_metadata(metadata)
        {
            errors.push(Error::forbidden(
                properties.key("metadata"),
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            ));
        }
        if node.nullable {
            errors.push(Error::forbidden(path.child("nullable"), "nullable cannot be true at the root"));
        }
        return;
    }
    if node.kind.is_some_and(|kind| kind != Kind::Object) {
        let found = node.kind.map_or("", Kind::name);
        let why = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(Error::invalid(path.child("type"), found, why));
    }
    if !matches!(node.additional, Additional::Unspecified) {
        errors.push(Error::forbidden(
            path.child("additionalProperties"),
            "must not be used if x-kubernetes-embedded-resource is set",
        ));
    }
    if !node.preserve_unknown && node.properties.is_empty() {
        errors.push(Error::required(
            properties,
            "must not be empty if x-kubernetes-embedded-resource is true without \
             x-kubernetes-preserve-unknown-fields",
        ));
    }
}

/// The root's metadata may only be described, or limit the two names.
pub(super) fn is_plain_metadata(metadata: &Value) -> bool {
    let Value::Object(fields) = metadata else { return false };
    fields.iter().all(|(name, value)| match name.as_str() {
        "type" | "default" => true,
        "properties" => value
            .as_object()
            .is_some_and(|properties| properties.keys().all(|name| name == "name" || name == "generateName")),
        _ => false,
    })
}

//! One level of a schema, and how it is read.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::{Map, Value};

use super::{format, pattern};
use crate::field::{Error, Path};

/// One level of a schema. The schemas inside `anyOf` and the like have the same form without a type.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) kind: Option<Kind>,
    pub(super) nullable: bool,
    pub(super) preserve_unknown: bool,
    pub(super) embedded: bool,
    pub(super) default: Option<Value>,
    pub(super) properties: BTreeMap<String, Node>,
    pub(super) additional: Additional,
    pub(super) items: Option<Box<Node>>,
    pub(super) list: List,
    pub(super) limits: Option<Box<Limits>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    IntOrString,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::IntOrString => "integer,string",
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) enum Additional {
    #[default]
    Unspecified,
    Any,
    Forbidden,
    Schema(Box<Node>),
}

#[derive(Clone, Debug, Default)]
pub(super) enum List {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// What only some levels have.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    pub(super) required: Vec<String>,
    pub(super) allowed: Option<Vec<Value>>,
    pub(super) format: Option<format::Format>,
    pub(super) pattern: Option<(String, Regex)>,
    pub(super) maximum: Option<(f64, bool)>,
    pub(super) minimum: Option<(f64, bool)>,
    pub(super) multiple_of: Option<f64>,
    pub(super) max_length: Option<u64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) min_items: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) min_properties: Option<u64>,
    pub(super) unique_items: bool,
    pub(super) all_of: Vec<Node>,
    pub(super) any_of: Vec<Node>,
    pub(super) one_of: Vec<Node>,
    pub(super) not: Option<Node>,
    /// CEL rules, as written.
    pub(super) rules: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
    /// Inside `allOf`, `anyOf`, `oneOf` or `not`, where only limits may stand.
    Nested,
}

impl Node {
    pub(super) fn parse_root(schema: &Value, path: &Path<'_>, errors: &mut Vec<Error>) -> Self {
        let mut root = Self::parse(schema, Level::Root, path, errors);
        root.embedded = true;
        root
    }

    pub(super) fn rule_count(&self) -> usize {
        let own = self.limits.as_ref().map_or(0, |limits| limits.rules.len());
        let additional = if let Additional::Schema(node) = &self.additional { node.rule_count() } else { 0 };
        let items = self.items.as_ref().map_or(0, |node| node.rule_count());
        own + additional + items + self.properties.values().map(Self::rule_count).sum::<usize>()
    }

    fn parse(schema: &Value, level: Level, path: &Path<'_>, errors: &mut Vec<Error>) -> Self {
        let Value::Object(fields) = schema else {
            errors.push(Error::invalid(path, schema.clone(), "must be an object"));
            return Self::default();
        };
        let mut node = Self {
            nullable: flag(fields, "nullable"),
            preserve_unknown: flag(fields, "x-kubernetes-preserve-unknown-fields"),
            embedded: flag(fields, "x-kubernetes-embedded-resource"),
            default: fields.get("default").filter(|default| !default.is_null()).cloned(),
            ..Self::default()
        };
        node.kind = kind(fields, level, path, errors);
        unsupported(fields, path, errors);
        let properties = path.child("properties");
        for (name, schema) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let level = if level == Level::Nested { level } else { Level::Field };
            node.properties.insert(name.clone(), Self::parse(schema, level, &properties.key(name), errors));
        }
        node.additional = additional(fields, level, path, errors);
        node.items = items(fields, level, path, errors);
        node.list = list(fields, &node, path, errors);
        node.limits = limits(fields, path, errors);
        if level == Level::Nested {
            forbid_in_nested(fields, path, errors);
        } else {
            check_resource(fields, &node, level, path, errors);
        }
        node
    }
}

fn kind(fields: &Map<String, Value>, level: Level, path: &Path<'_>, errors: &mut Vec<Error>) -> Option<Kind> {
    let name = fields.get("type").and_then(Value::as_str).unwrap_or_default();
    let int_or_string = flag(fields, "x-kubernetes-int-or-string");
    let preserve = flag(fields, "x-kubernetes-preserve-unknown-fields");
    let kind_path = path.child("type");
    let kind = match name {
        "" if int_or_string => return Some(Kind::IntOrString),
        "" => {
            let embedded = flag(fields, "x-kubernetes-embedded-resource");
            let why = match level {
                Level::Nested => return None,
                _ if embedded => "must be object if x-kubernetes-embedded-resource is true",
                _ if preserve => return None,
                Level::Root => "must not be empty at the root",
                Level::Field => "must not be empty for specified object fields",
                Level::Item => "must not be empty for specified array items",
            };
            errors.push(Error::required(kind_path, why));
            return None;
        }
        "object" => Kind::Object,
        "array" => Kind::Array,
        "string" => Kind::String,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        "boolean" => Kind::Boolean,
        "null" => {
            let why = "type cannot be set to null, use nullable as an alternative";
            errors.push(Error::forbidden(kind_path, why));
            return None;
        }
        other => {
            let known = ["array", "boolean", "integer", "number", "object", "string"];
            errors.push(Error::not_supported(kind_path, other, &known));
            return None;
        }
    };
    if level == Level::Root && kind != Kind::Object {
        errors.push(Error::invalid(kind_path, name, "must be object at the root"));
    }
    if int_or_string && level != Level::Nested {
        errors.push(Error::invalid(kind_path, name, "must be empty if x-kubernetes-int-or-string is true"));
    }
    Some(kind)
}

/// Parts of JSON schema that custom resources cannot use.
fn unsupported(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<Error>) {
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

fn additional(
    fields: &Map<String, Value>,
    level: Level,
    path: &Path<'_>,
    errors: &mut Vec<Error>,
) -> Additional {
    let own = path.child("additionalProperties");
    let found = match fields.get("additionalProperties") {
        None => return Additional::Unspecified,
        Some(Value::Bool(false)) => Additional::Forbidden,
        Some(Value::Bool(true)) => Additional::Any,
        Some(schema) => {
            let inner = if level == Level::Nested { level } else { Level::Field };
            Additional::Schema(Box::new(Node::parse(schema, inner, &own, errors)))
        }
    };
    if level == Level::Root {
        errors.push(Error::forbidden(own, "must not be used at the root"));
    }
    let has_properties = fields.get("properties").and_then(Value::as_object).is_some_and(|p| !p.is_empty());
    if has_properties && !matches!(found, Additional::Forbidden) {
        errors.push(Error::forbidden(own, "additionalProperties and properties are mutual exclusive"));
    }
    if matches!(found, Additional::Forbidden) {
        errors.push(Error::forbidden(own, "additionalProperties cannot be set to false"));
    }
    found
}

fn items(
    fields: &Map<String, Value>,
    level: Level,
    path: &Path<'_>,
    errors: &mut Vec<Error>,
) -> Option<Box<Node>> {
    let own = path.child("items");
    match fields.get("items") {
        None => {
            if fields.get("type").and_then(Value::as_str) == Some("array") && level != Level::Nested {
                errors.push(Error::required(own, "must be specified"));
            }
            None
        }
        Some(Value::Array(_)) => {
            errors.push(Error::forbidden(own, "items must be a schema object and not an array"));
            None
        }
        Some(schema) => {
            let inner = if level == Level::Nested { level } else { Level::Item };
            Some(Box::new(Node::parse(schema, inner, &own, errors)))
        }
    }
}

fn list(fields: &Map<String, Value>, node: &Node, path: &Path<'_>, errors: &mut Vec<Error>) -> List {
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
        Some("set") => List::Set,
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
            check_map_keys(items, &keys, path, errors);
            List::Map(keys)
        }
        Some(other) => {
            errors.push(Error::not_supported(type_path, other, &["atomic", "set", "map"]));
            List::Atomic
        }
    }
}

/// The keys of a list of type map must always have a value.
fn check_map_keys(items: &Node, keys: &[String], path: &Path<'_>, errors: &mut Vec<Error>) {
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

fn limits(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<Error>) -> Option<Box<Limits>> {
    const NAMES: [&str; 20] = [
        "required",
        "enum",
        "format",
        "pattern",
        "maximum",
        "minimum",
        "multipleOf",
        "maxLength",
        "minLength",
        "maxItems",
        "minItems",
        "maxProperties",
        "minProperties",
        "uniqueItems",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "x-kubernetes-validations",
        "exclusiveMaximum",
    ];
    if !NAMES.iter().any(|name| fields.contains_key(*name)) {
        return None;
    }
    let float = |name: &str| fields.get(name).and_then(Value::as_f64);
    let count = |name: &str| fields.get(name).and_then(Value::as_u64);
    let mut nested = |name: &str| -> Vec<Node> {
        let own = path.child(name);
        let schemas = fields.get(name).and_then(Value::as_array).into_iter().flatten().enumerate();
        // The usual way to write an int-or-string names the two types; it says nothing new.
        let int_or_string = flag(fields, "x-kubernetes-int-or-string");
        schemas
            .map(|(i, schema)| {
                if int_or_string && is_int_or_string_part(schema) {
                    let mut silent = Vec::new();
                    Node::parse(schema, Level::Nested, &own.index(i), &mut silent)
                } else {
                    Node::parse(schema, Level::Nested, &own.index(i), errors)
                }
            })
            .collect()
    };
    let (all_of, any_of, one_of) = (nested("allOf"), nested("anyOf"), nested("oneOf"));
    let not = fields.get("not").map(|schema| Node::parse(schema, Level::Nested, &path.child("not"), errors));
    let text = fields.get("pattern").and_then(Value::as_str).filter(|text| !text.is_empty());
    let pattern = text.and_then(|text| match pattern::compile(text) {
        Ok(regex) => Some((text.to_owned(), regex)),
        Err(error) => {
            let why = format!("must be a valid regular expression, but isn't: {error}");
            errors.push(Error::invalid(path.child("pattern"), text, why));
            None
        }
    });
    Some(Box::new(Limits {
        required: strings(fields, "required"),
        allowed: fields.get("enum").and_then(Value::as_array).filter(|list| !list.is_empty()).cloned(),
        format: fields.get("format").and_then(Value::as_str).and_then(format::Format::named),
        pattern,
        maximum: float("maximum").map(|bound| (bound, flag(fields, "exclusiveMaximum"))),
        minimum: float("minimum").map(|bound| (bound, flag(fields, "exclusiveMinimum"))),
        multiple_of: float("multipleOf"),
        max_length: count("maxLength"),
        min_length: count("minLength"),
        max_items: count("maxItems"),
        min_items: count("minItems"),
        max_properties: count("maxProperties"),
        min_properties: count("minProperties"),
        unique_items: flag(fields, "uniqueItems"),
        all_of,
        any_of,
        one_of,
        not,
        rules: fields.get("x-kubernetes-validations").and_then(Value::as_array).cloned().unwrap_or_default(),
    }))
}

/// `{type: integer}` or `{type: string}`, or an `anyOf` of both.
fn is_int_or_string_part(schema: &Value) -> bool {
    let Value::Object(fields) = schema else { return false };
    match fields.get("type").and_then(Value::as_str) {
        Some("integer" | "string") => fields.len() == 1,
        Some(_) => false,
        None => {
            let parts = fields.get("anyOf").and_then(Value::as_array);
            parts.is_some_and(|parts| parts.len() == 2 && parts.iter().all(is_int_or_string_part))
        }
    }
}

fn forbid_in_nested(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<Error>) {
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
fn check_resource(
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
fn is_plain_metadata(metadata: &Value) -> bool {
    let Value::Object(fields) = metadata else { return false };
    fields.iter().all(|(name, value)| match name.as_str() {
        "type" | "default" => true,
        "properties" => value
            .as_object()
            .is_some_and(|properties| properties.keys().all(|name| name == "name" || name == "generateName")),
        _ => false,
    })
}

fn flag(fields: &Map<String, Value>, name: &str) -> bool {
    fields.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn strings(fields: &Map<String, Value>, name: &str) -> Vec<String> {
    let items = fields.get(name).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

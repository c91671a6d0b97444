//! One level of a schema, and how it is read.

mod complete;
mod limits;
mod list;
mod rules;

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};

use super::format;
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
        complete::nested(&root, path, errors);
        complete::defaults(&root, false, path, errors);
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
        rules::unsupported(fields, path, errors);
        let properties = path.child("properties");
        for (name, schema) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let level = if level == Level::Nested { level } else { Level::Field };
            node.properties.insert(name.clone(), Self::parse(schema, level, &properties.key(name), errors));
        }
        node.additional = additional(fields, level, path, errors);
        node.items = items(fields, level, path, errors);
        node.list = list::list(fields, &node, path, errors);
        node.limits = limits::limits(fields, path, errors);
        if level == Level::Nested {
            rules::forbid_in_nested(fields, path, errors);
        } else {
            rules::check_resource(fields, &node, level, path, errors);
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
    // Whatever type stands beside it, both kinds of values are taken.
    Some(if int_or_string && level != Level::Nested { Kind::IntOrString } else { kind })
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

fn flag(fields: &Map<String, Value>, name: &str) -> bool {
    fields.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn strings(fields: &Map<String, Value>, name: &str) -> Vec<String> {
    let items = fields.get(name).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

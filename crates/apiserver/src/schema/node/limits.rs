//! What a value must fulfil beyond its type.

use serde_json::{Map, Value};

use super::{Level, Limits, Node, flag, strings};
use crate::field::{Error, Path};
use crate::schema::{format, pattern};

pub(super) fn limits(
    fields: &Map<String, Value>,
    path: &Path<'_>,
    errors: &mut Vec<Error>,
) -> Option<Box<Limits>> {
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
    let rules_path = path.child("x-kubernetes-validations");
    let rules = fields.get("x-kubernetes-validations").and_then(Value::as_array).cloned().unwrap_or_default();
    for (i, rule) in rules.iter().enumerate() {
        check_rule(rule, &rules_path.index(i), errors);
    }
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
        rules,
    }))
}

/// The form of a rule; whether it compiles is looked at when the whole schema is known.
fn check_rule(rule: &Value, path: &Path<'_>, errors: &mut Vec<Error>) {
    let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
    let has_breaks = |text: &str| text.contains(['\n', '\r']);
    let is_blank = |text: &str| !text.is_empty() && text.trim().is_empty();
    let (body, message) = (text("rule").trim(), text("message"));
    if body.is_empty() {
        errors.push(Error::required(path.child("rule"), "rule is not specified"));
    } else if is_blank(message) {
        errors.push(Error::invalid(path.child("message"), message, "must be non-empty if specified"));
    } else if has_breaks(message.trim()) {
        errors.push(Error::invalid(path.child("message"), message, "must not contain line breaks"));
    } else if has_breaks(body) && message.is_empty() {
        let why = "message must be specified if rule contains line breaks";
        errors.push(Error::required(path.child("message"), why));
    }
    if is_blank(text("messageExpression")) {
        let why = "messageExpression must be non-empty if specified";
        errors.push(Error::required(path.child("messageExpression"), why));
    }
    let reasons = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    if let Some(reason) = rule.get("reason").and_then(Value::as_str)
        && !reasons.contains(&reason)
    {
        errors.push(Error::not_supported(path.child("reason"), reason, &reasons));
    }
    let place = text("fieldPath");
    if is_blank(place) {
        errors.push(Error::invalid(path.child("fieldPath"), place, "must be non-empty if specified"));
    }
    if has_breaks(place) {
        errors.push(Error::invalid(path.child("fieldPath"), place, "must not contain line breaks"));
    }
}

/// `{type: integer}` or `{type: string}`, or an `anyOf` of both.
pub(super) fn is_int_or_string_part(schema: &Value) -> bool {
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

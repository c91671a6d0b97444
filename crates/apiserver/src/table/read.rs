//! Readers of the JSON that printers look at.

use super::duration::{moment, since};
use jiff::Timestamp;
use serde_json::Value;

pub(super) const NONE: &str = "<none>";
pub(super) const UNKNOWN: &str = "<unknown>";
pub(super) const UNSET: &str = "<unset>";

/// The value at a JSON pointer that is there and not `null`.
pub(super) fn at<'a>(object: &'a Value, pointer: &str) -> Option<&'a Value> {
    object.pointer(pointer).filter(|value| !value.is_null())
}

/// The text at a JSON pointer; empty when it is absent.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The text at a JSON pointer, or `instead` when it is absent or empty.
pub(super) fn text_or<'a>(object: &'a Value, pointer: &str, instead: &'a str) -> &'a str {
    match text(object, pointer) {
        "" => instead,
        text => text,
    }
}

/// The integer at a JSON pointer; zero when it is absent.
pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// The list at a JSON pointer; empty when it is absent.
pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The number of entries of a map at a JSON pointer.
pub(super) fn size(object: &Value, pointer: &str) -> usize {
    object.pointer(pointer).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

pub(super) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(super) fn is_terminating(object: &Value) -> bool {
    at(object, "/metadata/deletionTimestamp").is_some()
}

/// The age of the object.
pub(super) fn age(object: &Value, now: Timestamp) -> String {
    since_at(object, "/metadata/creationTimestamp", now)
}

/// The time since the moment at a JSON pointer.
pub(super) fn since_at(object: &Value, pointer: &str, now: Timestamp) -> String {
    since(moment(object.pointer(pointer)), now)
}

/// A scalar as text: quantities and ports may be written as numbers or as text.
pub(super) fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Names and images of containers, each joined with commas.
pub(super) fn containers(object: &Value, pointer: &str) -> (String, String) {
    let containers = list(object, pointer);
    let join = |key: &str| {
        let parts: Vec<&str> = containers
            .iter()
            .map(|container| container.get(key).and_then(Value::as_str).unwrap_or_default())
            .collect();
        parts.join(",")
    };
    (join("name"), join("image"))
}

/// `a=b,c=d`, or `<none>`.
pub(super) fn labels(object: &Value, pointer: &str) -> String {
    let pairs: Vec<String> = object
        .pointer(pointer)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", scalar(value)))
        .collect();
    if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
}

/// A label selector as text: `a=b,c in (d,e),!f`. Empty for one that selects everything.
pub(super) fn selector(object: &Value, pointer: &str) -> String {
    let Some(selector) = at(object, pointer) else { return String::new() };
    let mut parts: Vec<(String, String)> = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), format!("{key}={}", scalar(value))))
        .collect();
    for expression in list(selector, "/matchExpressions") {
        let key = text(expression, "/key");
        let mut values: Vec<String> = list(expression, "/values").iter().map(scalar).collect();
        values.sort();
        let values = values.join(",");
        let part = match text(expression, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return "<error>".to_owned(),
        };
        parts.push((key.to_owned(), part));
    }
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
}

/// As [`selector`], with `<none>` for one that selects everything.
pub(super) fn selector_or_none(object: &Value, pointer: &str) -> String {
    let text = selector(object, pointer);
    if text.is_empty() { NONE.to_owned() } else { text }
}

/// The status of a condition; nothing when the object does not have it.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    list(object, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == kind)
        .map(|condition| text(condition, "/status"))
}

/// The first `max` items, and how many were left out: `a,b,c + 2 more...`.
pub(super) fn shortened(items: &[String], max: usize, separator: &str) -> String {
    let shown: Vec<&str> = items.iter().take(max).map(String::as_str).collect();
    let text = shown.join(separator);
    match items.len().saturating_sub(max) {
        0 => text,
        more => format!("{text} + {more} more..."),
    }
}

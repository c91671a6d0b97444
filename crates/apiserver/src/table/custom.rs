//! Cells of custom kinds, from the JSON paths of their printer columns.

use super::Column;
use super::duration::{moment, since};
use crate::jsonpath::JsonPath;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::borrow::Cow;

#[derive(Debug, Clone)]
pub(super) struct CustomColumn {
    pub(super) column: Column,
    /// Nothing for a malformed path, whose cells stay empty.
    path: Option<JsonPath>,
}

/// The columns after the name.
pub(super) fn columns(definitions: &[Value]) -> Vec<CustomColumn> {
    if definitions.is_empty() {
        let age = json!({
            "name": "Age",
            "type": "date",
            "description": "Time since the object was created.",
            "jsonPath": ".metadata.creationTimestamp",
        });
        return vec![column(&age)];
    }
    definitions.iter().map(column).collect()
}

fn column(definition: &Value) -> CustomColumn {
    let text = |key: &str| definition.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    CustomColumn {
        column: Column {
            name: Cow::Owned(text("name")),
            kind: Cow::Owned(text("type")),
            format: Cow::Owned(text("format")),
            description: Cow::Owned(text("description")),
            priority: definition.get("priority").and_then(Value::as_i64).unwrap_or_default(),
        },
        path: JsonPath::parse(&text("jsonPath")).ok(),
    }
}

pub(super) fn cells(columns: &[CustomColumn], object: &Value, now: Timestamp) -> Vec<Value> {
    let name = object.pointer("/metadata/name").cloned().unwrap_or_default();
    let rest = columns.iter().map(|column| {
        let found = column.path.as_ref().and_then(|path| path.first(object));
        found.map_or(Value::Null, |found| cell(&column.column.kind, found, now))
    });
    std::iter::once(name).chain(rest).collect()
}

/// The value as a cell of that type; `null`, which prints as nothing, when it is of another type.
fn cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        (_, Value::Null) if kind != "string" => Value::Null,
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => integer.into(),
            #[expect(clippy::cast_possible_truncation, reason = "a fraction is cut off, as on a real server")]
            (None, Some(float)) => (float as i64).into(),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(_)) => match moment(Some(value)) {
            Some(moment) => since(Some(moment), now).into(),
            None => "<invalid>".into(),
        },
        ("string", Value::String(_)) => value.clone(),
        ("string", Value::Null) => "<nil>".into(),
        // Text columns show any value: numbers and booleans plainly, lists and objects as JSON.
        ("string", other) => other.to_string().into(),
        _ => Value::Null,
    }
}

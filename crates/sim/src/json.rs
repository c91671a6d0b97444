//! Short ways to read JSON objects.

pub(crate) use kruise_api::json::pointer as at;
use serde_json::{Map, Value};

/// Text at a JSON pointer; empty when there is none.
pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    at(value, pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A list at a JSON pointer; empty when there is none.
pub(crate) fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    at(value, pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A number that is not negative at a JSON pointer.
pub(crate) fn number(value: &Value, pointer: &str) -> Option<u64> {
    at(value, pointer).and_then(Value::as_u64)
}

/// The fields of an object; none for anything else.
pub(crate) fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

//! From JSON to values.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::library;
use super::shape::{Of, Shape};
use super::types::escaped;
use super::value::{Key, List, Value};
use crate::webhook::decode_base64;

/// JSON of which nothing is known.
pub(crate) fn to_dyn(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Int(number),
            (None, Some(number)) => Value::Uint(number),
            (None, None) => Value::Double(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::text(text),
        Json::Array(items) => Value::list(items.iter().map(to_dyn).collect()),
        Json::Object(fields) => Value::Map(Arc::new(
            fields.iter().map(|(key, value)| (Key::Text(key.as_str().into()), to_dyn(value))).collect(),
        )),
    }
}

/// JSON that has a shape. What does not fit it is taken as it is: the schema has complained about it already.
pub(crate) fn to_typed(shape: &Shape, json: &Json) -> Value {
    match (&shape.of, json) {
        (Of::Double, Json::Number(number)) => Value::Double(number.as_f64().unwrap_or_default()),
        (Of::Int, Json::Number(number)) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Int(number.as_f64().unwrap_or_default() as i64),
        },
        (Of::Bytes, Json::String(text)) => match decode_base64(text) {
            Some(bytes) => Value::Bytes(bytes.into()),
            None => Value::text(text),
        },
        (Of::Timestamp { is_date }, Json::String(text)) => {
            let whole = if *is_date { format!("{text}T00:00:00Z") } else { text.clone() };
            library::to_timestamp(&whole).map_or_else(|| Value::text(text), Value::Timestamp)
        }
        (Of::Duration, Json::String(text)) => {
            library::to_duration(text).map_or_else(|| Value::text(text), Value::Duration)
        }
        (Of::List { item, is_set }, Json::Array(items)) => {
            let items = items.iter().map(|json| to_typed(item, json)).collect();
            Value::List(Arc::new(List { items, is_set: *is_set }))
        }
        (Of::Map(value), Json::Object(fields)) => Value::Map(Arc::new(
            fields
                .iter()
                .map(|(key, json)| (Key::Text(key.as_str().into()), to_typed(value, json)))
                .collect(),
        )),
        (Of::Object(shapes), Json::Object(fields)) => {
            let known = fields.iter().filter(|(_, json)| !json.is_null()).filter_map(|(property, json)| {
                let shape = shapes.get(property)?;
                Some((Key::Text(escaped(property)?.as_str().into()), to_typed(shape, json)))
            });
            Value::Map(Arc::new(known.collect::<BTreeMap<_, _>>()))
        }
        (_, other) => to_dyn(other),
    }
}

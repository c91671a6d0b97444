//! Values as Go prints them, for messages that quote the patch.

use serde_json::{Map, Value};

pub(super) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go prints it with `%v`.
pub(super) fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => go_list(items),
        Value::Object(fields) => go_object(fields),
        other => crate::field::show(other),
    }
}

pub(super) fn go_list(items: &[Value]) -> String {
    let items: Vec<String> = items.iter().map(go_value).collect();
    format!("[{}]", items.join(" "))
}

pub(super) fn go_object(fields: &Map<String, Value>) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}:{}", go_value(value))).collect();
    format!("map[{}]", fields.join(" "))
}

//! From one type to another.

use std::fmt::Write as _;

use super::super::eval::{Fault, Outcome};
use super::super::value::{Key, Value};
use super::time;

pub(super) fn call(name: &str, is_method: bool, args: &[Value]) -> Option<Outcome> {
    let [value] = args else { return None };
    if is_method {
        return None;
    }
    let error = |text: &str| Some(Err(Fault::error(text)));
    match (name, value) {
        ("bool", Value::Bool(_)) | ("int", Value::Int(_)) | ("uint", Value::Uint(_)) => {
            Some(Ok(value.clone()))
        }
        ("double", Value::Double(_)) | ("bytes", Value::Bytes(_)) | ("string", Value::Text(_)) => {
            Some(Ok(value.clone()))
        }
        ("bool", Value::Text(text)) => match text.as_ref() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(Ok(Value::Bool(true))),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(Ok(Value::Bool(false))),
            _ => error("type conversion error from 'string' to 'bool'"),
        },
        ("int", Value::Uint(number)) => {
            Some(i64::try_from(*number).map(Value::Int).map_err(|_| Fault::error("integer overflow")))
        }
        ("int", Value::Double(number)) => {
            let fits = number.is_finite() && number.abs() < 9_223_372_036_854_775_808.0;
            if fits { Some(Ok(Value::Int(*number as i64))) } else { error("integer overflow") }
        }
        ("int", Value::Text(text)) => Some(
            text.parse()
                .map(Value::Int)
                .map_err(|_| Fault::error(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax"))),
        ),
        ("int", Value::Timestamp(at)) => Some(Ok(Value::Int(at.as_second()))),
        ("uint", Value::Int(number)) => Some(
            u64::try_from(*number).map(Value::Uint).map_err(|_| Fault::error("unsigned integer overflow")),
        ),
        ("uint", Value::Double(number)) => {
            let fits = (0.0..18_446_744_073_709_551_616.0).contains(number);
            if fits { Some(Ok(Value::Uint(*number as u64))) } else { error("unsigned integer overflow") }
        }
        ("uint", Value::Text(text)) => Some(
            text.parse()
                .map(Value::Uint)
                .map_err(|_| Fault::error(format!("strconv.ParseUint: parsing \"{text}\": invalid syntax"))),
        ),
        ("double", Value::Int(number)) => Some(Ok(Value::Double(*number as f64))),
        ("double", Value::Uint(number)) => Some(Ok(Value::Double(*number as f64))),
        ("double", Value::Text(text)) => Some(
            text.parse()
                .map(Value::Double)
                .map_err(|_| Fault::error(format!("strconv.ParseFloat: parsing \"{text}\": invalid syntax"))),
        ),
        ("bytes", Value::Text(text)) => Some(Ok(Value::Bytes(text.as_bytes().into()))),
        ("string", value) => match value {
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Some(Ok(Value::text(text))),
                Err(_) => error("invalid UTF-8 in bytes, cannot convert to string"),
            },
            Value::List(_) | Value::Map(_) | Value::Null | Value::Optional(_) | Value::Type(_) => None,
            other => Some(Ok(Value::text(shown(other)))),
        },
        _ => None,
    }
}

/// A value as text, as `string()` and `format` write it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => {
            if value.is_infinite() {
                if *value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() }
            } else {
                value.to_string()
            }
        }
        Value::Text(value) => value.to_string(),
        Value::Bytes(value) => String::from_utf8_lossy(value).into_owned(),
        Value::List(list) => {
            let items: Vec<String> = list.items.iter().map(quoted).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let mut text = String::from("{");
            for (index, (key, value)) in map.iter().enumerate() {
                let key = match key {
                    Key::Text(key) => key.to_string(),
                    other => shown(&Value::from(other.clone())),
                };
                let comma = if index > 0 { ", " } else { "" };
                let _ = write!(text, "{comma}{key}: {}", quoted(value));
            }
            text.push('}');
            text
        }
        Value::Timestamp(at) => time::timestamp_text(*at),
        Value::Duration(length) => time::duration_text(*length),
        Value::Optional(Some(value)) => format!("optional({})", shown(value)),
        Value::Optional(None) => "optional.none()".to_owned(),
        Value::Type(name) => name.to_string(),
        Value::Quantity(quantity) => quantity.to_string(),
        Value::Url(url) => url.to_string(),
        Value::Ip(address) => address.to_string(),
        Value::Cidr(address, bits) => format!("{address}/{bits}"),
        Value::Semver(version) => {
            let [major, minor, patch] = version.numbers;
            let before = version.before.join(".");
            let dash = if before.is_empty() { "" } else { "-" };
            format!("{major}.{minor}.{patch}{dash}{before}")
        }
        Value::Format(name) => (*name).to_owned(),
    }
}

fn quoted(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("\"{text}\""),
        other => shown(other),
    }
}

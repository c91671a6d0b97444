//! JSON to the wire, byte for byte as Go writes it: fields by number, maps by key, and everything that is no pointer, list
//! or map even when it is empty. An error is the path of the value that does not fit.

use kruise_api::kubernetes::quantity::Quantity;
use serde_json::{Map, Value};

use super::scalars;
use super::table::{Field, Message, Table, Type};
use super::wire::Backward;
use crate::webhook::base64;

/// The number of `items` in every list.
pub(super) const ITEMS: u32 = 2;
/// The number of the bytes in what holds any JSON.
pub(super) const RAW: u32 = 1;
const LIST_METADATA: u32 = 1;

/// Writes the members of an object.
pub(super) fn message(
    out: &mut Backward,
    message: &Message,
    members: &Map<String, Value>,
) -> Result<(), String> {
    for field in message.fields.iter().rev() {
        write_field(out, field, members).map_err(|path| below(field.name, &path))?;
    }
    Ok(())
}

/// The metadata of a list, in front of its items.
pub(super) fn list_metadata(out: &mut Backward, metadata: &Value) -> Result<(), String> {
    let Some(kind) = Table::get().named("meta.ListMeta") else { return Ok(()) };
    let nothing = Map::new();
    let members = metadata.as_object().unwrap_or(&nothing);
    out.nested(LIST_METADATA, |out| message(out, kind, members))
}

fn below(name: &str, path: &str) -> String {
    match (name.is_empty(), path.is_empty()) {
        (true, _) => path.to_owned(),
        (_, true) => name.to_owned(),
        _ => format!("{name}.{path}"),
    }
}

fn write_field(out: &mut Backward, field: &Field, members: &Map<String, Value>) -> Result<(), String> {
    let number = field.number;
    if let Type::Inline(index) = field.kind {
        return submessage(out, number, index, Some(members));
    }
    let value = members.get(field.name).filter(|value| !value.is_null());
    match (&field.kind, value) {
        (Type::Pointer(_) | Type::List(_) | Type::Map(_) | Type::Bytes | Type::Words, None) => Ok(()),
        (Type::Pointer(inner), value) => single(out, number, inner, value),
        (Type::List(inner), Some(Value::Array(items))) => {
            items.iter().rev().try_for_each(|item| single(out, number, inner, Some(item)))
        }
        (Type::Map(inner), Some(Value::Object(entries))) => {
            entries.iter().rev().try_for_each(|(key, value)| entry(out, number, inner, key, value))
        }
        (Type::List(_) | Type::Map(_), Some(_)) => Err(String::new()),
        (kind, value) => single(out, number, kind, value),
    }
}

fn entry(out: &mut Backward, number: u32, kind: &Type, key: &str, value: &Value) -> Result<(), String> {
    const KEY: u32 = 1;
    const VALUE: u32 = 2;
    out.nested(number, |out| {
        if !(value.is_null() && *kind == Type::Bytes) {
            single(out, VALUE, kind, Some(value)).map_err(|path| below(key, &path))?;
        }
        out.bytes(KEY, key.as_bytes());
        Ok(())
    })
}

fn submessage(
    out: &mut Backward,
    number: u32,
    index: usize,
    members: Option<&Map<String, Value>>,
) -> Result<(), String> {
    let nothing = Map::new();
    let Some(kind) = Table::get().message(index) else { return Ok(()) };
    out.nested(number, |out| message(out, kind, members.unwrap_or(&nothing)))
}

/// One value; nothing is written as the type's empty value.
fn single(out: &mut Backward, number: u32, kind: &Type, value: Option<&Value>) -> Result<(), String> {
    let value = value.filter(|value| !value.is_null());
    let unfit = String::new;
    match kind {
        Type::Text => {
            let text = value.map_or(Some(""), Value::as_str).ok_or_else(unfit)?;
            out.bytes(number, text.as_bytes());
        }
        Type::Bool => {
            let flag = value.map_or(Some(false), Value::as_bool).ok_or_else(unfit)?;
            out.varint(number, u64::from(flag));
        }
        Type::Int32 | Type::Int64 => {
            let integer = value.map_or(Some(0), integer).ok_or_else(unfit)?;
            out.varint(number, integer.cast_unsigned());
        }
        Type::Float => {
            let float = value.map_or(Some(0.0), Value::as_f64).ok_or_else(unfit)?;
            out.fixed64(number, float.to_bits());
        }
        Type::Quantity => {
            let text = match value {
                None => "0".to_owned(),
                Some(value) => Quantity::from_json(value).map_err(|_| unfit())?.to_string(),
            };
            out.nested(number, |out| {
                out.bytes(1, text.as_bytes());
                Ok::<_, String>(())
            })?;
        }
        Type::Time | Type::MicroTime => time(out, number, kind, value)?,
        Type::IntOrString => int_or_string(out, number, value)?,
        Type::Bytes => {
            let text = value.map_or(Some(""), Value::as_str).ok_or_else(unfit)?;
            out.bytes(number, &base64::decode(text).ok_or_else(unfit)?);
        }
        Type::Json => out.nested(number, |out| {
            if let Some(value) = value {
                out.bytes(RAW, value.to_string().as_bytes());
            }
            Ok::<_, String>(())
        })?,
        Type::Words => out.nested(number, |out| words(out, 1, value))?,
        Type::SchemaOrBool | Type::SchemaOrArray | Type::SchemaOrStrings => {
            out.nested(number, |out| schema_or(out, kind, value))?;
        }
        Type::Message(index) | Type::Inline(index) => {
            let members = value.map(|value| value.as_object().ok_or_else(unfit)).transpose()?;
            submessage(out, number, *index, members)?;
        }
        Type::Pointer(inner) => single(out, number, inner, value)?,
        // Lists and maps stand in fields only.
        Type::List(_) | Type::Map(_) => return Err(unfit()),
    }
    Ok(())
}

/// A JSON number without a fraction.
fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let float = value.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15)?;
        #[expect(clippy::cast_possible_truncation, reason = "the line above checks that nothing is lost")]
        let integer = float as i64;
        Some(integer)
    })
}

fn time(out: &mut Backward, number: u32, kind: &Type, value: Option<&Value>) -> Result<(), String> {
    let parsed =
        value.map(|value| value.as_str().and_then(scalars::time).ok_or_else(String::new)).transpose()?;
    out.nested(number, |out| {
        if let Some((seconds, nanos)) =
            parsed.filter(|(seconds, nanos)| !scalars::is_no_time(*seconds, *nanos))
        {
            let nanos = if *kind == Type::MicroTime { nanos / 1000 * 1000 } else { 0 };
            out.varint(2, i64::from(nanos).cast_unsigned());
            out.varint(1, seconds.cast_unsigned());
        }
        Ok(())
    })
}

fn int_or_string(out: &mut Backward, number: u32, value: Option<&Value>) -> Result<(), String> {
    let (kind, integer, text) = match value {
        None => (0, 0, ""),
        Some(Value::String(text)) => (1, 0, text.as_str()),
        Some(value) => (0, integer(value).ok_or_else(String::new)?, ""),
    };
    out.nested(number, |out| {
        out.bytes(3, text.as_bytes());
        out.varint(2, integer.cast_unsigned());
        out.varint(1, kind);
        Ok(())
    })
}

fn words(out: &mut Backward, number: u32, value: Option<&Value>) -> Result<(), String> {
    match value {
        None => Ok(()),
        Some(Value::Array(items)) => {
            items.iter().rev().try_for_each(|item| single(out, number, &Type::Text, Some(item)))
        }
        Some(_) => Err(String::new()),
    }
}

/// A schema, or what may stand in its place.
fn schema_or(out: &mut Backward, kind: &Type, value: Option<&Value>) -> Result<(), String> {
    let schema = &Type::Message(Table::get().schema);
    match (kind, value) {
        (Type::SchemaOrBool, value) => {
            if let Some(Value::Object(_)) = value {
                single(out, 2, schema, value)?;
            }
            let allows = match value {
                Some(Value::Bool(flag)) => *flag,
                Some(Value::Object(_)) => true,
                None => false,
                Some(_) => return Err(String::new()),
            };
            out.varint(1, u64::from(allows));
            Ok(())
        }
        (_, None) => Ok(()),
        (Type::SchemaOrArray, Some(Value::Array(items))) => {
            items.iter().rev().try_for_each(|item| single(out, 2, schema, Some(item)))
        }
        (Type::SchemaOrStrings, Some(Value::Array(_))) => words(out, 2, value),
        (_, Some(_)) => single(out, 1, schema, value),
    }
}

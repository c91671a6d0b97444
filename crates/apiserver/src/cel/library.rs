//! The functions. What they take was checked for most; what comes from `dyn` is checked here.

mod convert;
mod lists;
mod net;
mod numbers;
mod text;
mod time;
mod units;

use super::eval::{Outcome, Run, no_overload};
use super::value::Value;

/// Calls a function. Of a method, the first argument is what it is called on.
pub(super) fn call(run: &mut Run<'_>, name: &str, is_method: bool, args: &[Value]) -> Outcome {
    let equal = |run: &mut Run<'_>, one: &Value, other: &Value| -> Outcome<bool> {
        run.spend_on(size(one).min(size(other)))?;
        Ok(one == other)
    };
    match (name, args) {
        ("_==_", [one, other]) => return equal(run, one, other).map(Value::Bool),
        ("_!=_", [one, other]) => return equal(run, one, other).map(|same| Value::Bool(!same)),
        ("!_", [Value::Bool(value)]) => return Ok(Value::Bool(!value)),
        ("@in", [item, Value::List(list)]) => {
            run.spend(list.items.len())?;
            return Ok(Value::Bool(list.items.contains(item)));
        }
        ("@in", [item, Value::Map(map)]) => {
            return Ok(Value::Bool(item.key().is_some_and(|key| map.contains_key(&key))));
        }
        ("size", [value]) => {
            let size = match value {
                Value::Text(text) => text.chars().count(),
                Value::Bytes(bytes) => bytes.len(),
                Value::List(list) => list.items.len(),
                Value::Map(map) => map.len(),
                _ => return Err(no_overload()),
            };
            return Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)));
        }
        ("dyn", [value]) => return Ok(value.clone()),
        ("type", [value]) => return Ok(Value::Type(value.type_name().into())),
        ("hasValue", [Value::Optional(value)]) => return Ok(Value::Bool(value.is_some())),
        ("value", [Value::Optional(Some(value))]) => return Ok(value.as_ref().clone()),
        ("value", [Value::Optional(None)]) => {
            return Err(super::eval::Fault::error("optional.none() dereference"));
        }
        ("optional.of", [value]) => return Ok(Value::some(value.clone())),
        ("optional.none", []) => return Ok(Value::Optional(None)),
        ("optional.ofNonZeroValue", [value]) => {
            return Ok(if value.is_zero() { Value::Optional(None) } else { Value::some(value.clone()) });
        }
        _ => {}
    }
    numbers::call(name, args)
        .or_else(|| convert::call(name, is_method, args))
        .or_else(|| text::call(run, name, args))
        .or_else(|| lists::call(run, name, args))
        .or_else(|| time::call(name, args))
        .or_else(|| units::call(name, is_method, args))
        .or_else(|| net::call(name, is_method, args))
        .unwrap_or_else(|| Err(no_overload()))
}

/// How much work it is to look at all of a value.
fn size(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.items.iter().map(size).sum::<usize>() + list.items.len(),
        Value::Map(map) => map.values().map(size).sum::<usize>() + map.len(),
        _ => 1,
    }
}

/// Whether a text is a regular expression.
pub(super) fn text_is_pattern(text: &str) -> bool {
    text::compiled(text).is_ok()
}

/// A duration as Go writes it.
pub(super) fn to_duration(text: &str) -> Option<jiff::SignedDuration> {
    time::duration(text)
}

/// A time as RFC 3339 has it.
pub(super) fn to_timestamp(text: &str) -> Option<jiff::Timestamp> {
    time::timestamp(text)
}

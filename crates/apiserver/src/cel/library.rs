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
        let work = weight(run, one).min(weight(run, other));
        run.spend_on(work)?;
        Ok(one == other)
    };
    match (name, args) {
        ("_==_", [one, other]) => return equal(run, one, other).map(Value::Bool),
        ("_!=_", [one, other]) => return equal(run, one, other).map(|same| Value::Bool(!same)),
        ("!_", [Value::Bool(value)]) => return Ok(Value::Bool(!value)),
        ("@in", [item, Value::List(list)]) => {
            let each = 1 + weight(run, item) / 10;
            run.spend(list.items.len().saturating_mul(each))?;
            return Ok(Value::Bool(list.items.contains(item)));
        }
        ("@in", [item, Value::Map(map)]) => {
            return Ok(Value::Bool(item.key().is_some_and(|key| map.contains_key(&key))));
        }
        ("size", [value]) => {
            let size = match value {
                Value::Text(text) => {
                    run.spend_on(text.len())?;
                    text.chars().count()
                }
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
    // Most functions on texts and bytes look at all of them.
    for arg in args {
        match arg {
            Value::Text(text) => run.spend(text.len() / 10)?,
            Value::Bytes(bytes) => run.spend(bytes.len() / 10)?,
            _ => {}
        }
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

/// How much work it is to look at all of a value, as far as it matters: a value may hold another one a thousand times, and
/// those that cost more than is left need not be counted to the end.
fn weight(run: &Run<'_>, value: &Value) -> usize {
    let most = run.left().saturating_add(1).saturating_mul(10);
    let mut left = most;
    weigh(value, &mut left);
    most - left
}

fn weigh(value: &Value, left: &mut usize) {
    let own = match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        // Members of sets are looked for one by one.
        Value::List(list) if list.is_set => list.items.len().saturating_mul(list.items.len()) / 4,
        _ => 1,
    };
    *left = left.saturating_sub(own.max(1));
    let mut each = |inner: &Value| {
        if *left > 0 {
            weigh(inner, left);
        }
        *left > 0
    };
    match value {
        Value::List(list) => drop(list.items.iter().all(&mut each)),
        Value::Map(map) => drop(map.values().all(&mut each)),
        Value::Optional(Some(inner)) => drop(each(inner)),
        _ => {}
    }
}

/// A regular expression.
pub(super) fn pattern(text: &str) -> Outcome<regex::Regex> {
    text::compiled(text)
}

/// A duration as Go writes it.
pub(super) fn to_duration(text: &str) -> Option<jiff::SignedDuration> {
    time::duration(text)
}

/// A time as RFC 3339 has it.
pub(super) fn to_timestamp(text: &str) -> Option<jiff::Timestamp> {
    time::timestamp(text)
}

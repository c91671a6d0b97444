//! Small readers and writers for JSON objects, shared by the rules.

use serde_json::{Map, Value};

pub(super) fn is_unset(map: &Map<String, Value>, key: &str) -> bool {
    map.get(key).is_none_or(Value::is_null)
}

/// Sets a member that is absent or `null`.
pub(super) fn set_absent(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    if is_unset(map, key) {
        map.insert(key.to_owned(), value.into());
    }
}

/// Sets a text that is absent, `null` or empty.
pub(super) fn set_text(map: &mut Map<String, Value>, key: &str, value: &str) {
    let unset = map.get(key).is_none_or(|old| old.is_null() || old.as_str().is_some_and(str::is_empty));
    if unset {
        map.insert(key.to_owned(), value.into());
    }
}

/// The member as an object, made when it is absent or `null`; nothing when it is something else.
pub(super) fn child_or_new<'a>(
    map: &'a mut Map<String, Value>,
    key: &str,
) -> Option<&'a mut Map<String, Value>> {
    set_absent(map, key, Map::new());
    map.get_mut(key)?.as_object_mut()
}

/// The objects in a list member.
pub(super) fn items<'a>(
    map: &'a mut Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    map.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// A member that is there and not `null`.
pub(super) fn get<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|value| !value.is_null())
}

/// A text member; empty when it is absent.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// An integer member.
pub(super) fn integer(value: &Value, key: &str) -> Option<i64> {
    value.get(key).and_then(Value::as_i64)
}

/// A list member; empty when it is absent.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The entries of a map member.
pub(super) fn entries<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    value.get(key).and_then(Value::as_object).into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

/// Whether two members are the same, where absent, `null` and empty count as one.
pub(super) fn same(new: &Value, old: &Value, key: &str) -> bool {
    equal(new.get(key).unwrap_or(&Value::Null), old.get(key).unwrap_or(&Value::Null))
}

/// Semantic equality: a server tells neither `null` nor an empty list from an absent one.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let covers = |a: &Map<String, Value>, b: &Map<String, Value>| {
                a.iter().all(|(key, value)| equal(value, b.get(key).unwrap_or(&Value::Null)))
            };
            covers(a, b) && covers(b, a)
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (a, b) if is_nothing(a) && is_nothing(b) => true,
        (Value::String(a), Value::String(b)) => a == b,
        (a, b) => a == b,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

//! JSON merge patch (RFC 7386), with the one liberty of the library behind the real server: nulls inside new
//! lists of objects are dropped too.

use serde_json::{Map, Value};

/// The object after the patch: null removes a field, an object merges, all else replaces.
pub fn apply(object: Value, patch: &Map<String, Value>) -> Value {
    let mut fields = match object {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    merge(&mut fields, patch);
    Value::Object(fields)
}

fn merge(fields: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, new) in patch {
        match (fields.get_mut(name), new) {
            (_, Value::Null) => {
                fields.remove(name);
            }
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            (Some(old @ Value::Object(_)), new) => *old = new.clone(),
            (_, new) => {
                fields.insert(name.clone(), without_nulls(new));
            }
        }
    }
}

/// A copy without null fields at any depth; null items of lists stay.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        scalar => scalar.clone(),
    }
}

/// The patch that turns one object into another. It cannot express a null field of `new`, as no merge patch can.
pub fn diff(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, new) in new {
        match (old.get(name), new) {
            (Some(old), new) if old == new => {}
            (Some(Value::Object(old)), Value::Object(new)) => {
                patch.insert(name.clone(), Value::Object(diff(old, new)));
            }
            (_, new) => {
                patch.insert(name.clone(), new.clone());
            }
        }
    }
    patch
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::patch::strategic::tests::any_json;

    #[track_caller]
    fn check(object: Value, patch: &Value, expected: Value) {
        assert_eq!(apply(object, patch.as_object().unwrap()), expected);
    }

    #[test]
    fn fields_merge_and_nulls_remove() {
        check(json!({"a": "b"}), &json!({"a": "c"}), json!({"a": "c"}));
        check(json!({"a": "b", "b": 1}), &json!({"a": null}), json!({"b": 1}));
        check(json!({"a": ["b"]}), &json!({"a": "c"}), json!({"a": "c"}));
        check(json!({"a": {"b": "c"}}), &json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}}));
        check(json!({"a": [{"b": "c"}]}), &json!({"a": [1]}), json!({"a": [1]}));
        check(json!({}), &json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}}));
        check(json!({"a": [1]}), &json!({"a": [{"b": null}, null]}), json!({"a": [{}, null]}));
        check(json!(["a"]), &json!({"a": 1}), json!({"a": 1}));
    }

    proptest! {
        #[test]
        fn the_patch_of_a_difference_reproduces_the_target(old in any_json(), new in any_json()) {
            let (old, new) = (json!({"x": old}), without_nulls(&json!({"x": new})));
            let patch = diff(old.as_object().unwrap(), new.as_object().unwrap());
            prop_assert_eq!(apply(old, &patch), new);
        }

        #[test]
        fn an_unchanged_object_needs_no_patch(value in any_json()) {
            let value = json!({"x": value});
            prop_assert!(diff(value.as_object().unwrap(), value.as_object().unwrap()).is_empty());
        }
    }
}

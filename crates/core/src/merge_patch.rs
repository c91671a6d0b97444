//! The smallest JSON merge patch (RFC 7386) from one object to another: what is equal is left out, what is gone is null.
//! Lists are replaced as a whole.

use serde_json::{Map, Value};

/// The patch, or nothing where nothing differs.
pub fn between(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let changes = members(old, new);
            (!changes.is_empty()).then(|| changes.into())
        }
        (old, new) => (old != new).then(|| new.clone()),
    }
}

fn members(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = new.iter().filter_map(|(key, value)| {
        let before = old.get(key).unwrap_or(&Value::Null);
        between(before, value).map(|change| (key.clone(), change))
    });
    gone.chain(changed).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_differs_is_written() {
        let old = json!({"a": 1, "b": {"c": [1, 2], "d": "x"}, "e": true});
        assert_eq!(between(&old, &old), None);
        let new = json!({"a": 1, "b": {"c": [2], "d": "x", "f": 0}});
        assert_eq!(between(&old, &new), Some(json!({"b": {"c": [2], "f": 0}, "e": null})));
        assert_eq!(between(&Value::Null, &json!({"a": 1})), Some(json!({"a": 1})));
    }
}

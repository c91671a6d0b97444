//! What a server makes of our patches, for models of clusters in tests.

use serde_json::{Value, json};

/// RFC 7386: lists are replaced as a whole.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    match patch {
        Value::Object(members) => {
            if !target.is_object() {
                *target = json!({});
            }
            for (key, value) in members {
                if value.is_null() {
                    target.as_object_mut().unwrap().remove(key);
                } else {
                    merge(&mut target[key], value);
                }
            }
        }
        other => *target = other.clone(),
    }
}

/// A strategic merge, as far as our patches need it.
pub(crate) fn strategic(target: &mut Value, patch: &Value) {
    for (key, value) in patch.as_object().unwrap() {
        let by = match key.as_str() {
            "containers" => "name",
            "conditions" => "type",
            "ownerReferences" => "uid",
            _ => "",
        };
        match value {
            Value::Array(items) if !by.is_empty() => {
                if !target[key].is_array() {
                    target[key] = json!([]);
                }
                let list = target[key].as_array_mut().unwrap();
                for item in items {
                    let place = list.iter().position(|one| one[by] == item[by]);
                    match (place, item.get("$patch")) {
                        (Some(place), Some(_)) => drop(list.remove(place)),
                        (Some(place), None) => strategic(&mut list[place], item),
                        (None, Some(_)) => {}
                        (None, None) => {
                            let mut new = json!({});
                            strategic(&mut new, item);
                            list.push(new);
                        }
                    }
                }
            }
            Value::Object(_) => {
                if !target[key].is_object() {
                    target[key] = json!({});
                }
                strategic(&mut target[key], value);
            }
            Value::Null => drop(target.as_object_mut().unwrap().remove(key)),
            other => target[key] = other.clone(),
        }
    }
}

//! Small steps through JSON objects, for defaulting and conversion.
//!
//! Both work on JSON instead of typed structs, so that fields this build does not know survive.

use serde_json::{Map, Value};

/// A JSON object.
pub type Object = Map<String, Value>;

/// The value at a path of object keys, if every step exists and is not null.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    let mut here = value;
    for key in path {
        here = here.get(*key)?;
    }
    (!here.is_null()).then_some(here)
}

/// The value at a JSON pointer, for pointers without escapes (`~`), whose keys need no memory of their own.
pub fn pointer<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').skip(1).try_fold(value, |here, key| match here {
        Value::Object(members) => members.get(key),
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => None,
    })
}

/// The value at a path, to change it. `None` when a step is missing or null.
pub fn at_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    let mut here = value;
    for key in path {
        here = here.get_mut(*key)?;
    }
    (!here.is_null()).then_some(here)
}

/// The text at a path.
pub fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(value, path)?.as_str()
}

/// The object at a path, to change it. `None` when a step is missing or is no object.
pub fn object_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Object> {
    at_mut(value, path)?.as_object_mut()
}

/// The object at a path; missing or null steps become empty objects. `None` when a step exists with another type:
/// such a value is left to validation, never overwritten.
pub fn object_or_insert<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Object> {
    let mut here = value;
    for key in path {
        if here.is_null() {
            *here = Value::Object(Map::new());
        }
        here = here.as_object_mut()?.entry(*key).or_insert(Value::Null);
    }
    if here.is_null() {
        *here = Value::Object(Map::new());
    }
    here.as_object_mut()
}

/// Writes `default` at a path unless something that is not null is there already.
pub fn default_at(value: &mut Value, path: &[&str], default: impl Into<Value>) {
    let Some((last, parents)) = path.split_last() else { return };
    if let Some(parent) = object_or_insert(value, parents) {
        let slot = parent.entry(*last).or_insert(Value::Null);
        if slot.is_null() {
            *slot = default.into();
        }
    }
}

/// Writes a text at a path unless one that is not empty is there already: the original cannot tell empty from absent.
pub fn default_text(value: &mut Value, path: &[&str], default: &str) {
    if text(value, path) == Some("") {
        set(value, path, default);
    }
    default_at(value, path, default);
}

/// Writes a value at a path, creating the objects on the way.
pub fn set(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    let Some((last, parents)) = path.split_last() else { return };
    if let Some(parent) = object_or_insert(value, parents) {
        parent.insert((*last).to_owned(), new.into());
    }
}

/// Removes and returns the value at a path. Objects on the way stay, also when they become empty.
pub fn take(value: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    object_mut(value, parents)?.remove(*last)
}

/// Removes the object at a path if it is empty.
pub fn drop_if_empty(value: &mut Value, path: &[&str]) {
    if at(value, path).and_then(Value::as_object).is_some_and(Map::is_empty) {
        take(value, path);
    }
}

/// Moves a value from one path to another, if it is there.
pub fn rename(value: &mut Value, from: &[&str], to: &[&str]) {
    if let Some(moved) = take(value, from) {
        set(value, to, moved);
    }
}

/// The elements of the list at a path, to change them; none when there is no list.
pub fn items_mut<'a>(value: &'a mut Value, path: &[&str]) -> impl Iterator<Item = &'a mut Value> {
    at_mut(value, path).and_then(Value::as_array_mut).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_never_replace_what_is_there() {
        let mut value = json!({"a": {"set": 0}, "odd": "text"});
        default_at(&mut value, &["a", "set"], 5);
        default_at(&mut value, &["a", "new"], 5);
        default_at(&mut value, &["odd", "deeper"], 5);
        default_at(&mut value, &["b", "c"], true);
        assert_eq!(value, json!({"a": {"set": 0, "new": 5}, "odd": "text", "b": {"c": true}}));
    }

    #[test]
    fn an_empty_text_is_no_choice() {
        let mut value = json!({"empty": "", "set": "x", "number": 0});
        for name in ["empty", "set", "number", "new"] {
            default_text(&mut value, &[name], "default");
        }
        assert_eq!(value, json!({"empty": "default", "set": "x", "number": 0, "new": "default"}));
    }

    #[test]
    fn rename_moves_only_what_exists() {
        let mut value = json!({"a": {"x": 1}});
        rename(&mut value, &["a", "x"], &["b", "y"]);
        rename(&mut value, &["a", "gone"], &["b", "z"]);
        assert_eq!(value, json!({"a": {}, "b": {"y": 1}}));
    }
}

//! Keys of list items, and the order of merged lists.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Error;
use super::words::{go_list, go_object, go_type};

/// Parts the items into those that `by` names and the others.
pub(super) fn partition(
    items: Vec<Value>,
    by: &[Value],
    key: Option<&str>,
) -> Result<(Vec<Value>, Vec<Value>), Error> {
    let named = match key {
        Some(key) => Places::of_existing(by, key),
        None => Places::of(by, None)?,
    };
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for item in items {
        let found = named.find(key_of(&item, key)?).is_some();
        if found { inside.push(item) } else { outside.push(item) }
    }
    Ok((inside, outside))
}

/// Sorts both parts by their own order and weaves them together.
pub(super) fn interleave(
    mut from_patch: Vec<Value>,
    mut from_server: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, Error> {
    let patch_places = Places::of(patch_order, key)?;
    let server_places = Places::of(server_order, key)?;
    let place = |places: &Places, item: &Value| key_of(item, key).ok().and_then(|key| places.find(key));
    from_patch.sort_by_key(|item| place(&patch_places, item));
    from_server.sort_by_key(|item| place(&server_places, item));
    let mut woven = Vec::with_capacity(from_patch.len() + from_server.len());
    let mut left = from_server.into_iter().peekable();
    for right in from_patch {
        let right_place = place(&server_places, &right);
        while let Some(item) = left.next_if(|item| match (place(&server_places, item), right_place) {
            (Some(l), Some(r)) => l < r,
            _ => false,
        }) {
            woven.push(item);
        }
        woven.push(right);
    }
    woven.extend(left);
    Ok(woven)
}

/// Where the keys of a list stand; the first of equal keys counts.
#[derive(Default)]
pub(super) struct Places {
    /// Almost all keys are texts.
    texts: BTreeMap<String, usize>,
    /// The others, as JSON.
    others: BTreeMap<String, usize>,
}

impl Places {
    pub(super) fn of(items: &[Value], key: Option<&str>) -> Result<Self, Error> {
        let mut places = Self::default();
        for (place, item) in items.iter().enumerate() {
            places.add(key_of(item, key)?, place);
        }
        Ok(places)
    }

    /// Items without the key are passed over.
    pub(super) fn of_existing(items: &[Value], key: &str) -> Self {
        let mut places = Self::default();
        for (place, item) in items.iter().enumerate() {
            if let Some(value) = item.get(key) {
                places.add(value, place);
            }
        }
        places
    }

    pub(super) fn add(&mut self, key: &Value, place: usize) {
        match key {
            Value::String(text) => self.texts.entry(text.clone()).or_insert(place),
            other => self.others.entry(other.to_string()).or_insert(place),
        };
    }

    pub(super) fn find(&self, key: &Value) -> Option<usize> {
        match key {
            Value::String(text) => self.texts.get(text).copied(),
            other => self.others.get(&other.to_string()).copied(),
        }
    }
}

pub(super) fn key_of<'a>(item: &'a Value, key: Option<&str>) -> Result<&'a Value, Error> {
    let Some(key) = key else { return Ok(item) };
    let Value::Object(fields) = item else {
        return Err(wrong_type("map[string]interface {}", item));
    };
    fields.get(key).ok_or_else(|| {
        Error::Other(format!("map: {} does not contain declared merge key: {key}", go_object(fields)))
    })
}

pub(super) fn wrong_type(expected: &str, found: &Value) -> Error {
    Error::Other(format!("expected a {expected}, but received a {}", go_type(found)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Nothing,
    Scalar(&'static str),
    Object,
}

/// All items of both lists must be of one kind, and none may be a list.
pub(super) fn same_kind(a: &[Value], b: &[Value]) -> Result<Kind, Error> {
    let mut found = Kind::Nothing;
    for item in a.iter().chain(b) {
        let kind = match item {
            Value::Array(_) if found == Kind::Nothing => return Err(Error::Unprocessable),
            Value::Object(_) => Kind::Object,
            other => Kind::Scalar(go_type(other)),
        };
        if found != Kind::Nothing && found != kind {
            return Err(Error::Other(format!(
                "list element types are not identical: [{} {}]",
                go_list(a),
                go_list(b)
            )));
        }
        found = kind;
    }
    Ok(found)
}

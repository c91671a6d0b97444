//! Strategic merge patch: a merge patch that knows the keys of lists and obeys directives.
//!
//! | in the patch | what it does |
//! | --- | --- |
//! | `field: null` | removes the field |
//! | `$patch: replace` | in an object: the rest of it replaces the old one; in a list: the rest of the list does |
//! | `$patch: delete` | in an object: empties it; in a list item: removes the items with its key |
//! | `$retainKeys: [..]` | removes the object's other fields |
//! | `$setElementOrder/x: [..]` | puts the list `x` into this order |
//! | `$deleteFromPrimitiveList/x: [..]` | removes these scalars from the list `x` |
//!
//! The order of a merged list: items of the patch in the patch's order (or the given element order), the other
//! items of the server in theirs; the two are interleaved by the server's order where it knows both items. An
//! item that is new therefore stands before the server's remaining ones.

mod order;
mod words;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use self::order::{Kind, Places, interleave, key_of, partition, same_kind, wrong_type};
use self::words::{go_list, go_object, go_value};
use super::shapes::{Field, Shape, field};
use crate::status::Status;

type Object = Map<String, Value>;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";

/// Why a patch was refused. The real server answers the last kind with `500`, and so do we.
#[derive(Clone, Debug, PartialEq)]
enum Error {
    /// The form is wrong: `400`.
    Format(&'static str),
    /// The form is right but this cannot be done: `422`.
    Unprocessable,
    /// Everything else.
    Other(String),
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match error {
            Error::Format(why) => Self::bad_request(why),
            Error::Unprocessable => Self::unprocessable(),
            Error::Other(why) => Self::failure(500, "", why),
        }
    }
}

/// The object after the patch.
pub fn apply(object: Object, patch: Object, shape: &'static Shape) -> Result<Object, Status> {
    Ok(merge_object(object, patch, shape)?)
}

fn merge_object(mut original: Object, mut patch: Object, shape: &'static Shape) -> Result<Object, Error> {
    if let Some(directive) = patch.remove(PATCH) {
        return match directive.as_str() {
            Some("replace") => Ok(cleaned(patch)),
            Some("delete") => Ok(Object::new()),
            _ => Err(unknown_directive(&directive, patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    order_lists(&mut original, &mut patch, shape)?;
    for (name, new) in patch {
        let (name, deletes) = match name.split_once('/') {
            Some((DELETE_FROM_LIST, list)) => (list.to_owned(), true),
            _ if name.starts_with(DELETE_FROM_LIST) => {
                return Err(Error::Format("invalid patch format of primitive list"));
            }
            _ => (name, false),
        };
        let old = original.remove(&name);
        let merged = match (old, new) {
            (_, Value::Null) => None,
            (Some(Value::Object(old)), Value::Object(new)) => Some(match field(shape, &name) {
                Some(Field::Replace) => Value::Object(cleaned(new)),
                Some(Field::Object(inner)) => Value::Object(merge_object(old, new, inner)?),
                _ => Value::Object(merge_object(old, new, &[])?),
            }),
            (Some(Value::Array(old)), Value::Array(new)) => {
                Some(Value::Array(merge_field(old, new, field(shape, &name), deletes)?))
            }
            (old, _) if deletes => old,
            (_, new) => without_directives(new),
        };
        if let Some(merged) = merged {
            original.insert(name, merged);
        }
    }
    Ok(original)
}

fn merge_field(
    old: Vec<Value>,
    new: Vec<Value>,
    field: Option<Field>,
    deletes: bool,
) -> Result<Vec<Value>, Error> {
    match field {
        Some(Field::Keyed(key, item)) => merge_list(old, new, Some(key), item, deletes),
        Some(Field::Set) => merge_list(old, new, None, &[], deletes),
        _ if deletes => merge_list(old, new, None, &[], true),
        _ => Ok(new.into_iter().map(clean_value).collect()),
    }
}

/// Removes from `original` what `$retainKeys` does not name.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), Error> {
    const WRONG: Error = Error::Format("invalid patch format of retainKeys");
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(keys) = keys else { return Err(WRONG) };
    let kept = |name: &str| keys.iter().any(|key| key == name);
    let ordinary = |name: &str| !name.starts_with(DELETE_FROM_LIST) && !name.starts_with(SET_ELEMENT_ORDER);
    if patch.iter().any(|(name, value)| !value.is_null() && ordinary(name) && !kept(name)) {
        return Err(WRONG);
    }
    original.retain(|name, _| kept(name));
    Ok(())
}

/// Merges and orders the lists that have a `$setElementOrder`, and takes them out of the patch.
fn order_lists(original: &mut Object, patch: &mut Object, shape: &'static Shape) -> Result<(), Error> {
    let directives: Vec<String> =
        patch.keys().filter(|name| name.starts_with(SET_ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let order = list(patch.remove(&directive).unwrap_or_default())?;
        let Some((SET_ELEMENT_ORDER, name)) = directive.split_once('/') else {
            return Err(Error::Format("invalid patch format of setElementOrder list"));
        };
        let field = field(shape, name);
        let key = match field {
            Some(Field::Keyed(key, _)) => Some(key),
            _ => None,
        };
        let new = patch.remove(name).map(list).transpose()?;
        if let Some(new) = &new {
            check_order(new, &order, key)?;
        }
        let old = original.remove(name).map(list).transpose()?;
        let server_order = match (&old, &new, key) {
            (Some(old), Some(new), Some(key)) => order_seen_by_server(old, new, key),
            (old, ..) => old.clone().unwrap_or_default(),
        };
        let merged = match (old, new.clone()) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => new.into_iter().filter_map(without_directives).collect(),
            (Some(old), Some(new)) => merge_field(old, new, field, false)?,
        };
        let (from_patch, from_server) = partition(merged, &order, key)?;
        same_kind(&server_order, new.as_deref().unwrap_or_default())?;
        let ordered = interleave(from_patch, from_server, &order, &server_order, key)?;
        original.insert(name.to_owned(), Value::Array(ordered));
    }
    Ok(())
}

/// The order by which the real server weaves in its own items. It deletes and appends in place, so that as many new
/// items as there were deletions count as known, at the end.
fn order_seen_by_server(old: &[Value], new: &[Value], key: &str) -> Vec<Value> {
    let directive = |item: &&Value, name: &str| item.get(PATCH).is_some_and(|found| found == name);
    let deleted: Vec<Value> = new.iter().filter(|item| directive(item, "delete")).cloned().collect();
    let deleted = Places::of_existing(&deleted, key);
    let is_kept = |item: &&Value| item.get(key).is_none_or(|found| deleted.find(found).is_none());
    let mut order: Vec<Value> = old.iter().filter(is_kept).cloned().collect();
    if new.iter().any(|item| directive(&item, "replace")) {
        return order;
    }
    let mut places = Places::of_existing(&order, key);
    for item in new.iter().filter(|item| item.get(PATCH).is_none()) {
        if order.len() == old.len() {
            break;
        }
        if let Some(found) = item.get(key)
            && places.find(found).is_none()
        {
            places.add(found, order.len());
            order.push(item.clone());
        }
    }
    order
}

/// The items of a patch list must stand in the element order, in that order.
fn check_order(new: &[Value], order: &[Value], key: Option<&str>) -> Result<(), Error> {
    if new.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut places = order.iter();
    for item in new.iter().filter(|item| item.get(PATCH).is_none()) {
        let wanted = key_of(item, key)?;
        let mut found = false;
        for place in places.by_ref() {
            if key_of(place, key)? == wanted {
                found = true;
                break;
            }
        }
        if !found {
            return Err(Error::Other(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ELEMENT_ORDER} list:\n{}\n",
                go_list(new),
                go_list(order)
            )));
        }
    }
    Ok(())
}

fn merge_list(
    original: Vec<Value>,
    patch: Vec<Value>,
    key: Option<&str>,
    item: &'static Shape,
    deletes: bool,
) -> Result<Vec<Value>, Error> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    if same_kind(&original, &patch)? != Kind::Object {
        if deletes {
            let gone = Places::of(&patch, None)?;
            return Ok(original.into_iter().filter(|value| gone.find(value).is_none()).collect());
        }
        let mut seen = BTreeMap::new();
        let both = original.iter().chain(&patch).filter(|value| seen.insert(value.to_string(), ()).is_none());
        let merged = both.cloned().collect();
        let (from_patch, from_server) = partition(merged, &patch, key)?;
        return interleave(from_patch, from_server, &patch, &original, key);
    }
    let Some(key) = key else {
        return Err(Error::Other("cannot merge lists without merge key".to_owned()));
    };
    let (original, patch) = obey_items(original, patch, key)?;
    let mut merged = original.clone();
    let mut places = Places::of_existing(&merged, key);
    for new in &patch {
        let wanted = key_of(new, Some(key))?;
        let Value::Object(new) = new.clone() else { continue };
        match places.find(wanted) {
            Some(place) => {
                if let Some(slot) = merged.get_mut(place)
                    && let Value::Object(old) = slot.take()
                {
                    *slot = Value::Object(merge_object(old, new, item)?);
                }
            }
            None => {
                places.add(wanted, merged.len());
                merged.push(Value::Object(cleaned(new)));
            }
        }
    }
    let (from_patch, from_server) = partition(merged, &patch, Some(key))?;
    interleave(from_patch, from_server, &patch, &original, Some(key))
}

/// Carries out the `$patch` items of a list and returns the old and the new items that are left to merge.
fn obey_items(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Error> {
    let mut rest = Vec::with_capacity(patch.len());
    let mut replace = false;
    for item in patch {
        let directive = match item.get(PATCH) {
            None => {
                rest.push(item);
                continue;
            }
            Some(directive) => directive,
        };
        match directive.as_str() {
            Some("delete") => {
                let gone = key_of(&item, Some(key))?;
                original.retain(|old| old.get(key) != Some(gone));
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(Error::Other("merging lists cannot yet be specified in the patch".to_owned()));
            }
            _ => {
                let fields = item.as_object().cloned().unwrap_or_default();
                return Err(unknown_directive(directive, fields));
            }
        }
    }
    if replace {
        return Ok((rest.into_iter().map(clean_value).collect(), Vec::new()));
    }
    Ok((original, rest))
}

fn list(value: Value) -> Result<Vec<Value>, Error> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(wrong_type("[]interface {}", &other)),
    }
}

/// A value that the server did not have: nulls and directives go; an object with `$patch` is dropped whole.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(PATCH) => None,
        Value::Object(fields) => Some(Value::Object(
            fields
                .into_iter()
                .filter(|(name, value)| !value.is_null() && !is_directive(name))
                .filter_map(|(name, value)| Some((name, without_directives(value)?)))
                .collect(),
        )),
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}

/// A value that is taken as it is: only what no kind has a field for goes, nulls and directives.
fn clean_value(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(cleaned(fields)),
        Value::Array(items) => Value::Array(items.into_iter().map(clean_value).collect()),
        scalar => scalar,
    }
}

fn cleaned(fields: Object) -> Object {
    fields
        .into_iter()
        .filter(|(name, value)| !value.is_null() && !is_directive(name))
        .map(|(name, value)| (name, clean_value(value)))
        .collect()
}

fn is_directive(name: &str) -> bool {
    name == PATCH
        || name == RETAIN_KEYS
        || name.starts_with(SET_ELEMENT_ORDER)
        || name.starts_with(DELETE_FROM_LIST)
}

fn unknown_directive(directive: &Value, mut fields: Object) -> Error {
    fields.insert(PATCH.to_owned(), directive.clone());
    Error::Other(format!("unknown patch type: {} in map: {}", go_value(directive), go_object(&fields)))
}

#[cfg(test)]
pub(crate) mod tests;

//! A live object with an applied one on top of it, and an object without some of its fields.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element::Element;
use super::set::Set;
use super::types::{Form, ListType, Typed};

/// The live object with everything that the applied one says.
pub fn merge(kind: Typed<'_>, live: &Value, applied: &Value) -> Value {
    merged(kind, Some(live), Some(applied)).unwrap_or_default()
}

fn merged(kind: Typed<'_>, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let (Some(old), Some(new)) = (live, applied) else { return applied.or(live).cloned() };
    match (kind.form(old), kind.form(new)) {
        (Form::Map, Form::Map) => {
            let nothing = Map::new();
            let (old_map, new_map) =
                (old.as_object().unwrap_or(&nothing), new.as_object().unwrap_or(&nothing));
            if old_map.is_empty() && new_map.is_empty() {
                return Some(new.clone());
            }
            let mut out = old_map.clone();
            for (name, value) in new_map {
                let merged = merged(kind.field(name).0, old_map.get(name), Some(value));
                out.insert(name.clone(), merged.unwrap_or_default());
            }
            Some(Value::Object(out))
        }
        (Form::List(list), Form::List(_)) => {
            let (Some(old_items), Some(new_items)) = (old.as_array(), new.as_array()) else {
                let other = if is_empty(new) { old } else { new };
                return Some(if is_empty(old) && is_empty(new) { new.clone() } else { other.clone() });
            };
            if old_items.is_empty() || new_items.is_empty() {
                let other = if new_items.is_empty() && !old_items.is_empty() { old } else { new };
                return Some(other.clone());
            }
            Some(Value::Array(items(kind.item(), list, old_items, new_items)))
        }
        _ => Some(new.clone()),
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_none_or(Vec::is_empty)
}

/// Items of both lists: shared ones in the order of the applied list, those of only one list where they stood between
/// their neighbours.
fn items(kind: Typed<'_>, list: &ListType, live: &[Value], applied: &[Value]) -> Vec<Value> {
    let steps = |items: &[Value]| -> Vec<Element> {
        items.iter().map(|item| list.step(item).unwrap_or(Element::Index(0))).collect()
    };
    let (live_steps, applied_steps) = (steps(live), steps(applied));
    let mut live_of: BTreeMap<&Element, Option<&Value>> = BTreeMap::new();
    for (step, item) in live_steps.iter().zip(live) {
        // Of items that are there twice none is the one to merge with.
        live_of.entry(step).and_modify(|found| *found = None).or_insert(Some(item));
    }
    let applied_of: BTreeMap<&Element, &Value> = applied_steps.iter().zip(applied).collect();
    let mut shared = applied_steps.iter().filter(|step| live_of.contains_key(step));
    let mut next_shared = shared.next();
    let mut done: BTreeSet<&Element> = BTreeSet::new();
    let mut out = Vec::with_capacity(live.len().max(applied.len()));
    let both =
        |step: &Element| merged(kind, live_of.get(step).copied().flatten(), applied_of.get(step).copied());

    let mut old = live_steps.iter().zip(live).peekable();
    let mut new = applied_steps.iter().peekable();
    loop {
        if let (Some((step, _)), Some(wanted)) = (old.peek().copied(), new.peek().copied()) {
            if step == wanted {
                done.insert(step);
                out.extend(both(step));
                old.next();
                new.next();
                next_shared = shared.next();
                continue;
            }
            if applied_of.contains_key(step) && next_shared.is_some_and(|next| next != step) {
                // It is in both, but its place comes later.
                old.next();
                continue;
            }
        }
        if let Some((step, item)) = old.peek().copied() {
            if !applied_of.contains_key(step) {
                out.push(item.clone());
                old.next();
                continue;
            }
            if done.contains(step) {
                old.next();
            }
        }
        match new.next() {
            Some(step) => {
                done.insert(step);
                out.extend(both(step));
                if next_shared == Some(step) {
                    next_shared = shared.next();
                }
            }
            None if old.peek().is_none() => break,
            // Only items are left that were merged before.
            None => {
                old.next_if(|(step, _)| applied_of.contains_key(step));
            }
        }
    }
    out
}

/// A value without some of its fields. What loses everything becomes null.
pub fn remove(kind: Typed<'_>, value: &Value, fields: &Set) -> Value {
    match (kind.form(value), value) {
        (Form::Map, Value::Object(members)) => {
            let mut out = Map::new();
            for (name, value) in members {
                match fields.member(&Element::field(name)) {
                    None => {
                        out.insert(name.clone(), value.clone());
                    }
                    Some(member) if member.owned => {}
                    Some(member) => {
                        let below = member.below.as_deref().cloned().unwrap_or_default();
                        out.insert(name.clone(), remove(kind.field(name).0, value, &below));
                    }
                }
            }
            if out.is_empty() { Value::Null } else { Value::Object(out) }
        }
        (Form::List(list), Value::Array(items)) => {
            let mut out = Vec::new();
            for item in items {
                match list.step(item).ok().and_then(|step| fields.member(&step)) {
                    None => out.push(item.clone()),
                    Some(member) if member.owned => {}
                    Some(member) => {
                        let below = member.below.as_deref().cloned().unwrap_or_default();
                        out.push(remove(kind.item(), item, &below));
                    }
                }
            }
            if out.is_empty() { Value::Null } else { Value::Array(out) }
        }
        // Scalars have nothing below them; of something that is one piece nothing is left.
        (_, Value::Object(_) | Value::Array(_)) => Value::Null,
        (_, scalar) => scalar.clone(),
    }
}

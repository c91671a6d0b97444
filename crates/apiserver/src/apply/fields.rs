//! The fields that an object sets.

use std::collections::BTreeMap;

use serde_json::Value;

use super::set::{Member, Set};
use super::types::{Form, ListType, Typed};
use crate::apply::element::Element;

/// The fields of a value. Members that the type names own nothing themselves where something below them does.
pub fn of(kind: Typed<'_>, value: &Value) -> Set {
    below(kind, value).1
}

/// Whether the value itself is a field, and the fields below it.
fn below(kind: Typed<'_>, value: &Value) -> (bool, Set) {
    match (kind.form(value), value) {
        (Form::Leaf, _) => (true, Set::default()),
        (Form::Map, Value::Object(members)) => {
            let members = members.iter().filter_map(|(name, value)| {
                let (inner, named) = kind.field(name);
                let (owned, fields) = below(inner, value);
                let empty = match value {
                    Value::Null => true,
                    Value::Object(map) => map.is_empty(),
                    _ => false,
                };
                Member::new(kind.step(name), owned || empty || !named, fields)
            });
            (false, Set::new(members.collect()))
        }
        (Form::List(list), Value::Array(items)) => (false, of_items(kind, list, items)),
        _ => (false, Set::default()),
    }
}

fn of_items(kind: Typed<'_>, list: &ListType, items: &[Value]) -> Set {
    let steps: Vec<Element> = items.iter().map(|item| list.step(item).unwrap_or(Element::Index(0))).collect();
    let mut counts: BTreeMap<&Element, usize> = BTreeMap::new();
    for step in &steps {
        *counts.entry(step).or_default() += 1;
    }
    let members = items.iter().zip(&steps).filter_map(|(item, step)| {
        // Items that are there twice are one field each, and nothing inside them.
        let twice = counts.get(step).is_some_and(|count| *count > 1);
        let fields = if twice { Set::default() } else { below(kind.item(), item).1 };
        Member::new(step.clone(), true, fields)
    });
    Set::new(members.collect())
}

/// The same set with the members that the type names as fields, too: `a.b` also has `a`.
#[must_use]
pub fn with_named(kind: Typed<'_>, set: &Set) -> Set {
    let members = set.members().iter().filter_map(|member| {
        let (inner, named) = match &member.element {
            Element::Field(name) => kind.field(name),
            _ => (kind.item(), false),
        };
        let below = member.below.as_ref().map(|below| with_named(inner, below)).unwrap_or_default();
        Member::new(member.element.clone(), member.owned || named, below)
    });
    Set::new(members.collect())
}

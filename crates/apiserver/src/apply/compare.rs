//! What differs between two states of an object.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::Element;
use super::set::{Member, Set};
use super::types::{Form, ListType, Typed};

/// What differs, as sets of fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Difference {
    /// Fields that are no longer there.
    pub removed: Set,
    /// Fields with another value.
    pub modified: Set,
    /// Fields that were not there.
    pub added: Set,
}

impl Difference {
    /// The same without some fields and all below them.
    #[must_use]
    pub fn without(self, fields: &Set) -> Self {
        Self {
            removed: self.removed.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            added: self.added.recursive_difference(fields),
        }
    }

    /// Only some fields.
    #[must_use]
    pub fn filtered(self, filter: impl Fn(&Set) -> Set) -> Self {
        Self { removed: filter(&self.removed), modified: filter(&self.modified), added: filter(&self.added) }
    }

    /// What is new or other.
    pub fn changed(&self) -> Set {
        self.modified.union(&self.added)
    }
}

/// What differs between two objects of a type.
pub fn compare(kind: Typed<'_>, old: &Value, new: &Value) -> Difference {
    let mut found = Found::default();
    found.inside(kind, Some(old), Some(new));
    let [removed, modified, added] = found.sets.map(Set::new);
    Difference { removed, modified, added }
}

const REMOVED: usize = 0;
const MODIFIED: usize = 1;
const ADDED: usize = 2;

/// What was found below one step: whether the step itself is removed, modified or added, and the steps below it.
#[derive(Default)]
struct Found {
    own: [bool; 3],
    sets: [Vec<Member>; 3],
}

impl Found {
    fn inside(&mut self, kind: Typed<'_>, old: Option<&Value>, new: Option<&Value>) {
        if old == new {
            return;
        }
        let (old_form, new_form) = (old.map(|old| kind.form(old)), new.map(|new| kind.form(new)));
        let leaf = |form: &Option<Form<'_>>| matches!(form, Some(Form::Leaf));
        if leaf(&old_form) || leaf(&new_form) {
            // What was an object may be a scalar now, where a type allows both.
            if !leaf(&old_form) && !is_empty(old) {
                self.descend(kind, old_form, old, None);
            }
            if !leaf(&new_form) && !is_empty(new) {
                self.descend(kind, new_form, None, new);
            }
            self.leaf(old, new);
            return;
        }
        if is_empty(old) && is_empty(new) {
            self.leaf(old, new);
            return;
        }
        self.descend(kind, new_form.or(old_form), old, new);
        self.own(REMOVED, new.is_none());
        self.own(ADDED, old.is_none());
    }

    fn own(&mut self, which: usize, is: bool) {
        if let Some(own) = self.own.get_mut(which) {
            *own |= is;
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, _) => self.own(ADDED, true),
            (_, None) => self.own(REMOVED, true),
            _ => self.own(MODIFIED, true),
        }
    }

    fn descend(&mut self, kind: Typed<'_>, form: Option<Form<'_>>, old: Option<&Value>, new: Option<&Value>) {
        match form {
            Some(Form::Map) => {
                let nothing = Map::new();
                let old = old.and_then(Value::as_object).unwrap_or(&nothing);
                let new = new.and_then(Value::as_object).unwrap_or(&nothing);
                for (name, value) in old {
                    let other = new.get(name);
                    if Some(value) != other {
                        self.step(kind.step(name), kind.field(name).0, Some(value), other);
                    }
                }
                for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
                    self.step(kind.step(name), kind.field(name).0, None, Some(value));
                }
            }
            Some(Form::List(list)) => self.items(kind, list, old, new),
            _ => {}
        }
    }

    fn items(&mut self, kind: Typed<'_>, list: &ListType, old: Option<&Value>, new: Option<&Value>) {
        type Pairs<'v> = BTreeMap<Element, (Vec<&'v Value>, Vec<&'v Value>)>;
        let mut pairs: Pairs<'_> = BTreeMap::new();
        for item in items(old) {
            if let Ok(step) = list.step(item) {
                pairs.entry(step).or_default().0.push(item);
            }
        }
        for item in items(new) {
            if let Ok(step) = list.step(item) {
                pairs.entry(step).or_default().1.push(item);
            }
        }
        for (step, (old, new)) in pairs {
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => {
                    let (old, new) = (old.first().copied(), new.first().copied());
                    self.step(step, kind.item(), old, new);
                }
                // Items that are there twice are compared as one piece.
                ([_, _, ..], [_, _, ..]) if old == new => {}
                ([_, _, ..], [_, _, ..]) => self.whole(MODIFIED, step, None),
                ([_, _, ..], rest) => {
                    let inner = rest.first().map(|new| found(kind.item(), None, Some(*new)));
                    self.whole(REMOVED, step, inner);
                }
                (rest, _) => {
                    let inner = rest.first().map(|old| found(kind.item(), Some(*old), None));
                    self.whole(ADDED, step, inner);
                }
            }
        }
    }

    fn whole(&mut self, which: usize, step: Element, inner: Option<Self>) {
        let mut inner = inner.unwrap_or_default();
        inner.own(which, true);
        self.take(step, inner);
    }

    fn step(&mut self, step: Element, kind: Typed<'_>, old: Option<&Value>, new: Option<&Value>) {
        self.take(step, found(kind, old, new));
    }

    fn take(&mut self, step: Element, inner: Self) {
        let parts = inner.own.into_iter().zip(inner.sets);
        for (set, (owned, below)) in self.sets.iter_mut().zip(parts) {
            set.extend(Member::new(step.clone(), owned, Set::new(below)));
        }
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn found(kind: Typed<'_>, old: Option<&Value>, new: Option<&Value>) -> Found {
    let mut found = Found::default();
    found.inside(kind, old, new);
    found
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

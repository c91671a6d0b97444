//! Who owns what after a write.
//!
//! A field that a write changes belongs to the writer alone; a field that it removes belongs to nobody. Server-side apply
//! refuses to change what others own, unless forced; it owns exactly what it sent, and removes what it sent last time and
//! nobody owns now.
//!
//! Versions of a kind share one space of fields here: a field that two versions name differently counts as two. A real
//! server converts the object for each version that a manager wrote in.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::compare::{Difference, compare};
use super::element::Element;
use super::fields::{of as fields_of, with_named};
use super::managed::{Conflicts, Entry, Managed, Manager, Operation};
use super::merge::{merge, remove};
use super::set::{Member, Set};
use super::types::Typed;

/// More entries than this do not come from updates; the oldest ones are put together.
const MOST_UPDATERS: usize = 10;
const ANCIENT: &str = "ancient-changes";
const BEFORE_APPLY: &str = "before-first-apply";

/// Who writes when.
#[derive(Clone, Debug)]
pub struct Write {
    /// Who, and how.
    pub manager: Manager,
    /// When, in seconds.
    pub now: i64,
}

/// Fields that a write cannot change, and therefore never owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// These, with everything below them.
    Except(&'static [&'static [&'static str]]),
    /// All but these. A `*` stands for any item.
    Only(&'static [&'static [&'static str]]),
}

impl Reset {
    /// The fields that are left.
    pub fn left(&self, set: &Set) -> Set {
        match self {
            Self::Except([]) => set.clone(),
            Self::Except(paths) => set.recursive_difference(&paths_set(paths)),
            Self::Only(paths) => only(set, paths),
        }
    }

    fn difference(&self, difference: Difference) -> Difference {
        match self {
            Self::Except([]) => difference,
            _ => difference.filtered(|set| self.left(set)),
        }
    }
}

fn paths_set(paths: &[&[&str]]) -> Set {
    paths.iter().fold(Set::default(), |all, path| all.union(&Set::of_field(path)))
}

fn only(set: &Set, paths: &[&[&str]]) -> Set {
    if paths.iter().any(|path| path.is_empty()) {
        return set.clone();
    }
    let members = set.members().iter().filter_map(|member| {
        let is =
            |step: &str| step == "*" || matches!(&member.element, Element::Field(name) if **name == *step);
        let rest: Vec<&[&str]> = paths
            .iter()
            .filter_map(|path| path.split_first().filter(|(first, _)| is(first)).map(|(_, rest)| rest))
            .collect();
        if rest.is_empty() {
            return None;
        }
        let below = member.below.as_ref().map(|below| only(below, &rest)).unwrap_or_default();
        Member::new(member.element.clone(), member.owned, below)
    });
    Set::new(members.collect())
}

/// What nobody owns: the server fills it in.
fn stripped(set: &Set) -> Set {
    static NEVER: OnceLock<Set> = OnceLock::new();
    let never = NEVER.get_or_init(|| {
        let meta = [
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        ];
        let top = ["apiVersion", "kind", "metadata"].map(|name| Set::of_field(&[name]));
        let inner = meta.map(|name| Set::of_field(&["metadata", name]));
        top.iter().chain(&inner).fold(Set::default(), |all, set| all.union(set))
    });
    set.difference(never)
}

/// The managers after a create, an update or a patch.
pub fn update(
    kind: Typed<'_>,
    old: &Value,
    new: &Value,
    managed: &Managed,
    write: &Write,
    reset: Reset,
) -> Managed {
    let difference = reset.difference(compare(kind, old, new));
    let changed = difference.changed();
    if changed.is_empty() && difference.removed.is_empty() {
        return managed.clone();
    }
    let mut entries: Vec<Entry> =
        managed.entries().iter().map(|entry| without(entry, &changed, &difference)).collect();
    let own = stripped(&changed);
    if !own.is_empty() {
        add(&mut entries, write, own);
    }
    capped(entries)
}

fn without(entry: &Entry, changed: &Set, difference: &Difference) -> Entry {
    let fields = &entry.fields;
    let lost = fields.intersection(changed).union(&fields.intersection(&difference.removed));
    let fields = if lost.is_empty() { fields.clone() } else { Arc::new(fields.difference(&lost)) };
    Entry { manager: entry.manager.clone(), time: entry.time, fields }
}

fn add(entries: &mut Vec<Entry>, write: &Write, fields: Set) {
    match entries.iter_mut().find(|entry| entry.manager.is(&write.manager)) {
        Some(entry) => {
            entry.fields = Arc::new(entry.fields.union(&fields));
            entry.time = Some(write.now);
        }
        None => entries.push(Entry {
            manager: Arc::new(write.manager.clone()),
            time: Some(write.now),
            fields: Arc::new(fields),
        }),
    }
}

/// The managers, of which not too many came from updates.
pub fn capped(mut entries: Vec<Entry>) -> Managed {
    entries.retain(|entry| !entry.fields.is_empty());
    let is_update = |entry: &Entry| entry.manager.operation == Operation::Update;
    let mut count = entries.iter().filter(|entry| is_update(entry)).count();
    if count <= MOST_UPDATERS {
        return Managed::new(entries);
    }
    let (mut updaters, mut left): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(is_update);
    updaters.sort_by(|a, b| {
        let key = |entry: &Entry| (entry.time.unwrap_or_default(), entry.manager.name.clone());
        key(a).cmp(&key(b))
    });
    let mut kept: Vec<Entry> = Vec::new();
    for entry in updaters {
        let version = entry.manager.api_version.clone();
        let first = kept.iter().position(|known| known.manager.api_version == version);
        match first.filter(|_| count > MOST_UPDATERS).and_then(|at| kept.get_mut(at)) {
            Some(bucket) => {
                let manager = Manager {
                    name: ANCIENT.into(),
                    operation: Operation::Update,
                    api_version: version,
                    subresource: "".into(),
                };
                *bucket = Entry {
                    manager: Arc::new(manager),
                    // The newer one's time.
                    time: entry.time,
                    fields: Arc::new(bucket.fields.union(&entry.fields)),
                };
                count -= 1;
            }
            None => kept.push(entry),
        }
    }
    left.extend(kept);
    Managed::new(left)
}

/// What an apply makes of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object; defaults are not filled in.
    pub object: Value,
    /// Its managers.
    pub managed: Managed,
}

/// Applies an object of a type on a live one. `nothing` is an empty object of the kind.
#[allow(clippy::too_many_arguments, reason = "all of them differ in kind, and there is one caller")]
pub fn apply(
    kind: Typed<'_>,
    nothing: &Value,
    live: &Value,
    applied: &Value,
    managed: &Managed,
    write: &Write,
    reset: Reset,
    force: bool,
) -> Result<Applied, Conflicts> {
    let before = if managed.is_empty() {
        // Nobody has kept account so far: what is there belongs to somebody unknown.
        let manager =
            Manager { name: BEFORE_APPLY.into(), operation: Operation::Update, ..write.manager.clone() };
        update(kind, nothing, live, managed, &Write { manager, now: write.now }, reset)
    } else {
        managed.clone()
    };
    let last = before.entries().iter().find(|entry| entry.manager.is(&write.manager));
    let others: Vec<&Entry> =
        before.entries().iter().filter(|entry| !entry.manager.is(&write.manager)).collect();
    let own = reset.left(&fields_of(kind, applied));
    let mut object = merge(kind, live, applied);
    if let Some(last) = last {
        let owned = others.iter().fold(own.clone(), |all, entry| all.union(&entry.fields));
        object = pruned(kind, &object, &last.fields, &owned);
    }
    let difference = reset.difference(compare(kind, live, &object));
    let changed = difference.changed();
    if !force {
        let conflicts: Vec<(Arc<Manager>, Set)> = others
            .iter()
            .map(|entry| (entry.manager.clone(), entry.fields.intersection(&changed)))
            .filter(|(_, set)| !set.is_empty())
            .collect();
        if !conflicts.is_empty() {
            return Err(Conflicts(conflicts));
        }
    }
    let mut entries: Vec<Entry> = others.iter().map(|entry| without(entry, &changed, &difference)).collect();
    let time = if object == *live { last.and_then(|last| last.time) } else { Some(write.now) };
    entries.push(Entry { manager: Arc::new(write.manager.clone()), time, fields: Arc::new(stripped(&own)) });
    Ok(Applied { object, managed: Managed::new(entries) })
}

/// The object without what was applied last time and is owned by nobody now.
fn pruned(kind: Typed<'_>, merged: &Value, last: &Set, owned: &Set) -> Value {
    let named = |set: &Set| with_named(kind, set);
    let all = named(&fields_of(kind, merged));
    let last = named(last);
    let without_last = remove(kind, merged, &last);
    let kept = named(&fields_of(kind, &without_last)).union(&named(owned));
    let with_owned = remove(kind, merged, &all.difference(&kept));
    // What nobody owned before stays, whatever was around it.
    let gone = all.difference(&named(&fields_of(kind, &with_owned)));
    remove(kind, merged, &gone.intersection(&last))
}

#[cfg(test)]
mod tests;

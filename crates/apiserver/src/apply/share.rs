//! Equal parts of what managers own are kept once.
//!
//! Thousands of pods have the same managers and nearly the same fields. A small table of what was stored lately finds
//! equal parts again, so that they share memory. It forgets: two equal parts may exist, which costs memory and nothing
//! else.

use std::sync::{Arc, Mutex, PoisonError};

use super::element::hash;
use super::managed::{Entry, Managed, Manager};
use super::set::{Member, Set};

/// How many sets are remembered.
const SETS: usize = 8192;
/// How many managers are remembered.
const MANAGERS: usize = 256;

struct Recent {
    sets: Vec<Option<Arc<Set>>>,
    managers: Vec<Option<Arc<Manager>>>,
}

static RECENT: Mutex<Recent> = Mutex::new(Recent { sets: Vec::new(), managers: Vec::new() });

/// The same managers, sharing what equals something seen lately.
pub fn shared(managed: &Managed) -> Managed {
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    if recent.sets.is_empty() {
        recent.sets = vec![None; SETS];
        recent.managers = vec![None; MANAGERS];
    }
    let entries = managed.entries().iter().map(|entry| Entry {
        manager: recent.manager(&entry.manager),
        time: entry.time,
        fields: recent.set(&entry.fields),
    });
    Managed::new(entries.collect())
}

fn place(hash: u64, size: usize) -> usize {
    usize::try_from((hash ^ (hash >> 29)) % size as u64).unwrap_or_default()
}

impl Recent {
    fn set(&mut self, set: &Arc<Set>) -> Arc<Set> {
        let at = place(set.hash(), SETS);
        if let Some(Some(known)) = self.sets.get(at)
            && (Arc::ptr_eq(known, set) || known == set)
        {
            return known.clone();
        }
        let members = set.members().iter().map(|member| Member {
            below: member.below.as_ref().map(|below| self.set(below)),
            ..member.clone()
        });
        let found = Arc::new(Set::new(members.collect()));
        if let Some(slot) = self.sets.get_mut(at) {
            *slot = Some(found.clone());
        }
        found
    }

    fn manager(&mut self, manager: &Arc<Manager>) -> Arc<Manager> {
        let text = [&manager.name, &manager.subresource, &manager.api_version];
        let sum = text.iter().fold(manager.operation as u64, |sum, text| hash(text.as_bytes(), sum));
        let Some(slot) = self.managers.get_mut(place(sum, MANAGERS)) else { return manager.clone() };
        match slot {
            Some(known) if **known == **manager => known.clone(),
            _ => {
                *slot = Some(manager.clone());
                manager.clone()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::managed::Operation;
    use super::*;

    #[test]
    fn equal_fields_are_kept_once() {
        let managed = || {
            let manager = Manager {
                name: "a".into(),
                operation: Operation::Update,
                api_version: "v1".into(),
                subresource: "".into(),
            };
            let fields = Arc::new(Set::of_field(&["spec", "replicas"]));
            Managed::new(vec![Entry { manager: Arc::new(manager), time: None, fields }])
        };
        let (first, second) = (shared(&managed()), shared(&managed()));
        assert_eq!(first, second);
        let fields = |managed: &Managed| managed.entries()[0].fields.clone();
        assert!(Arc::ptr_eq(&fields(&first), &fields(&second)));
    }
}

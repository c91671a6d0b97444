//! Who owns whom: an index of owner references over all objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;

use crate::store::{Event, EventKind, Record};

/// A table, a namespace and a name.
pub(super) type ObjectKey = (Arc<str>, Arc<str>, Arc<str>);

/// One owner reference.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(super) struct Owner {
    #[serde(default)]
    pub(super) api_version: Box<str>,
    #[serde(default)]
    pub(super) kind: Box<str>,
    #[serde(default)]
    pub(super) name: Box<str>,
    #[serde(default)]
    pub(super) uid: Box<str>,
    #[serde(default)]
    pub(super) controller: Option<bool>,
    #[serde(default)]
    pub(super) block_owner_deletion: Option<bool>,
}

/// The parts of metadata that ownership is about.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta {
    #[serde(default)]
    pub(super) owner_references: Vec<Owner>,
    #[serde(default)]
    pub(super) finalizers: Vec<String>,
}

impl Meta {
    /// Reads the metadata of a record, which is skipped when no word of it matters.
    pub(super) fn of(record: &Record) -> Self {
        let bytes = record.metadata();
        if !contains(&bytes, b"\"ownerReferences\"") && !contains(&bytes, b"\"finalizers\"") {
            return Self::default();
        }
        let Some(bytes) = bytes.strip_prefix(b"\"metadata\":") else { return Self::default() };
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    pub(super) fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

/// What an event means for the garbage collector.
#[derive(Debug, Default)]
pub(super) struct Stir {
    /// Objects to look at.
    pub(super) check: Vec<ObjectKey>,
    /// Owners (of an object in the event's namespace) that may have waited for this.
    pub(super) owners: Arc<[Owner]>,
}

/// The index.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Objects of one owner share the list.
    owners: BTreeMap<ObjectKey, Arc<[Owner]>>,
    dependents: BTreeMap<Box<str>, BTreeSet<ObjectKey>>,
}

impl Graph {
    /// Takes in an event.
    pub(super) fn observe(&mut self, table: &Arc<str>, event: &Event) -> Stir {
        let record = &event.new;
        let mut stir = Stir::default();
        // Most changes are of status alone. What is on its way out is looked at each time.
        if event.kind == EventKind::Modified
            && !record.deleting
            && event.old.as_ref().is_some_and(|old| old.has_metadata_of(record))
        {
            return stir;
        }
        let key: ObjectKey = (table.clone(), record.namespace.clone(), record.name.clone());
        if event.kind == EventKind::Deleted {
            stir.owners = self.replace(&key, &[]);
            stir.check = self.dependents_of(&record.uid);
            return stir;
        }
        let meta = Meta::of(record);
        let marked =
            record.deleting && (meta.has_finalizer("orphan") || meta.has_finalizer("foregroundDeletion"));
        let unchanged =
            self.owners.get(&key).map_or(&[][..], |owners| owners) == meta.owner_references.as_slice();
        if marked || (!unchanged && !meta.owner_references.is_empty()) {
            stir.check.push(key.clone());
        }
        if !unchanged {
            stir.owners = self.replace(&key, &meta.owner_references);
        }
        stir
    }

    /// Sets the owners of an object; the owners it had before.
    fn replace(&mut self, key: &ObjectKey, owners: &[Owner]) -> Arc<[Owner]> {
        let before = self.owners.remove(key).unwrap_or_default();
        for owner in before.iter() {
            if let Some(set) = self.dependents.get_mut(&owner.uid) {
                set.remove(key);
                if set.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
        if let Some(first) = owners.first() {
            let shared = self.like_a_sibling(first, owners).unwrap_or_else(|| owners.into());
            self.owners.insert(key.clone(), shared);
        }
        for owner in owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        before
    }

    /// The same owners as another object of this owner has them.
    fn like_a_sibling(&self, owner: &Owner, owners: &[Owner]) -> Option<Arc<[Owner]>> {
        let sibling = self.dependents.get(&owner.uid)?.first()?;
        self.owners.get(sibling).filter(|known| known.as_ref() == owners).cloned()
    }

    /// All objects that name this owner.
    pub(super) fn dependents_of(&self, uid: &str) -> Vec<ObjectKey> {
        self.dependents.get(uid).map(|set| set.iter().cloned().collect()).unwrap_or_default()
    }

    /// The objects whose reference keeps this owner from going.
    pub(super) fn blocking(&self, uid: &str) -> Vec<ObjectKey> {
        let mut keys = self.dependents_of(uid);
        keys.retain(|key| {
            self.owners.get(key).is_some_and(|owners| {
                owners.iter().any(|owner| &*owner.uid == uid && owner.block_owner_deletion == Some(true))
            })
        });
        keys
    }

    /// The objects of a table that this owner controls.
    pub(super) fn controlled(&self, table: &str, uid: &str) -> Vec<ObjectKey> {
        let mut keys = self.dependents_of(uid);
        keys.retain(|key| &*key.0 == table && self.controller(key).is_some_and(|owner| &*owner.uid == uid));
        keys
    }

    /// The owner that controls an object.
    pub(super) fn controller(&self, key: &ObjectKey) -> Option<&Owner> {
        self.owners.get(key)?.iter().find(|owner| owner.controller == Some(true))
    }

    /// Every object that has owners.
    pub(super) fn all(&self) -> impl Iterator<Item = &ObjectKey> {
        self.owners.keys()
    }
}

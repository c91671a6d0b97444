//! The objects of a cache with their indexes.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use kruise_core::{
    object::ObjectKey,
    text::{Pool, Text},
};

use super::{Change, IndexFn, View};
use crate::{
    decode::{Unread, contained},
    version,
};

/// How many objects that went are remembered.
const GONE: usize = 1024;
/// After how many changes texts that nobody holds are forgotten.
const SWEEP: usize = 20_000;
/// How many objects without a name are told apart.
const NAMELESS: usize = 64;

#[derive(Debug)]
struct Index<V> {
    name: &'static str,
    texts: IndexFn<V>,
    keys: BTreeMap<Text, BTreeSet<ObjectKey>>,
}

#[derive(Debug)]
pub(super) struct Store<V> {
    pub(super) objects: BTreeMap<ObjectKey, Arc<V>>,
    indexes: Vec<Index<V>>,
    pool: Pool,
    changes: usize,
    gone: VecDeque<(ObjectKey, Text)>,
    /// What could not be read of objects.
    unread: BTreeMap<ObjectKey, Arc<[Unread]>>,
    /// Objects without a name that were seen.
    nameless: BTreeSet<u64>,
    /// How often an index panicked.
    pub(super) panics: u64,
    /// Whether the first list is complete.
    pub(super) synced: bool,
    /// The keys of the list that is being read.
    listing: Option<BTreeSet<ObjectKey>>,
    /// How many lists were asked for, up to which the running one reaches, and up to which one is complete.
    pub(super) asked: u64,
    reaches: u64,
    pub(super) listed: u64,
}

impl<V> Default for Store<V> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            indexes: Vec::new(),
            pool: Pool::default(),
            changes: 0,
            gone: VecDeque::new(),
            unread: BTreeMap::new(),
            nameless: BTreeSet::new(),
            panics: 0,
            synced: false,
            listing: None,
            asked: 0,
            reaches: 0,
            listed: 0,
        }
    }
}

impl<V: View> Store<V> {
    pub(super) fn add_index(&mut self, name: &'static str, texts: IndexFn<V>) {
        self.indexes.push(Index { name, texts, keys: BTreeMap::new() });
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<Arc<V>> {
        let first = ObjectKey::new(namespace, "");
        self.objects
            .range(first..)
            .take_while(|(key, _)| key.namespace == namespace)
            .map(|(_, object)| object.clone())
            .collect()
    }

    pub(super) fn by_index(&self, name: &str, text: &str) -> Vec<Arc<V>> {
        let Some(index) = self.indexes.iter().find(|index| index.name == name) else { return Vec::new() };
        let Some(keys) = index.keys.get(text) else { return Vec::new() };
        keys.iter().filter_map(|key| self.objects.get(key)).cloned().collect()
    }

    pub(super) fn has_gone(&self, key: &ObjectKey, uid: &str) -> bool {
        self.gone.iter().any(|(known, known_uid)| known == key && *known_uid == uid)
    }

    pub(super) fn ask_list(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }

    pub(super) fn is_listing(&self) -> bool {
        self.listing.is_some()
    }

    /// A list begins.
    pub(super) fn begin_list(&mut self) {
        self.listing = Some(BTreeSet::new());
        self.reaches = self.asked;
    }

    /// An object is there, by a list or a watch. Nothing comes back when that is known already.
    pub(super) fn apply(&mut self, mut object: V) -> Option<Change<V>> {
        object.share(&mut self.pool);
        let key = object.metadata().key();
        if let Some(listing) = &mut self.listing {
            listing.insert(key.clone());
        }
        let old = self.objects.get(&key).cloned();
        if let Some(old) = &old
            && version::reached(&old.metadata().resource_version, &object.metadata().resource_version)
        {
            return None;
        }
        let new = Arc::new(object);
        self.reindex(&key, old.as_deref(), Some(&new));
        self.objects.insert(key.clone(), new.clone());
        self.swept();
        Some(Change { key, old, new: Some(new), initial: !self.synced })
    }

    /// An object is gone.
    pub(super) fn delete(&mut self, object: &V) -> Option<Change<V>> {
        let metadata = object.metadata();
        let key = metadata.key();
        if let Some(listing) = &mut self.listing {
            listing.remove(&key);
        }
        let known = self.objects.get(&key)?;
        let version = &known.metadata().resource_version;
        // A deletion told late, of an object that has a successor by now.
        if known.metadata().uid != metadata.uid && version::reached(version, &metadata.resource_version) {
            return None;
        }
        self.remove(key)
    }

    /// A list is complete: what it does not have is gone. Comes back with what was lost.
    pub(super) fn end_list(&mut self) -> Vec<Change<V>> {
        let listed = self.listing.take().unwrap_or_default();
        let lost: Vec<ObjectKey> = self.objects.keys().filter(|key| !listed.contains(key)).cloned().collect();
        let changes = lost.into_iter().filter_map(|key| self.remove(key)).collect();
        self.synced = true;
        self.listed = self.reaches;
        changes
    }

    /// What could not be read of the newest version of an object; nothing where all could.
    pub(super) fn note_unread(&mut self, key: &ObjectKey, unread: Vec<Unread>) {
        if unread.is_empty() {
            self.unread.remove(key);
        } else {
            self.unread.insert(key.clone(), unread.into());
        }
    }

    /// An object without a name was seen. Tells whether that is news.
    pub(super) fn note_nameless(&mut self, print: u64) -> bool {
        if self.nameless.len() >= NAMELESS {
            self.nameless.clear();
        }
        self.nameless.insert(print)
    }

    /// What could not be read of an object.
    pub(super) fn unread_of(&self, key: &ObjectKey) -> Option<Arc<[Unread]>> {
        self.unread.get(key).cloned()
    }

    /// Objects that could not be read in full, with what could not be read.
    pub(super) fn unread(&self) -> &BTreeMap<ObjectKey, Arc<[Unread]>> {
        &self.unread
    }

    fn remove(&mut self, key: ObjectKey) -> Option<Change<V>> {
        let old = self.objects.remove(&key)?;
        self.unread.remove(&key);
        self.reindex(&key, Some(&old), None);
        self.gone.push_back((key.clone(), old.metadata().uid.clone()));
        if self.gone.len() > GONE {
            self.gone.pop_front();
        }
        self.swept();
        Some(Change { key, old: Some(old), new: None, initial: false })
    }

    fn reindex(&mut self, key: &ObjectKey, old: Option<&V>, new: Option<&V>) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for index in &mut self.indexes {
            before.clear();
            after.clear();
            // One that panics finds nothing for this object; it finds all others.
            self.panics += u64::from(!written(index.texts, old, &mut before));
            self.panics += u64::from(!written(index.texts, new, &mut after));
            if before == after {
                continue;
            }
            for text in &before {
                if let Some(keys) = index.keys.get_mut(text.as_str()) {
                    keys.remove(key);
                    if keys.is_empty() {
                        index.keys.remove(text.as_str());
                    }
                }
            }
            for text in &after {
                index.keys.entry(text.clone()).or_default().insert(key.clone());
            }
        }
    }

    fn swept(&mut self) {
        self.changes += 1;
        if self.changes >= SWEEP {
            self.changes = 0;
            self.pool.sweep();
        }
    }
}

/// Asks an index where it puts an object. Tells whether it answered.
fn written<V>(texts: IndexFn<V>, object: Option<&V>, found: &mut Vec<Text>) -> bool {
    let Some(object) = object else { return true };
    let is_done = contained(|| texts(object, found)).is_some();
    if !is_done {
        found.clear();
    }
    is_done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Plain;

    fn object(name: &str, uid: &str, version: u64, app: &str) -> Plain {
        serde_json::from_value(serde_json::json!({"metadata": {"name": name, "namespace": "ns", "uid": uid,
            "resourceVersion": version.to_string(), "labels": {"app": app}}}))
        .unwrap()
    }

    fn store() -> Store<Plain> {
        let mut store = Store::default();
        store.add_index("app", |object: &Plain, texts| {
            texts.extend(object.metadata.labels.get("app").cloned());
        });
        store
    }

    fn names(objects: &[Arc<Plain>]) -> String {
        objects.iter().map(|object| object.metadata.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_index_follows_its_objects() {
        let mut store = store();
        store.apply(object("b", "1", 1, "web"));
        store.apply(object("a", "2", 2, "web"));
        assert_eq!(names(&store.by_index("app", "web")), "a b");
        store.apply(object("b", "1", 3, "db"));
        assert_eq!(names(&store.by_index("app", "web")), "a");
        assert_eq!(names(&store.by_index("app", "db")), "b");
        store.delete(&object("b", "1", 4, "db"));
        assert!(store.by_index("app", "db").is_empty());
        assert_eq!(names(&store.in_namespace("ns")), "a");
    }

    #[test]
    fn an_index_that_panics_at_an_object_finds_all_others() {
        let mut store = Store::default();
        store.add_index("app", |object: &Plain, texts| {
            let app = object.metadata.labels.get("app").cloned().unwrap_or_default();
            assert_ne!(app, "touchy");
            texts.push(app);
        });
        store.apply(object("a", "1", 1, "web"));
        assert!(store.apply(object("b", "2", 2, "touchy")).is_some());
        store.apply(object("c", "3", 3, "web"));
        assert_eq!(names(&store.by_index("app", "web")), "a c");
        assert_eq!((store.objects.len(), store.panics), (3, 1));
        store.apply(object("b", "2", 4, "web"));
        assert_eq!(names(&store.by_index("app", "web")), "a b c");
        store.apply(object("a", "1", 5, "touchy"));
        assert_eq!(names(&store.by_index("app", "web")), "b c");
        assert!(store.delete(&object("a", "1", 6, "touchy")).is_some());
    }

    #[test]
    fn old_news_changes_nothing() {
        let mut store = store();
        assert!(store.apply(object("a", "1", 5, "x")).is_some());
        assert!(store.apply(object("a", "1", 5, "x")).is_none(), "told twice");
        assert!(store.apply(object("a", "1", 4, "y")).is_none(), "told late");
        assert!(store.apply(object("a", "2", 9, "x")).is_some(), "a successor");
        assert!(store.delete(&object("a", "1", 7, "x")).is_none(), "the end of its predecessor");
        assert_eq!(store.objects.len(), 1);
    }

    #[test]
    fn a_list_reveals_what_went_unseen() {
        let mut store = store();
        store.begin_list();
        store.apply(object("a", "1", 1, "x"));
        store.apply(object("b", "2", 2, "x"));
        assert!(store.end_list().is_empty());
        store.begin_list();
        store.apply(object("b", "2", 2, "x"));
        let lost = store.end_list();
        assert_eq!(lost.len(), 1);
        assert!(lost[0].new.is_none() && !lost[0].initial);
        assert!(store.has_gone(&ObjectKey::new("ns", "a"), "1"));
    }
}

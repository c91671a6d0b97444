//! The objects, in memory, under one monotonic resource version.
//!
//! Every resource has a table: the current records, ordered by namespace and name, and a bounded history of
//! events. A watcher reads the history by a cursor. The state at an older version is the current state with
//! the newer events undone, so an exact list or a continue token needs no copies.
//!
//! Invariant: within a table, history versions rise strictly, and every version above `compacted` is there.

mod cursor;
mod fields;
mod journal;
mod packed;
mod record;
mod signal;
mod table;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

pub use cursor::Cursor;
pub use fields::Fields;
pub use journal::{Journal, Saved};
pub use record::{Labels, Record};
use table::Table;

use crate::apply::Managed;

/// How much history each table keeps.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most events of one table.
    pub events: usize,
    /// Most bytes of JSON that the events of one table hold.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { events: 32_768, bytes: 96 << 20 }
    }
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It was created.
    Added,
    /// It was changed.
    Modified,
    /// It was removed.
    Deleted,
}

impl EventKind {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The object before.
    pub old: Option<Arc<Record>>,
    /// The object after; for a deletion its last state, under the version of the deletion.
    pub new: Arc<Record>,
}

impl Event {
    /// The version at which this happened.
    pub fn rv(&self) -> u64 {
        self.new.rv
    }
}

/// An object about to be stored.
#[derive(Debug)]
pub struct Draft {
    /// The whole object, in the version in which it is stored.
    pub value: Value,
    /// What field selectors may ask about, without `metadata.name` and `metadata.namespace`.
    pub fields: Fields,
    /// Who manages which fields.
    pub managed: Option<Arc<Managed>>,
}

impl Draft {
    /// An object without anything beside it.
    pub fn new(value: Value) -> Self {
        Self { value, fields: Fields::default(), managed: None }
    }
}

/// Why a write did not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// An object of that name is there already.
    Exists,
    /// No object of that name is there.
    Absent,
    /// The object is there in another version.
    Moved,
    /// The object cannot be stored at all; the text says why.
    Malformed(&'static str),
}

/// The history no longer reaches back that far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOld {
    /// The oldest version that can still be asked for.
    pub oldest: u64,
}

/// Where a scan looks, and at which version.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scan<'a> {
    /// Only this namespace.
    pub namespace: Option<&'a str>,
    /// Only what comes after this namespace and name.
    pub after: Option<(&'a str, &'a str)>,
    /// The state at this version, not the current one.
    pub at: Option<u64>,
}

/// All objects. Shared by reference; every operation is atomic.
#[derive(Debug)]
pub struct Store {
    limits: Limits,
    state: Mutex<State>,
    journal: Option<Arc<dyn Journal>>,
}

#[derive(Debug)]
struct State {
    rv: u64,
    /// The version that the store began with: nobody can be told what happened before.
    begun: u64,
    tables: BTreeMap<Arc<str>, Table>,
}

impl State {
    fn table(&mut self, name: &str) -> &mut Table {
        if !self.tables.contains_key(name) {
            self.tables.insert(name.into(), Table::new(self.rv, self.begun));
        }
        self.tables.get_mut(name).expect("the table was inserted above")
    }
}

impl Store {
    /// An empty store.
    pub fn new(limits: Limits) -> Self {
        let state = State { rv: 1, begun: 0, tables: BTreeMap::new() };
        Self { limits, state: Mutex::new(state), journal: None }
    }

    /// An empty store that goes on from a version and tells a journal what happens. Fill it with [`Self::restore`].
    pub fn kept_by(journal: Arc<dyn Journal>, version: u64, limits: Limits) -> Self {
        let state = State { rv: version.max(1), begun: version, tables: BTreeMap::new() };
        Self { limits, state: Mutex::new(state), journal: Some(journal) }
    }

    /// Puts an object back under the version that it had. Nobody is told.
    pub fn restore(&self, table: &str, draft: Draft) -> Result<(), Refused> {
        let version = draft.value.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let Some(version) = version.and_then(|version| version.parse().ok()) else {
            return Err(Refused::Malformed("the object has no version"));
        };
        let record = Record::encode(draft, Some(version)).map_err(Refused::Malformed)?;
        self.lock().table(table).restore(record);
        Ok(())
    }

    /// Waits until all that happened so far is safe. Without a journal nothing ever is, and nobody waits.
    pub async fn safe(&self) -> Result<(), String> {
        match &self.journal {
            Some(journal) => journal.safe(self.version()).await,
            None => Ok(()),
        }
    }

    /// Tells readers and the journal what happened.
    fn put(&self, state: &mut State, table: &str, event: Event) {
        if let Some(journal) = &self.journal {
            journal.note(table, &event);
        }
        state.table(table).put(event, self.limits);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version of the last write.
    pub fn version(&self) -> u64 {
        self.lock().rv
    }

    /// One object.
    pub fn get(&self, table: &str, namespace: &str, name: &str) -> Option<Arc<Record>> {
        self.lock().tables.get(table)?.get(namespace, name).cloned()
    }

    /// Stores a new object.
    pub fn create(&self, table: &str, draft: Draft) -> Result<Arc<Record>, Refused> {
        let mut state = self.lock();
        let rv = state.rv + 1;
        let record = Record::encode(draft, Some(rv)).map_err(Refused::Malformed)?;
        let record = state.table(table).settle(record);
        if state.table(table).get(&record.namespace, &record.name).is_some() {
            return Err(Refused::Exists);
        }
        self.put(&mut state, table, Event { kind: EventKind::Added, old: None, new: record.clone() });
        state.rv = rv;
        Ok(record)
    }

    /// Replaces an object, if it still has the version `expected`.
    pub fn replace(&self, table: &str, draft: Draft, expected: u64) -> Result<Arc<Record>, Refused> {
        let mut state = self.lock();
        let rv = state.rv + 1;
        let record = Record::encode(draft, Some(rv)).map_err(Refused::Malformed)?;
        let record = state.table(table).settle(record);
        let old = state.table(table).get(&record.namespace, &record.name).ok_or(Refused::Absent)?.clone();
        if old.rv != expected {
            return Err(Refused::Moved);
        }
        let event = Event { kind: EventKind::Modified, old: Some(old), new: record.clone() };
        self.put(&mut state, table, event);
        state.rv = rv;
        Ok(record)
    }

    /// Puts any JSON in the place of an object that is there: `metadata` as its metadata (if that is an object, it gets the
    /// new version), and `rest` behind it, which is empty or begins with a comma. Nobody checks anything. Only for tests of
    /// those who read what no server should have stored.
    pub fn put_raw(
        &self,
        table: &str,
        namespace: &str,
        name: &str,
        metadata: &str,
        rest: &str,
    ) -> Result<Arc<Record>, Refused> {
        let mut state = self.lock();
        let rv = state.rv + 1;
        let old = state.table(table).get(namespace, name).ok_or(Refused::Absent)?.clone();
        let record = state.table(table).settle(old.with_raw(metadata, rest, rv));
        let event = Event { kind: EventKind::Modified, old: Some(old), new: record.clone() };
        self.put(&mut state, table, event);
        state.rv = rv;
        Ok(record)
    }

    /// Removes an object, if it still has the version `expected`. Returns its last state under the version of
    /// the removal.
    pub fn remove(
        &self,
        table: &str,
        namespace: &str,
        name: &str,
        expected: u64,
    ) -> Result<Arc<Record>, Refused> {
        let mut state = self.lock();
        let rv = state.rv + 1;
        let old = state.table(table).get(namespace, name).ok_or(Refused::Absent)?.clone();
        if old.rv != expected {
            return Err(Refused::Moved);
        }
        let last = state.table(table).settle(old.at_version(rv));
        let event = Event { kind: EventKind::Deleted, old: Some(old), new: last.clone() };
        self.put(&mut state, table, event);
        state.rv = rv;
        Ok(last)
    }

    /// Replaces an object and removes it, if it still has the version `expected`. Readers see both, but nobody comes
    /// in between. Returns its last state under the version of the removal.
    pub fn replace_and_remove(
        &self,
        table: &str,
        draft: Draft,
        expected: u64,
    ) -> Result<Arc<Record>, Refused> {
        let mut state = self.lock();
        let rv = state.rv + 1;
        let marked = Record::encode(draft, Some(rv)).map_err(Refused::Malformed)?;
        let marked = state.table(table).settle(marked);
        let old = state.table(table).get(&marked.namespace, &marked.name).ok_or(Refused::Absent)?.clone();
        if old.rv != expected {
            return Err(Refused::Moved);
        }
        let last = state.table(table).settle(marked.at_version(rv + 1));
        let event = Event { kind: EventKind::Modified, old: Some(old), new: marked.clone() };
        self.put(&mut state, table, event);
        let event = Event { kind: EventKind::Deleted, old: Some(marked), new: last.clone() };
        self.put(&mut state, table, event);
        state.rv = rv + 1;
        Ok(last)
    }

    /// Shows the records in order until `visit` breaks. Returns the version of what was seen.
    pub fn scan(
        &self,
        table: &str,
        scan: Scan<'_>,
        visit: impl FnMut(&Arc<Record>) -> ControlFlow<()>,
    ) -> Result<u64, TooOld> {
        let mut state = self.lock();
        let now = state.rv;
        let at = scan.at.unwrap_or(now);
        state.table(table).scan(scan, at, visit)?;
        Ok(at)
    }

    /// All current records of a table (or of one namespace of it), and the version they were read at.
    pub fn list(&self, table: &str, namespace: Option<&str>) -> (u64, Vec<Arc<Record>>) {
        let mut records = Vec::new();
        let seen = self.scan(table, Scan { namespace, ..Scan::default() }, |record| {
            records.push(record.clone());
            ControlFlow::Continue(())
        });
        (seen.unwrap_or_else(|old| old.oldest), records)
    }

    /// A reader of everything that happens to a table after version `from`.
    pub fn watch(self: &Arc<Self>, table: &str, from: u64) -> Cursor {
        let mut state = self.lock();
        let found = state.table(table);
        let (signal, ended) = (found.subscribe(), found.ended());
        drop(state);
        Cursor::new(self.clone(), table.into(), from, signal, ended)
    }

    /// The resource of this table is no longer served: its readers are told what happened so far, and then end.
    pub fn end(&self, table: &str) {
        let mut state = self.lock();
        let rv = state.rv;
        state.table(table).end(rv);
    }

    fn ended(&self, table: &str) -> u64 {
        self.lock().table(table).ended()
    }

    /// Forgets the history of all tables, as etcd's compaction does. Older watches and lists then answer `410`.
    pub fn compact(&self) {
        let mut state = self.lock();
        let rv = state.rv;
        for table in state.tables.values_mut() {
            table.compact(rv);
        }
    }

    /// The events after `after`, at most `most`, and the version up to which the reader is then informed.
    fn events_after(&self, table: &str, after: u64, most: usize) -> Result<(u64, Vec<Arc<Event>>), TooOld> {
        let mut state = self.lock();
        let now = state.rv;
        let events = state.table(table).events_after(after, most)?;
        let informed = match events.last() {
            Some(last) if events.len() == most => last.rv(),
            _ => now.max(after),
        };
        Ok((informed, events))
    }
}

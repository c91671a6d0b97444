//! The records and the history of one resource.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use super::packed::{Packed, Texts};
use super::signal::Signal;
use super::{Event, EventKind, Labels, Limits, Record, Scan, TooOld};

type Named = BTreeMap<Arc<str>, Arc<Record>>;
type Key<'a> = (&'a str, &'a str);

/// How many different labels a table remembers.
const REMEMBERED: usize = 16;

#[derive(Debug)]
pub(super) struct Table {
    objects: BTreeMap<Arc<str>, Named>,
    history: VecDeque<Arc<Event>>,
    bytes: usize,
    compacted: u64,
    /// How often the resource ended; its readers of before end with it.
    ended: u64,
    signal: Arc<Signal>,
    /// Whole texts that others stand on.
    texts: Texts,
    /// Labels that were stored last.
    labels: VecDeque<Labels>,
}

impl Table {
    /// `begun` is the version that the store began with.
    pub(super) fn new(rv: u64, begun: u64) -> Self {
        Self {
            objects: BTreeMap::new(),
            history: VecDeque::new(),
            bytes: 0,
            // Nothing happened to this table before it existed, so every older version can be answered; but what
            // an earlier process did is not known.
            compacted: begun,
            ended: 0,
            signal: Arc::new(Signal::new(rv)),
            texts: Texts::default(),
            labels: VecDeque::new(),
        }
    }

    pub(super) fn subscribe(&self) -> Arc<Signal> {
        self.signal.clone()
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&Arc<Record>> {
        self.objects.get(namespace)?.get(name)
    }

    /// Makes a record small: what it has in common with others of the table is shared with them.
    pub(super) fn settle(&mut self, mut record: Record) -> Arc<Record> {
        if let Packed::Whole(text) = &record.json {
            record.json = self.texts.pack(text);
        }
        if let Some((namespace, named)) = self.objects.get_key_value(&record.namespace) {
            record.namespace = namespace.clone();
            if let Some(before) = named.get(&record.name) {
                record.name = before.name.clone();
                if record.uid == before.uid {
                    record.uid = before.uid.clone();
                }
            }
        }
        match self.labels.iter().find(|labels| **labels == record.labels) {
            Some(labels) => record.labels = labels.clone(),
            None => {
                self.labels.truncate(REMEMBERED - 1);
                self.labels.push_front(record.labels.clone());
            }
        }
        Arc::new(record)
    }

    pub(super) fn put(&mut self, event: Event, limits: Limits) {
        let record = &event.new;
        match event.kind {
            EventKind::Added | EventKind::Modified => {
                self.objects
                    .entry(record.namespace.clone())
                    .or_default()
                    .insert(record.name.clone(), record.clone());
            }
            EventKind::Deleted => {
                if let Some(named) = self.objects.get_mut(&record.namespace) {
                    named.remove(&record.name);
                    if named.is_empty() {
                        self.objects.remove(&record.namespace);
                    }
                }
            }
        }
        let rv = record.rv;
        self.bytes += record.size();
        self.history.push_back(Arc::new(event));
        while self.history.len() > limits.events || self.bytes > limits.bytes {
            let Some(oldest) = self.history.pop_front() else { break };
            self.bytes -= oldest.new.size();
            self.compacted = oldest.rv();
        }
        self.signal.raise(rv);
    }

    /// Puts a record back that was there when the store began.
    pub(super) fn restore(&mut self, record: Record) {
        let record = self.settle(record);
        self.objects.entry(record.namespace.clone()).or_default().insert(record.name.clone(), record);
    }

    pub(super) fn end(&mut self, rv: u64) {
        self.ended += 1;
        self.signal.raise(rv);
    }

    pub(super) fn ended(&self) -> u64 {
        self.ended
    }

    pub(super) fn compact(&mut self, rv: u64) {
        self.history.clear();
        self.bytes = 0;
        self.compacted = rv;
    }

    pub(super) fn events_after(&self, after: u64, most: usize) -> Result<Vec<Arc<Event>>, TooOld> {
        self.check(after)?;
        let start = self.history.partition_point(|event| event.rv() <= after);
        Ok(self.history.iter().skip(start).take(most).cloned().collect())
    }

    fn check(&self, at: u64) -> Result<(), TooOld> {
        if at < self.compacted { Err(TooOld { oldest: self.compacted }) } else { Ok(()) }
    }

    pub(super) fn scan(
        &self,
        scan: Scan<'_>,
        at: u64,
        mut visit: impl FnMut(&Arc<Record>) -> ControlFlow<()>,
    ) -> Result<(), TooOld> {
        self.check(at)?;
        let undone = self.undone(scan, at);
        let mut undone = undone.into_iter().peekable();
        for record in self.current(scan) {
            let key: Key<'_> = (&record.namespace, &record.name);
            // What was there at `at` and is gone now comes in its place in the order.
            while let Some((_, then)) = undone.next_if(|(other, _)| *other < key) {
                if let Some(then) = then
                    && visit(&then).is_break()
                {
                    return Ok(());
                }
            }
            let seen = match undone.next_if(|(other, _)| *other == key) {
                Some((_, then)) => then,
                None => Some(record.clone()),
            };
            if let Some(seen) = seen
                && visit(&seen).is_break()
            {
                return Ok(());
            }
        }
        for (_, then) in undone {
            if let Some(then) = then
                && visit(&then).is_break()
            {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The current records of the scan's range, in order.
    fn current<'s>(&'s self, scan: Scan<'s>) -> impl Iterator<Item = &'s Arc<Record>> {
        let from = match (scan.namespace, scan.after) {
            (Some(namespace), _) => Bound::Included(namespace),
            (None, Some((namespace, _))) => Bound::Included(namespace),
            (None, None) => Bound::Unbounded,
        };
        self.objects
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(move |(namespace, _)| scan.namespace.is_none_or(|only| only == namespace.as_ref()))
            .flat_map(move |(namespace, named)| {
                let from = match scan.after {
                    Some((after, name)) if after == namespace.as_ref() => Bound::Excluded(name),
                    _ => Bound::Unbounded,
                };
                named.range::<str, _>((from, Bound::Unbounded)).map(|(_, record)| record)
            })
    }

    /// What each object changed since `at` was then: nothing, or an older record.
    fn undone<'s>(&'s self, scan: Scan<'s>, at: u64) -> BTreeMap<Key<'s>, Option<Arc<Record>>> {
        let mut then = BTreeMap::new();
        for event in self.history.iter().rev().take_while(|event| event.rv() > at) {
            let key: Key<'_> = (&event.new.namespace, &event.new.name);
            let inside = scan.namespace.is_none_or(|only| only == key.0);
            if inside && scan.after.is_none_or(|after| key > after) {
                then.insert(key, event.old.clone());
            }
        }
        then
    }
}

//! A watcher's place in the history of one table.

use std::sync::Arc;

use super::signal::Signal;
use super::{Event, Store, TooOld};

/// Most events handed out at once, so that a slow reader does not hold many records.
const BATCH: usize = 256;

/// Reads the events of a table in order, without missing one.
#[derive(Debug)]
pub struct Cursor {
    store: Arc<Store>,
    table: Arc<str>,
    informed: u64,
    seen: u64,
    signal: Arc<Signal>,
    ended: u64,
}

impl Cursor {
    pub(super) fn new(
        store: Arc<Store>,
        table: Arc<str>,
        from: u64,
        signal: Arc<Signal>,
        ended: u64,
    ) -> Self {
        let seen = signal.version();
        Self { store, table, informed: from, seen, signal, ended }
    }

    /// Whether the resource is no longer served since this reader began.
    pub fn is_ended(&self) -> bool {
        self.store.ended(&self.table) != self.ended
    }

    /// The version up to which everything was handed out.
    pub fn informed(&self) -> u64 {
        self.informed
    }

    /// What happened since the last call; empty when nothing did.
    pub fn take(&mut self) -> Result<Vec<Arc<Event>>, TooOld> {
        self.seen = self.signal.version();
        let (informed, events) = self.store.events_after(&self.table, self.informed, BATCH)?;
        self.informed = informed;
        Ok(events)
    }

    /// Waits until there may be something to take.
    pub async fn wait(&mut self) {
        self.seen = self.signal.changed_from(self.seen).await;
    }

    /// Waits for the next events.
    pub async fn next(&mut self) -> Result<Vec<Arc<Event>>, TooOld> {
        loop {
            let events = self.take()?;
            if !events.is_empty() {
                return Ok(events);
            }
            self.wait().await;
        }
    }
}

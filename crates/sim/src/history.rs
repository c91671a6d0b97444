//! Everything that happened to the objects of a server, in order.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use kruise_apiserver::ApiServer;
use kruise_apiserver::store::{Cursor, Event};
use sha2::{Digest as _, Sha256};

use crate::image::hex;

/// Tables whose changes are only signs of life.
const SIGNS_OF_LIFE: [&str; 2] = ["coordination.k8s.io/leases", "/events"];

/// Records all changes of all kinds from its making on. Call [`Recorder::take`] often enough that the server's
/// bounded history still has everything.
#[derive(Debug)]
pub struct Recorder {
    server: ApiServer,
    cursors: BTreeMap<Arc<str>, Cursor>,
    hash: Sha256,
    events: u64,
    lost: bool,
}

impl Recorder {
    /// Begins to record.
    pub fn new(server: &ApiServer) -> Self {
        let mut recorder = Self {
            server: server.clone(),
            cursors: BTreeMap::new(),
            hash: Sha256::new(),
            events: 0,
            lost: false,
        };
        recorder.follow(server.store().version());
        recorder
    }

    /// Begins with kinds that have come since.
    fn follow(&mut self, from: u64) {
        for resource in self.server.registry().all() {
            let table = &resource.table;
            if !self.cursors.contains_key(table) {
                self.cursors.insert(table.clone(), self.server.store().watch(table, from));
            }
        }
    }

    /// What happened since the last call, in the order of the versions: the table and the event.
    pub fn take(&mut self) -> Vec<(Arc<str>, Arc<Event>)> {
        self.follow(0);
        let mut all = Vec::new();
        for (table, cursor) in &mut self.cursors {
            loop {
                match cursor.take() {
                    Ok(events) if events.is_empty() => break,
                    Ok(events) => all.extend(events.into_iter().map(|event| (table.clone(), event))),
                    Err(_) => {
                        self.lost = true;
                        *cursor = self.server.store().watch(table, self.server.store().version());
                        break;
                    }
                }
            }
        }
        all.sort_by_key(|(_, event)| event.rv());
        for (table, event) in &all {
            self.events += 1;
            self.hash.update(table.as_bytes());
            self.hash.update(event.kind.as_str().as_bytes());
            self.hash.update(event.new.json());
            self.hash.update(b"\n");
        }
        all
    }

    /// Whether something happened that is more than a sign of life.
    pub fn moved(&mut self) -> bool {
        self.take().iter().any(|(table, _)| !SIGNS_OF_LIFE.contains(&table.as_ref()))
    }

    /// A digest of every event so far, byte for byte.
    pub fn digest(&mut self) -> String {
        self.take();
        hex(&self.hash.clone().finalize())
    }

    /// How many events there were.
    pub fn len(&self) -> u64 {
        self.events
    }

    /// Whether nothing was recorded yet.
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Whether the server's history was too short for the pauses between the calls.
    pub fn lost_events(&self) -> bool {
        self.lost
    }
}

/// One event as a short line, for messages of failed tests: `12 MODIFIED /pods default/web-1`.
pub fn line(table: &str, event: &Event) -> String {
    let mut text = String::new();
    let record = &event.new;
    let _ =
        write!(text, "{} {} {table} {}/{}", event.rv(), event.kind.as_str(), record.namespace, record.name);
    text
}

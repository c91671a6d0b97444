//! Event objects: who said what about which object, and their end after an hour.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kruise_apiserver::client::Local;
use kruise_apiserver::clock::seconds_text;
use kruise_apiserver::patch::Patch;
use kruise_apiserver::registry::Resource;
use kruise_apiserver::rest::DeleteOptions;
use kruise_apiserver::store::{Cursor, EventKind, Store};
use serde_json::json;

use crate::json::fields;
use crate::time::{later, until};

/// How long an event is kept after it was last seen.
const KEPT: Duration = Duration::from_secs(3600);
/// How many repeated events a recorder remembers.
const REMEMBERED: usize = 4096;
/// How often a name is looked for.
const TRIES: usize = 16;

/// The pod an event is about.
pub(crate) struct About<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    /// `spec.containers{app}`, or empty.
    pub(crate) field: &'a str,
}

/// Writes events in the name of one component. The same words about the same pod are counted.
pub(crate) struct Recorder {
    local: Local,
    events: Option<Arc<Resource>>,
    component: &'static str,
    /// The time in the last event's name.
    last: i128,
    repeated: BTreeMap<String, (String, u64)>,
}

impl Recorder {
    pub(crate) fn new(local: Local, component: &'static str, enabled: bool) -> Self {
        let events = if enabled { local.resource("", "events").ok() } else { None };
        Self { local, events, component, last: 0, repeated: BTreeMap::new() }
    }

    pub(crate) async fn record(
        &mut self,
        about: About<'_>,
        host: &str,
        warning: bool,
        reason: &str,
        message: &str,
    ) {
        let Some(events) = self.events.clone() else { return };
        let now = self.local.server().clock().now();
        let at = seconds_text(now);
        let key = format!("{}/{}/{reason}/{message}", about.uid, about.field);
        if let Some((name, count)) = self.repeated.get_mut(&key) {
            *count += 1;
            let patch = Patch::Merge(fields(json!({"count": *count, "lastTimestamp": at})));
            if self.local.patch(&events, about.namespace, name, None, &patch).await.is_ok() {
                return;
            }
            self.repeated.remove(&key);
        }
        let mut involved = json!({
            "kind": "Pod", "apiVersion": "v1", "namespace": about.namespace, "name": about.name, "uid": about.uid,
        });
        if let (Some(map), false) = (involved.as_object_mut(), about.field.is_empty()) {
            map.insert("fieldPath".to_owned(), json!(about.field));
        }
        let mut source = json!({"component": self.component});
        if let (Some(map), false) = (source.as_object_mut(), host.is_empty()) {
            map.insert("host".to_owned(), json!(host));
        }
        let mut event = json!({
            "metadata": {"namespace": about.namespace},
            "involvedObject": involved, "reason": reason, "message": message, "source": source,
            "firstTimestamp": at, "lastTimestamp": at, "count": 1, "type": if warning { "Warning" } else { "Normal" },
            "reportingComponent": self.component, "reportingInstance": host,
        });
        // Names end with the time in nanoseconds, so that lists are in the order of events. Virtual time stands
        // still, so each takes the next, and one that another component has taken already is left to it.
        self.last = now.as_nanosecond().max(self.last + 1);
        for _ in 0..TRIES {
            let name = format!("{}.{:x}", about.name, self.last);
            if self.local.server().store().get(&events.table, about.namespace, &name).is_some() {
                self.last += 1;
                continue;
            }
            kruise_api::json::set(&mut event, &["metadata", "name"], name.as_str());
            match self.local.create(&events, about.namespace, std::mem::take(&mut event)).await {
                Ok(_) => {
                    if self.repeated.len() >= REMEMBERED {
                        self.repeated.clear();
                    }
                    self.repeated.insert(key, (name, 1));
                    return;
                }
                // An event that cannot be written (its namespace goes away) is lost, as in a real cluster.
                Err(_) => return,
            }
        }
    }
}

/// Where the end of events begins to look: to be taken before anybody writes one.
pub(crate) fn watch(local: &Local) -> Option<(Arc<Resource>, Cursor)> {
    let events = local.resource("", "events").ok()?;
    let store = local.server().store();
    let cursor = store.watch(&events.table, store.version());
    Some((events, cursor))
}

/// Removes events an hour after their last change, for ever. What was there before counts as changed at the start.
pub(crate) async fn expire(local: Local, events: Arc<Resource>, mut cursor: Cursor) {
    let server = local.server().clone();
    let store: Arc<Store> = server.store().clone();
    let due = later(server.clock().now(), KEPT);
    let known = store.list(&events.table, None).1.into_iter().filter(|record| record.rv <= cursor.informed());
    let mut queue: VecDeque<(Timestamp, Arc<str>, Arc<str>, u64)> =
        known.map(|record| (due, record.namespace.clone(), record.name.clone(), record.rv)).collect();
    loop {
        let now = server.clock().now();
        match cursor.take() {
            Ok(new) => {
                let more = !new.is_empty();
                for event in new.iter().filter(|event| event.kind != EventKind::Deleted) {
                    let record = &event.new;
                    queue.push_back((
                        later(now, KEPT),
                        record.namespace.clone(),
                        record.name.clone(),
                        record.rv,
                    ));
                }
                if more {
                    continue;
                }
            }
            Err(_) => cursor = store.watch(&events.table, store.version()),
        }
        while queue.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, namespace, name, version)) = queue.pop_front() else { break };
            if store.get(&events.table, &namespace, &name).is_some_and(|record| record.rv == version) {
                let _ = local.delete(&events, &namespace, &name, &DeleteOptions::default()).await;
            }
        }
        let wait = queue.front().map_or(KEPT, |(at, ..)| until(now, *at));
        // New events only make the queue longer, so it is enough to look when the oldest one is due.
        let wait = server.clock().real(wait.min(KEPT / 12).max(Duration::from_millis(1)));
        tokio::time::sleep(wait).await;
    }
}

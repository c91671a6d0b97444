//! Events, as client libraries record them: repeats are counted, similar ones combined, floods dropped.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::object::{merge, text};
use crate::client::Local;
use crate::clock::seconds_text;
use crate::registry::Resource;

/// Similar events within this time are combined.
const SIMILAR_SECONDS: i64 = 600;
/// From this many different messages on, similar events are combined.
const SIMILAR_MOST: usize = 10;
/// An object may have so many events at once.
const BURST: i64 = 25;
/// After that it may have one more each so many seconds.
const REFILL_SECONDS: i64 = 300;
/// How many different events are remembered.
const REMEMBERED: usize = 4096;

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Involved {
    kind: String,
    api_version: String,
    namespace: String,
    name: String,
    uid: String,
    version: String,
}

impl Involved {
    pub(super) fn of(resource: &Resource, object: &Value) -> Self {
        let meta = |key: &str| text(object, &format!("/metadata/{key}")).to_owned();
        Self {
            kind: resource.kind.to_string(),
            api_version: resource.api_version(),
            namespace: meta("namespace"),
            name: meta("name"),
            uid: meta("uid"),
            version: meta("resourceVersion"),
        }
    }
}

/// What repeats are recognised by: component, uid, type, reason, and the message (empty for combined ones).
type Repeat = (&'static str, String, &'static str, String, String);

#[derive(Debug, Default)]
struct Similar {
    messages: BTreeSet<String>,
    last: i64,
}

/// Remembers what was recorded.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    similar: BTreeMap<Repeat, Similar>,
    tokens: BTreeMap<(&'static str, String), (i64, i64)>,
    /// The event object and its count.
    recorded: BTreeMap<Repeat, (String, i64)>,
    order: VecDeque<Repeat>,
    last_stamp: i128,
}

/// What to write.
#[derive(Debug, PartialEq, Eq)]
enum Write {
    Nothing,
    Create { name: String, message: String },
    Count { name: String, count: i64, message: String },
}

impl Recorder {
    /// Decides about one event.
    fn note(
        &mut self,
        component: &'static str,
        involved: &Involved,
        kind: &'static str,
        reason: &str,
        message: &str,
        now: Timestamp,
    ) -> (Write, Repeat) {
        let seconds = now.as_second();
        let alike: Repeat = (component, involved.uid.clone(), kind, reason.to_owned(), String::new());
        let similar = self.similar.entry(alike.clone()).or_default();
        if seconds - similar.last > SIMILAR_SECONDS {
            similar.messages.clear();
        }
        similar.last = seconds;
        similar.messages.insert(message.to_owned());
        let combined = similar.messages.len() >= SIMILAR_MOST;
        let (repeat, message) = if combined {
            similar.messages.pop_first();
            (alike, format!("(combined from similar events): {message}"))
        } else {
            ((alike.0, alike.1, alike.2, alike.3, message.to_owned()), message.to_owned())
        };
        let (left, since) = self.tokens.entry((component, involved.uid.clone())).or_insert((BURST, seconds));
        let earned = (seconds - *since) / REFILL_SECONDS;
        *left = (*left + earned).min(BURST);
        *since += earned * REFILL_SECONDS;
        if *left <= 0 {
            return (Write::Nothing, repeat);
        }
        *left -= 1;
        if let Some((name, count)) = self.recorded.get_mut(&repeat) {
            *count += 1;
            return (Write::Count { name: name.clone(), count: *count, message }, repeat);
        }
        // Names end with the time in nanoseconds; virtual time stands still, so each takes the next.
        self.last_stamp = now.as_nanosecond().max(self.last_stamp + 1);
        let name = format!("{}.{:x}", involved.name, self.last_stamp);
        self.recorded.insert(repeat.clone(), (name.clone(), 1));
        self.order.push_back(repeat.clone());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.recorded.remove(&oldest);
            self.similar.remove(&(oldest.0, oldest.1.clone(), oldest.2, oldest.3.clone(), String::new()));
            self.tokens.remove(&(oldest.0, oldest.1));
        }
        (Write::Create { name, message }, repeat)
    }
}

/// Records an event. An event that cannot be written is lost, as everywhere.
pub(super) async fn record(
    recorder: &std::sync::Mutex<Recorder>,
    client: &Local,
    component: &'static str,
    involved: &Involved,
    kind: &'static str,
    reason: &str,
    message: &str,
) {
    let Ok(events) = client.resource("", "events") else { return };
    let now = client.server().clock().now();
    let lock = || recorder.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (write, repeat) = lock().note(component, involved, kind, reason, message, now);
    let namespace = if involved.namespace.is_empty() { "default" } else { &involved.namespace };
    match write {
        Write::Nothing => {}
        Write::Create { name, message } => {
            create(client, &events, component, involved, kind, reason, (&name, &message, 1), now).await;
        }
        Write::Count { name, count, message } => {
            let patch =
                merge(json!({"count": count, "lastTimestamp": seconds_text(now), "message": message}));
            if client.patch(&events, namespace, &name, None, &patch).await.is_err() {
                // Somebody deleted it: the count goes on under a new name.
                lock().recorded.remove(&repeat);
                let name = format!("{}.{:x}", involved.name, now.as_nanosecond());
                create(client, &events, component, involved, kind, reason, (&name, &message, count), now)
                    .await;
                lock().recorded.insert(repeat, (name, count));
            }
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "these are the fields of an event")]
async fn create(
    client: &Local,
    events: &Arc<Resource>,
    component: &str,
    involved: &Involved,
    kind: &str,
    reason: &str,
    (name, message, count): (&str, &str, i64),
    now: Timestamp,
) {
    let namespace = if involved.namespace.is_empty() { "default" } else { &involved.namespace };
    let mut object = json!({
        "kind": involved.kind, "name": involved.name, "uid": involved.uid, "apiVersion": involved.api_version,
        "resourceVersion": involved.version,
    });
    if let Some(map) = object.as_object_mut()
        && !involved.namespace.is_empty()
    {
        map.insert("namespace".to_owned(), json!(involved.namespace));
    }
    let at = seconds_text(now);
    let event = json!({
        "metadata": {"name": name, "namespace": namespace}, "involvedObject": object, "reason": reason,
        "message": message, "source": {"component": component}, "firstTimestamp": at, "lastTimestamp": at,
        "count": count, "type": kind, "eventTime": null, "reportingComponent": component, "reportingInstance": "",
    });
    if let Err(status) = client.create(events, namespace, event).await {
        tracing::debug!(%reason, error = %status.message, "event not recorded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn involved() -> Involved {
        Involved::of_parts("uid-1", "web")
    }

    impl Involved {
        fn of_parts(uid: &str, name: &str) -> Self {
            Self {
                kind: "ReplicaSet".to_owned(),
                api_version: "apps/v1".to_owned(),
                namespace: "default".to_owned(),
                name: name.to_owned(),
                uid: uid.to_owned(),
                version: "1".to_owned(),
            }
        }
    }

    #[test]
    fn repeats_are_counted_and_similar_ones_combined() {
        let mut recorder = Recorder::default();
        let now = Timestamp::constant(1_767_225_600, 0);
        let mut note = |message: &str| recorder.note("c", &involved(), "Normal", "R", message, now).0;
        assert!(matches!(note("same"), Write::Create { .. }));
        assert!(matches!(note("same"), Write::Count { count: 2, .. }));
        for number in 0..8 {
            assert!(matches!(note(&format!("other {number}")), Write::Create { .. }), "{number}");
        }
        let Write::Create { message, .. } = note("ninth") else { panic!("the first combined event is new") };
        assert_eq!(message, "(combined from similar events): ninth");
        assert!(matches!(note("tenth"), Write::Count { count: 2, .. }));
    }

    #[test]
    fn a_flood_of_events_about_one_object_is_cut() {
        let mut recorder = Recorder::default();
        let now = Timestamp::constant(1_767_225_600, 0);
        let written = (0..100)
            .filter(|_| recorder.note("c", &involved(), "Normal", "R", "m", now).0 != Write::Nothing)
            .count();
        assert_eq!(written, 25);
        let later = Timestamp::constant(1_767_225_600 + 301, 0);
        assert_ne!(recorder.note("c", &involved(), "Normal", "R", "m", later).0, Write::Nothing);
        assert_eq!(recorder.note("c", &involved(), "Normal", "R", "m", later).0, Write::Nothing);
    }
}

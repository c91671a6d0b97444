//! Which event is new, which one is an old one again, and which one is too much.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use kruise_core::{
    effect::{Event, Level},
    text::Text,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Told, namespace_of};
use crate::{queue::Bucket, random::Random};

/// For how long events count as the same, or as similar.
const WINDOW: Duration = Duration::from_secs(600);
/// From how many different messages on similar events become one.
const SIMILAR: usize = 10;
/// Events of one source about one object that may come at once, and how often one more may come after that.
const BURST: u32 = 25;
const REFILL: Duration = Duration::from_secs(300);
/// How much is remembered of each.
const REMEMBERED: usize = 4096;

/// An event to be written: made anew, or counted up.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) count: u64,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    pub(super) message: String,
    component: &'static str,
    host: Text,
    part: String,
    event: Event,
}

impl Write {
    /// The whole object.
    pub(super) fn object(&self) -> Value {
        let Event { regarding, level, reason, .. } = &self.event;
        let mut involved = json!({
            "apiVersion": regarding.resource.api_version(),
            "kind": regarding.resource.kind,
            "name": regarding.key.name,
            "uid": regarding.uid,
        });
        if let (Value::Object(members), false) = (&mut involved, regarding.key.namespace.is_empty()) {
            members.insert("namespace".to_owned(), json!(regarding.key.namespace));
        }
        if let (Value::Object(members), false) = (&mut involved, self.part.is_empty()) {
            members.insert("fieldPath".to_owned(), json!(self.part));
        }
        let mut source = json!({"component": self.component});
        if let (Value::Object(members), false) = (&mut source, self.host.is_empty()) {
            members.insert("host".to_owned(), json!(self.host));
        }
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "involvedObject": involved,
            "type": level.as_str(),
            "reason": reason,
            "message": self.message,
            "count": self.count,
            "firstTimestamp": self.first,
            "lastTimestamp": self.last,
            "source": source,
            "reportingComponent": self.component,
            "reportingInstance": self.host,
        })
    }
}

/// Who tells about which object: component, uid, name, and part.
type Subject = (&'static str, String, String, String);
type Kind = (Subject, Level, String);

#[derive(Debug)]
struct Known {
    name: String,
    count: u64,
    first: Timestamp,
}

/// What was told lately.
#[derive(Debug)]
pub(super) struct Correlator {
    random: Random,
    host: Text,
    spam: Remembered<Subject, Bucket>,
    messages: Remembered<Kind, Vec<String>>,
    told: Remembered<(Kind, String), Known>,
}

impl Correlator {
    pub(super) fn new(random: Random, host: Text) -> Self {
        let (spam, messages, told) = (Remembered::default(), Remembered::default(), Remembered::default());
        Self { random, host, spam, messages, told }
    }

    /// What to write; nothing when the object causes too many.
    pub(super) fn correlate(&mut self, told: &Told, now: Instant) -> Option<Write> {
        let Told { component, event, part, at } = told;
        let key = &event.regarding.key;
        let subject: Subject = (component, event.regarding.uid.to_string(), key.to_string(), part.clone());
        let kind: Kind = (subject.clone(), event.level, event.reason.to_string());
        let messages = self.messages.fresh(kind.clone(), now, WINDOW, Vec::new);
        if messages.len() < SIMILAR && !messages.contains(&event.message) {
            messages.push(event.message.clone());
        }
        // The tenth different message and all that follow are told as one event.
        let similar = messages.len() >= SIMILAR;
        let text = if similar { String::new() } else { event.message.clone() };
        let message = if similar {
            format!("(combined from similar events): {}", event.message)
        } else {
            event.message.clone()
        };
        let rate = 1.0 / REFILL.as_secs_f64();
        let spam = self.spam.fresh(subject, now, Duration::MAX, || Bucket::new(rate, BURST));
        if !spam.try_take(now) {
            return None;
        }
        let random = &self.random;
        let known = self.told.fresh((kind, text), now, WINDOW, || Known {
            name: format!("{}.{:016x}", key.name, random.next_u64()),
            count: 0,
            first: *at,
        });
        known.count += 1;
        Some(Write {
            namespace: namespace_of(event).into(),
            name: known.name.clone(),
            count: known.count,
            first: known.first,
            last: *at,
            message,
            component,
            host: self.host.clone(),
            part: part.clone(),
            event: event.clone(),
        })
    }
}

/// A bounded memory that forgets what was not used for longest.
#[derive(Debug)]
struct Remembered<K, V> {
    entries: BTreeMap<K, (Instant, u64, V)>,
    uses: u64,
}

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), uses: 0 }
    }
}

impl<K: Ord + Clone, V> Remembered<K, V> {
    /// The entry of a key, made anew when it was not used for `window`.
    fn fresh(&mut self, key: K, now: Instant, window: Duration, new: impl Fn() -> V) -> &mut V {
        if self.entries.len() >= REMEMBERED && !self.entries.contains_key(&key) {
            let oldest =
                self.entries.iter().min_by_key(|(_, (_, used, _))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| self.entries.remove(&oldest));
        }
        self.uses += 1;
        let (at, used, value) = self.entries.entry(key).or_insert_with(|| (now, 0, new()));
        if now.duration_since(*at) > window {
            *value = new();
        }
        (*at, *used) = (now, self.uses);
        value
    }
}

#[cfg(test)]
mod tests {
    use kruise_core::object::{ObjectKey, ObjectRef, POD};

    use super::*;

    fn told(name: &str, message: &str) -> Told {
        let regarding = ObjectRef { resource: POD, key: ObjectKey::new("ns", name), uid: "u".into() };
        let event =
            Event { regarding, level: Level::Normal, reason: "Made".into(), message: message.to_owned() };
        Told { component: "test", event, part: String::new(), at: Timestamp::UNIX_EPOCH }
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_event_is_counted_and_after_a_while_told_anew() {
        let mut correlator = Correlator::new(Random::seeded(1), Text::default());
        let first = correlator.correlate(&told("a", "x"), Instant::now()).unwrap();
        tokio::time::advance(Duration::from_secs(300)).await;
        let second = correlator.correlate(&told("a", "x"), Instant::now()).unwrap();
        assert_eq!((first.count, second.count), (1, 2));
        assert_eq!(first.name, second.name);
        assert!(first.name.starts_with("a.") && first.name.len() == 18, "{}", first.name);
        tokio::time::advance(Duration::from_secs(601)).await;
        let third = correlator.correlate(&told("a", "x"), Instant::now()).unwrap();
        assert_eq!(third.count, 1);
        assert_ne!(third.name, first.name);
    }

    #[tokio::test(start_paused = true)]
    async fn events_of_a_node_name_it_and_the_container_they_are_about() {
        let mut correlator = Correlator::new(Random::seeded(1), "node-1".into());
        let mut one = told("a", "x");
        one.part = "spec.containers{app}".to_owned();
        let object = correlator.correlate(&one, Instant::now()).unwrap().object();
        assert_eq!(object["involvedObject"]["fieldPath"], "spec.containers{app}");
        assert_eq!(object["source"], json!({"component": "test", "host": "node-1"}));
        one.part = "spec.containers{other}".to_owned();
        let other = correlator.correlate(&one, Instant::now()).unwrap();
        assert_eq!(other.count, 1, "the same words about another container are another event");
    }

    #[tokio::test(start_paused = true)]
    async fn many_similar_events_become_one() {
        let mut correlator = Correlator::new(Random::seeded(1), Text::default());
        let now = Instant::now();
        let writes: Vec<Write> =
            (0..12).filter_map(|n| correlator.correlate(&told("a", &format!("pod {n}")), now)).collect();
        let combined: Vec<&Write> = writes
            .iter()
            .filter(|write| write.message.starts_with("(combined from similar events): "))
            .collect();
        assert_eq!(writes.len(), 12);
        assert_eq!(combined.iter().map(|write| write.count).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_causes_too_many_is_cut_short_and_others_are_not() {
        let mut correlator = Correlator::new(Random::seeded(1), Text::default());
        let told_now = |correlator: &mut Correlator, name: &str, times: usize| {
            (0..times).filter_map(|_| correlator.correlate(&told(name, "x"), Instant::now())).count()
        };
        assert_eq!(told_now(&mut correlator, "a", 40), 25);
        assert_eq!(told_now(&mut correlator, "b", 5), 5);
        tokio::time::advance(Duration::from_secs(601)).await;
        assert_eq!(told_now(&mut correlator, "a", 40), 2);
    }
}

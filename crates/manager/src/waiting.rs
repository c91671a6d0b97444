//! Why objects wait, in events and metrics.
//!
//! An event is sent when a reason has lasted for 10 s, and at most once in 5 minutes for an object and a reason. The metrics
//! follow at once.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kruise_core::{
    effect::Event,
    object::{ObjectKey, ObjectRef, Resource},
    waiting::{Reason, Waits},
};
use kruise_runtime::metrics::{Gauge, Registry};

/// How long a reason lasts before an event reports it.
const REPORT_AFTER: SignedDuration = SignedDuration::from_secs(10);
/// How long a reason of an object is not reported again.
const REMIND_AFTER: SignedDuration = SignedDuration::from_secs(5 * 60);
/// How many objects have a series of their own.
const MOST_SERIES: usize = 5_000;

/// Who waits. Clones are the same.
#[derive(Clone)]
pub struct Waiting(Arc<Inner>);

struct Inner {
    objects: Mutex<BTreeMap<(Resource, ObjectKey), Known>>,
    each: Gauge,
    all: Gauge,
    truncated: Gauge,
}

/// What is known of an object.
#[derive(Default)]
struct Known {
    /// Since when each reason holds.
    since: BTreeMap<Reason, Timestamp>,
    /// When each reason was reported last, also of reasons that are over.
    reported: BTreeMap<Reason, Timestamp>,
    /// The main reason, as the metrics show it.
    main: Option<Reason>,
    /// Whether the object has a series of its own.
    has_series: bool,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Waiting").finish_non_exhaustive()
    }
}

impl Waiting {
    /// Nobody waits yet.
    pub fn new(registry: &Registry) -> Self {
        let each = "Objects that wait, with their main reason: 1 while it lasts.";
        let all = "How many objects wait, by main reason.";
        let truncated = "1 while more objects wait than kruise_waiting has series.";
        Self(Arc::new(Inner {
            objects: Mutex::default(),
            each: registry.wide_gauge(
                "kruise_waiting",
                each,
                &["kind", "namespace", "name", "reason"],
                MOST_SERIES,
            ),
            all: registry.gauge("kruise_waiting_objects", all, &["kind", "reason"]),
            truncated: registry.gauge("kruise_waiting_truncated", truncated, &[]),
        }))
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<(Resource, ObjectKey), Known>> {
        self.0.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why an object waits. Returns the events to send now, and when to look again. `told` is the reason that the
    /// condition of the object has already: an earlier process has reported it.
    pub fn note(
        &self,
        object: &ObjectRef,
        waits: &Waits,
        told: Option<&str>,
        now: Timestamp,
    ) -> (Vec<Event>, Option<Duration>) {
        let key = (object.resource, object.key.clone());
        let mut objects = self.objects();
        let is_first = !objects.contains_key(&key);
        let series = objects.values().filter(|known| known.has_series).count();
        let known = objects.entry(key).or_default();
        known.since.retain(|reason, _| waits.sentence(*reason).is_some());
        known.reported.retain(|_, at| now.duration_since(*at) < REMIND_AFTER);
        let (mut events, mut next) = (Vec::new(), None::<Duration>);
        for (reason, sentence) in waits.all() {
            let since = *known.since.entry(*reason).or_insert(now);
            if is_first && (told == Some(reason.as_str()) || (told.is_none() && reason.is_wanted())) {
                known.reported.insert(*reason, now);
            }
            if known.reported.contains_key(reason) {
                continue;
            }
            let left = REPORT_AFTER.saturating_sub(now.duration_since(since));
            match Duration::try_from(left) {
                Ok(left) if !left.is_zero() => next = Some(next.map_or(left, |next| next.min(left))),
                _ => {
                    known.reported.insert(*reason, now);
                    events.push(Event {
                        regarding: object.clone(),
                        level: reason.level(),
                        reason: "Waiting".into(),
                        message: format!("{}: {sentence}", reason.as_str()),
                    });
                }
            }
        }
        let may_have_series = known.has_series || series < MOST_SERIES;
        self.show(object.resource, &object.key, known, waits.main(), may_have_series);
        self.0
            .truncated
            .set(&[], f64::from(objects.values().any(|known| known.main.is_some() && !known.has_series)));
        (events, next)
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, resource: Resource, key: &ObjectKey) {
        let known = self.objects().remove(&(resource, key.clone()));
        if let Some(mut known) = known {
            self.show(resource, key, &mut known, None, false);
        }
    }

    fn show(
        &self,
        resource: Resource,
        key: &ObjectKey,
        known: &mut Known,
        main: Option<Reason>,
        may_have_series: bool,
    ) {
        if known.main == main {
            return;
        }
        let Inner { each, all, .. } = &*self.0;
        let kind = resource.kind;
        if let Some(before) = known.main {
            let labels = [kind, before.as_str()];
            all.add(&labels, -1.0);
            if all.value(&labels) <= 0.0 {
                all.remove(&labels);
            }
            each.remove(&[kind, &key.namespace, &key.name, before.as_str()]);
        }
        known.has_series = main.is_some() && may_have_series;
        if let Some(main) = main {
            all.add(&[kind, main.as_str()], 1.0);
            if known.has_series {
                each.set(&[kind, &key.namespace, &key.name, main.as_str()], 1.0);
            }
        }
        known.main = main;
    }
}

#[cfg(test)]
mod tests {
    use kruise_core::cloneset::CLONE_SET;

    use super::*;

    fn time(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn object(name: &str) -> ObjectRef {
        ObjectRef { resource: CLONE_SET, key: ObjectKey::new("shop", name), uid: "u".into() }
    }

    fn because(reasons: &[Reason]) -> Waits {
        let mut waits = Waits::default();
        reasons.iter().for_each(|reason| waits.add(*reason, "why"));
        waits
    }

    /// WAITING-27: what comes and goes is not reported; what returns is reported once in five minutes.
    #[test]
    fn an_event_is_sent_for_what_lasts() {
        let waiting = Waiting::new(&Registry::default());
        let (web, none) = (object("web"), Waits::default());
        let broken = because(&[Reason::ImagePullFailing]);
        let mut sent = 0;
        for second in (0..600).step_by(3) {
            let waits = if second % 6 == 0 { &broken } else { &none };
            sent += waiting.note(&web, waits, None, time(second)).0.len();
        }
        assert_eq!(sent, 0);
        for minute in 10..20 {
            for second in [0, 10, 20] {
                sent += waiting.note(&web, &broken, None, time(minute * 60 + second)).0.len();
            }
            waiting.note(&web, &none, None, time(minute * 60 + 30));
        }
        assert_eq!(sent, 2);
        let (_, next) = waiting.note(&web, &broken, None, time(2000));
        assert_eq!(next, Some(Duration::from_secs(10)));
    }

    /// WAITING-2, WAITING-29: after a restart nothing is reported that was reported, or that the user wants.
    #[test]
    fn a_new_process_repeats_no_event() {
        let waiting = Waiting::new(&Registry::default());
        let told = because(&[Reason::ImagePullFailing]);
        waiting.note(&object("a"), &told, Some("ImagePullFailing"), time(0));
        assert!(waiting.note(&object("a"), &told, Some("ImagePullFailing"), time(60)).0.is_empty());
        let wanted = because(&[Reason::Paused]);
        waiting.note(&object("b"), &wanted, None, time(0));
        assert!(waiting.note(&object("b"), &wanted, None, time(60)).0.is_empty());
        waiting.note(&object("c"), &told, None, time(0));
        let events = waiting.note(&object("c"), &told, None, time(60)).0;
        assert_eq!(
            events.iter().map(|event| event.message.as_str()).collect::<Vec<_>>(),
            ["ImagePullFailing: why"]
        );
    }

    /// WAITING-28
    #[test]
    fn each_of_many_objects_has_a_series_up_to_a_limit() {
        let registry = Registry::default();
        let waiting = Waiting::new(&registry);
        let objects: Vec<ObjectRef> = (0..6_000).map(|number| object(&format!("web-{number}"))).collect();
        for object in &objects {
            waiting.note(object, &because(&[Reason::Paused]), None, time(0));
        }
        let text = registry.text();
        assert_eq!(text.matches("kruise_waiting{").count(), 5_000);
        assert!(text.contains("kruise_waiting_objects{kind=\"CloneSet\",reason=\"Paused\"} 6000"));
        assert!(text.contains("kruise_waiting_truncated 1"));
        for (index, object) in objects.iter().enumerate() {
            if index % 2 == 0 {
                waiting.note(object, &Waits::default(), None, time(1));
            } else {
                waiting.forget(CLONE_SET, &object.key);
            }
        }
        let text = registry.text();
        assert!(!text.contains("kruise_waiting{") && !text.contains("kruise_waiting_objects{"), "{text}");
    }
}

//! The ConfigMap `kruise-configuration`, and the reports about keys of it that cannot be read. Such a key counts as empty.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use kruise_api::json;
use kruise_core::{
    configuration::{self, Data},
    effect::{Event, Level},
    object::{CONFIG_MAP, ObjectRef},
};
use kruise_runtime::{
    cache::{Change, Whole},
    events::Recorder,
    metrics::{Counter, Gauge, Registry},
};

use crate::caches::Caches;

/// What is known of the ConfigMap. Clones are the same.
#[derive(Clone)]
pub struct Configuration(Arc<Inner>);

struct Inner {
    caches: Caches,
    broken: Gauge,
    times: Counter,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The keys that cannot be read, with their texts and the events about them.
    problems: BTreeMap<&'static str, (String, Event)>,
    /// Where events go; nothing while another replica leads.
    recorder: Option<Recorder>,
}

impl fmt::Debug for Configuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Configuration").field(&self.0.state().problems.len()).finish()
    }
}

impl Configuration {
    /// Follows the cache of the ConfigMap.
    pub fn follow(caches: &Caches, registry: &Registry) -> Self {
        let broken = registry.gauge(
            "kruise_configuration_errors",
            "Keys of ConfigMap kruise-configuration that cannot be read: 1 while it lasts.",
            &["key"],
        );
        let times = registry.counter(
            "kruise_configuration_errors_total",
            "How often a key of ConfigMap kruise-configuration became unreadable.",
            &["key"],
        );
        let inner = Inner { caches: caches.clone(), broken, times, state: Mutex::default() };
        let own = Self(Arc::new(inner));
        // The cache must not keep alive what keeps it alive.
        let weak: Weak<Inner> = Arc::downgrade(&own.0);
        caches.configuration.subscribe(move |change| {
            if let Some(inner) = weak.upgrade() {
                inner.look(change);
            }
        });
        own
    }

    /// The settings as they are now. A ConfigMap that is not there is an empty one.
    pub fn data(&self) -> Data {
        let stored = self.0.caches.configuration.list();
        stored.first().map(|stored| data(stored)).unwrap_or_default()
    }

    /// Reports keys that cannot be read with events. The replica that leads does.
    pub fn tell_unreadable(&self, to: Recorder) {
        let mut state = self.0.state();
        state.problems.values().for_each(|(_, event)| to.record(event.clone()));
        state.recorder = Some(to);
    }
}

/// The settings in the ConfigMap.
fn data(stored: &Whole) -> Data {
    let data = json::at(&stored.object, &["data"]).cloned().unwrap_or_default();
    serde_json::from_value(data).unwrap_or_default()
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, change: &Change<Whole>) {
        let mut state = self.state();
        let data = change.new.as_deref().map(data).unwrap_or_default();
        for key in configuration::KEYS {
            let found = configuration::problem(&data, key);
            let (Some(error), Some(stored)) = (found, &change.new) else {
                if state.problems.remove(key).is_some() {
                    tracing::info!(key, "this key of kruise-configuration can be read now");
                    self.broken.set(&[key], 0.0);
                }
                continue;
            };
            let text = data.get(key).cloned().unwrap_or_default();
            if state.problems.get(key).is_some_and(|(known, _)| *known == text) {
                continue;
            }
            tracing::warn!(
                key,
                error,
                "this key of kruise-configuration is not readable and counts as empty"
            );
            self.broken.set(&[key], 1.0);
            self.times.inc(&[key]);
            let uid = stored.metadata.uid.clone();
            let event = Event {
                regarding: ObjectRef { resource: CONFIG_MAP, key: change.key.clone(), uid },
                level: Level::Warning,
                reason: "InvalidConfiguration".into(),
                message: format!("{key} is not readable and counts as empty: {error}"),
            };
            if let Some(recorder) = &state.recorder {
                recorder.record(event.clone());
            }
            state.problems.insert(key, (text, event));
        }
    }
}

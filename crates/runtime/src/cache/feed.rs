//! How a cache is fed.

use std::{pin::pin, sync::PoisonError, time::Duration};

use futures::{
    StreamExt as _,
    future::{Either, select},
};
use kruise_core::{
    effect::{Event as Told, Level},
    object::{ObjectKey, ObjectRef},
};
use kube::{
    Api,
    runtime::watcher::{self, Config, Event},
};
use tokio::time::Instant;
use tracing::{debug, error, warn};

use super::{Cache, Change, News, Observed as _, Options, View, wire::Wire};
use crate::{
    decode::{Unread, contained},
    events::Recorder,
};

/// The reason of events about objects that cannot be read in full.
pub const UNREADABLE: &str = "Unreadable";
/// How many fields a message names.
const NAMED: usize = 3;

/// A year: as good as never, and no overflow.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

impl<V: View> Cache<V> {
    /// The same as [`Self::run`], from the first [`Self::want`] on: for kinds that few clusters need.
    pub async fn run_when_wanted(&self, client: kube::Client, options: Options) {
        self.inner.wanted.asked().await;
        self.run(client, options).await;
    }

    /// Lists and watches until it is dropped. Failures are retried for ever, with growing pauses.
    pub async fn run(&self, client: kube::Client, options: Options) {
        let Options { namespace, labels, fields, page_size, resync, backoff, max_backoff } = options;
        let resource = self.inner.resource;
        let api: Api<Wire<V>> = match &namespace {
            Some(namespace) if resource.namespaced => Api::namespaced_with(client, namespace, &resource),
            _ => Api::all_with(client, &resource),
        };
        let config = Config {
            label_selector: labels,
            field_selector: fields,
            page_size: Some(page_size),
            ..Config::default()
        };
        let mut pause = backoff;
        loop {
            let mut events = pin!(watcher::watcher(api.clone(), config.clone()));
            let resync_at = Instant::now() + resync.unwrap_or(NEVER);
            loop {
                let interruption = async {
                    let asked = pin!(self.inner.relist.notified());
                    select(asked, pin!(tokio::time::sleep_until(resync_at))).await;
                };
                let event = match select(events.next(), pin!(interruption)).await {
                    Either::Left((event, _)) => event,
                    Either::Right(_) if self.is_listing() => continue,
                    Either::Right(_) => break,
                };
                match event {
                    Some(Ok(event)) => {
                        if !matches!(event, Event::Init) {
                            pause = backoff;
                        }
                        let listed = matches!(event, Event::InitDone);
                        self.take(event, resync.is_some());
                        if listed && self.is_behind() {
                            break;
                        }
                    }
                    Some(Err(error)) => {
                        self.failed(&error);
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(max_backoff);
                        // kube would ask for the expired version again and again.
                        if is_expired_start(&error) {
                            break;
                        }
                    }
                    None => break,
                }
            }
        }
    }

    fn is_listing(&self) -> bool {
        self.read().is_listing()
    }

    /// Whether a list was asked for after the newest one began.
    fn is_behind(&self) -> bool {
        let store = self.read();
        store.asked > store.listed
    }

    fn failed(&self, error: &watcher::Error) {
        let resource = self.inner.resource.plural;
        if let Some(metrics) = &*self.inner.metrics.lock().unwrap_or_else(PoisonError::into_inner) {
            metrics.cache_errors.inc(&[resource]);
        }
        let expired = matches!(error, watcher::Error::WatchError(status) if status.code == 410);
        if expired {
            debug!(resource, %error, "watch expired");
        } else {
            warn!(resource, %error, "watch failed");
            self.note_trouble(error);
        }
    }

    fn take(&self, event: Event<Wire<V>>, resync: bool) {
        if matches!(event, Event::Apply(_) | Event::Delete(_) | Event::InitDone) {
            self.end_trouble();
        }
        // The lock is held over both, so that changes are told in the order in which they can be read.
        let subscribers = self.inner.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut listed = false;
        let changes: Vec<Change<V>> = match event {
            Event::Init => {
                self.write().begin_list();
                Vec::new()
            }
            Event::InitApply(wire) => {
                let key = wire.read.view.as_ref().map(|view| view.metadata().key());
                let change = self.apply(wire);
                // A resync tells of every object, also where nothing is new.
                let again = || {
                    let key = key.filter(|_| resync && self.is_synced())?;
                    let new = self.get(&key)?;
                    Some(Change { key, old: Some(new.clone()), new: Some(new), initial: true })
                };
                change.or_else(again).into_iter().collect()
            }
            Event::Apply(wire) => self.apply(wire).into_iter().collect(),
            Event::Delete(wire) => {
                wire.read.view.and_then(|view| self.write().delete(&view)).into_iter().collect()
            }
            Event::InitDone => {
                listed = true;
                self.write().end_list()
            }
        };
        for change in &changes {
            // Who panics at an object hears of all others.
            let done = subscribers.0.iter().filter(|told| contained(|| told(change)).is_some()).count()
                + subscribers
                    .1
                    .iter()
                    .filter(|told| contained(|| told(News::Object(&change.key))).is_some())
                    .count();
            if done < subscribers.0.len() + subscribers.1.len() {
                self.panicked(&change.key, "a subscriber");
            }
        }
        if listed {
            for told in &subscribers.1 {
                let _ = contained(|| told(News::Listed));
            }
            self.inner.synced.notify_waiters();
        }
        if listed || changes.iter().any(|change| change.old.is_none() || change.new.is_none()) {
            let metrics = self.inner.metrics.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(metrics) = &*metrics {
                metrics.cache_objects.set(&[self.inner.resource.plural], self.len() as f64);
            }
            drop(metrics);
            self.count_unread();
        }
    }

    /// Takes an object in. What could not be read of it is reported once, and again when that changes.
    fn apply(&self, wire: Wire<V>) -> Option<Change<V>> {
        let Wire { read, print, .. } = wire;
        // In a namespaced kind, a name without a namespace is no name.
        let is_namespaced = self.inner.resource.namespaced;
        let view = read.view.filter(|view| !is_namespaced || !view.metadata().namespace.is_empty());
        let Some(view) = view else {
            if self.write().note_nameless(print) {
                let resource = self.inner.resource.plural;
                warn!(resource, unread = %listed(&read.unread), "left out an object without a name");
                // It may be one that had a name. Only a list shows which one is no longer there under its name.
                if !self.is_listing() {
                    self.ask_list();
                }
            }
            return None;
        };
        let (change, panics, is_news) = {
            let mut store = self.write();
            let panics = store.panics;
            let change = store.apply(view);
            let is_news = change.as_ref().is_some_and(|change| {
                let known = store.unread_of(&change.key);
                let is_news = known.is_none_or(|known| *known != *read.unread) || is_another(change);
                store.note_unread(&change.key, read.unread);
                is_news
            });
            (change, store.panics - panics, is_news)
        };
        if let Some(Change { key, new: Some(new), .. }) = &change {
            if panics > 0 {
                self.panicked(key, "an index");
            }
            // The objects must not be held while waiting for who tells: who begins to tell holds that and waits for them.
            let unread = self.read().unread_of(key).filter(|_| is_news);
            if let Some(unread) = unread {
                warn!(resource = self.inner.resource.plural, object = %key, unread = %listed(&unread),
                    "an object cannot be read in full");
                let recorder = self.inner.recorder.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(recorder) = &*recorder {
                    recorder.record(self.about(key, new, &unread));
                }
            }
            self.count_unread();
        }
        change
    }

    /// Tells events about objects that cannot be read in full: about those that are here already, and about all that come.
    /// Of several processes with the same cache one should.
    pub fn tell_unreadable(&self, to: Recorder) {
        let mut recorder = self.inner.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        let known: Vec<_> = {
            let store = self.read();
            let unread = store.unread().iter();
            unread
                .filter_map(|(key, unread)| Some(self.about(key, store.objects.get(key)?, unread)))
                .collect()
        };
        known.into_iter().for_each(|event| to.record(event));
        *recorder = Some(to);
    }

    fn about(&self, key: &ObjectKey, object: &V, unread: &[Unread]) -> Told {
        let metadata = object.metadata();
        let follows = if metadata.unreadable {
            "; it counts as unavailable and is not changed before that can be read"
        } else {
            "; everything else of it is used"
        };
        Told {
            regarding: ObjectRef {
                resource: self.inner.resource,
                key: key.clone(),
                uid: metadata.uid.clone(),
            },
            level: Level::Warning,
            reason: UNREADABLE.into(),
            message: format!("cannot read {}{follows}", listed(unread)),
        }
    }

    pub(super) fn panicked(&self, key: &ObjectKey, what: &'static str) {
        let resource = self.inner.resource.plural;
        error!(resource, object = %key, what, "panicked at an object; the cache goes on");
        if let Some(metrics) = &*self.inner.metrics.lock().unwrap_or_else(PoisonError::into_inner) {
            metrics.cache_panics.inc(&[resource]);
        }
    }

    fn count_unread(&self) {
        if let Some(metrics) = &*self.inner.metrics.lock().unwrap_or_else(PoisonError::into_inner) {
            let unread = self.read().unread().len();
            metrics.unreadable_objects.set(&[self.inner.resource.kind], unread as f64);
        }
    }
}

/// Whether an object took the place of another one with its name.
fn is_another<V: View>(change: &Change<V>) -> bool {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => old.metadata().uid != new.metadata().uid,
        _ => true,
    }
}

/// What could not be read, in a sentence.
fn listed(unread: &[Unread]) -> String {
    let mut named: Vec<String> = unread.iter().take(NAMED).map(ToString::to_string).collect();
    let more = unread.len().saturating_sub(NAMED);
    if more > 0 {
        named.push(format!("and {more} more fields"));
    }
    named.join("; ")
}

fn is_expired_start(error: &watcher::Error) -> bool {
    let watcher::Error::WatchStartFailed(kube::Error::Api(status)) = error else { return false };
    status.code == 410
}

//! Read your own writes.
//!
//! After a write, the key that caused it waits until the cache shows that version of the object, or its end. The news
//! of the cache wakes the key; nobody polls. A cache that does not show a write in time is asked to list anew, and the
//! key goes on after that: it never acts on what is known to be old.
//!
//! A write whose outcome is unknown (the answer was lost) is kept too. It is sent again, the same under the same name,
//! before anything new is planned for the key. Nothing of this outlives the process: a new one begins with a full list.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kruise_core::{
    effect::Effect,
    object::{ObjectKey, Resource},
    text::Text,
};
use tokio::time::Instant;

use crate::{
    cache::{News, Observed},
    metrics::Framework,
    queue::Queue,
    version,
};

/// What a cache must show before its readers may act again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// The object that was made, in this version or a newer one, or that it was here and has gone.
    Made {
        /// Its identity, where the server told it.
        uid: Option<Text>,
        /// Its version, where the server told it.
        version: Option<Text>,
    },
    /// This version or a newer one, or no such object.
    Version(Text),
    /// Something newer than this version, or no such object.
    NewerThan(Text),
    /// That the object with this uid is being deleted, or is gone. Without a uid: any of this name.
    Deleting(Option<Text>),
    /// That the object with this uid is gone. Without a uid: any of this name.
    Gone(Option<Text>),
}

#[derive(Clone, Debug)]
struct Expectation {
    cache: usize,
    object: ObjectKey,
    want: Want,
    since: Instant,
    /// The list that settles it, once the time was over.
    list: Option<u64>,
}

/// Whether a key may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// All its writes can be read.
    Open,
    /// Some cannot; the key comes again by itself when they can.
    Shut,
}

/// Which own writes the caches have not shown yet. Clones are the same.
#[derive(Clone)]
pub struct Freshness(Arc<Inner>);

struct Inner {
    controller: &'static str,
    queue: Queue,
    timeout: Duration,
    metrics: Option<Framework>,
    state: Mutex<State>,
}

type Hook = Arc<dyn Fn(&ObjectKey) + Send + Sync>;

#[derive(Default)]
struct State {
    caches: Vec<Arc<dyn Observed>>,
    expected: BTreeMap<ObjectKey, Vec<Expectation>>,
    uncertain: BTreeMap<ObjectKey, Vec<Effect>>,
    /// Keys that came too early, and when to lose patience.
    parked: BTreeMap<ObjectKey, Instant>,
    /// Which parked keys wait for which object.
    waiting_for: BTreeMap<(usize, ObjectKey), BTreeSet<ObjectKey>>,
    overdue: Option<Hook>,
}

impl fmt::Debug for Freshness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Freshness").field("controller", &self.0.controller).finish_non_exhaustive()
    }
}

impl Freshness {
    /// Nothing is expected yet. Keys that waited are put back on `queue`; after `timeout` the cache is asked to list.
    pub fn new(
        controller: &'static str,
        queue: Queue,
        timeout: Duration,
        metrics: Option<Framework>,
    ) -> Self {
        let state = Mutex::default();
        Self(Arc::new(Inner { controller, queue, timeout, metrics, state }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes to objects of this cache are waited for from now on. Writes to kinds without a cache are not.
    pub fn follow(&self, cache: Arc<dyn Observed>) {
        let place = {
            let mut state = self.state();
            state.caches.push(cache.clone());
            state.caches.len() - 1
        };
        let this = self.clone();
        cache.listen(Arc::new(move |news| this.notice(place, news)));
    }

    /// Calls this for each key whose writes were not shown in time.
    pub fn on_overdue(&self, told: impl Fn(&ObjectKey) + Send + Sync + 'static) {
        self.state().overdue = Some(Arc::new(told));
    }

    /// A write for this key happened: its cache must show it before the key may act again.
    pub fn expect(&self, key: &ObjectKey, resource: Resource, object: ObjectKey, want: Want) {
        let mut state = self.state();
        let Some(cache) = state.place(resource) else { return };
        let expected = state.expected.entry(key.clone()).or_default();
        expected.push(Expectation { cache, object, want, since: Instant::now(), list: None });
    }

    /// Whether a cache still shows the object with this uid. `None` for kinds without a cache.
    pub fn shows(&self, resource: Resource, object: &ObjectKey, uid: &str) -> Option<bool> {
        let state = self.state();
        let cache = state.caches.get(state.place(resource)?)?;
        Some(cache.seen(object).is_some_and(|seen| seen.uid == uid))
    }

    /// Whether a cache shows that an object has changed since this version: a write that wants this version is in vain.
    pub fn has_passed(&self, resource: Resource, object: &ObjectKey, version: &str) -> bool {
        let state = self.state();
        let cache = state.place(resource).and_then(|place| state.caches.get(place));
        cache.and_then(|cache| cache.seen(object)).is_some_and(|seen| version::passed(&seen.version, version))
    }

    /// Nobody knows whether this write happened.
    pub fn doubt(&self, key: &ObjectKey, effect: Effect) {
        self.state().uncertain.entry(key.clone()).or_default().push(effect);
    }

    /// The writes of this key of which nobody knows whether they happened. They are the caller's from now on.
    pub fn take_doubts(&self, key: &ObjectKey) -> Vec<Effect> {
        self.state().uncertain.remove(key).unwrap_or_default()
    }

    /// Whether this key may act now. If not, it will be put on the queue when it may.
    pub fn gate(&self, key: &ObjectKey) -> Gate {
        let (told, open) = {
            let mut state = self.state();
            state.unpark(key);
            self.0.queue.release(key);
            state.settle(key, None);
            if !state.expected.contains_key(key) {
                return Gate::Open;
            }
            let overdue = state.lose_patience(key, self.0.timeout);
            // A list of long ago may have settled what became overdue.
            state.settle(key, None);
            let open = !state.expected.contains_key(key);
            if !open {
                state.park(key, self.0.timeout);
                // Other news of the key would only make it look in vain.
                self.0.queue.hold(key);
            }
            (overdue.then(|| state.overdue.clone()), open)
        };
        if let Some(hook) = told {
            if let Some(metrics) = &self.0.metrics {
                metrics.freshness_timeouts.inc(&[self.0.controller]);
            }
            tracing::warn!(controller = self.0.controller, %key, "a cache did not show an own write in time");
            hook.into_iter().for_each(|hook| hook(key));
        }
        if open {
            return Gate::Open;
        }
        if let Some(metrics) = &self.0.metrics {
            metrics.freshness_waits.inc(&[self.0.controller]);
        }
        Gate::Shut
    }

    /// Forgets a key whose object is gone.
    pub fn forget(&self, key: &ObjectKey) {
        let mut state = self.state();
        state.unpark(key);
        self.0.queue.release(key);
        state.expected.remove(key);
        state.uncertain.remove(key);
    }

    /// When the first key that waits loses patience.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.state().parked.values().min().copied()
    }

    /// Puts the keys on the queue that lost patience.
    pub fn wake_overdue(&self, now: Instant) {
        let late: Vec<ObjectKey> = {
            let state = self.state();
            state.parked.iter().filter(|(_, at)| **at <= now).map(|(key, _)| key.clone()).collect()
        };
        self.wake(late);
    }

    fn notice(&self, cache: usize, news: News<'_>) {
        let woken: Vec<ObjectKey> = {
            let mut state = self.state();
            let keys: Vec<ObjectKey> = match news {
                News::Object(object) => {
                    let waiting = state.waiting_for.get(&(cache, object.clone()));
                    waiting.into_iter().flatten().cloned().collect()
                }
                News::Listed => state.parked.keys().cloned().collect(),
            };
            let only = match news {
                News::Object(object) => Some((cache, object)),
                News::Listed => None,
            };
            keys.into_iter()
                .filter(|key| {
                    state.settle(key, only);
                    !state.expected.contains_key(key)
                })
                .collect()
        };
        self.wake(woken);
    }

    fn wake(&self, keys: Vec<ObjectKey>) {
        for key in keys {
            self.state().unpark(&key);
            self.0.queue.release(&key);
            self.0.queue.add(key);
        }
    }
}

impl State {
    /// Where the cache of a kind stands.
    fn place(&self, resource: Resource) -> Option<usize> {
        self.caches.iter().position(|cache| {
            let other = cache.resource();
            (other.group, other.plural) == (resource.group, resource.plural)
        })
    }

    /// Drops what the caches show by now: of one object, or of all.
    fn settle(&mut self, key: &ObjectKey, only: Option<(usize, &ObjectKey)>) {
        let Self { caches, expected, .. } = self;
        let Some(list) = expected.get_mut(key) else { return };
        list.retain(|expectation| {
            let is_meant = only.is_none_or(|one| one == (expectation.cache, &expectation.object));
            let cache = caches.get(expectation.cache);
            !is_meant || cache.is_some_and(|cache| !shows(cache.as_ref(), expectation))
        });
        if list.is_empty() {
            expected.remove(key);
        }
    }

    /// Asks for a list where the time is over. Tells whether that is new for one of them.
    fn lose_patience(&mut self, key: &ObjectKey, timeout: Duration) -> bool {
        let Self { caches, expected, .. } = self;
        let mut asked: BTreeMap<usize, u64> = BTreeMap::new();
        let mut new = false;
        for expectation in expected.get_mut(key).into_iter().flatten() {
            if expectation.list.is_some() || expectation.since.elapsed() < timeout {
                continue;
            }
            let Some(cache) = caches.get(expectation.cache) else { continue };
            let ticket = *asked.entry(expectation.cache).or_insert_with(|| cache.ask_list());
            expectation.list = Some(ticket);
            new = true;
        }
        new
    }

    fn park(&mut self, key: &ObjectKey, timeout: Duration) {
        let Self { expected, parked, waiting_for, .. } = self;
        let Some(list) = expected.get(key) else { return };
        let now = Instant::now();
        // Where a list was asked for, its end wakes the key; the time is only for the worst case.
        let deadline = list
            .iter()
            .map(
                |expectation| {
                    if expectation.list.is_some() { now + timeout } else { expectation.since + timeout }
                },
            )
            .min();
        parked.insert(key.clone(), deadline.unwrap_or(now + timeout).max(now));
        for expectation in list {
            let place = (expectation.cache, expectation.object.clone());
            waiting_for.entry(place).or_default().insert(key.clone());
        }
    }

    fn unpark(&mut self, key: &ObjectKey) {
        if self.parked.remove(key).is_some() {
            self.waiting_for.retain(|_, keys| {
                keys.remove(key);
                !keys.is_empty()
            });
        }
    }
}

fn shows(cache: &dyn Observed, expectation: &Expectation) -> bool {
    if expectation.list.is_some_and(|ticket| cache.listed() >= ticket) {
        return true;
    }
    let object = &expectation.object;
    let seen = cache.seen(object);
    match (&expectation.want, seen) {
        (Want::Made { uid, version }, Some(seen)) => match version {
            Some(version) => version::reached(&seen.version, version),
            None => uid.as_ref().is_none_or(|uid| *uid == seen.uid),
        },
        (Want::Made { uid, .. }, None) => uid.as_ref().is_some_and(|uid| cache.has_gone(object, uid)),
        (Want::Version(version), Some(seen)) => version::reached(&seen.version, version),
        (Want::NewerThan(version), Some(seen)) => version::passed(&seen.version, version),
        (Want::Deleting(uid), Some(seen)) => {
            seen.deleting || uid.as_ref().is_some_and(|uid| *uid != seen.uid)
        }
        (Want::Gone(uid), Some(seen)) => uid.as_ref().is_some_and(|uid| *uid != seen.uid),
        (Want::Version(_) | Want::NewerThan(_) | Want::Deleting(_) | Want::Gone(_), None) => true,
    }
}

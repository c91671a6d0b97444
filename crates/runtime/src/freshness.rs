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
    decode::Unread,
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
    /// A list that begins from now on: nothing else tells what was written.
    List,
    /// That the object with this uid is being deleted, or is gone. Without a uid: any of this name.
    Deleting(Option<Text>),
    /// That the object with this uid is gone. Without a uid: any of this name.
    Gone(Option<Text>),
}

#[derive(Clone, Debug)]
struct Expectation {
    want: Want,
    since: Instant,
    /// The list that settles it, once the time was over.
    list: Option<u64>,
}

/// The cache and the object that an expectation is about.
type Place = (usize, ObjectKey);

/// A key that came too early.
#[derive(Debug)]
struct Parked {
    /// When to lose patience.
    until: Instant,
    /// The objects that it waits for.
    places: Vec<Place>,
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
    /// What each key waits for, by object: news of one object then touch nothing else, however many keys wait.
    expected: BTreeMap<ObjectKey, BTreeMap<Place, Vec<Expectation>>>,
    uncertain: BTreeMap<ObjectKey, Vec<Effect>>,
    parked: BTreeMap<ObjectKey, Parked>,
    /// The parked keys in the order in which they lose patience.
    deadlines: BTreeSet<(Instant, ObjectKey)>,
    /// Which parked keys wait for which object.
    waiting_for: BTreeMap<Place, BTreeSet<ObjectKey>>,
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
        let Some(place) = state.place(resource) else { return };
        let list = match want {
            Want::List => state.caches.get(place).map(|cache| cache.ask_list()),
            _ => None,
        };
        let expected = state.expected.entry(key.clone()).or_default();
        let expectation = Expectation { want, since: Instant::now(), list };
        expected.entry((place, object)).or_default().push(expectation);
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

    /// What could not be read of an object, and whether that is something that decides. Nothing where all could.
    pub fn unread(&self, resource: Resource, object: &ObjectKey) -> Option<(Arc<[Unread]>, bool)> {
        let state = self.state();
        state.caches.get(state.place(resource)?)?.unread(object)
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
        self.state().deadlines.first().map(|(at, _)| *at)
    }

    /// Puts the keys on the queue that lost patience.
    pub fn wake_overdue(&self, now: Instant) {
        let late: Vec<ObjectKey> = {
            let state = self.state();
            state.deadlines.iter().take_while(|(at, _)| *at <= now).map(|(_, key)| key.clone()).collect()
        };
        self.wake(late);
    }

    fn notice(&self, cache: usize, news: News<'_>) {
        let woken: Vec<ObjectKey> = {
            let mut state = self.state();
            let only = match news {
                News::Object(object) => Some((cache, object.clone())),
                News::Listed => None,
            };
            let keys: Vec<ObjectKey> = match &only {
                Some(place) => state.waiting_for.get(place).into_iter().flatten().cloned().collect(),
                None => state.parked.keys().cloned().collect(),
            };
            keys.into_iter()
                .filter(|key| {
                    state.settle(key, only.as_ref());
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
    fn settle(&mut self, key: &ObjectKey, only: Option<&Place>) {
        let Self { caches, expected, .. } = self;
        let Some(places) = expected.get_mut(key) else { return };
        let keep = |place: &Place, list: &mut Vec<Expectation>| {
            let cache = caches.get(place.0);
            list.retain(|expectation| {
                cache.is_some_and(|cache| !shows(cache.as_ref(), &place.1, expectation))
            });
            !list.is_empty()
        };
        match only {
            None => places.retain(keep),
            Some(place) => {
                if places.get_mut(place).is_some_and(|list| !keep(place, list)) {
                    places.remove(place);
                }
            }
        }
        if places.is_empty() {
            expected.remove(key);
        }
    }

    /// Asks for a list where the time is over. Tells whether that is new for one of them.
    fn lose_patience(&mut self, key: &ObjectKey, timeout: Duration) -> bool {
        let Self { caches, expected, .. } = self;
        let mut asked: BTreeMap<usize, u64> = BTreeMap::new();
        let mut new = false;
        for ((place, _), list) in expected.get_mut(key).into_iter().flatten() {
            for expectation in list {
                if expectation.list.is_some() || expectation.since.elapsed() < timeout {
                    continue;
                }
                let Some(cache) = caches.get(*place) else { continue };
                let ticket = *asked.entry(*place).or_insert_with(|| cache.ask_list());
                expectation.list = Some(ticket);
                new = true;
            }
        }
        new
    }

    fn park(&mut self, key: &ObjectKey, timeout: Duration) {
        let Some(expected) = self.expected.get(key) else { return };
        let now = Instant::now();
        // Where a list was asked for, its end wakes the key; the time is only for the worst case.
        let deadline = expected
            .values()
            .flatten()
            .map(
                |expectation| {
                    if expectation.list.is_some() { now + timeout } else { expectation.since + timeout }
                },
            )
            .min();
        let until = deadline.unwrap_or(now + timeout).max(now);
        let places: Vec<Place> = expected.keys().cloned().collect();
        for place in &places {
            self.waiting_for.entry(place.clone()).or_default().insert(key.clone());
        }
        self.deadlines.insert((until, key.clone()));
        self.parked.insert(key.clone(), Parked { until, places });
    }

    fn unpark(&mut self, key: &ObjectKey) {
        let Some(Parked { until, places }) = self.parked.remove(key) else { return };
        self.deadlines.remove(&(until, key.clone()));
        for place in places {
            if let Some(keys) = self.waiting_for.get_mut(&place) {
                keys.remove(key);
                if keys.is_empty() {
                    self.waiting_for.remove(&place);
                }
            }
        }
    }
}

fn shows(cache: &dyn Observed, object: &ObjectKey, expectation: &Expectation) -> bool {
    if expectation.list.is_some_and(|ticket| cache.listed() >= ticket) {
        return true;
    }
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
        (Want::List, _) => false,
        (Want::Version(_) | Want::NewerThan(_) | Want::Deleting(_) | Want::Gone(_), None) => true,
    }
}

#[cfg(test)]
mod tests {
    use kruise_core::object::CONFIG_MAP;

    use super::*;
    use crate::{cache::Seen, queue};

    type Told = Arc<dyn Fn(News<'_>) + Send + Sync>;

    /// A cache that shows what it is told to.
    #[derive(Default)]
    struct Shown {
        objects: Mutex<BTreeMap<ObjectKey, Seen>>,
        listeners: Mutex<Vec<Told>>,
        asked: Mutex<u64>,
    }

    impl Shown {
        fn show(&self, object: &ObjectKey, version: &str) {
            let seen = Seen { uid: "u".into(), version: version.into(), deleting: false };
            self.objects.lock().unwrap().insert(object.clone(), seen);
            self.listeners.lock().unwrap().iter().for_each(|told| told(News::Object(object)));
        }
    }

    impl Observed for Shown {
        fn resource(&self) -> Resource {
            CONFIG_MAP
        }

        fn seen(&self, key: &ObjectKey) -> Option<Seen> {
            self.objects.lock().unwrap().get(key).cloned()
        }

        fn has_gone(&self, _: &ObjectKey, _: &str) -> bool {
            false
        }

        fn listen(&self, told: Told) {
            self.listeners.lock().unwrap().push(told);
        }

        fn unread(&self, _: &ObjectKey) -> Option<(Arc<[Unread]>, bool)> {
            None
        }

        fn ask_list(&self) -> u64 {
            let mut asked = self.asked.lock().unwrap();
            *asked += 1;
            *asked
        }

        fn listed(&self) -> u64 {
            0
        }
    }

    fn fresh() -> (Freshness, Queue, Arc<Shown>) {
        let queue = Queue::new("test", queue::Options::default(), None);
        let freshness = Freshness::new("test", queue.clone(), Duration::from_secs(300), None);
        let cache = Arc::new(Shown::default());
        freshness.follow(cache.clone());
        (freshness, queue, cache)
    }

    /// Work that grows with the square of the waiting keys takes minutes here, and is ended (`.config/nextest.toml`).
    #[tokio::test(start_paused = true)]
    async fn news_of_one_object_do_not_touch_the_thousands_of_others_that_are_waited_for() {
        let (freshness, queue, cache) = fresh();
        let keys: Vec<ObjectKey> = (0..40_000).map(|n| ObjectKey::new("ns", format!("key-{n}"))).collect();
        for key in &keys {
            freshness.expect(key, CONFIG_MAP, key.clone(), Want::Version("2".into()));
            cache.show(key, "1");
            assert_eq!(freshness.gate(key), Gate::Shut);
        }
        for key in &keys {
            assert!(freshness.next_deadline().is_some());
            cache.show(key, "2");
            assert_eq!(freshness.gate(key), Gate::Open);
        }
        assert_eq!((freshness.next_deadline(), queue.len()), (None, keys.len()));
    }

    /// The same for one key that waits for many objects, such as a set that has made many pods.
    #[tokio::test(start_paused = true)]
    async fn one_key_may_wait_for_thousands_of_objects() {
        let (freshness, queue, cache) = fresh();
        let key = ObjectKey::new("ns", "set");
        let objects: Vec<ObjectKey> = (0..40_000).map(|n| ObjectKey::new("ns", format!("pod-{n}"))).collect();
        for object in &objects {
            cache.show(object, "1");
            freshness.expect(&key, CONFIG_MAP, object.clone(), Want::Version("2".into()));
        }
        assert_eq!(freshness.gate(&key), Gate::Shut);
        for object in &objects {
            assert!(queue.is_empty());
            cache.show(object, "2");
        }
        assert_eq!(queue.next().await, Some(key.clone()));
        assert_eq!(freshness.gate(&key), Gate::Open);
    }

    #[tokio::test(start_paused = true)]
    async fn several_writes_of_one_object_are_all_waited_for() {
        let (freshness, queue, cache) = fresh();
        let key = ObjectKey::new("ns", "a");
        cache.show(&key, "1");
        for version in ["2", "3"] {
            freshness.expect(&key, CONFIG_MAP, key.clone(), Want::Version(version.into()));
        }
        assert_eq!(freshness.gate(&key), Gate::Shut);
        cache.show(&key, "2");
        assert!(queue.is_empty());
        cache.show(&key, "3");
        assert_eq!(queue.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_waits_too_long_is_woken_in_time_and_asks_for_a_list() {
        let (freshness, queue, cache) = fresh();
        let key = ObjectKey::new("ns", "a");
        freshness.expect(&key, CONFIG_MAP, key.clone(), Want::Made { uid: None, version: None });
        assert_eq!(freshness.gate(&key), Gate::Shut);
        let deadline = freshness.next_deadline().unwrap();
        tokio::time::sleep_until(deadline).await;
        freshness.wake_overdue(Instant::now());
        assert_eq!(queue.next().await, Some(key.clone()));
        assert_eq!(freshness.next_deadline(), None);
        assert_eq!(freshness.gate(&key), Gate::Shut);
        assert_eq!(*cache.asked.lock().unwrap(), 1);
    }
}

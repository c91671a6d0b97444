//! A queue of keys: each key once, first come first served, with delays and per-key back-off.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// The first pause after a failure.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// The longest pause after many failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(1000);

/// How many resting keys are remembered.
const MOST_RESTING: usize = 4096;

/// Keys that wait for work. A key that is worked on is not handed out a second time until it is done.
#[derive(Debug)]
pub(super) struct Queue<K> {
    /// Keys that may be worked on now, by arrival.
    ready: BTreeMap<u64, K>,
    /// Where a key stands in `ready`.
    place: BTreeMap<K, u64>,
    /// Keys that become ready later.
    delayed: BTreeSet<(Instant, K)>,
    /// When a key in `delayed` becomes ready.
    due: BTreeMap<K, Instant>,
    running: BTreeSet<K>,
    /// Keys that came back while they were worked on.
    again: BTreeSet<K>,
    failures: BTreeMap<K, u32>,
    /// Until when keys rest after their work.
    resting: BTreeMap<K, Instant>,
    arrivals: u64,
}

impl<K: Ord + Clone> Queue<K> {
    pub(super) fn new() -> Self {
        Self {
            ready: BTreeMap::new(),
            place: BTreeMap::new(),
            delayed: BTreeSet::new(),
            due: BTreeMap::new(),
            running: BTreeSet::new(),
            again: BTreeSet::new(),
            failures: BTreeMap::new(),
            resting: BTreeMap::new(),
            arrivals: 0,
        }
    }

    /// Lets a key rest after its work: what wakes it earlier is worked on then, all at once.
    pub(super) fn rest(&mut self, key: &K, until: Instant) {
        if self.resting.len() >= MOST_RESTING {
            self.resting.clear();
        }
        self.resting.insert(key.clone(), until);
    }

    /// Adds a key; a key that already waits keeps its place.
    pub(super) fn add(&mut self, key: K) {
        if let Some(until) = self.resting.get(&key).copied()
            && !self.running.contains(&key)
        {
            // A time that is over is found at the next look for work.
            self.add_at(key, until);
        } else if self.running.contains(&key) {
            self.again.insert(key);
        } else if !self.place.contains_key(&key) {
            self.arrivals += 1;
            self.ready.insert(self.arrivals, key.clone());
            self.place.insert(key, self.arrivals);
        }
    }

    /// Adds a key at a time; an earlier time that was already set stays.
    pub(super) fn add_at(&mut self, key: K, at: Instant) {
        if let Some(known) = self.due.get(&key).copied() {
            if known <= at {
                return;
            }
            self.delayed.remove(&(known, key.clone()));
        }
        self.due.insert(key.clone(), at);
        self.delayed.insert((at, key));
    }

    /// The next key to work on. It must be given back by [`Self::done`] or [`Self::failed`].
    pub(super) fn pop(&mut self, now: Instant) -> Option<K> {
        while self.delayed.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, key)) = self.delayed.pop_first() else { break };
            self.due.remove(&key);
            self.resting.remove(&key);
            self.add(key);
        }
        let (_, key) = self.ready.pop_first()?;
        self.place.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    /// The work on a key went well.
    pub(super) fn done(&mut self, key: &K) {
        self.failures.remove(key);
        self.release(key);
    }

    /// The work on a key failed: it comes back after a pause. Returns the pause.
    pub(super) fn failed(&mut self, key: &K, now: Instant, scale: impl Fn(Duration) -> Duration) {
        let count = self.failures.entry(key.clone()).or_default();
        let pause = FIRST_PAUSE.saturating_mul(1 << (*count).min(20)).min(LONGEST_PAUSE);
        *count = count.saturating_add(1);
        self.release(key);
        self.add_at(key.clone(), now + scale(pause));
    }

    fn release(&mut self, key: &K) {
        self.running.remove(key);
        if self.again.remove(key) {
            self.add(key.clone());
        }
    }

    /// When the next delayed key becomes ready.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.delayed.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_waits_once_and_comes_back_if_it_was_added_during_work() {
        let mut queue = Queue::new();
        let now = Instant::now();
        for key in ["b", "a", "b"] {
            queue.add(key);
        }
        assert_eq!(queue.pop(now), Some("b"));
        queue.add("b");
        assert_eq!(queue.pop(now), Some("a"));
        assert_eq!(queue.pop(now), None);
        queue.done(&"b");
        assert_eq!(queue.pop(now), Some("b"));
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_with_each_failure_and_end_with_success() {
        let mut queue = Queue::new();
        let now = Instant::now();
        let mut pauses = Vec::new();
        queue.add("a");
        let mut at = now;
        for _ in 0..4 {
            let key = queue.pop(at).unwrap();
            queue.failed(&key, at, |pause| pause);
            let due = queue.next_due().unwrap();
            pauses.push((due - at).as_millis());
            at = due;
        }
        assert_eq!(pauses, [5, 10, 20, 40]);
        let key = queue.pop(at).unwrap();
        queue.done(&key);
        queue.add("a");
        queue.pop(at).unwrap();
        queue.failed(&"a", at, |pause| pause);
        assert_eq!(queue.next_due(), Some(at + Duration::from_millis(5)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_resting_key_is_worked_on_once_for_all_that_woke_it() {
        let mut queue = Queue::new();
        let now = Instant::now();
        let later = now + Duration::from_millis(20);
        queue.add("a");
        let key = queue.pop(now).unwrap();
        queue.add("a");
        queue.rest(&key, later);
        queue.done(&key);
        queue.add("a");
        assert_eq!((queue.pop(now), queue.next_due()), (None, Some(later)));
        assert_eq!((queue.pop(later), queue.pop(later)), (Some("a"), None));
        queue.done(&"a");
        queue.add("a");
        assert_eq!(queue.pop(later), Some("a"), "who did not rest again is worked on at once");
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_delays_the_earlier_one_counts() {
        let mut queue = Queue::new();
        let now = Instant::now();
        queue.add_at("a", now + Duration::from_secs(5));
        queue.add_at("a", now + Duration::from_secs(2));
        queue.add_at("a", now + Duration::from_secs(9));
        assert_eq!(queue.pop(now), None);
        assert_eq!(queue.next_due(), Some(now + Duration::from_secs(2)));
        assert_eq!(queue.pop(now + Duration::from_secs(2)), Some("a"));
        assert_eq!(queue.next_due(), None);
    }
}

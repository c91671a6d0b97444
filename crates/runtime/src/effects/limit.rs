//! The limit of writes to one resource, shared by the keys of a controller.
//!
//! Keys that wait for a token take turns, so a key with a thousand writes does not delay one with a single write. A key
//! whose last write was refused does not wait at all: it gets what nobody else needs, or a small share, or is sent back to
//! its queue. Otherwise a few hundred objects that the server refuses would hold every worker and every token.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kruise_core::object::ObjectKey;
use tokio::{sync::Notify, time::Instant};

use crate::queue::Bucket;

/// The share of the rate that keys get whose writes are refused, while others wait.
const SHARE_OF_REFUSED: f64 = 0.1;

/// The limit of one resource.
#[derive(Debug)]
pub(super) struct Limit(Mutex<State>);

#[derive(Debug)]
struct State {
    bucket: Bucket,
    /// What keys may take whose last write was refused, although others wait.
    share: Bucket,
    /// How many tokens such keys leave in the bucket otherwise.
    reserve: u32,
    refused: BTreeSet<ObjectKey>,
    next_number: u64,
    waiting: BTreeMap<ObjectKey, VecDeque<Ticket>>,
    turns: VecDeque<ObjectKey>,
    granted: BTreeSet<u64>,
}

/// A place among the writes that wait.
#[derive(Debug)]
struct Ticket {
    number: u64,
    news: Arc<Notify>,
}

impl Limit {
    /// So many writes per second, and so many at once.
    pub(super) fn new(qps: f64, burst: u32) -> Self {
        // Without a positive rate there is no limit, for nobody.
        let share = Bucket::new(qps * SHARE_OF_REFUSED, burst / 10);
        let state = State {
            bucket: Bucket::new(qps, burst),
            share,
            reserve: burst / 2,
            refused: BTreeSet::new(),
            next_number: 0,
            waiting: BTreeMap::new(),
            turns: VecDeque::new(),
            granted: BTreeSet::new(),
        };
        Self(Mutex::new(state))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a token. A key whose last write was refused does not wait: it is told when to try again.
    pub(super) async fn take(&self, key: &ObjectKey) -> Result<(), Duration> {
        let place = {
            let mut state = self.state();
            let now = Instant::now();
            if state.refused.contains(key) {
                return state.take_share(now);
            }
            if state.turns.is_empty() && state.bucket.try_take(now) {
                return Ok(());
            }
            let (number, news) = state.enter(key);
            Place { limit: self, key, number, news, is_used: false }
        };
        place.granted().await;
        Ok(())
    }

    /// Gives back a token that was not used.
    pub(super) fn give_back(&self) {
        let mut state = self.state();
        state.bucket.give_back();
        state.wake_first();
    }

    /// A write of this key was accepted: it waits like all others.
    pub(super) fn accepted(&self, key: &ObjectKey) {
        self.state().refused.remove(key);
    }

    /// A write of this key was refused.
    pub(super) fn refused(&self, key: &ObjectKey) {
        self.state().refused.insert(key.clone());
    }

    /// How many tokens can be had within this time, at least one.
    pub(super) fn room(&self, within: Duration) -> usize {
        let mut state = self.state();
        let waiting = state.waiting.values().map(VecDeque::len).sum();
        state.bucket.room(Instant::now(), within).saturating_sub(waiting).max(1)
    }
}

impl State {
    fn take_share(&mut self, now: Instant) -> Result<(), Duration> {
        let is_spare = self.turns.is_empty() && self.bucket.has(now, self.reserve.saturating_add(1));
        if is_spare || self.share.try_take(now) {
            // The limit as a whole holds: others wait for this token.
            self.bucket.take(now);
            return Ok(());
        }
        Err(self.share.wait(now))
    }

    fn enter(&mut self, key: &ObjectKey) -> (u64, Arc<Notify>) {
        self.next_number += 1;
        let (number, news) = (self.next_number, Arc::new(Notify::new()));
        let tickets = self.waiting.entry(key.clone()).or_default();
        if tickets.is_empty() {
            self.turns.push_back(key.clone());
        }
        tickets.push_back(Ticket { number, news: news.clone() });
        (number, news)
    }

    fn first(&self) -> Option<&Ticket> {
        self.waiting.get(self.turns.front()?)?.front()
    }

    /// The first in line waits for the time of the next token, all others for news.
    fn wake_first(&self) {
        if let Some(first) = self.first() {
            first.news.notify_one();
        }
    }

    /// Hands out the tokens that are there.
    fn grant(&mut self, now: Instant) {
        while !self.turns.is_empty() && self.bucket.try_take(now) {
            let Some(key) = self.turns.pop_front() else { return };
            let Some(tickets) = self.waiting.get_mut(&key) else { continue };
            if let Some(ticket) = tickets.pop_front() {
                self.granted.insert(ticket.number);
                ticket.news.notify_one();
            }
            if tickets.is_empty() {
                self.waiting.remove(&key);
            } else {
                self.turns.push_back(key);
            }
        }
    }

    fn leave(&mut self, key: &ObjectKey, number: u64) {
        if self.granted.remove(&number) {
            self.bucket.give_back();
        }
        if let Some(tickets) = self.waiting.get_mut(key) {
            tickets.retain(|ticket| ticket.number != number);
            if tickets.is_empty() {
                self.waiting.remove(key);
                self.turns.retain(|other| other != key);
            }
        }
    }
}

/// Somebody who waits. Whoever is dropped meanwhile gives the place, or the token, to the next one.
struct Place<'a> {
    limit: &'a Limit,
    key: &'a ObjectKey,
    number: u64,
    news: Arc<Notify>,
    is_used: bool,
}

impl Place<'_> {
    async fn granted(mut self) {
        loop {
            let wait = {
                let mut state = self.limit.state();
                let now = Instant::now();
                state.grant(now);
                if state.granted.remove(&self.number) {
                    self.is_used = true;
                    state.wake_first();
                    return;
                }
                let is_first = state.first().is_some_and(|first| first.number == self.number);
                is_first.then(|| state.bucket.wait(now))
            };
            match wait {
                Some(wait) => drop(tokio::time::timeout(wait, self.news.notified()).await),
                None => self.news.notified().await,
            }
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.is_used {
            let mut state = self.limit.state();
            state.leave(self.key, self.number);
            state.wake_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("ns", name)
    }

    /// The seconds after which each of these writes got its token, in the order in which they were asked for.
    async fn seconds(limit: &Limit, keys: &[ObjectKey]) -> Vec<u64> {
        let began = Instant::now();
        let waits = keys.iter().map(|key| async move {
            limit.take(key).await.expect("a token");
            began.elapsed().as_secs()
        });
        futures::future::join_all(waits).await
    }

    #[tokio::test(start_paused = true)]
    async fn keys_that_wait_take_turns() {
        let limit = Limit::new(1.0, 1);
        let (many, one) = (key("many"), key("one"));
        let keys = [many.clone(), many.clone(), many.clone(), many, one.clone(), one];
        assert_eq!(seconds(&limit, &keys).await, [0, 1, 3, 5, 2, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_whose_write_was_refused_takes_what_nobody_needs_and_never_waits() {
        let limit = Limit::new(10.0, 10);
        let (bad, good) = (key("bad"), key("good"));
        limit.refused(&bad);
        let taken = (0..100).filter(|_| limit.take(&bad).now_or_never() == Some(Ok(()))).count();
        assert_eq!(taken, 6, "half of the tokens, and one of its share");
        let others: Vec<ObjectKey> = (0..4).map(|_| good.clone()).collect();
        assert_eq!(seconds(&limit, &others).await, [0; 4], "the other half is left for others");
        let wait = limit.take(&bad).await.unwrap_err();
        assert!(wait <= Duration::from_secs(1), "{wait:?}");
        tokio::time::sleep(wait).await;
        let busy: Vec<ObjectKey> = (0..40).map(|_| good.clone()).collect();
        let (_, shared) = futures::join!(seconds(&limit, &busy), limit.take(&bad));
        assert_eq!(shared, Ok(()), "while others wait it still gets its share");
        limit.accepted(&bad);
        assert_eq!(limit.take(&bad).await, Ok(()), "and waits like others when a write was accepted");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_stops_waiting_leaves_the_token_to_the_next() {
        let limit = Limit::new(1.0, 1);
        limit.take(&key("a")).await.unwrap();
        let (b, c) = (key("b"), key("c"));
        let began = Instant::now();
        let impatient = tokio::time::timeout(Duration::from_millis(500), limit.take(&b));
        let (left, taken) = futures::join!(impatient, limit.take(&c));
        assert!(left.is_err());
        taken.unwrap();
        assert_eq!(began.elapsed().as_secs(), 1);
        assert_eq!(limit.room(Duration::from_secs(10)), 10, "no token is lost");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rate_nobody_waits() {
        let limit = Limit::new(0.0, 1);
        limit.refused(&key("a"));
        for _ in 0..1000 {
            assert_eq!(limit.take(&key("a")).now_or_never(), Some(Ok(())));
            assert_eq!(limit.take(&key("b")).now_or_never(), Some(Ok(())));
        }
        assert_eq!(limit.room(Duration::from_secs(1)), usize::MAX);
    }
}

//! Keys that wait for work.
//!
//! A key is in the queue once, however often it is added. A key that is added while it is worked on comes again
//! afterwards, never at the same time. Failures of a key push it back further each time it was tried again. Keys of a first
//! list wait behind those that changed just now, and keys whose last work failed behind both, for a token of one bucket for
//! all: a thousand failing keys neither become a storm nor delay others. A key in back-off holds no token. Namespaces take
//! turns, so that many keys of one do not delay the keys of others.

mod bucket;
mod lane;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kruise_core::object::ObjectKey;
use tokio::{sync::Notify, time::Instant};

pub use bucket::Bucket;

use crate::{metrics::Framework, scope::Stop};
use lane::Lane;

/// How many other keys are handed out at most before one whose last work failed, if there is a token for it.
const OTHERS_FIRST: u32 = 4;

/// Longer than any process lives. People may write any number of seconds, and a time beyond what the clock of the machine
/// can count would be a panic.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// How far failures push a key back.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// After the first failure; each further one doubles it.
    pub base: Duration,
    /// At most.
    pub max: Duration,
    /// Retries per second, over all keys.
    pub qps: f64,
    /// Retries that may come at once.
    pub burst: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { base: Duration::from_millis(5), max: Duration::from_secs(300), qps: 10.0, burst: 100 }
    }
}

/// Who comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// After all others: nothing says that there is something to do.
    Low,
    /// Something changed.
    Normal,
}

/// Keys that wait for work. Clones are the same queue.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use kruise_core::object::ObjectKey;
/// use kruise_runtime::queue::{Options, Queue};
///
/// let queue = Queue::new("example", Options::default(), None);
/// queue.add(ObjectKey::new("default", "web"));
/// queue.add(ObjectKey::new("default", "web"));
/// let key = queue.next().await.expect("the queue is open");
/// queue.succeeded(&key);
/// assert!(queue.is_idle());
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Queue(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: &'static str,
    options: Options,
    state: Mutex<State>,
    news: Notify,
    closed: Stop,
    metrics: Option<Framework>,
}

#[derive(Debug)]
struct State {
    waiting: BTreeMap<ObjectKey, (Place, Instant)>,
    normal: Lane,
    low: Lane,
    failed: Lane,
    /// How many keys were handed out since the last one that had failed.
    others: u32,
    running: BTreeMap<ObjectKey, Instant>,
    again: BTreeMap<ObjectKey, Priority>,
    delayed: BTreeMap<ObjectKey, Instant>,
    due: BTreeSet<(Instant, ObjectKey)>,
    failures: BTreeMap<ObjectKey, Failing>,
    resting: BTreeMap<ObjectKey, Instant>,
    held: BTreeSet<ObjectKey>,
    bucket: Bucket,
}

/// The lane in which a key waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Failed,
    Low,
    Normal,
}

/// A key whose last work failed.
#[derive(Debug)]
struct Failing {
    times: u32,
    /// When it is tried again, whatever happens meanwhile.
    again: Instant,
    why: Failure,
}

/// Why the work on a key failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// Objects had changed meanwhile: nothing says that it will fail again.
    Conflict,
    /// Anything else.
    Other,
}

impl Queue {
    /// An empty queue.
    pub fn new(name: &'static str, options: Options, metrics: Option<Framework>) -> Self {
        let state = State {
            waiting: BTreeMap::new(),
            normal: Lane::default(),
            low: Lane::default(),
            failed: Lane::default(),
            others: 0,
            running: BTreeMap::new(),
            again: BTreeMap::new(),
            delayed: BTreeMap::new(),
            due: BTreeSet::new(),
            failures: BTreeMap::new(),
            resting: BTreeMap::new(),
            held: BTreeSet::new(),
            bucket: Bucket::new(options.qps, options.burst),
        };
        if let Some(metrics) = &metrics {
            metrics.queue_depth.set(&[name], 0.0);
            metrics.queue_adds.touch(&[name]);
            metrics.queue_retries.touch(&[name]);
        }
        Self(Arc::new(Inner {
            name,
            options,
            state: Mutex::new(state),
            news: Notify::new(),
            closed: Stop::default(),
            metrics,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a key that changed.
    pub fn add(&self, key: ObjectKey) {
        self.add_with(key, Priority::Normal);
    }

    /// Adds a key.
    pub fn add_with(&self, key: ObjectKey, priority: Priority) {
        let mut state = self.state();
        if let Some(metrics) = &self.0.metrics {
            metrics.queue_adds.inc(&[self.0.name]);
        }
        state.add(key, priority);
        self.depth(&state);
        drop(state);
        self.0.news.notify_one();
    }

    /// Adds a key after a while. Of several such wishes the earliest counts.
    pub fn add_after(&self, key: ObjectKey, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        self.state().add_at(key, Instant::now() + delay.min(FOR_EVER));
        self.0.news.notify_one();
    }

    /// The next key to work on; the caller owes [`Self::succeeded`], [`Self::failed`] or [`Self::set_aside`] for it.
    /// `None` once the queue is closed. Only one task may wait here.
    pub async fn next(&self) -> Option<ObjectKey> {
        loop {
            if self.0.closed.is_asked() {
                return None;
            }
            let next_due = {
                let mut state = self.state();
                let now = Instant::now();
                state.ripen(now);
                if let Some((key, waited)) = state.take(now) {
                    self.depth(&state);
                    if let Some(metrics) = &self.0.metrics {
                        metrics.queue_duration.observe(&[self.0.name], waited.as_secs_f64());
                    }
                    return Some(key);
                }
                let next_token = (!state.failed.is_empty()).then(|| now + state.bucket.wait(now));
                state.due.first().map(|(at, _)| *at).into_iter().chain(next_token).min()
            };
            let news = std::pin::pin!(self.0.news.notified());
            match next_due {
                Some(at) => drop(tokio::time::timeout_at(at, news).await),
                None => news.await,
            }
        }
    }

    /// The work on a key is done and went well: its failures are forgotten.
    pub fn succeeded(&self, key: &ObjectKey) {
        self.state().failures.remove(key);
        self.set_aside(key);
    }

    /// The work on a key failed: it comes again, later each time, and not before `at_least`. Tells after how long.
    ///
    /// A failure before that time, because something changed meanwhile, does not push it back further: a set whose pods
    /// start one after the other would otherwise be put off for minutes within a second.
    pub fn failed(&self, key: &ObjectKey, at_least: Duration) -> Duration {
        self.put_back(key, at_least, Failure::Other)
    }

    /// The same for work that found objects changed: it comes again soon, and before keys that failed.
    pub fn conflicted(&self, key: &ObjectKey) -> Duration {
        self.put_back(key, Duration::ZERO, Failure::Conflict)
    }

    fn put_back(&self, key: &ObjectKey, at_least: Duration, why: Failure) -> Duration {
        let at_least = at_least.min(FOR_EVER);
        let delay = {
            let mut state = self.state();
            let Options { base, max, .. } = self.0.options;
            let now = Instant::now();
            let delay = match state.failures.get_mut(key) {
                Some(failing) if failing.again > now => {
                    failing.why = why;
                    (failing.again - now).max(at_least)
                }
                known => {
                    let times = known.map_or(0, |failing| failing.times);
                    let backoff = base.saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX)).min(max);
                    let delay = backoff.max(at_least);
                    let failing = Failing { times: (times + 1).min(31), again: now + delay, why };
                    state.failures.insert(key.clone(), failing);
                    delay
                }
            };
            state.add_at(key.clone(), now + delay);
            delay
        };
        if let Some(metrics) = &self.0.metrics {
            metrics.queue_retries.inc(&[self.0.name]);
        }
        self.set_aside(key);
        delay
    }

    /// The work on a key is over, without a judgement.
    pub fn set_aside(&self, key: &ObjectKey) {
        let mut state = self.state();
        let took = state.running.remove(key).map(|since| since.elapsed());
        if let Some(priority) = state.again.remove(key) {
            state.add(key.clone(), priority);
        }
        self.depth(&state);
        drop(state);
        if let (Some(metrics), Some(took)) = (&self.0.metrics, took) {
            metrics.work_duration.observe(&[self.0.name], took.as_secs_f64());
        }
        self.0.news.notify_one();
    }

    /// The key does not come again before this time has passed, whatever happens meanwhile: one pass then answers to many
    /// changes. For keys whose work grows with what they own.
    pub fn rest(&self, key: &ObjectKey, time: Duration) {
        let mut state = self.state();
        if time.is_zero() {
            state.resting.remove(key);
        } else {
            state.resting.insert(key.clone(), Instant::now() + time.min(FOR_EVER));
        }
    }

    /// The key is not handed out until it is [released](Self::release), whoever adds it meanwhile: it could do nothing.
    pub fn hold(&self, key: &ObjectKey) {
        self.state().held.insert(key.clone());
    }

    /// Ends [`Self::hold`]. Whoever releases a key that has work adds it too: what was added meanwhile is forgotten.
    pub fn release(&self, key: &ObjectKey) {
        self.state().held.remove(key);
    }

    /// Puts back the keys that were being worked on by somebody who is gone.
    pub fn reclaim(&self) {
        let mut state = self.state();
        for (key, _) in std::mem::take(&mut state.running) {
            state.again.remove(&key);
            state.add(key, Priority::Normal);
        }
        self.depth(&state);
        drop(state);
        self.0.news.notify_one();
    }

    /// Nothing more is handed out.
    pub fn close(&self) {
        self.0.closed.ask();
        self.0.news.notify_one();
    }

    /// Whether nothing waits and nothing is worked on; what is delayed does not count.
    pub fn is_idle(&self) -> bool {
        let state = self.state();
        state.waiting.is_empty() && state.running.is_empty()
    }

    /// How many keys wait.
    pub fn len(&self) -> usize {
        self.state().waiting.len()
    }

    /// Whether no key waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Brings the numbers about running work up to date; to be called before they are read.
    pub fn measure(&self) {
        let Some(metrics) = &self.0.metrics else { return };
        let ages: Vec<f64> =
            self.state().running.values().map(|since| since.elapsed().as_secs_f64()).collect();
        metrics.unfinished_work.set(&[self.0.name], ages.iter().sum());
        metrics.longest_running.set(&[self.0.name], ages.iter().copied().fold(0.0, f64::max));
    }

    fn depth(&self, state: &State) {
        if let Some(metrics) = &self.0.metrics {
            metrics.queue_depth.set(&[self.0.name], state.waiting.len() as f64);
        }
    }
}

impl State {
    fn add(&mut self, key: ObjectKey, priority: Priority) {
        if self.held.contains(&key) {
            return;
        }
        if self.running.contains_key(&key) {
            let known = self.again.entry(key).or_insert(priority);
            *known = (*known).max(priority);
            return;
        }
        match self.resting.get(&key).copied() {
            Some(until) if until > Instant::now() => return self.add_at(key, until),
            Some(_) => drop(self.resting.remove(&key)),
            None => {}
        }
        let has_failed = self.failures.get(&key).is_some_and(|failing| failing.why == Failure::Other);
        let place = match priority {
            _ if has_failed => Place::Failed,
            Priority::Low => Place::Low,
            Priority::Normal => Place::Normal,
        };
        match self.waiting.get_mut(&key) {
            Some((known, _)) if *known >= place => return,
            Some((known, _)) => *known = place,
            None => drop(self.waiting.insert(key.clone(), (place, Instant::now()))),
        }
        match place {
            Place::Failed => self.failed.push(key),
            Place::Low => self.low.push(key),
            Place::Normal => self.normal.push(key),
        }
    }

    fn add_at(&mut self, key: ObjectKey, at: Instant) {
        if let Some(known) = self.delayed.get(&key) {
            if *known <= at {
                return;
            }
            self.due.remove(&(*known, key.clone()));
        }
        self.delayed.insert(key.clone(), at);
        self.due.insert((at, key));
    }

    /// Moves keys whose time has come.
    fn ripen(&mut self, now: Instant) {
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, key)) = self.due.pop_first() else { break };
            self.delayed.remove(&key);
            self.add(key, Priority::Normal);
        }
    }

    fn take(&mut self, now: Instant) -> Option<(ObjectKey, Duration)> {
        loop {
            let key = self.first(now)?;
            // A key that moved to a better lane stands in both; the second place is void.
            let Some((_, since)) = self.waiting.remove(&key) else { continue };
            self.running.insert(key.clone(), now);
            return Some((key, since.elapsed()));
        }
    }

    fn first(&mut self, now: Instant) -> Option<ObjectKey> {
        if self.others >= OTHERS_FIRST
            && let Some(key) = self.first_failed(now)
        {
            return Some(key);
        }
        if let Some(key) = self.normal.pop().or_else(|| self.low.pop()) {
            self.others = self.others.saturating_add(1);
            return Some(key);
        }
        self.first_failed(now)
    }

    fn first_failed(&mut self, now: Instant) -> Option<ObjectKey> {
        if self.failed.is_empty() || !self.bucket.try_take(now) {
            return None;
        }
        self.others = 0;
        self.failed.pop()
    }
}

#[cfg(test)]
mod tests;

//! Faults: what goes wrong between a client and the cluster, on purpose and by seed.
//!
//! [`Faults`] is a tower layer around the API server (see [`Faulty`]) and a set of switches that a story turns
//! while it runs. Clones share the switches. Without any switch turned the layer changes nothing.
//!
//! | fault | how |
//! | --- | --- |
//! | the process dies after its n-th write | [`Faults::crash_after_write`], [`Faults::crashed`], [`Faults::revive`] |
//! | reads lag behind | [`Faults::lag_revisions`], [`Faults::lag_time`] |
//! | watch events are dropped, merged, told twice; watches break | [`Faults::watch`] |
//! | calls answer 409, 429, 500, or time out, before or after the effect | [`Faults::rule`] |
//! | webhooks are slow or dead | [`Faults::webhook`], [`Faults::around_webhook`] |
//!
//! Dead nodes and wrong clocks of nodes are switches of the [`crate::Sim`] itself.

mod service;
mod stale;
mod stream;
mod webhook;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Method;
use kruise_apiserver::random::Random;
use tokio::sync::watch;

pub use service::Faulty;
pub use webhook::{Door, Webhook};

/// A call that got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The calling process has died; whatever it hears comes too late.
    #[error("the process has died")]
    Crashed,
    /// Nobody answered in time.
    #[error("the request timed out")]
    TimedOut,
    /// Nobody listens.
    #[error("connection refused")]
    Refused,
}

/// Which calls a rule is about.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Only this method.
    pub method: Option<Method>,
    /// Only paths that contain this.
    pub path: String,
}

impl Calls {
    /// All creates of a resource, by its plural.
    pub fn creates(plural: &str) -> Self {
        Self { method: Some(Method::POST), path: format!("/{plural}") }
    }

    fn matches(&self, method: &Method, path: &str) -> bool {
        self.method.as_ref().is_none_or(|own| own == method) && path.contains(&self.path)
    }
}

/// When a rule strikes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// At the n-th matching call only, counted from 1.
    Nth(u64),
    /// At each matching call with this probability.
    Chance(f64),
}

/// Whether the call still does its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It never reaches the server.
    Before,
    /// It takes effect, and only the answer is lost.
    After,
}

/// What the client hears instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// 409, as if someone else had written.
    Conflict,
    /// 429 with a second to wait.
    TooManyRequests,
    /// 500.
    Internal,
    /// 503.
    Unavailable,
    /// Nothing for this long, then an error of the connection.
    Timeout(Duration),
}

/// One kind of error answers.
#[derive(Clone, Debug)]
pub struct Rule {
    /// For these calls,
    pub calls: Calls,
    /// at these times,
    pub when: When,
    /// with or without effect,
    pub effect: Effect,
    /// this is heard.
    pub answer: Answer,
}

/// What happens to the events of watches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchFaults {
    /// The probability that an event is never told.
    pub drop: f64,
    /// The probability that an event is told twice.
    pub duplicate: f64,
    /// Events of one object within this time become one: the last state, and nothing for what came and went.
    pub merge: Duration,
    /// The probability, per piece of news, that the watch ends with 410 instead, so that the client must list anew.
    pub expire: f64,
}

/// The switches. Clones are the same switches.
#[derive(Clone, Debug)]
pub struct Faults {
    state: Arc<Mutex<State>>,
    dead: Arc<watch::Sender<bool>>,
}

#[derive(Debug)]
struct State {
    random: Random,
    writes: u64,
    crash_at: Option<u64>,
    latency: Duration,
    lag_revisions: u64,
    lag_time: Duration,
    watch: WatchFaults,
    rules: Vec<(Rule, u64)>,
    webhooks: BTreeMap<String, Webhook>,
}

impl Faults {
    /// No faults yet; all chances follow from the seed.
    pub fn seeded(seed: u64) -> Self {
        let state = State {
            random: Random::seeded(seed ^ 0x6661_756c),
            writes: 0,
            crash_at: None,
            latency: Duration::ZERO,
            lag_revisions: 0,
            lag_time: Duration::ZERO,
            watch: WatchFaults::default(),
            rules: Vec::new(),
            webhooks: BTreeMap::new(),
        };
        Self { state: Arc::new(Mutex::new(state)), dead: Arc::new(watch::Sender::new(false)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the client die right after its `n`-th write from now on took effect (counted from 1): that write and
    /// all later calls fail, its watches end, and [`Self::crashed`] returns.
    pub fn crash_after_write(&self, n: u64) {
        let mut state = self.state();
        state.crash_at = Some(state.writes + n);
    }

    /// Waits until the client has died.
    pub async fn crashed(&self) {
        let mut dead = self.dead.subscribe();
        // The sender lives as long as `self`, so this ends only when it is so.
        let _ = dead.wait_for(|dead| *dead).await;
    }

    /// Whether the client has died.
    pub fn is_crashed(&self) -> bool {
        *self.dead.borrow()
    }

    /// The process was started again: calls go through from now on.
    pub fn revive(&self) {
        self.state().crash_at = None;
        self.dead.send_replace(false);
    }

    /// How many writes went through so far.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// Every call takes this long.
    pub fn latency(&self, latency: Duration) {
        self.state().latency = latency;
    }

    /// Gets, lists and watches show the state of `k` revisions ago. Zero ends it.
    pub fn lag_revisions(&self, k: u64) {
        self.state().lag_revisions = k;
    }

    /// Gets, lists and watches come this late: with what was true when they were asked, or when it happened.
    pub fn lag_time(&self, by: Duration) {
        self.state().lag_time = by;
    }

    /// Sets what happens to the events of watches.
    pub fn watch(&self, faults: WatchFaults) {
        self.state().watch = faults;
    }

    /// Adds error answers.
    pub fn rule(&self, rule: Rule) {
        self.state().rules.push((rule, 0));
    }

    /// Sets what happens to calls of the webhook at this host.
    pub fn webhook(&self, host: &str, webhook: Webhook) {
        self.state().webhooks.insert(host.to_owned(), webhook);
    }

    /// Ends all faults but a crash.
    pub fn heal(&self) {
        let mut state = self.state();
        state.lag_revisions = 0;
        state.lag_time = Duration::ZERO;
        state.watch = WatchFaults::default();
        state.rules.clear();
        state.webhooks.clear();
    }

    /// The rule that strikes this call, if any.
    fn strike(&self, method: &Method, path: &str) -> Option<(Effect, Answer)> {
        let mut state = self.state();
        let State { rules, random, .. } = &mut *state;
        let mut struck = None;
        for (rule, seen) in rules.iter_mut().filter(|(rule, _)| rule.calls.matches(method, path)) {
            *seen += 1;
            let strikes = match rule.when {
                When::Nth(n) => *seen == n,
                When::Chance(chance) => happens(random, chance),
            };
            if strikes && struck.is_none() {
                struck = Some((rule.effect, rule.answer));
            }
        }
        struck
    }

    /// Counts a write that took effect. Returns whether the process died right after it.
    fn wrote(&self) -> bool {
        let mut state = self.state();
        state.writes += 1;
        if state.crash_at.is_some_and(|at| state.writes >= at) {
            self.dead.send_replace(true);
            return true;
        }
        false
    }
}

fn happens(random: &mut Random, chance: f64) -> bool {
    const SCALE: u64 = 1 << 32;
    // Only a wish for chance draws a number, so that unused faults leave the sequence alone.
    chance > 0.0 && (random.below(SCALE) as f64) < chance * SCALE as f64
}

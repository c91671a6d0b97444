//! A bucket of tokens: so many at once, then so many per second.

use std::time::Duration;

use tokio::time::Instant;

/// A bucket of tokens. Whoever finds none takes one of the future and waits for it.
#[derive(Clone, Debug)]
pub struct Bucket {
    qps: f64,
    burst: f64,
    tokens: f64,
    filled: Option<Instant>,
}

impl Bucket {
    /// A full bucket. Without a positive rate there is no limit.
    pub fn new(qps: f64, burst: u32) -> Self {
        let burst = f64::from(burst.max(1));
        Self { qps, burst, tokens: burst, filled: None }
    }

    /// Takes a token. Tells how long to wait for it.
    pub fn take(&mut self, now: Instant) -> Duration {
        if self.qps <= 0.0 {
            return Duration::ZERO;
        }
        self.fill(now);
        self.tokens -= 1.0;
        if self.tokens >= 0.0 { Duration::ZERO } else { Duration::from_secs_f64(-self.tokens / self.qps) }
    }

    /// Gives back a token that was taken and not used.
    pub fn give_back(&mut self) {
        self.tokens = (self.tokens + 1.0).min(self.burst);
    }

    /// How many tokens can be had within this time, at least one.
    pub fn room(&mut self, now: Instant, within: Duration) -> usize {
        if self.qps <= 0.0 {
            return usize::MAX;
        }
        self.fill(now);
        let tokens = within.as_secs_f64().mul_add(self.qps, self.tokens).max(1.0);
        // More than a machine word of tokens is all that anybody can ask for.
        tokens as usize
    }

    /// Takes a token only if there is one now.
    pub fn try_take(&mut self, now: Instant) -> bool {
        self.fill(now);
        let there = self.tokens >= 1.0 || self.qps <= 0.0;
        if there {
            self.tokens -= 1.0;
        }
        there
    }

    /// Whether so many tokens are there now.
    pub fn has(&mut self, now: Instant, tokens: u32) -> bool {
        self.fill(now);
        self.tokens >= f64::from(tokens) || self.qps <= 0.0
    }

    /// How long until there is a token. Never nothing where there is none: timers count whole milliseconds.
    pub fn wait(&mut self, now: Instant) -> Duration {
        if self.has(now, 1) {
            return Duration::ZERO;
        }
        Duration::from_secs_f64((1.0 - self.tokens) / self.qps).max(Duration::from_millis(1))
    }

    fn fill(&mut self, now: Instant) {
        let since = self.filled.replace(now).map_or(Duration::ZERO, |filled| now.duration_since(filled));
        self.tokens = since.as_secs_f64().mul_add(self.qps, self.tokens).min(self.burst);
    }
}

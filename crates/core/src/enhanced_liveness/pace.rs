//! How fast containers are restarted: over all pods, and each container by itself.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The first wait of a container that fails again.
const FIRST_WAIT: SignedDuration = SignedDuration::from_secs(10);
/// The longest wait.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_mins(5);
/// Who has not failed for this long begins anew.
const FORGIVEN_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// A store of restarts that fills at a steady rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Limiter {
    per_second: f64,
    burst: f64,
    stored: f64,
    filled: Option<Timestamp>,
}

impl Limiter {
    /// A full one.
    pub fn new(per_second: f64, burst: u32) -> Self {
        Self { per_second: per_second.max(0.0), burst: burst.into(), stored: burst.into(), filled: None }
    }

    /// Takes one restart out, or tells how long it takes until there is one.
    pub fn take(&mut self, now: Timestamp) -> Result<(), Duration> {
        // A clock that was set back gives nothing, and takes nothing away.
        let passed = self.filled.map_or(0.0, |filled| now.duration_since(filled).as_secs_f64().max(0.0));
        self.stored = (self.stored + passed * self.per_second).min(self.burst);
        self.filled = Some(now);
        if self.stored >= 1.0 {
            self.stored -= 1.0;
            return Ok(());
        }
        let missing = (1.0 - self.stored) / self.per_second;
        Err(Duration::try_from_secs_f64(missing)
            .unwrap_or(Duration::from_secs(60))
            .min(Duration::from_secs(60)))
    }

    /// Puts one back that was not used.
    pub fn give_back(&mut self) {
        self.stored = (self.stored + 1.0).min(self.burst);
    }
}

/// What is remembered of a container that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    restarted: Timestamp,
    wait: SignedDuration,
}

impl Backoff {
    /// After a restart, with what was remembered before.
    pub fn after(before: Option<Self>, now: Timestamp) -> Self {
        let wait = match before.filter(|before| !before.is_forgiven(now)) {
            None => FIRST_WAIT,
            Some(before) => before.wait.saturating_mul(2).min(LONGEST_WAIT),
        };
        Self { restarted: now, wait }
    }

    /// How long the next restart has to wait, if it has to.
    pub fn left(&self, now: Timestamp) -> Option<Duration> {
        let left = self.wait.saturating_sub(now.duration_since(self.restarted)).min(self.wait);
        Duration::try_from(left).ok().filter(|left| !left.is_zero())
    }

    /// Whether the container has been well for so long that this can be forgotten.
    pub fn is_forgiven(&self, now: Timestamp) -> bool {
        now.duration_since(self.restarted) >= FORGIVEN_AFTER
    }
}

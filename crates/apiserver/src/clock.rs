//! The server's clock: a base time plus what tokio's clock has counted since.
//!
//! Under paused tokio time the clock stands still until a test moves it, so that an hour of life takes
//! milliseconds and timestamps repeat from run to run.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Where "now" comes from. Clones share the same start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Timestamp,
    start: Instant,
    speed: f64,
}

impl Clock {
    /// The time a clock shows at its start unless told otherwise: 2026-01-01T00:00:00Z.
    pub const DEFAULT_BASE: Timestamp = Timestamp::constant(1_767_225_600, 0);

    /// A clock that shows `base` now and runs with tokio's clock.
    pub fn starting_at(base: Timestamp) -> Self {
        Self { base, start: Instant::now(), speed: 1.0 }
    }

    /// The same clock, running `factor` times as fast as tokio's clock.
    #[must_use]
    pub fn with_speed(mut self, factor: f64) -> Self {
        self.speed = factor;
        self
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        let elapsed = self.start.elapsed();
        let elapsed = if self.speed == 1.0 { elapsed } else { elapsed.mul_f64(self.speed) };
        let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::ZERO);
        self.base.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// The time now in the form of `metadata.creationTimestamp`: whole seconds, UTC.
    pub fn now_text(&self) -> String {
        seconds_text(self.now())
    }

    /// How long to wait on tokio's clock so that this clock moves by `virtual_time`.
    pub fn real(&self, virtual_time: Duration) -> Duration {
        if self.speed == 1.0 { virtual_time } else { virtual_time.div_f64(self.speed) }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::starting_at(Self::DEFAULT_BASE)
    }
}

/// A time as Kubernetes' `metav1.Time` writes it: whole seconds, UTC.
pub fn seconds_text(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// A time as Kubernetes' `metav1.MicroTime` writes it: always six digits of a second.
pub fn micros_text(time: Timestamp) -> String {
    format!("{time:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn virtual_time_moves_the_clock_and_nothing_else_does() {
        let clock = Clock::default();
        assert_eq!(clock.now_text(), "2026-01-01T00:00:00Z");
        tokio::time::advance(Duration::from_millis(61_500)).await;
        assert_eq!(clock.now_text(), "2026-01-01T00:01:01Z");
        assert_eq!(micros_text(clock.now()), "2026-01-01T00:01:01.500000Z");
    }
}

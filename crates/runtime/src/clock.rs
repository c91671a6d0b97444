//! The time of day, as a value.

use std::{fmt, sync::Arc};

use jiff::Timestamp;

/// Where "now" comes from. Clones are the same clock.
///
/// ```
/// use kruise_runtime::clock::Clock;
///
/// let clock = Clock::fixed("2026-01-01T00:00:00Z".parse()?);
/// assert_eq!(clock.now().to_string(), "2026-01-01T00:00:00Z");
/// # Ok::<(), jiff::Error>(())
/// ```
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The clock of the machine. Only programs use it; tests bring their own.
    pub fn wall() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place where a program reads the wall clock; everything else is given a Clock"
        )]
        Self::from_fn(Timestamp::now)
    }

    /// A clock that asks a function.
    pub fn from_fn(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// A clock that stands still.
    pub fn fixed(now: Timestamp) -> Self {
        Self::from_fn(move || now)
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }

    /// The time now in whole seconds, as `metav1.Time` keeps it.
    pub fn now_seconds(&self) -> Timestamp {
        let now = self.now();
        Timestamp::from_second(now.as_second()).unwrap_or(now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Clock").field(&self.now()).finish()
    }
}

/// A time as `metav1.MicroTime` writes it: always six digits of a second.
pub fn micros_text(time: Timestamp) -> String {
    format!("{time:.6}")
}

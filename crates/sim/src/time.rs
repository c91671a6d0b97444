//! Small arithmetic on timestamps.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_apiserver::clock::seconds_text;

/// `time` plus `by`, or the end of time.
pub(crate) fn later(time: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// How long it is from `now` until `then`; zero when that has passed.
pub(crate) fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO)
}

/// A time on a clock that is off by `skew`, in whole seconds as objects carry it.
pub(crate) fn stamp(time: Timestamp, skew: SignedDuration) -> String {
    seconds_text(time.checked_add(skew).unwrap_or(time))
}

/// The smaller of two optional times.
pub(crate) fn sooner(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

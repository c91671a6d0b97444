//! How often and for how long a pull is tried.

use std::time::Duration;

use kruise_api::{
    image_pull::{DEFAULT_BACKOFF_LIMIT, DEFAULT_TIMEOUT_SECONDS},
    nodeimage::v1beta1::PullPolicy,
};

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How often and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long one attempt may take.
    pub timeout: Duration,
    /// How many attempts follow the first.
    pub retries: u32,
    /// How long all of them may take.
    pub deadline: Option<Duration>,
}

impl From<Option<&PullPolicy>> for Policy {
    fn from(policy: Option<&PullPolicy>) -> Self {
        let policy = policy.cloned().unwrap_or_default();
        let seconds = |number: i64| u64::try_from(number).ok().map(Duration::from_secs);
        let timeout =
            policy.timeout_seconds.filter(|seconds| *seconds > 0).unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        let retries = policy.backoff_limit.filter(|limit| *limit >= 0).unwrap_or(DEFAULT_BACKOFF_LIMIT);
        Self {
            timeout: seconds(timeout.into()).unwrap_or_default(),
            retries: u32::try_from(retries).unwrap_or_default(),
            deadline: policy.active_deadline_seconds.and_then(seconds),
        }
    }
}

/// The next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Try, for this long at most.
    Try(Duration),
    /// The time of all attempts is over.
    TooLate,
    /// There were enough.
    Enough,
}

impl Policy {
    /// The attempt of this number, from zero, after so much time. The clock of the node must not tell it: a clock that is set
    /// right in the middle of a pull would use up a deadline of an hour at once.
    pub fn attempt(&self, number: u32, used: Duration) -> Attempt {
        if number > self.retries {
            return Attempt::Enough;
        }
        let Some(deadline) = self.deadline else { return Attempt::Try(self.timeout) };
        match deadline.saturating_sub(used) {
            Duration::ZERO => Attempt::TooLate,
            left => Attempt::Try(left.min(self.timeout)),
        }
    }
}

/// The pause after the attempt of this number: one second, then twice as long each time.
pub fn pause(number: u32) -> Duration {
    Duration::from_secs(1_u64.checked_shl(number.min(32)).unwrap_or(u64::MAX)).min(LONGEST_PAUSE)
}

//! Tells watchers that a table changed, in the order in which they began to wait.
//!
//! tokio's `watch` channel spreads its waiters over several lists by a random number, so that the order of waking
//! differs from run to run. One seed must give one history: here the first to wait is the first to wake.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

#[derive(Debug)]
pub(super) struct Signal {
    version: AtomicU64,
    bell: Notify,
}

impl Signal {
    pub(super) fn new(version: u64) -> Self {
        Self { version: AtomicU64::new(version), bell: Notify::new() }
    }

    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(super) fn raise(&self, version: u64) {
        self.version.store(version, Ordering::Release);
        self.bell.notify_waiters();
    }

    /// Waits until the version differs from what the caller has seen.
    pub(super) async fn changed_from(&self, seen: u64) -> u64 {
        loop {
            let mut bell = pin!(self.bell.notified());
            // Stand in the queue first: a change between the look and the wait must not be missed.
            bell.as_mut().enable();
            let version = self.version();
            if version != seen {
                return version;
            }
            bell.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn whoever_waited_first_wakes_first() {
        let signal = Arc::new(Signal::new(1));
        let woken = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        for number in 0..20 {
            let (signal, woken) = (signal.clone(), woken.clone());
            tasks.spawn(async move {
                signal.changed_from(1).await;
                woken.lock().unwrap().push(number);
            });
        }
        tokio::task::yield_now().await;
        signal.raise(2);
        tasks.join_all().await;
        assert_eq!(*woken.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_change_before_the_wait_is_not_missed() {
        let signal = Signal::new(1);
        signal.raise(5);
        assert_eq!(signal.changed_from(1).await, 5);
    }
}

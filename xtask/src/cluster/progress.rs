//! One line per step with the seconds since the start, and waiting with a limit.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// The clock of one command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    start: Instant,
}

impl Progress {
    pub(crate) fn start() -> Self {
        Self { start: now() }
    }

    /// Tells the person what happens now.
    pub(crate) fn say(&self, text: impl AsRef<str>) {
        eprintln!("[{:>6.1}s] {}", self.start.elapsed().as_secs_f64(), text.as_ref());
    }
}

/// Asks `ready` again and again. Its error ends the waiting at once; `Ok(None)` means not yet.
pub(crate) fn wait_for<T>(
    what: &str,
    limit: Duration,
    mut ready: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = now();
    loop {
        if let Some(value) = ready()? {
            return Ok(value);
        }
        if start.elapsed() > limit {
            bail!("{what} took longer than {} s", limit.as_secs());
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Tells every half minute that a long step still runs.
pub(crate) struct Heartbeat<'a> {
    progress: &'a Progress,
    what: &'a str,
    last: Instant,
}

impl<'a> Heartbeat<'a> {
    pub(crate) fn new(progress: &'a Progress, what: &'a str) -> Self {
        Self { progress, what, last: now() }
    }

    pub(crate) fn beat(&mut self) {
        if self.last.elapsed() > Duration::from_secs(30) {
            self.last = now();
            self.progress.say(format!("  … still {}", self.what));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "real processes are waited for in real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_with_the_value() {
        let mut left = 2;
        let value = wait_for("counting", Duration::from_secs(60), || {
            left -= 1;
            Ok((left == 0).then_some("done"))
        });
        assert_eq!(value.expect("it ends"), "done");
    }

    #[test]
    fn waiting_gives_up_after_its_limit() {
        let error = wait_for::<()>("hope", Duration::ZERO, || Ok(None)).expect_err("nothing comes");
        assert_eq!(error.to_string(), "hope took longer than 0 s");
    }
}

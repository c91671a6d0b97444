//! Waiting for something to happen, and watching that something never does.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How often the cluster is looked at.
const PERIOD: Duration = Duration::from_millis(200);

/// What one look at the cluster showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look<T> {
    /// It is so.
    Yes(T),
    /// It is not so (yet); this is what was seen instead.
    No(String),
}

/// A look that is a yes or a no, with what was seen.
pub fn seen(so: bool, state: impl Into<String>) -> Look<()> {
    if so { Look::Yes(()) } else { Look::No(state.into()) }
}

/// Looks until the answer is yes, and returns what came with it. Fails with what was awaited and the last state
/// that was seen.
pub async fn eventually<T>(
    what: &str,
    within: Duration,
    mut look: impl AsyncFnMut() -> Look<T>,
) -> Result<T, String> {
    let start = Instant::now();
    loop {
        match look().await {
            Look::Yes(value) => return Ok(value),
            Look::No(state) if start.elapsed() >= within => {
                return Err(format!("waited {within:?} for: {what}\nlast seen: {state}"));
            }
            Look::No(_) => sleep(PERIOD).await,
        }
    }
}

/// Looks for the whole time; fails at the first no, with when and what was seen.
pub async fn always(
    what: &str,
    during: Duration,
    mut look: impl AsyncFnMut() -> Look<()>,
) -> Result<(), String> {
    let start = Instant::now();
    while start.elapsed() < during {
        if let Look::No(state) = look().await {
            return Err(format!("did not hold after {:?}: {what}\nseen: {state}", start.elapsed()));
        }
        sleep(PERIOD).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_in_vain_tells_what_was_awaited_and_what_was_seen_last() {
        let mut looks = 0;
        let error = eventually("three apples", Duration::from_secs(1), async || {
            looks += 1;
            seen(looks > 1000, format!("{looks} looks"))
        })
        .await
        .unwrap_err();
        assert_eq!(error, "waited 1s for: three apples\nlast seen: 6 looks");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_with_the_first_yes() {
        let mut looks = 0;
        let value = eventually("three looks", Duration::from_secs(10), async || {
            looks += 1;
            if looks == 3 { Look::Yes(looks) } else { Look::No(String::new()) }
        })
        .await;
        assert_eq!(value, Ok(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_rule_that_breaks_once_fails() {
        let mut looks = 0;
        let error = always("fewer than three looks", Duration::from_secs(10), async || {
            looks += 1;
            seen(looks < 3, format!("{looks} looks"))
        })
        .await
        .unwrap_err();
        assert_eq!(error, "did not hold after 400ms: fewer than three looks\nseen: 3 looks");
    }
}

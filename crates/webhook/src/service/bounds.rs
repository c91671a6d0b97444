//! The bounds of requests, and whose turn it is.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// How much is allowed at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest body for admission, in bytes. A server stores objects of up to 3 MiB, and a review holds two.
    pub admission_body: u64,
    /// The largest body for conversion, in bytes. A server sends all objects of a list in one review.
    pub conversion_body: u64,
    /// Bytes of all bodies at once.
    pub all_bodies: u64,
    /// Requests at once.
    pub requests: usize,
    /// How long a request waits for its turn.
    pub turn: Duration,
    /// How long a request may take in all. A server that says how long it waits lowers this.
    pub deadline: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            admission_body: 7 * MIB,
            conversion_body: 128 * MIB,
            all_bodies: 256 * MIB,
            requests: 256,
            turn: Duration::from_secs(2),
            deadline: Duration::from_secs(30),
        }
    }
}

/// Whose turn it is.
pub(super) struct Turns {
    requests: Semaphore,
    kibibytes: Semaphore,
    /// As many as there are; one request can take no more.
    all_kibibytes: u32,
}

/// A turn. It ends when this is dropped.
pub(super) struct Turn<'a>(#[expect(dead_code, reason = "held, not read")] [SemaphorePermit<'a>; 2]);

impl Turns {
    pub(super) fn new(limits: &Limits) -> Self {
        let all_kibibytes = u32::try_from(limits.all_bodies.div_ceil(KIB)).unwrap_or(u32::MAX >> 3);
        Self {
            requests: Semaphore::new(limits.requests),
            kibibytes: Semaphore::new(usize::try_from(all_kibibytes).unwrap_or(Semaphore::MAX_PERMITS)),
            all_kibibytes,
        }
    }

    /// Waits for a turn with a body of this size.
    pub(super) async fn next(&self, bytes: u64, limits: &Limits) -> Option<Turn<'_>> {
        let wanted = u32::try_from(bytes.div_ceil(KIB)).unwrap_or(u32::MAX).min(self.all_kibibytes);
        let both = async {
            let request = self.requests.acquire().await.ok()?;
            let body = self.kibibytes.acquire_many(wanted).await.ok()?;
            Some(Turn([request, body]))
        };
        tokio::time::timeout(limits.turn, both).await.ok().flatten()
    }
}

/// How long the client waits, as an API server says it in the query: `timeout=10s`.
pub(super) fn patience(query: Option<&str>) -> Option<Duration> {
    let text = query?.split('&').find_map(|pair| pair.strip_prefix("timeout="))?;
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    let number: u64 = digits.parse().ok()?;
    match text.get(digits.len()..)? {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.saturating_mul(60))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_say_in_the_query_how_long_they_wait() {
        assert_eq!(patience(Some("timeout=10s")), Some(Duration::from_secs(10)));
        assert_eq!(patience(Some("a=b&timeout=250ms")), Some(Duration::from_millis(250)));
        assert_eq!(patience(Some("timeout=1m")), Some(Duration::from_secs(60)));
        for odd in
            [None, Some(""), Some("timeout="), Some("timeout=s"), Some("timeout=-1s"), Some("timeout=é")]
        {
            assert_eq!(patience(odd), None, "{odd:?}");
        }
    }
}

//! The bounds of requests.

use std::time::Duration;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// How much is allowed at once. Admission and conversion share nothing, so that neither can use up what the other needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest body for admission, in bytes. A server stores objects of up to 3 MiB, and a review holds two.
    pub admission_body: u64,
    /// The largest body for conversion, in bytes. API servers send one object in each review; the embedded one a hundred.
    pub conversion_body: u64,
    /// Bytes of all admissions at once: their bodies, and what these take when they are read.
    pub admission_memory: u64,
    /// The same for conversions, with their answers.
    pub conversion_memory: u64,
    /// Admissions that are worked on at once.
    pub requests: usize,
    /// Conversions that are worked on at once.
    pub conversions: usize,
    /// How long a client may send before it can lose its memory to others that need some.
    pub grace: Duration,
    /// How long a request waits for its turn.
    pub turn: Duration,
    /// How long a request may take in all. A server that says how long it waits lowers this.
    pub deadline: Duration,
    /// How long the rest of a body that is too large is read, so that the client sees the answer.
    pub discard: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            admission_body: 7 * MIB,
            conversion_body: 12 * MIB,
            admission_memory: 32 * MIB,
            conversion_memory: 32 * MIB,
            requests: 256,
            conversions: 4,
            grace: Duration::from_millis(250),
            turn: Duration::from_secs(2),
            deadline: Duration::from_secs(30),
            discard: Duration::from_secs(10),
        }
    }
}

/// Up to this size the weight of a text is not counted but taken as the largest that is possible.
const SMALL: usize = 64 << 10;
/// The most bytes of a tree for a byte of its text.
const DENSEST: u64 = 24;
/// What an item of a list takes in a tree, and what a member of an object takes.
const ITEM: u64 = 36;
const MEMBER: u64 = 112;

/// About how many bytes a text of JSON takes as a tree, at most. Small items make a tree much larger than its text.
pub(super) fn weight(text: &[u8]) -> u64 {
    let length = text.len() as u64;
    if text.len() <= SMALL {
        return length * DENSEST;
    }
    let (mut items, mut members) = (0_u64, 0_u64);
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b',' | b'[' | b'{' => items += 1,
            b':' => members += 1,
            _ => {}
        }
    }
    length + items * ITEM + members * MEMBER
}

/// How long the client waits, as an API server says it in the query: `timeout=10s`.
pub(super) fn timeout(query: Option<&str>) -> Option<Duration> {
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
        assert_eq!(timeout(Some("timeout=10s")), Some(Duration::from_secs(10)));
        assert_eq!(timeout(Some("a=b&timeout=250ms")), Some(Duration::from_millis(250)));
        assert_eq!(timeout(Some("timeout=1m")), Some(Duration::from_secs(60)));
        for odd in
            [None, Some(""), Some("timeout="), Some("timeout=s"), Some("timeout=-1s"), Some("timeout=é")]
        {
            assert_eq!(timeout(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn what_is_dense_weighs_more_than_what_is_text() {
        let text = format!("[\"{}\"]", "a,:[{\\\"".repeat(100_000));
        assert_eq!(weight(text.as_bytes()), text.len() as u64 + ITEM);
        let dense = format!("[{}0]", "0,".repeat(100_000));
        assert_eq!(weight(dense.as_bytes()), dense.len() as u64 + 100_001 * ITEM);
        let members = format!("{{{}\"\":0}}", "\"a\":0,".repeat(100_000));
        assert!(weight(members.as_bytes()) > 100_000 * (MEMBER + ITEM));
    }

    /// The largest object that etcd takes can be converted and deleted in its densest form, and updated in a usual one.
    #[test]
    fn whatever_can_be_stored_has_its_place() {
        let limits = Limits::default();
        let largest = 3 * MIB / 2;
        let dense = format!("[{}0]", "0,".repeat(usize::try_from(largest / 2).unwrap()));
        assert!(2 * largest + weight(dense.as_bytes()) <= limits.conversion_memory);
        assert!(largest + weight(dense.as_bytes()) <= limits.admission_memory);
        let member = r#""environment":"production","#;
        let usual = format!("{{{}\"a\":0}}", member.repeat(usize::try_from(largest).unwrap() / member.len()));
        assert!(2 * largest + 2 * weight(usual.as_bytes()) <= limits.admission_memory);
    }
}

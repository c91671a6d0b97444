//! How long the failed pod of a node stays before it is replaced again.
//!
//! A pod that the kubelet rejects fails again at once. Without pauses that grow, its replacement would keep the server and
//! the kubelet busy for ever.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};

use crate::text::Text;

const FIRST: SignedDuration = SignedDuration::from_secs(1);
const LONGEST: SignedDuration = SignedDuration::from_mins(15);

/// The pauses of one set. A change of its spec begins anew, and so does a restart of the manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    generation: Option<i64>,
    nodes: BTreeMap<Text, Pause>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pause {
    length: SignedDuration,
    since: Timestamp,
}

impl Pause {
    /// A node that was quiet for long begins anew.
    fn is_over(&self, now: Timestamp) -> bool {
        now.duration_since(self.since) > LONGEST + LONGEST
    }
}

impl Backoff {
    /// How long the failed pod of a node stays; nothing when it may be deleted now.
    pub fn left(&self, generation: Option<i64>, node: &str, now: Timestamp) -> Option<Duration> {
        let pause =
            self.nodes.get(node).filter(|pause| self.generation == generation && !pause.is_over(now))?;
        // A clock that was set back must not make the pause longer than it is.
        let left = pause.length.saturating_sub(now.duration_since(pause.since)).min(pause.length);
        Duration::try_from(left).ok().filter(|left| !left.is_zero())
    }

    /// Notes that the failed pod of a node was deleted.
    pub fn deleted(&mut self, generation: Option<i64>, node: &Text, now: Timestamp) {
        if self.generation != generation {
            *self = Self { generation, nodes: BTreeMap::new() };
        }
        self.nodes.retain(|_, pause| !pause.is_over(now));
        // Two failed pods of one node, deleted together.
        if self.nodes.get(node).is_some_and(|pause| pause.since == now) {
            return;
        }
        let known = self.nodes.get(node).map(|pause| (pause.length + pause.length).min(LONGEST));
        self.nodes.insert(node.clone(), Pause { length: known.unwrap_or(FIRST), since: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    /// DAEMONSET-9
    #[test]
    fn pauses_double_up_to_fifteen_minutes() {
        let (mut backoff, mut at, mut pauses) = (Backoff::default(), 0, Vec::new());
        for _ in 0..12 {
            assert_eq!(backoff.left(Some(1), "n1", time(at)), None);
            backoff.deleted(Some(1), &"n1".into(), time(at));
            let pause = backoff.left(Some(1), "n1", time(at)).unwrap().as_secs();
            pauses.push(pause);
            at += i64::try_from(pause).unwrap();
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
        assert_eq!(backoff.left(Some(1), "n2", time(at)), None, "another node does not wait");
        for _ in 0..2 {
            backoff.deleted(Some(1), &"n2".into(), time(at));
        }
        assert_eq!(backoff.left(Some(1), "n2", time(at)), Some(Duration::from_secs(1)), "two pods at once");
    }

    #[test]
    fn a_change_of_the_spec_or_a_long_quiet_time_begins_anew() {
        let mut backoff = Backoff::default();
        backoff.deleted(Some(1), &"n1".into(), time(0));
        backoff.deleted(Some(1), &"n1".into(), time(1));
        assert_eq!(backoff.left(Some(2), "n1", time(1)), None);
        backoff.deleted(Some(2), &"n1".into(), time(1));
        assert_eq!(backoff.left(Some(2), "n1", time(1)), Some(Duration::from_secs(1)));
        backoff.deleted(Some(2), &"n1".into(), time(2));
        backoff.deleted(Some(2), &"n1".into(), time(2000));
        assert_eq!(backoff.left(Some(2), "n1", time(2000)), Some(Duration::from_secs(1)));
    }
}

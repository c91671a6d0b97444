//! What is remembered between reconciles. All of it may be lost: the cluster has what matters.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use kruise_core::uniteddeployment::{News, Purpose};
use kruise_runtime::{effects::Why, random::Random};

use super::{super::workload::Acted, NEWS_EVERY};

/// What is remembered of one object.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// Where the names of the next workloads come from. It stays until they were certainly made.
    pub(super) seed: u64,
    /// Subsets whose workload the server refused to write last time.
    pub(super) refused: BTreeSet<String>,
    /// How many pods were not scheduled in time when a subset was marked.
    pub(super) timed_out: BTreeMap<String, usize>,
    /// What was said last about the division, and when.
    told: Option<(Timestamp, String)>,
    /// What is to be said about it.
    next: Option<String>,
}

impl Memory {
    pub(super) fn new(random: &Random) -> Self {
        Self { seed: random.next_u64(), ..Self::default() }
    }

    /// Remembers what became of a plan.
    pub(super) fn learn(&mut self, random: &Random, acted: &Acted<Purpose>) {
        let (mut made, mut is_taken) = (Vec::new(), false);
        for (_, purpose, why) in acted.steps() {
            if let Purpose::CreateSubset { .. } = purpose {
                made.push(why.is_none());
                is_taken |= matches!(why, Some(Why::Refused { code: 409, .. }));
            }
            let Some(subset) = purpose.subset() else { continue };
            match why {
                None => self.refused.remove(subset),
                Some(Why::Refused { .. }) => self.refused.insert(subset.to_owned()),
                Some(_) => false,
            };
        }
        // The next workloads get other names once these were all made, or where a stranger has the name.
        if is_taken || (!made.is_empty() && made.iter().all(|made| *made)) {
            self.seed = random.next_u64();
        }
    }

    /// What to say now about the division, and when to look again if something has to wait: at most once in 10 s, and the
    /// newest wins.
    pub(super) fn news(&mut self, news: News, now: Timestamp) -> (Option<String>, Option<Duration>) {
        let News { sentence, timed_out } = news;
        self.timed_out.extend(timed_out);
        if let Some(sentence) = sentence
            && self.told.as_ref().is_none_or(|(_, told)| *told != sentence)
        {
            self.next = Some(sentence);
        }
        let Some(next) = self.next.take() else { return (None, None) };
        let since = self.told.as_ref().map(|(at, _)| now.duration_since(*at));
        let passed = since.map(|since| Duration::try_from(since).unwrap_or_default());
        match passed.and_then(|passed| NEWS_EVERY.checked_sub(passed)).filter(|left| !left.is_zero()) {
            Some(left) => {
                self.next = Some(next);
                (None, Some(left))
            }
            None => {
                self.told = Some((now, next.clone()));
                (Some(next), None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(sentence: Option<&str>) -> News {
        News { sentence: sentence.map(str::to_owned), ..News::default() }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    #[test]
    fn at_most_one_division_is_told_in_ten_seconds_and_the_newest_wins() {
        let mut memory = Memory::default();
        assert_eq!(memory.news(news(Some("a")), at(0)), (Some("a".to_owned()), None));
        assert_eq!(memory.news(news(None), at(1)), (None, None));
        assert_eq!(memory.news(news(Some("b")), at(2)), (None, Some(Duration::from_secs(8))));
        assert_eq!(memory.news(news(Some("c")), at(4)), (None, Some(Duration::from_secs(6))));
        assert_eq!(memory.news(news(None), at(10)), (Some("c".to_owned()), None));
        assert_eq!(memory.news(news(Some("c")), at(30)), (None, None), "the same is not repeated");
    }
}

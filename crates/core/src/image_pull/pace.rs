//! How often jobs answer news of nodes.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};

use crate::object::ObjectKey;

/// The time between two turns when there is more news than turns. Five in two seconds leave room for passes of nodes below a
/// total of five in a second.
const GAP: SignedDuration = SignedDuration::from_millis(400);
/// How many turns may come at once after a calm time.
const BURST: i32 = 10;
/// How long news is gathered before a turn: nodes that were asked together are often done together.
const GATHER: SignedDuration = SignedDuration::from_millis(300);

/// The turns of all jobs. News is answered almost at once as long as there is little of it; else jobs take turns, and each
/// answers all its news when its turn comes.
///
/// ```
/// use kruise_core::{image_pull::Pace, object::ObjectKey};
///
/// let (mut pace, now) = (Pace::default(), jiff::Timestamp::UNIX_EPOCH);
/// let job = ObjectKey::new("ns", "job");
/// assert!(pace.turn(&job, now).is_some_and(|wait| wait.as_millis() < 500));
/// assert_eq!(pace.turn(&job, now), None, "it has its turn already");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// When the next turn would be if there were no burst.
    next: Option<Timestamp>,
    /// The jobs that wait for their turn, and when it is.
    waiting: BTreeMap<ObjectKey, Timestamp>,
}

impl Pace {
    /// There is news for a job: after how long it is its turn; nothing if it waits for it already.
    pub fn turn(&mut self, job: &ObjectKey, now: Timestamp) -> Option<Duration> {
        if self.waiting.get(job).is_some_and(|at| *at > now) {
            return None;
        }
        let next = self.next.map_or(now, |next| next.max(now));
        let at = (next - GAP * BURST).max(now) + GATHER;
        self.next = Some(next + GAP);
        self.waiting.insert(job.clone(), at);
        Duration::try_from(at.duration_since(now)).ok()
    }

    /// A job is being passed: news from now on is for its next turn.
    pub fn begin(&mut self, job: &ObjectKey) {
        self.waiting.remove(job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_millis(milliseconds)
    }

    fn job(number: usize) -> ObjectKey {
        ObjectKey::new("ns", format!("job-{number}"))
    }

    /// Plays so many jobs for ten minutes, each with news so often, and counts their passes in a second.
    fn passes(jobs: usize, news_every_ms: usize) -> (f64, usize) {
        let (mut pace, mut due, mut passes) = (Pace::default(), BTreeMap::new(), vec![0_usize; jobs]);
        for time in (0..600_000_i64).step_by(20) {
            for number in 0..jobs {
                let phase = number * 37;
                let is_news = (usize::try_from(time).unwrap() + phase) % news_every_ms < 20;
                if is_news && let Some(wait) = pace.turn(&job(number), at(time)) {
                    // A queue keeps the earlier of two wishes.
                    let turn = at(time) + SignedDuration::try_from(wait).unwrap();
                    due.entry(number).and_modify(|due| *due = turn.min(*due)).or_insert(turn);
                }
            }
            for number in
                due.iter().filter(|(_, due)| **due <= at(time)).map(|(number, _)| *number).collect::<Vec<_>>()
            {
                due.remove(&number);
                pace.begin(&job(number));
                passes[number] += 1;
            }
        }
        let total: usize = passes.iter().sum();
        (f64::from(u32::try_from(total).unwrap()) / 600.0, passes.into_iter().min().unwrap())
    }

    /// The bar is five passes in a second in all, for 198 jobs whose 989 nodes are always done somewhere.
    #[test]
    fn many_jobs_with_much_news_take_turns() {
        let (per_second, least) = passes(198, 500);
        assert!(per_second < 2.6, "{per_second}");
        assert!(least >= 7, "every job has its turn, not only {least}");
    }

    #[test]
    fn little_news_is_answered_almost_at_once() {
        let (per_second, _) = passes(1, 2000);
        assert!((0.49..0.51).contains(&per_second), "{per_second}");
        let mut pace = Pace::default();
        for number in 0..5 {
            assert_eq!(pace.turn(&job(number), at(0)), Some(Duration::from_millis(300)));
        }
    }
}

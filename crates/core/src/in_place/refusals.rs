//! Updates in place that the server refused.
//!
//! A pod is made not ready before its containers change, so an update that is refused costs it a moment of service. What is
//! remembered here keeps that from happening again: such a pod goes back into service, and before the next try the server
//! is asked without changing anything. The pauses between these questions grow. All of it may be lost: then one pod pays
//! once more.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};

use crate::text::Text;

/// The pause before a pod is tried again, which doubles each time.
const POD_PAUSE: SignedDuration = SignedDuration::from_secs(10);
/// The pause before another pod is tried, which doubles while none is taken.
const NEXT_PAUSE: SignedDuration = SignedDuration::from_secs(1);
/// The longest pause: how late an update goes on after the server takes it again.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(300);

/// What the server refused, for one workload and one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    revision: Text,
    /// How many tries were refused since one was taken.
    streak: u32,
    last: Option<Timestamp>,
    pods: BTreeMap<Text, Refusal>,
}

/// What became of the tries to update a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    tries: u32,
    at: Timestamp,
    message: String,
    recreating_helps: bool,
    /// The server would take it now, as it says.
    would_take: bool,
    /// What was already changed cannot be taken back as a whole.
    is_stuck: bool,
}

impl Refusal {
    /// Whether the server refused to take the amounts of cpu and memory back.
    pub fn is_stuck(&self) -> bool {
        self.is_stuck
    }
}

impl Refusals {
    /// An earlier process saw a failure with this revision: the server is asked before the next pod pays for it.
    pub fn suspected(revision: Text) -> Self {
        Self { revision, streak: 1, ..Self::default() }
    }

    /// Notes that the server refused a step of a pod towards a revision. `recreating_helps` says whether a new pod would get
    /// what was refused.
    pub fn refuse(
        &mut self,
        revision: &Text,
        pod: &Text,
        message: &str,
        recreating_helps: bool,
        now: Timestamp,
    ) {
        self.turn_to(revision);
        self.streak = self.streak.saturating_add(1);
        self.last = Some(now);
        let tries = self.pods.get(pod).map_or(0, |refusal| refusal.tries);
        let refusal = Refusal {
            tries: tries.saturating_add(1),
            at: now,
            message: message.to_owned(),
            recreating_helps,
            would_take: false,
            is_stuck: false,
        };
        self.pods.insert(pod.clone(), refusal);
    }

    /// Notes that the server would take the update of a pod.
    pub fn would_take(&mut self, revision: &Text, pod: &Text) {
        self.turn_to(revision);
        self.streak = 0;
        if let Some(refusal) = self.pods.get_mut(pod) {
            refusal.would_take = true;
        }
    }

    /// Notes that the server took the update of a pod.
    pub fn took(&mut self, revision: &Text, pod: &Text) {
        self.turn_to(revision);
        self.streak = 0;
        self.pods.remove(pod);
    }

    /// Notes that not everything of a pod can be taken back.
    pub fn cannot_take_back(&mut self, pod: &Text) {
        if let Some(refusal) = self.pods.get_mut(pod) {
            refusal.is_stuck = true;
        }
    }

    /// Forgets pods that are gone.
    pub fn keep(&mut self, is_there: impl Fn(&Text) -> bool) {
        self.pods.retain(|pod, _| is_there(pod));
    }

    fn turn_to(&mut self, revision: &Text) {
        if self.revision != *revision {
            *self = Self { revision: revision.clone(), ..Self::default() };
        }
    }

    /// The refusal that a pod has to be taken back into service for.
    pub fn of(&self, revision: &str, pod: &str) -> Option<&Refusal> {
        self.pods.get(pod).filter(|refusal| self.revision == revision && !refusal.would_take)
    }

    /// Whether anything is known of this revision.
    pub fn is_about(&self, revision: &str) -> bool {
        self.revision == revision && (self.streak > 0 || !self.pods.is_empty())
    }

    /// Whether every try is in doubt: the last one was refused.
    pub fn is_doubtful(&self, revision: &str) -> bool {
        self.revision == revision && self.streak > 0
    }

    /// Whether the server is asked before a pod is made not ready.
    pub fn asks_first(&self, revision: &str, pod: &str) -> bool {
        let known = self.pods.get(pod).filter(|_| self.revision == revision);
        match known {
            Some(refusal) => !refusal.would_take,
            None => self.is_doubtful(revision),
        }
    }

    /// How often a pod was refused.
    pub fn tries(&self, revision: &str, pod: &str) -> u32 {
        self.of(revision, pod).map_or(0, |refusal| refusal.tries)
    }

    /// How long until a pod may be tried; nothing when it may be now.
    pub fn pause(&self, revision: &str, pod: &str, now: Timestamp) -> Option<Duration> {
        if !self.asks_first(revision, pod) {
            return None;
        }
        let left = |since: Timestamp, first: SignedDuration, times: u32| {
            let pause = first.checked_mul(1 << times.saturating_sub(1).min(16)).unwrap_or(LONGEST_PAUSE);
            pause.min(LONGEST_PAUSE).saturating_sub(now.duration_since(since))
        };
        let own = self.of(revision, pod).map(|refusal| left(refusal.at, POD_PAUSE, refusal.tries));
        let all = self.last.filter(|_| self.is_doubtful(revision));
        let all = all.map(|last| left(last, NEXT_PAUSE, self.streak));
        let longest = own.into_iter().chain(all).max()?;
        Duration::try_from(longest).ok().filter(|left| !left.is_zero())
    }

    /// What people have to know; nothing when no pod waits. It does not change while nothing does.
    pub fn told(&self) -> Option<String> {
        let mut refused = self.pods.iter().filter(|(_, refusal)| !refusal.would_take);
        let (pod, refusal) = refused.next()?;
        let more = match refused.count() {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let help = if refusal.recreating_helps {
            "a new pod would get it: delete the pod, or set podUpdatePolicy to ReCreate"
        } else {
            "a new pod may be refused as well"
        };
        Some(format!(
            "the server refused to update pod {pod}{more} in place to revision {}: {}; it serves with its old revision and is \
             tried again at intervals of up to 5m; {help}",
            self.revision, refusal.message
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVISION: &str = "web-2";

    fn time(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn refused(refusals: &mut Refusals, pod: &str, at: i64) {
        refusals.refuse(&REVISION.into(), &pod.into(), "no", false, time(at));
    }

    #[test]
    fn a_refused_pod_is_asked_about_after_pauses_that_grow() {
        let mut refusals = Refusals::default();
        let (mut at, mut pauses) = (0, Vec::new());
        for _ in 0..7 {
            refused(&mut refusals, "a", at);
            assert!(refusals.asks_first(REVISION, "a"));
            let pause = refusals.pause(REVISION, "a", time(at)).unwrap().as_secs();
            pauses.push(pause);
            at += i64::try_from(pause).unwrap();
            assert_eq!(refusals.pause(REVISION, "a", time(at)), None);
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 300, 300]);
        refusals.would_take(&REVISION.into(), &"a".into());
        assert!(!refusals.asks_first(REVISION, "a") && refusals.told().is_none());
        // It said one thing and did another: the pauses go on growing.
        refused(&mut refusals, "a", at);
        assert_eq!(refusals.pause(REVISION, "a", time(at)), Some(Duration::from_secs(300)));
    }

    #[test]
    fn other_pods_wait_less_and_are_free_when_one_was_taken() {
        let mut refusals = Refusals::default();
        assert!(!refusals.asks_first(REVISION, "b"));
        refused(&mut refusals, "a", 0);
        assert_eq!(refusals.pause(REVISION, "b", time(0)), Some(Duration::from_secs(1)));
        assert!(refusals.asks_first(REVISION, "b"));
        refused(&mut refusals, "b", 1);
        assert_eq!(refusals.pause(REVISION, "c", time(1)), Some(Duration::from_secs(2)));
        refusals.would_take(&REVISION.into(), &"c".into());
        assert!(!refusals.asks_first(REVISION, "c") && !refusals.asks_first(REVISION, "d"));
        assert!(refusals.asks_first(REVISION, "a"), "what was said of it stays");
    }

    #[test]
    fn another_revision_starts_anew_and_a_restart_asks_first() {
        let mut refusals = Refusals::default();
        refused(&mut refusals, "a", 0);
        assert!(!refusals.asks_first("web-3", "a") && refusals.of("web-3", "a").is_none());
        refusals.took(&"web-3".into(), &"b".into());
        assert!(refusals.told().is_none());
        let suspected = Refusals::suspected(REVISION.into());
        assert!(suspected.asks_first(REVISION, "a"));
        assert_eq!(suspected.pause(REVISION, "a", time(0)), None);
    }

    #[test]
    fn people_hear_what_the_server_said_and_whether_a_new_pod_helps() {
        let mut refusals = Refusals::default();
        refusals.refuse(&REVISION.into(), &"a".into(), "memory must not go down", true, time(0));
        refused(&mut refusals, "b", 1);
        assert_eq!(
            refusals.told().unwrap(),
            "the server refused to update pod a (and 1 more) in place to revision web-2: memory must not go down; it serves \
             with its old revision and is tried again at intervals of up to 5m; a new pod would get it: delete the pod, or \
             set podUpdatePolicy to ReCreate"
        );
        refusals.keep(|pod| *pod == "b");
        assert!(refusals.told().unwrap().ends_with("a new pod may be refused as well"));
    }
}

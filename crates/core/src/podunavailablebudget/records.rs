//! The records of a budget: pods whose disruption was admitted and is not seen yet.
//!
//! A record is about a pod by name and time, so a pod of the same name that was made later is another one. Another manager
//! may see pods as they were a few seconds ago: a record therefore stays for a while after its disruption was seen
//! ([`STAYS_FOR`]). It never runs out by what a cache shows alone: the server is asked first ([`doubtful`]).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    podunavailablebudget::v1beta1::{Operation, Status},
    time::Time,
};

use super::availability::is_available;
use crate::{pod::Pod, text::Text};

/// How long a deletion or eviction that was admitted counts without being seen.
pub const DISRUPTED_FOR: SignedDuration = SignedDuration::from_secs(20);
/// How long an update that was admitted counts without being seen.
pub const UNAVAILABLE_FOR: SignedDuration = SignedDuration::from_secs(10);
/// How long a record stays at least: the time from an admission until every manager sees what came of it.
pub const STAYS_FOR: SignedDuration = SignedDuration::from_secs(10);
/// How many records a budget may have.
pub(super) const MOST: usize = 2000;

/// The two maps of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `disruptedPods`: deletions and evictions.
    Disrupted,
    /// `unavailablePods`: updates.
    Unavailable,
}

impl Kind {
    const BOTH: [Self; 2] = [Self::Disrupted, Self::Unavailable];

    /// Where what an operation takes is recorded.
    pub fn of_operation(operation: &Operation) -> Self {
        match operation {
            Operation::Delete | Operation::Evict => Self::Disrupted,
            _ => Self::Unavailable,
        }
    }

    /// How long a record counts.
    pub(super) fn window(self) -> SignedDuration {
        match self {
            Self::Disrupted => DISRUPTED_FOR,
            Self::Unavailable => UNAVAILABLE_FOR,
        }
    }

    pub(super) fn of(self, status: &Status) -> &BTreeMap<String, Time> {
        match self {
            Self::Disrupted => &status.disrupted_pods,
            Self::Unavailable => &status.unavailable_pods,
        }
    }

    pub(super) fn of_mut(self, status: &mut Status) -> &mut BTreeMap<String, Time> {
        match self {
            Self::Disrupted => &mut status.disrupted_pods,
            Self::Unavailable => &mut status.unavailable_pods,
        }
    }
}

/// All records: the map, the pod, the time.
pub(super) fn all(status: &Status) -> impl Iterator<Item = (Kind, &str, Timestamp)> {
    Kind::BOTH
        .into_iter()
        .flat_map(|kind| kind.of(status).iter().map(move |(pod, at)| (kind, pod.as_str(), at.0)))
}

/// The time of a record that is about this very pod, the latest one. A pod that was made in the second of the record may be
/// another one of the same name.
pub(super) fn paid(status: &Status, pod: &Pod) -> Option<(Kind, Timestamp)> {
    let is_own = |at: &Timestamp| made(pod).is_none_or(|made| made < seconds(*at));
    let found = all(status).filter(|(_, name, at)| pod.metadata.name == **name && is_own(at));
    found.map(|(kind, _, at)| (kind, at)).max_by_key(|(_, at)| *at)
}

/// Whether a record counts the pod as gone.
fn covers(status: &Status, pod: &Pod) -> bool {
    let is_about = |at: Timestamp| made(pod).is_none_or(|made| made <= seconds(at));
    Kind::BOTH
        .into_iter()
        .any(|kind| kind.of(status).get(pod.metadata.name.as_str()).is_some_and(|at| is_about(at.0)))
}

/// Whether a pod that a record is about is there as before: neither deleted nor another one of the same name.
pub(super) fn is_waiting(pod: &Pod, at: Timestamp) -> bool {
    pod.is_active() && made(pod).is_none_or(|made| made <= seconds(at))
}

/// How many of the pods are available, those with a record left out.
pub fn counted(status: &Status, pods: &[Arc<Pod>]) -> usize {
    pods.iter().filter(|pod| is_available(pod) && !covers(status, pod)).count()
}

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It stays for this long, if nothing new is heard.
    Stays(SignedDuration),
    /// Its disruption was seen.
    Over,
    /// Its time is over, and as far as is known nothing happened.
    Expired,
}

fn fate(kind: Kind, at: Timestamp, pod: Option<&Pod>, now: Timestamp) -> Fate {
    let is_there = pod.is_some_and(|pod| is_waiting(pod, at));
    let window = if is_there { kind.window().max(STAYS_FOR) } else { STAYS_FOR };
    let left = window.saturating_sub(now.duration_since(at));
    match (left > SignedDuration::ZERO, is_there) {
        (true, _) => Fate::Stays(left),
        (false, true) => Fate::Expired,
        (false, false) => Fate::Over,
    }
}

/// When records were first seen: a clock that runs ahead must not make one count for longer.
pub type Noticed = BTreeMap<(Kind, Text, Timestamp), Timestamp>;

fn since(noticed: &Noticed, kind: Kind, pod: &str, at: Timestamp) -> Timestamp {
    noticed.get(&(kind, pod.into(), at)).map_or(at, |first| at.min(*first))
}

/// The pods that the server must be asked about before their records run out.
pub fn doubtful<'p>(
    status: &Status,
    noticed: &Noticed,
    cached: impl Fn(&str) -> Option<&'p Arc<Pod>>,
    now: Timestamp,
) -> Vec<Text> {
    let runs_out = |(kind, pod, at): &(Kind, &str, Timestamp)| {
        let at = since(noticed, *kind, pod, *at);
        fate(*kind, at, cached(pod).map(AsRef::as_ref), now) == Fate::Expired
    };
    let mut found: Vec<Text> = all(status).filter(runs_out).map(|(_, pod, _)| pod.into()).collect();
    found.sort();
    found.dedup();
    found
}

/// The records that still count, and what became of the others.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) status: Status,
    /// Pods that were to be deleted and are still there.
    pub(super) not_deleted: Vec<Text>,
    /// When to look again.
    pub(super) next: Option<Duration>,
}

/// Looks at every record. `live` holds what the server said of pods that it was asked about.
pub(super) fn keep<'p>(
    status: &Status,
    noticed: &Noticed,
    cached: impl Fn(&str) -> Option<&'p Arc<Pod>>,
    live: &BTreeMap<Text, Option<Arc<Pod>>>,
    now: Timestamp,
) -> Kept {
    let mut kept = Kept { status: status.clone(), ..Kept::default() };
    for (kind, pod, at) in all(status) {
        let known = match live.get(pod) {
            Some(found) => found.as_deref(),
            None => cached(pod).map(AsRef::as_ref),
        };
        let fate = match fate(kind, since(noticed, kind, pod, at), known, now) {
            // The server was not asked about it.
            Fate::Expired if !live.contains_key(pod) => Fate::Stays(SignedDuration::ZERO),
            fate => fate,
        };
        match fate {
            Fate::Stays(left) => {
                // Times have whole seconds, so a record may be almost a second younger than it says.
                let left = Duration::try_from(left).unwrap_or_default() + Duration::from_millis(10);
                kept.next = Some(kept.next.map_or(left, |next| next.min(left)));
            }
            Fate::Over => {
                kind.of_mut(&mut kept.status).remove(pod);
            }
            Fate::Expired => {
                kind.of_mut(&mut kept.status).remove(pod);
                if kind == Kind::Disrupted {
                    kept.not_deleted.push(pod.into());
                }
            }
        }
    }
    kept
}

/// When a pod was made, in the whole seconds that the API has.
fn made(pod: &Pod) -> Option<i64> {
    pod.metadata.creation_timestamp.map(Timestamp::as_second)
}

fn seconds(time: Timestamp) -> i64 {
    time.as_second()
}

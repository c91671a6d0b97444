//! The account of a subset: its pods, what was admitted and is not seen yet, and what is left.
//!
//! What is left is always computed from the others. Adding and subtracting one at a time, as the original does, gives places
//! away while a subset has more pods than it should.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{time::Time, workloadspread::v1beta1::SubsetStatus};

use super::{Mark, spread::Most};
use crate::pod::Pod;

/// How long a booking stays without its pod.
pub const CREATED_WITHIN: SignedDuration = SignedDuration::from_secs(30);
/// How long an admitted deletion counts while its pod is still there.
pub const DELETED_WITHIN: SignedDuration = SignedDuration::from_secs(15);
/// How far the clocks of a server and of a manager may differ.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_secs(5);

/// What is left of a subset: -1 where it takes any number, and what was left before where nobody knows.
pub(super) fn missing(account: &SubsetStatus, most: Most) -> i32 {
    let most = match most {
        Most::Open => return -1,
        Most::Unknown => return account.missing_replicas.max(0),
        Most::Pods(most) => most,
    };
    let count = |records: &BTreeMap<String, Time>| i64::try_from(records.len()).unwrap_or(i64::MAX);
    let taken = i64::from(account.replicas)
        .saturating_sub(count(&account.deleting_pods))
        .saturating_add(count(&account.creating_pods));
    i32::try_from(most.saturating_sub(taken).clamp(0, most)).unwrap_or(i32::MAX)
}

/// What a count brought.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// The account; its conditions are left empty.
    pub(super) account: SubsetStatus,
    /// Bookings whose pod did not come in time.
    pub(super) not_created: Vec<String>,
    /// Pods that were not deleted in time.
    pub(super) not_deleted: Vec<String>,
    /// When the next record runs out.
    pub(super) next: Option<Duration>,
}

/// Counts the pods of a subset, in any order.
pub(super) fn count(old: &SubsetStatus, name: &str, most: Most, pods: &[&Pod], now: Timestamp) -> Counted {
    let mut counted = Counted::default();
    let mut creating = old.creating_pods.clone();
    let mut deleting = BTreeMap::new();
    // Pods that are over, and may have been booked by their name.
    let mut over: BTreeSet<&str> = BTreeSet::new();
    let mut active = 0_usize;
    for pod in pods {
        let name = pod.metadata.name.as_str();
        let key = Mark::of(&pod.metadata.annotations).map(|mark| mark.uid).filter(|uid| !uid.is_empty());
        match &key {
            Some(key) => {
                creating.remove(key);
            }
            None if creating.get(name).is_none_or(|since| !is_booked(pod, *since)) => {}
            None if pod.is_active() => {
                creating.remove(name);
            }
            // It may as well be the pod before, which is deleted so that the booked one can come.
            None => {
                over.insert(name);
            }
        }
        if !pod.is_active() {
            continue;
        }
        active += 1;
        if let Some(since) = old.deleting_pods.get(name) {
            deleting.insert(name.to_owned(), *since);
        }
    }
    counted.not_deleted = expire(&mut deleting, DELETED_WITHIN, now, &mut counted.next);
    counted.not_created = expire(&mut creating, CREATED_WITHIN, now, &mut counted.next);
    counted.not_created.retain(|key| !over.contains(key.as_str()) && !old.deleting_pods.contains_key(key));
    // A pod that was deleted before anybody has seen it: the cache may still show it, and that it was let go is known only here.
    let unseen = old.deleting_pods.iter().filter(|(name, _)| creating.contains_key(*name));
    deleting.extend(unseen.map(|(name, since)| (name.clone(), *since)));
    counted.account = SubsetStatus {
        name: name.to_owned(),
        replicas: i32::try_from(active).unwrap_or(i32::MAX),
        missing_replicas: old.missing_replicas,
        creating_pods: creating,
        deleting_pods: deleting,
        conditions: Vec::new(),
    };
    counted.account.missing_replicas = missing(&counted.account, most);
    counted
}

/// Whether a pod is the one that was booked then, and not an older one of the same name that the cache still shows.
fn is_booked(pod: &Pod, since: Time) -> bool {
    let made = pod.metadata.creation_timestamp;
    made.is_none_or(|made| since.0.duration_since(made) <= CLOCKS_DIFFER)
}

/// Takes out the records that are older than this, and notes when the next one will be.
fn expire(
    records: &mut BTreeMap<String, Time>,
    within: SignedDuration,
    now: Timestamp,
    next: &mut Option<Duration>,
) -> Vec<String> {
    let mut gone = Vec::new();
    records.retain(|key, since| {
        // Times are written in whole seconds, so a record is at most a second older than it says. One from the future was
        // written by a clock that is ahead: it lives as long as any.
        let left = within.saturating_sub(now.duration_since(since.0)).min(within);
        if left.is_negative() {
            gone.push(key.clone());
            return false;
        }
        let wake = Duration::try_from(left).unwrap_or_default() + Duration::from_millis(1);
        *next = Some(next.map_or(wake, |next| next.min(wake)));
        true
    });
    gone
}

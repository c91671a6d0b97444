//! Where a new pod goes, and what that books; what a deletion gives back.

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    time::Time,
    workloadspread::v1beta1::{Status, SubsetStatus},
};

use super::{
    Mark, Spread,
    accounts::missing,
    reschedule::{SCHEDULABLE, is_closed},
    spread::Most,
};

/// What is known of a new pod.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Its name, empty where the server makes one later.
    pub name: &'a str,
    /// A key that no other pod has: the booking of a pod without a name has it, and of one whose name another pod had.
    pub fresh: &'a str,
    /// Its version.
    pub version: &'a str,
    /// How many pods the workload wants; only asked for where a subset takes a share.
    pub total: Option<u32>,
    /// The time.
    pub now: Timestamp,
}

/// Where a new pod goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Placement {
    /// Into no subset.
    Nowhere,
    /// Into this subset, which takes any number: nothing is recorded.
    Free(usize),
    /// Into this subset: it is booked under the fresh key already, by a write whose answer was lost.
    Booked(usize),
    /// Into a subset, once this is written.
    Book(Booking),
}

/// A place that is booked by a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Booking {
    /// The subset.
    pub subset: usize,
    /// The key is the name of the pod, else the fresh one.
    pub by_name: bool,
    /// The same pod was booked before: a request that is tried again.
    pub again: bool,
    /// The status with the booking.
    pub status: Box<Status>,
}

/// Chooses: the subset that the pod was booked for before, else the first one with room.
///
/// Every place of a subset with a limit is taken by a write, also one that was booked before: what is known may be old, and
/// only the version that the write carries shows it.
pub fn place(spread: &Spread, asked: &Asked<'_>) -> Placement {
    let mut status = spread.status();
    let mut accounts = current(spread, &status, asked.version, asked.total);
    let Asked { name, fresh, .. } = *asked;
    if let Some(booked) = accounts.iter().position(|account| account.creating_pods.contains_key(fresh)) {
        return Placement::Booked(booked);
    }
    // A pod of this name that was deleted before it was counted has given its place back, perhaps to another pod.
    let is_gone = |account: &SubsetStatus| account.deleting_pods.contains_key(name);
    let is_booked = |account: &SubsetStatus| account.creating_pods.contains_key(name) && !is_gone(account);
    // The next pod of a name takes the place that the one before leaves, if nobody has taken it.
    let left = accounts.iter().position(is_gone);
    let booked = accounts.iter().position(is_booked).filter(|_| left.is_none());
    let has_room = |account: &SubsetStatus| account.missing_replicas != 0 && !is_closed(account);
    let in_left = left.filter(|left| accounts.get(*left).is_some_and(has_room));
    let chosen = booked.or(in_left).or_else(|| accounts.iter().position(has_room));
    let Some(chosen) = chosen else { return Placement::Nowhere };
    let others = accounts.iter_mut().enumerate().filter(|(position, _)| *position != chosen);
    for (_, account) in others.filter(|(_, account)| account.creating_pods.contains_key(name)) {
        account.creating_pods.remove(name);
        account.deleting_pods.remove(name);
    }
    let Some(account) = accounts.get_mut(chosen) else { return Placement::Nowhere };
    if account.missing_replicas < 0 {
        return Placement::Free(chosen);
    }
    // The pod before is not counted as one that goes any more: the new one would be taken for it.
    account.deleting_pods.remove(name);
    let before = account.creating_pods.remove(name).filter(|_| booked.is_some());
    // A cache that still has the pod before would end the booking of the new one under the same name, and end the place of the
    // pod before when that is gone.
    let by_name = !name.is_empty() && left.is_none();
    // Times are written in whole seconds. The record changes in any case, so that it is written.
    let next =
        before.map(|before| before.0.saturating_add(SignedDuration::from_secs(1)).unwrap_or(asked.now));
    let since = next.map_or(asked.now, |next| next.max(asked.now));
    account.creating_pods.insert(if by_name { name } else { fresh }.to_owned(), Time(since));
    if before.is_none() {
        account.missing_replicas -= 1;
    }
    status.versioned_subset_statuses.insert(asked.version.to_owned(), accounts);
    Placement::Book(Booking { subset: chosen, by_name, again: before.is_some(), status: Box::new(status) })
}

/// Where the pod of a StatefulSet goes: its ordinal says so, nothing is counted.
pub fn by_ordinal(spread: &Spread, pod: &str) -> Option<usize> {
    let digits = pod.rsplit('-').next().unwrap_or(pod);
    let ordinal = digits.parse::<i64>().ok().filter(|ordinal| *ordinal >= 0).unwrap_or(-1);
    let closed = spread.status().subset_statuses;
    let is_closed = |name: &str| closed.iter().any(|account| account.name == name && is_closed(account));
    let mut before = 0_i64;
    spread.subsets.iter().position(|subset| {
        if is_closed(&subset.spec.name) {
            return false;
        }
        match subset.limit.most(None) {
            Most::Open => true,
            Most::Unknown => false,
            Most::Pods(most) => {
                before = before.saturating_add(most);
                ordinal < before
            }
        }
    })
}

/// The status without a booking of a pod that will not come.
pub fn give_back(spread: &Spread, version: &str, key: &str) -> Option<Status> {
    let mut status = spread.status();
    let accounts = status.versioned_subset_statuses.get_mut(version)?;
    let account = accounts.iter_mut().find(|account| account.creating_pods.contains_key(key))?;
    account.creating_pods.remove(key);
    if account.missing_replicas >= 0 {
        let most = most_of(spread, &account.name, None);
        account.missing_replicas = match most {
            Most::Pods(_) => missing(account, most),
            Most::Open | Most::Unknown => account.missing_replicas.saturating_add(1),
        };
    }
    Some(status)
}

/// A pod that somebody may delete.
#[derive(Clone, Copy, Debug)]
pub struct Left<'a> {
    /// Its name.
    pub name: &'a str,
    /// What its annotation says.
    pub mark: &'a Mark,
    /// Its version.
    pub version: &'a str,
    /// How many pods the workload wants, if that is known.
    pub total: Option<u32>,
    /// The time.
    pub now: Timestamp,
}

/// What the deletion of a pod changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Leaving {
    /// Nothing: the pod is not counted, or its deletion is recorded already.
    Nothing,
    /// Nobody knows, because its place is not in what is known: that may be too old.
    Unknown,
    /// This status is to be written.
    Write(Box<Status>),
}

/// The status after the deletion of a pod was admitted.
pub fn leave(spread: &Spread, left: &Left<'_>) -> Leaving {
    if spread.is_open() || spread.family.is_some_and(super::Family::is_by_ordinal) {
        return Leaving::Nothing;
    }
    let Some(subset) = spread.position(&left.mark.subset).and_then(|position| spread.subsets.get(position))
    else {
        return Leaving::Nothing;
    };
    if subset.limit == super::Limit::Open {
        return Leaving::Nothing;
    }
    let mut status = spread.status();
    let Some(accounts) = status.versioned_subset_statuses.get_mut(left.version) else {
        return Leaving::Unknown;
    };
    let Some(account) = accounts.iter_mut().find(|account| account.name == left.mark.subset) else {
        return Leaving::Unknown;
    };
    if account.missing_replicas < 0 || account.deleting_pods.contains_key(left.name) {
        return Leaving::Nothing;
    }
    account.deleting_pods.insert(left.name.to_owned(), Time(left.now));
    let most = subset.limit.most(left.total);
    account.missing_replicas = match most {
        Most::Pods(_) => missing(account, most),
        Most::Open | Most::Unknown => account.missing_replicas.saturating_add(1),
    };
    Leaving::Write(Box::new(status))
}

fn most_of(spread: &Spread, subset: &str, total: Option<u32>) -> Most {
    let subset = spread.position(subset).and_then(|position| spread.subsets.get(position));
    subset.map_or(Most::Unknown, |subset| subset.limit.most(total))
}

/// The accounts of a version in the order of the spec, also where the spec is younger than the status or the version is new.
fn current(spread: &Spread, status: &Status, version: &str, total: Option<u32>) -> Vec<SubsetStatus> {
    let known = status.versioned_subset_statuses.get(version);
    let subsets = spread.subsets.iter().map(|subset| {
        let name = &subset.spec.name;
        let named =
            |accounts: &[SubsetStatus]| accounts.iter().find(|account| account.name == *name).cloned();
        let mut account = known.and_then(|accounts| named(accounts)).unwrap_or_else(|| {
            // The first pods of a version are not sent into a subset that is known to be closed.
            let conditions = named(&status.subset_statuses).map(|account| account.conditions);
            let mut conditions = conditions.unwrap_or_default();
            conditions.retain(|condition| condition.kind == SCHEDULABLE);
            SubsetStatus { name: name.clone(), conditions, ..SubsetStatus::default() }
        });
        account.missing_replicas = match &subset.limit {
            super::Limit::Unusable(_) => 0,
            limit => missing(&account, limit.most(total)),
        };
        account
    });
    subsets.collect()
}

//! Where a new pod goes, and what that books; what a deletion gives back.

use jiff::Timestamp;
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
    /// The key of its booking: its name, or a fresh one where it has none yet.
    pub key: &'a str,
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
    /// Into this subset, and nothing is to be written: it takes any number, or the pod was booked before.
    Free(usize),
    /// Into this subset, once this status is written.
    Book(usize, Box<Status>),
}

/// Chooses: the subset that the pod was booked for before, else the first one with room.
pub fn place(spread: &Spread, asked: &Asked<'_>) -> Placement {
    let mut status = spread.status();
    let mut accounts = current(spread, &status, asked.version, asked.total);
    let key = asked.key;
    // A pod of this name that was deleted before it was counted has given its place back, perhaps to another pod.
    let is_gone = |account: &SubsetStatus| account.deleting_pods.contains_key(key);
    let is_booked = |account: &SubsetStatus| account.creating_pods.contains_key(key) && !is_gone(account);
    if let Some(booked) = accounts.iter().position(is_booked) {
        return Placement::Free(booked);
    }
    // The next pod of a name takes the place that the one before leaves, if nobody has taken it.
    let left = accounts.iter().position(is_gone);
    let has_room = |account: &SubsetStatus| account.missing_replicas != 0 && !is_closed(account);
    let left = left.filter(|left| accounts.get(*left).is_some_and(has_room));
    let Some(chosen) = left.or_else(|| accounts.iter().position(has_room)) else { return Placement::Nowhere };
    let others = accounts.iter_mut().enumerate().filter(|(position, _)| *position != chosen);
    for (_, account) in others.filter(|(_, account)| account.creating_pods.contains_key(key)) {
        account.creating_pods.remove(key);
        account.deleting_pods.remove(key);
    }
    let Some(account) = accounts.get_mut(chosen) else { return Placement::Nowhere };
    if account.missing_replicas < 0 {
        return Placement::Free(chosen);
    }
    // The pod before is not counted as one that goes any more: the new one would be taken for it.
    account.deleting_pods.remove(key);
    account.creating_pods.insert(key.to_owned(), Time(asked.now));
    account.missing_replicas -= 1;
    status.versioned_subset_statuses.insert(asked.version.to_owned(), accounts);
    Placement::Book(chosen, Box::new(status))
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

/// The status after the deletion of a pod was admitted; nothing where nothing is counted.
pub fn leave(spread: &Spread, left: &Left<'_>) -> Option<Status> {
    if spread.is_open() || spread.family.is_some_and(super::Family::is_by_ordinal) {
        return None;
    }
    let mut status = spread.status();
    let accounts = status.versioned_subset_statuses.get_mut(left.version)?;
    if accounts.iter().any(|account| account.deleting_pods.contains_key(left.name)) {
        return None;
    }
    let account = accounts.iter_mut().find(|account| account.name == left.mark.subset)?;
    if account.missing_replicas < 0 {
        return None;
    }
    account.deleting_pods.insert(left.name.to_owned(), Time(left.now));
    let most = most_of(spread, &account.name, left.total);
    account.missing_replicas = match most {
        Most::Pods(_) => missing(account, most),
        Most::Open | Most::Unknown => account.missing_replicas.saturating_add(1),
    };
    Some(status)
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

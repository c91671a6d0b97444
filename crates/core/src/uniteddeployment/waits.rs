//! Why the object makes no progress.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{
    Kind,
    allocation::{self, Mode, Subset, Workload},
    view::{Shares, View},
};
use crate::{
    in_place::{Options, OtherImages},
    pod::Pod,
    waiting::{self, Hooks, Reason, Waits, text},
};

/// The reasons that hold now.
pub(super) fn of(view: &View<'_>) -> Waits {
    let mut waits = Waits::default();
    match view.shares() {
        Err(error) => {
            let sentence = format!("the spec cannot be carried out: spec.topology.subsets: {error}");
            waits.add(Reason::SpecInvalid, sentence);
        }
        Ok(shares) => {
            unschedulable(view, shares, &mut waits);
            full(view, shares, &mut waits);
        }
    }
    let marks = view.shares().map(|shares| shares.marks.as_slice()).unwrap_or_default();
    for (index, subset) in view.desired.subsets.iter().enumerate() {
        let is_closed = marks.get(index).is_some_and(|mark| mark.unschedulable.is_some());
        if let Some(child) = view.workload(&subset.name) {
            of_child(view, &subset.name, child, is_closed, &mut waits);
        }
    }
    waits
}

/// A workload that says itself why it waits is believed; of the others it is seen from their pods. That pods of a subset cannot
/// be scheduled which is known not to take any is said of the subset.
fn of_child(view: &View<'_>, subset: &str, child: &super::Child, is_closed: bool, waits: &mut Waits) {
    if let Some((word, message)) = &child.waiting {
        let reason = Reason::ALL.iter().find(|reason| reason.as_str() == word);
        if let Some(reason) = reason.filter(|reason| !is_closed || **reason != Reason::PodUnschedulable) {
            waits.add(*reason, format!("subset {subset}: {message}"));
        }
        return;
    }
    if !matches!(child.kind, Kind::Deployment | Kind::StatefulSet) {
        return;
    }
    let all = view.seen.pods.get(&child.metadata.uid).map(Vec::as_slice).unwrap_or_default();
    let ending: Vec<&Pod> = all.iter().map(AsRef::as_ref).filter(|pod: &&Pod| !pod.is_active()).collect();
    let mut own = Waits::default();
    let (options, others) = (Options::default(), OtherImages::new());
    let hooks = Hooks { lifecycle: None, options: &options, others: &others };
    waiting::pods(&view.pods(child), &ending, &hooks, view.seen.now, &mut own);
    for (reason, sentence) in own.all() {
        if matches!(reason, Reason::PodTerminating | Reason::PodNotReady) {
            waits.add(*reason, format!("subset {subset}: {sentence}"));
        }
    }
    waits.wake(own.wake_after());
}

/// What the division would be if every subset took pods.
fn wished(view: &View<'_>, shares: &Shares) -> Vec<i64> {
    let free = |subset: &Subset| Subset {
        workload: subset.workload.as_ref().map(|workload| Workload {
            ready: 0,
            unschedulable: None,
            reserved: 0,
            marked: false,
            ..workload.clone()
        }),
        ..subset.clone()
    };
    let subsets: Vec<Subset> = shares.subsets.iter().map(free).collect();
    let wished = allocation::allocate(view.desired.total, view.desired.mode, &subsets).unwrap_or_default();
    wished.into_iter().map(|share| share.replicas).collect()
}

/// A subset that cannot take pods and would get more if it could. The first one is named.
fn unschedulable(view: &View<'_>, shares: &Shares, waits: &mut Waits) {
    let wished = wished(view, shares);
    // What other subsets have more than they would have had.
    let each = shares.shares.iter().zip(&wished);
    let more: i64 = each.map(|(share, wished)| (share.replicas - wished).max(0)).sum();
    let each = shares.subsets.iter().zip(&shares.shares).zip(&shares.marks).zip(wished);
    for (((subset, share), mark), wished) in each {
        let Some(since) = mark.unschedulable else { continue };
        let (name, reserving) = (&subset.name, view.desired.mode == Mode::Reserving);
        let missing = match reserving {
            true => i64::try_from(mark.reserved.len() + mark.missing).unwrap_or(0),
            false => wished - share.replicas,
        };
        if missing <= 0 {
            continue;
        }
        let elsewhere = missing.min(more);
        let waiting = view.seen.timed_out.get(name).copied().unwrap_or(0).max(mark.timed_out);
        let waiting = match waiting {
            0 => usize::try_from(missing).unwrap_or(0),
            known => known,
        };
        let were = if waiting == 1 { "was" } else { "were" };
        let replicas = if elsewhere == 1 { "replica is" } else { "replicas are" };
        let next = match reserving {
            true => "its pods stay and wait for a node".to_owned(),
            false => format!("it is tried again at {}", text::time(later(since, view.desired.retry))),
        };
        let sentence = format!(
            "subset {name} cannot take pods since {} ({waiting} of its pods {were} not scheduled in time); {elsewhere} \
             {replicas} in other subsets, {next}",
            text::time(since),
        );
        waits.add(Reason::SubsetUnschedulable, sentence);
    }
}

fn later(since: Timestamp, after: Duration) -> Timestamp {
    let after = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
    since.saturating_add(after).unwrap_or(since)
}

/// No subset that takes pods has room for the rest.
fn full(view: &View<'_>, shares: &Shares, waits: &mut Waits) {
    if view.desired.mode == Mode::Reserving || shares.subsets.is_empty() {
        return;
    }
    let given: i64 = shares.shares.iter().map(|share| share.replicas).sum();
    let left = view.desired.total - given;
    if left <= 0 {
        return;
    }
    let each = || shares.subsets.iter().zip(&shares.shares).zip(&shares.marks);
    let full: Vec<String> = each()
        .filter(|(_, mark)| mark.unschedulable.is_none())
        .filter_map(|((subset, share), _)| {
            let max = subset.max.as_ref()?;
            Some(format!("{} {}/{}", subset.name, share.replicas, allocation::spelled(max)))
        })
        .collect();
    let closed = each().filter(|(_, mark)| mark.unschedulable.is_some());
    let closed = text::names(closed.map(|((subset, _), _)| subset.name.as_str()));
    let are = if full.len() == 1 { "is" } else { "are" };
    let room = match full.is_empty() {
        true => "no subset can take pods".to_owned(),
        false => format!("no subset with room can take pods: {} {are} full", full.join(", ")),
    };
    let wait = if left == 1 { "replica waits" } else { "replicas wait" };
    let place = if closed.is_empty() { String::new() } else { format!(" in {closed}") };
    waits.add(Reason::SubsetFull, format!("{room}; {left} {wait}{place}"));
}

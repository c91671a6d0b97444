//! Which nodes get a pod, and which pods are deleted, whatever their revision is.

use std::time::Duration;

use super::view::{Place, View, has_failed, has_succeeded, is_preparing_delete};
use crate::{availability, pod::Pod};

/// What to add and to remove.
#[derive(Default)]
pub(super) struct Managed<'a> {
    /// Nodes that get a pod, by name.
    pub(super) create: Vec<&'a str>,
    /// Pods that are deleted, by node.
    pub(super) delete: Vec<Deletion<'a>>,
    /// When to look again.
    pub(super) wake_after: Option<Duration>,
    /// How many nodes wait because the partition holds new pods back.
    pub(super) held_back: usize,
}

/// A pod that is deleted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deletion<'a> {
    pub(super) pod: &'a Pod,
    pub(super) why: Why,
}

/// Why a pod is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Its node does not fit any more.
    NotWanted,
    /// The node that it waits for does not exist.
    NodeGone,
    /// There is another one on its node.
    Surplus,
    /// Its successor is available.
    Replaced,
    /// It failed.
    Failed,
    /// It ended although it should run for ever.
    Succeeded,
    /// It has an older revision.
    Outdated,
    /// It was to be deleted before, and a hook held it.
    Prepared,
}

impl Why {
    /// In a short phrase.
    pub(super) fn phrase(self) -> &'static str {
        match self {
            Self::NotWanted => "the node does not fit",
            Self::NodeGone => "its node does not exist",
            Self::Surplus => "another pod is on its node",
            Self::Replaced => "its successor is available",
            Self::Failed => "it failed",
            Self::Succeeded => "it ended",
            Self::Outdated => "it has an older revision",
            Self::Prepared => "it waits for its deletion",
        }
    }
}

/// Looks at every node.
pub(super) fn run<'a>(view: &View<'a>) -> Managed<'a> {
    let mut managed = Managed::default();
    for place in view.places.values() {
        look(view, place, &mut managed);
    }
    let allowed = allowed(view);
    managed.held_back = managed.create.len().saturating_sub(allowed);
    // A node that cannot get its pod leaves its place to another one.
    managed.create.sort_by_key(|node| view.seen.refused.has_node(node));
    managed.create.truncate(allowed);
    managed
}

fn look<'a>(view: &View<'a>, place: &Place<'a>, managed: &mut Managed<'a>) {
    let mut delete = |pod: &'a Pod, why| {
        if !pod.metadata.is_deleting() && !pod.metadata.unreadable {
            managed.delete.push(Deletion { pod, why });
        }
    };
    if place.node.is_none() {
        // Pods that ran on a node that is gone are deleted by the garbage collector of pods.
        for pod in place.pods.iter().filter(|pod| pod.spec.node_name.is_empty()) {
            delete(pod, Why::NodeGone);
        }
    } else if place.fit.should_run && place.pods.is_empty() && !place.has_orphan {
        managed.create.push(place.name);
    } else if place.fit.should_continue {
        keep(view, place, managed);
    } else {
        place.pods.iter().for_each(|pod| delete(pod, Why::NotWanted));
    }
}

/// A node that has a pod and may keep it.
fn keep<'a>(view: &View<'a>, place: &Place<'a>, managed: &mut Managed<'a>) {
    if place.is_unreadable() {
        return;
    }
    let mut running: Vec<&Pod> = Vec::new();
    let mut waits = false;
    for pod in place.pods.iter().copied().filter(|pod| !pod.metadata.is_deleting()) {
        let mut delete = |why| managed.delete.push(Deletion { pod, why });
        if is_preparing_delete(pod) {
            delete(Why::Prepared);
        } else if has_failed(pod) || has_succeeded(pod) {
            let generation = view.seen.set.metadata.generation;
            match view.seen.backoff.left(generation, place.name, view.now()) {
                Some(left) => {
                    waits = true;
                    managed.wake(left);
                }
                None => delete(if has_failed(pod) { Why::Failed } else { Why::Succeeded }),
            }
        } else {
            running.push(pod);
        }
    }
    if !view.surges() {
        managed.delete.extend(running.iter().skip(1).map(|pod| Deletion { pod, why: Why::Surplus }));
    } else if running.is_empty() {
        if place.fit.should_run && !waits && !place.has_orphan {
            managed.create.push(place.name);
        }
    } else {
        surge(view, &running, managed);
    }
}

/// A node that may have two pods: the oldest updated one and the oldest outdated one.
fn surge<'a>(view: &View<'a>, running: &[&'a Pod], managed: &mut Managed<'a>) {
    let (updated, mut outdated): (Vec<&Pod>, Vec<&Pod>) =
        running.iter().partition(|pod| view.is_updated(pod));
    if !updated.is_empty() {
        // An outdated pod that is not ready is deleted below: a ready one must not be deleted as its surplus.
        outdated.sort_by_key(|pod| !availability::is_ready(pod));
    }
    for kind in [&updated, &outdated] {
        managed.delete.extend(kind.iter().skip(1).map(|pod| Deletion { pod, why: Why::Surplus }));
    }
    let (Some(updated), Some(outdated)) = (updated.first(), outdated.first()) else { return };
    if !availability::is_ready(outdated) {
        managed.delete.push(Deletion { pod: outdated, why: Why::Surplus });
    } else if view.is_available(updated) {
        managed.delete.push(Deletion { pod: outdated, why: Why::Replaced });
    }
}

impl Managed<'_> {
    fn wake(&mut self, after: Duration) {
        self.wake_after = Some(self.wake_after.map_or(after, |known| known.min(after)));
    }
}

/// How many of the nodes without a pod may get one as far as the partition is concerned.
fn allowed(view: &View<'_>) -> usize {
    let limits = &view.limits;
    if !view.desired.partitioned_scaling || limits.partition == 0 {
        return usize::MAX;
    }
    let is_new = |place: &&Place<'_>| {
        let alive = || place.pods.iter().filter(|pod| !pod.metadata.is_deleting());
        let updated = alive().filter(|pod| view.is_updated(pod)).count();
        place.fit.should_run && updated == 1 && alive().count() - updated <= 1
    };
    let new = view.places.values().filter(is_new).count();
    limits.desired.saturating_sub(new).saturating_sub(limits.partition.min(limits.desired))
}

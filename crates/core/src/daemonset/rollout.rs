//! Which nodes are moved to the newest revision now.

use kruise_api::gates::Gate;

use super::{
    Rolling,
    view::{Place, Uids, View, is_preparing_delete},
};
use crate::pod::Pod;

/// What the update wants now.
#[derive(Debug, Default)]
pub(super) struct Rollout<'a> {
    /// Pods that are changed in place or deleted, in this order.
    pub(super) replace: Vec<&'a Pod>,
    /// Nodes that get a new pod beside the old one, in this order.
    pub(super) create: Vec<&'a str>,
    /// Old pods whose successor is available.
    pub(super) delete: Vec<&'a Pod>,
    /// On how many nodes no available pod is, or, with a surge, on how many two pods are.
    pub(super) used: usize,
    /// Nodes that wait because the limit is used up, in the order in which they follow.
    pub(super) next: Vec<&'a str>,
}

/// The pods of a node as the update sees them: those that stay. Those that wait for their deletion leave.
struct Pair<'a> {
    updated: Vec<&'a Pod>,
    outdated: Vec<&'a Pod>,
    /// A pod of the newest revision waits for its deletion.
    new_one_leaves: bool,
}

impl<'a> Pair<'a> {
    /// `leaving` are pods that are deleted in this reconcile for another reason.
    fn of(view: &View<'_>, place: &Place<'a>, leaving: &Uids<'_>) -> Self {
        let stays = |pod: &&Pod| !pod.metadata.is_deleting() && !leaving.contains(&pod.metadata.uid);
        let (updated, outdated) =
            place.pods.iter().copied().filter(stays).partition(|pod| view.is_updated(pod));
        let new_one_leaves = place
            .pods
            .iter()
            .any(|pod| !pod.metadata.is_deleting() && is_preparing_delete(pod) && view.is_updated(pod));
        Self { updated, outdated, new_one_leaves }
    }

    fn has_two_of_a_kind(&self) -> bool {
        self.updated.len() > 1 || self.outdated.len() > 1
    }

    fn latest(&self) -> Option<&'a Pod> {
        self.updated.first().copied()
    }

    fn old(&self) -> Option<&'a Pod> {
        self.outdated.first().copied()
    }
}

/// What the update wants now. `leaving` are pods that are deleted in this reconcile for another reason.
pub(super) fn run<'a>(view: &View<'a>, rolling: &Rolling, leaving: &Uids<'_>) -> Rollout<'a> {
    let chosen = choose(view, rolling, leaving);
    if view.surges() { with_surge(view, &chosen, leaving) } else { without_surge(view, &chosen, leaving) }
}

/// The nodes that the partition and the node selector let through, in the order in which they are updated.
pub(super) fn choose<'v, 'a>(
    view: &'v View<'a>,
    rolling: &Rolling,
    leaving: &Uids<'_>,
) -> Vec<&'v Place<'a>> {
    let prunes = view.gate(Gate::DaemonSetPruneIneligibleNodes);
    let is_considered = |place: &&Place<'_>| {
        place.node.is_some() && (place.fit.should_run || (!place.pods.is_empty() && !prunes))
    };
    let (mut done, mut in_progress, mut selected, mut rest) = (vec![], vec![], vec![], vec![]);
    for place in view.places.values().rev().filter(is_considered) {
        let pair = Pair::of(view, place, leaving);
        let is_selected = rolling.selector.as_ref().is_some_and(|selector| {
            place.node.is_some_and(|node| selector.accepts(|key| node.metadata.labels.text(key)))
        });
        let group = if !pair.updated.is_empty() || pair.has_two_of_a_kind() {
            &mut done
        } else if pair.old().is_none() {
            &mut in_progress
        } else if is_selected {
            &mut selected
        } else {
            &mut rest
        };
        group.push(place);
    }
    let considered = done.len() + in_progress.len() + selected.len() + rest.len();
    let last = if rolling.selector.is_some() { selected } else { rest };
    let mut chosen: Vec<&Place<'_>> = done.into_iter().chain(in_progress).chain(last).collect();
    chosen.truncate(considered.saturating_sub(view.limits.partition));
    chosen
}

fn without_surge<'a>(view: &View<'a>, chosen: &[&Place<'a>], leaving: &Uids<'_>) -> Rollout<'a> {
    let mut rollout = Rollout::default();
    let mut candidates = Vec::new();
    for place in chosen {
        let pair = Pair::of(view, place, leaving);
        if pair.has_two_of_a_kind() || place.is_unreadable() {
            rollout.used += 1;
            continue;
        }
        match (pair.latest(), pair.old()) {
            // A node counts once, whatever is wrong with it. One whose old pod is not available counts too: its new pod
            // will not be available at once either.
            (None, None) | (Some(_), Some(_)) => rollout.used += 1,
            (Some(new), None) => rollout.used += usize::from(!view.is_available(new)),
            (None, Some(_)) if pair.new_one_leaves => rollout.used += 1,
            (None, Some(old)) if !view.is_available(old) => {
                rollout.used += 1;
                rollout.replace.push(old);
            }
            // The server refused its update in place a moment ago: others take its place.
            (None, Some(old)) if is_refused(view, old) => {}
            (None, Some(old)) => candidates.push((place.name, old)),
        }
    }
    // A pod that the server or a budget does not let go must not take the place of others every time.
    candidates.sort_by_key(|(_, pod)| view.seen.refused.has_pod(pod));
    let spare = view.limits.max_unavailable.saturating_sub(rollout.used);
    rollout.next = candidates.iter().skip(spare).map(|(name, _)| *name).collect();
    rollout.replace.extend(candidates.into_iter().take(spare).map(|(_, pod)| pod));
    rollout
}

fn is_refused(view: &View<'_>, pod: &Pod) -> bool {
    view.seen.refusals.pause(view.revisions.hash(), &pod.metadata.name, view.now()).is_some()
}

fn with_surge<'a>(view: &View<'a>, chosen: &[&Place<'a>], leaving: &Uids<'_>) -> Rollout<'a> {
    let mut rollout = Rollout::default();
    let mut candidates = Vec::new();
    for place in chosen {
        let pair = Pair::of(view, place, leaving);
        if pair.has_two_of_a_kind() || place.is_unreadable() {
            rollout.used += 1;
            continue;
        }
        let Some(old) = pair.old() else { continue };
        match pair.latest() {
            // A node that gets no new pod keeps the one it has.
            None if !place.fit.should_run => {}
            None if pair.new_one_leaves => rollout.used += 1,
            None if view.is_available(old) => candidates.push(place.name),
            // Nothing is lost there.
            None => {
                rollout.used += usize::from(!view.seen.refused.has_node(place.name));
                rollout.create.push(place.name);
            }
            Some(new) if !view.is_available(new) => rollout.used += 1,
            Some(_) => rollout.delete.push(old),
        }
    }
    candidates.sort_by_key(|node| view.seen.refused.has_node(node));
    let spare = view.limits.max_surge.saturating_sub(rollout.used);
    rollout.next = candidates.iter().skip(spare).copied().collect();
    rollout.create.extend(candidates.into_iter().take(spare));
    rollout
}

//! Which pods are deleted on request and which are updated now, and in which order.

use std::collections::BTreeSet;

use kruise_api::{conditions::IN_PLACE_UPDATE_READY, gates::Gate, lifecycle::State};

use super::{
    Plan,
    expansion::{self, Expansion},
    pods::{self, Side},
    view::{View, has_ended, is_preparing_delete},
};
use crate::{
    availability::time_until_available,
    in_place, lifecycle,
    pod::Pod,
    revision::{self, Revisions},
    update_order::sort_by_priority,
};

/// What is done to pods now, by their places among the slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Choices {
    /// They are deleted because somebody asked for it.
    pub(super) deleted: Vec<usize>,
    /// They get the newest revision.
    pub(super) updated: Vec<usize>,
    /// They were unavailable before.
    pub(super) unavailable: BTreeSet<usize>,
    /// The first pod that waits for others to be available, and how many are not.
    pub(super) held: Option<(usize, usize)>,
}

/// Whether a pod counts as updated.
pub(super) fn is_updated(view: &View<'_>, revisions: &Revisions<'_>, pod: &Pod) -> bool {
    revision::is_on(pod, &revisions.update)
        || (view.gate(Gate::PreparingUpdateAsUpdate) && lifecycle::is(pod, &State::PreparingUpdate))
}

/// The places of missing and unavailable pods.
fn unavailable(view: &View<'_>, revisions: &Revisions<'_>, plan: &mut Plan) -> BTreeSet<usize> {
    let mut places = BTreeSet::new();
    for (place, slot) in view.slots.iter().enumerate() {
        let serves = slot.pod.is_some_and(|pod| {
            view.is_healthy(pod)
                && view.is_complete(revisions, pod)
                && view.is_available(pod)
                && (!view.desired.expands || expansion::is_ready(view, slot.ordinal))
        });
        if !serves {
            places.insert(place);
        }
        let left = slot.pod.and_then(|pod| time_until_available(pod, view.desired.min_ready, view.now()));
        left.into_iter().for_each(|left| plan.wake(left));
    }
    places
}

/// The slots that are to have the newest revision, in the order of their updates.
pub(super) fn targets(view: &View<'_>, revisions: &Revisions<'_>) -> Vec<usize> {
    let all = view.slots.len();
    let partition = usize::try_from(view.desired.partition).unwrap_or(0);
    if view.desired.policy.is_none() {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..all).rev().collect();
    if let Some(strategy) = &view.desired.unordered {
        let sides = pods::sides(view, revisions);
        let is_done = |place: &usize| match view.slots.get(*place).and_then(|slot| slot.pod) {
            Some(pod) => pod.metadata.is_deleting() || is_updated(view, revisions, pod),
            None => sides.get(place) == Some(&Side::New),
        };
        let (done, mut waiting): (Vec<usize>, Vec<usize>) = order.into_iter().partition(is_done);
        sort_by_priority(&mut waiting, strategy, |place| view.slots.get(*place).and_then(|slot| slot.pod));
        order = done;
        order.extend(waiting);
    }
    order.truncate(all.saturating_sub(partition));
    order
}

/// Chooses pods, as many as may be unavailable. A pod that is unavailable already costs nothing.
pub(super) fn choose(view: &View<'_>, revisions: &Revisions<'_>, plan: &mut Plan) -> Choices {
    let mut down = unavailable(view, revisions, plan);
    let mut choices = Choices { unavailable: down.clone(), ..Choices::default() };
    let most = usize::try_from(if view.desired.policy.is_some() { view.desired.max_unavailable } else { 1 });
    let most = most.unwrap_or(1);
    for (place, slot) in view.slots.iter().enumerate().rev() {
        let Some(pod) = slot.pod.filter(|pod| is_to_delete(view, pod)) else { continue };
        if down.len() >= most && !down.contains(&place) {
            choices.held.get_or_insert((place, down.len()));
            continue;
        }
        if !has_ended(pod) {
            choices.deleted.push(place);
        }
        down.insert(place);
    }
    let skips = view.desired.unordered.is_some();
    let mut is_full = false;
    for place in targets(view, revisions) {
        let Some(slot) = view.slots.get(place) else { continue };
        let Some(pod) = slot.pod else { continue };
        let is_on = revision::is_on(pod, &revisions.update);
        let is_small = view.desired.expands && !expansion::is_compatible(view, slot.ordinal);
        if is_on && !is_small {
            continue;
        }
        if down.len() >= most && !down.contains(&place) {
            choices.held.get_or_insert((place, down.len()));
            is_full = true;
            continue;
        }
        // The order of healthy pods is kept, so others do not overtake them: only what was begun goes on, and what a
        // revision broke that is not wanted any more is repaired.
        let is_first = skips || is_taken(pod) || is_abandoned(revisions, pod);
        if pod.metadata.unreadable || (is_full && !is_first) {
            continue;
        }
        if view.desired.expands {
            match expansion::expand(view, slot, plan) {
                Expansion::Done => {}
                Expansion::Running => {
                    down.insert(place);
                    continue;
                }
                Expansion::Impossible => break,
            }
        }
        if is_on || pod.metadata.is_deleting() || has_ended(pod) || choices.deleted.contains(&place) {
            continue;
        }
        choices.updated.push(place);
        down.insert(place);
    }
    choices
}

/// Whether an update or a deletion of a pod has begun: its state says so, or it was made not ready for it.
pub(super) fn is_taken(pod: &Pod) -> bool {
    let is_paused = pod
        .condition(IN_PLACE_UPDATE_READY)
        .is_some_and(|condition| condition.status == "False" && condition.reason == "StartInPlaceUpdate");
    lifecycle::is(pod, &State::PreparingUpdate)
        || is_preparing_delete(pod)
        || lifecycle::is_held(pod)
        || (is_paused && !in_place::is_in_grace(pod))
}

/// Whether a pod is on a revision that was left before all pods had it.
fn is_abandoned(revisions: &Revisions<'_>, pod: &Pod) -> bool {
    !revision::is_on(pod, &revisions.update) && !revision::is_on(pod, &revisions.current)
}

/// Whether somebody asked for the deletion of a pod, and it can begin.
pub(super) fn is_to_delete(view: &View<'_>, pod: &Pod) -> bool {
    view.is_specified(pod) && !pod.metadata.is_deleting() && !pod.metadata.unreadable
}

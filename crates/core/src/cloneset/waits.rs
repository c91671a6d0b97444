//! What pods wait for, told to people.
//!
//! Only of pods that wait for longer than most do: a rollout that goes well has nothing to tell.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::{annotations, lifecycle::State};

use super::{Plan, view::View};
use crate::{
    in_place::{self, Completion, OtherImages},
    lifecycle,
    pod::Pod,
};

/// How long a pod is in a state before people are told why.
const TELL_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// Tells of the first pod that waits, and of how many others do.
pub(super) fn tell(view: &View<'_>, others: &OtherImages, plan: &mut Plan) {
    let mut told: Vec<(&Pod, String)> = Vec::new();
    for pod in &view.pods {
        let Some(why) = what_for(view, pod, others) else { continue };
        let left = TELL_AFTER.saturating_sub(waited(pod, view.now()));
        match Duration::try_from(left) {
            Ok(left) if !left.is_zero() => plan.wake(left),
            _ => told.push((pod, why)),
        }
    }
    if let Some((first, why)) = told.first() {
        let more = match told.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more wait"),
        };
        plan.reasons.push(format!("pod {} waits for {why}{more}", first.metadata.name));
    }
}

fn what_for(view: &View<'_>, pod: &Pod, others: &OtherImages) -> Option<String> {
    let hooks = view.desired.lifecycle.as_ref();
    let update = hooks.and_then(|hooks| hooks.in_place_update.as_ref());
    let pre_delete = hooks.and_then(|hooks| hooks.pre_delete.as_ref());
    let pre_normal = hooks.and_then(|hooks| hooks.pre_normal.as_ref());
    let hook = |is_held: bool, name: &str| is_held.then(|| format!("its hook {name}"));
    match lifecycle::state(pod)? {
        State::PreparingNormal => {
            hook(pre_normal.is_some() && !lifecycle::is_all_hooked(pre_normal, pod), "preNormal")
        }
        State::PreparingUpdate => {
            hook(lifecycle::is_hooked(update, pod), "inPlaceUpdate to let it be updated")
        }
        State::Updated => hook(update.is_some(), "inPlaceUpdate to take it into service again"),
        State::PreparingDelete => hook(lifecycle::is_hooked(pre_delete, pod), "preDelete"),
        State::Updating if !in_place::is_in_grace(pod) => {
            match in_place::completion(pod, &view.desired.in_place, others) {
                Completion::Waiting(why) => Some(format!("the end of its update in place: {why}")),
                Completion::Complete => None,
            }
        }
        State::Updating | State::Normal | State::Other(_) => None,
    }
}

/// How long a pod has been in its state. One that does not say so has been for long.
fn waited(pod: &Pod, now: Timestamp) -> SignedDuration {
    let since = pod.metadata.annotations.text(annotations::LIFECYCLE_TIMESTAMP);
    let since = since.and_then(|since| since.parse::<Timestamp>().ok());
    since.map_or(SignedDuration::MAX, |since| now.duration_since(since))
}

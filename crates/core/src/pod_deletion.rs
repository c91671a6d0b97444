//! Deleting a pod that a `preDelete` hook may hold.

use jiff::Timestamp;
use kruise_api::lifecycle::Hook;

use crate::{
    effect::{Effect, Target},
    lifecycle,
    object::POD,
    pod::Pod,
};

/// The next step towards the end of a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The hook holds the pod: this write says that it is to be deleted. Nothing when it has been said.
    Wait(Option<Effect>),
    /// The pod is deleted.
    Delete(Effect),
}

/// The next step towards the end of a pod.
pub fn next(pod: &Pod, hook: Option<&Hook>, now: Timestamp) -> Step {
    if lifecycle::is_hooked(hook, pod) {
        return Step::Wait(lifecycle::prepare_delete(pod, hook, now));
    }
    Step::Delete(delete(pod))
}

/// Deletes a pod, whatever its version is by now.
pub fn delete(pod: &Pod) -> Effect {
    Effect::Delete { target: target(pod), grace: None, follows: false }
}

/// Deletes a pod only as it was seen: not if it has become ready since.
pub fn delete_as_seen(pod: &Pod) -> Effect {
    let target = target(pod).at_version(pod.metadata.resource_version.clone());
    Effect::Delete { target, grace: None, follows: false }
}

fn target(pod: &Pod) -> Target {
    Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone())
}

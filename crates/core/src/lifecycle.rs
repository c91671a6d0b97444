//! Where a pod stands between its hooks, and how it gets from one state to the next.
//!
//! The state is a label on the pod, so everything survives a restart, and whoever handles a hook can read it.

use jiff::Timestamp;
use kruise_api::{
    annotations, json as fields, labels,
    lifecycle::{Hook, Lifecycle, State},
};
use serde_json::{Map, Value, json};

use crate::{
    effect::{Effect, Patch, Target},
    object::POD,
    pod::Pod,
    readiness::{self, Reason},
};

/// The state of a pod, if it has one.
pub fn state(pod: &Pod) -> Option<State> {
    pod.metadata.labels.text(labels::LIFECYCLE_STATE).filter(|state| !state.is_empty()).map(State::from)
}

/// Whether a pod is in a state.
pub fn is(pod: &Pod, wanted: &State) -> bool {
    pod.metadata.labels.text(labels::LIFECYCLE_STATE) == Some(wanted.as_str())
}

/// Whether a pod in this state may count as available.
pub fn is_in_service(pod: &Pod) -> bool {
    matches!(state(pod), None | Some(State::Normal))
}

/// Whether a hook holds the pod: one of its finalizers or labels is on it.
pub fn is_hooked(hook: Option<&Hook>, pod: &Pod) -> bool {
    hook.is_some_and(|hook| {
        hook.finalizers_handler.iter().any(|finalizer| has_finalizer(pod, finalizer))
            || hook.labels_handler.iter().any(|(key, value)| has_label(pod, key, value))
    })
}

/// Whether everything that a hook names is on the pod. Without a hook: no.
pub fn is_all_hooked(hook: Option<&Hook>, pod: &Pod) -> bool {
    hook.is_some_and(|hook| {
        hook.finalizers_handler.iter().all(|finalizer| has_finalizer(pod, finalizer))
            && hook.labels_handler.iter().all(|(key, value)| has_label(pod, key, value))
    })
}

fn has_finalizer(pod: &Pod, finalizer: &str) -> bool {
    pod.metadata.finalizers.iter().any(|present| *present == finalizer)
}

fn has_label(pod: &Pod, key: &str, value: &str) -> bool {
    pod.metadata.labels.text(key) == Some(value)
}

/// Whether a hook makes the pod not ready while it waits.
pub fn marks_not_ready(hook: Option<&Hook>) -> bool {
    hook.is_some_and(|hook| hook.mark_pod_not_ready == Some(true))
}

/// Whether a deletion that was begun can be taken back: not when pods were made not ready for it.
pub fn can_cancel(lifecycle: Option<&Lifecycle>) -> bool {
    let hooks = lifecycle.map(|lifecycle| [&lifecycle.pre_delete, &lifecycle.in_place_update]);
    !hooks.into_iter().flatten().any(|hook| marks_not_ready(hook.as_ref()))
}

/// The labels and annotations that say a state since now.
pub fn marks(state: &State, now: Timestamp) -> (Value, Value) {
    (
        json!({labels::LIFECYCLE_STATE: state.as_str()}),
        json!({annotations::LIFECYCLE_TIMESTAMP: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}),
    )
}

/// Writes a state, and what else goes on the pod with it. Nothing when the pod is in that state already.
fn write(pod: &Pod, to: &State, now: Timestamp, hook: Option<&Hook>) -> Option<Effect> {
    if is(pod, to) {
        return None;
    }
    let (mut labels, annotations) = marks(to, now);
    let mut metadata = Map::new();
    if let (Some(hook), Some(labels)) = (hook, labels.as_object_mut()) {
        labels.extend(
            hook.labels_handler.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))),
        );
        if !hook.finalizers_handler.is_empty() {
            metadata.insert("finalizers".to_owned(), json!(hook.finalizers_handler));
        }
    }
    metadata.insert("labels".to_owned(), labels);
    metadata.insert("annotations".to_owned(), annotations);
    Some(patch(pod, json!({"metadata": metadata})))
}

/// A change of a pod, whatever its version is by now.
pub fn patch(pod: &Pod, change: Value) -> Effect {
    Effect::Patch {
        target: Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone()),
        subresource: None,
        patch: Patch::Strategic(change),
    }
}

/// One write for two: a change of conditions together with the marks of the state that follows from it. Servers take
/// labels and annotations with the status of a pod; one that did not would get them in a write of their own, a pass later.
pub fn joined(effect: Effect, then: impl FnOnce() -> Option<Effect>) -> Effect {
    let Effect::Patch { target, subresource: Some("status"), patch: Patch::Strategic(mut change) } = effect
    else {
        return effect;
    };
    if let Some(Effect::Patch { subresource: None, patch: Patch::Strategic(marks), .. }) = then()
        && let (Some(change), Some(metadata)) = (change.as_object_mut(), marks.get("metadata"))
    {
        change.insert("metadata".to_owned(), metadata.clone());
    }
    Effect::Patch { target, subresource: Some("status"), patch: Patch::Strategic(change) }
}

const BEFORE_DELETION: &str = "preDeleteHook";
const BEFORE_UPDATE: &str = "preUpdateHook";

fn reason(key: &str) -> Reason {
    Reason::new("Lifecycle", key)
}

/// Towards waiting for `preDelete`: first not ready, if that is wanted, then the state. Nothing when both are there.
pub fn prepare_delete(pod: &Pod, hook: Option<&Hook>, now: Timestamp) -> Option<Effect> {
    let held = marks_not_ready(hook).then(|| readiness::add(pod, &reason(BEFORE_DELETION), now)).flatten();
    held.or_else(|| write(pod, &State::PreparingDelete, now, None))
}

/// Towards waiting for `inPlaceUpdate`. A pod that was just updated gets the marks of the hook again, so that whoever
/// handles it is asked again.
pub fn prepare_update(pod: &Pod, hook: Option<&Hook>, now: Timestamp) -> Option<Effect> {
    let held = marks_not_ready(hook).then(|| readiness::add(pod, &reason(BEFORE_UPDATE), now)).flatten();
    let again = hook.filter(|_| is(pod, &State::Updated));
    held.or_else(|| write(pod, &State::PreparingUpdate, now, again))
}

/// What a pod is prepared for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// Its deletion: a hook makes it not ready first.
    Deletion,
    /// Its update: a hook is asked, and may make it not ready.
    Update,
}

/// What a write of this module prepares a pod for, where that takes the pod out of service or is the first step of its
/// update.
pub fn prepares(effect: &Effect) -> Option<Prepared> {
    let Effect::Patch { target, subresource, patch: Patch::Strategic(change) } = effect else { return None };
    if target.resource != POD {
        return None;
    }
    match subresource {
        None => {
            let state = fields::text(change, &["metadata", "labels", labels::LIFECYCLE_STATE]);
            (state == Some(State::PreparingUpdate.as_str())).then_some(Prepared::Update)
        }
        Some("status") => {
            let held = readiness::held_by(change);
            if held.contains(&reason(BEFORE_DELETION)) {
                Some(Prepared::Deletion)
            } else {
                held.contains(&reason(BEFORE_UPDATE)).then_some(Prepared::Update)
            }
        }
        Some(_) => None,
    }
}

/// Whether a hook has made the pod not ready, for its deletion or its update.
pub fn is_held(pod: &Pod) -> bool {
    [BEFORE_DELETION, BEFORE_UPDATE].into_iter().any(|key| readiness::is_held(pod, &reason(key)))
}

/// Takes a deletion back.
pub fn cancel_delete(pod: &Pod, now: Timestamp) -> Option<Effect> {
    write(pod, &State::PreparingNormal, now, None)
}

/// Ends the hold of a deletion that was taken back, or was never announced. Plan this only for a pod that nobody wants to
/// delete.
pub fn release_from_deletion(pod: &Pod, now: Timestamp) -> Option<Effect> {
    let is_back = !is(pod, &State::PreparingDelete);
    is_back.then(|| readiness::remove(pod, &reason("preDeleteHook"), now)).flatten()
}

/// The next write for a pod that nobody wants to update or delete now.
///
/// `is_on_target` says whether the pod has the revision it should have, `is_complete` whether its last update in place has
/// ended.
pub fn settle(
    pod: &Pod,
    lifecycle: Option<&Lifecycle>,
    is_on_target: bool,
    is_complete: &dyn Fn() -> bool,
    now: Timestamp,
) -> Option<Effect> {
    let pre_normal = lifecycle.and_then(|lifecycle| lifecycle.pre_normal.as_ref());
    let update = lifecycle.and_then(|lifecycle| lifecycle.in_place_update.as_ref());
    let after_update =
        || if update.is_none() || is_all_hooked(update, pod) { State::Normal } else { State::Updated };
    let to = match state(pod)? {
        State::PreparingNormal if pre_normal.is_some() => {
            is_all_hooked(pre_normal, pod).then_some(State::Normal)
        }
        State::PreparingNormal => (!pod.spec.node_name.is_empty()).then_some(State::Normal),
        State::PreparingUpdate if is_on_target => Some(after_update()),
        State::Updating if is_complete() => Some(after_update()),
        State::Updated => Some(after_update()).filter(|next| *next == State::Normal),
        _ => None,
    };
    match to {
        Some(to) => write(pod, &to, now, None),
        // The hold ends after the state was written: a pod that is ready again must not look as if it still waited.
        None if matches!(state(pod), Some(State::Updated | State::Normal)) => {
            readiness::remove(pod, &reason(BEFORE_UPDATE), now)
        }
        None => None,
    }
}

#[cfg(test)]
mod tests;

//! How an update in place begins.

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use kruise_api::{annotations, conditions::IN_PLACE_UPDATE_READY, time::Time};
use serde_json::{Value, json};

use super::{
    Options, Progress, batch,
    state::{self, Change, State},
};
use crate::{
    effect::Effect,
    lifecycle,
    pod::{Condition, Pod},
    pod_readiness, readiness,
};

/// Labels and annotations that a workload writes on a pod when its update begins: the revision, the state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Labels {
    /// Labels.
    pub labels: Value,
    /// Annotations.
    pub annotations: Value,
}

/// The next write that begins an update: first not ready, then the change itself, or its grace period.
///
/// A pod that is in a grace period must not be given here.
pub fn start(pod: &Pod, change: &Change, marks: &Labels, options: &Options, now: Timestamp) -> Progress {
    let mut change = change.clone();
    if let Ok(Some(earlier)) = state::read(pod) {
        keep_pending(&mut change, &earlier);
        if !earlier.previous_revision.is_empty() {
            change.previous = earlier.previous_revision;
        }
    }
    if must_be_unready(pod, &change, options)
        && pod.condition(IN_PLACE_UPDATE_READY).is_none_or(|condition| condition.status != "False")
    {
        return Progress { towards: Some(change.revision.clone()), ..Progress::write(unready(pod, now)) };
    }
    let since = if change.grace_seconds == 0 { now } else { whole_second_after(now) };
    let mut state = State::new(&change, Time(since));
    state.previous_revision = change.previous.clone();
    let mut patch = json!({"metadata": {"labels": marks.labels, "annotations": marks.annotations}});
    if change.grace_seconds == 0 {
        return if batch::resizes_first(pod, &change, options) {
            Progress::step(batch::announce(pod, &change, state, patch), &change.revision, false)
        } else {
            let effect = batch::apply(pod, &change, state, patch, options, Time(now));
            Progress::step(effect, &change.revision, true)
        };
    }
    batch::write_state(pod, &state, &mut patch);
    batch::annotate(&mut patch, annotations::IN_PLACE_UPDATE_GRACE, change.text().into());
    let announced = Progress::step(lifecycle::patch(pod, patch), &change.revision, false);
    Progress { wake_after: Some(options.grace), ..announced }
}

/// The annotation knows whole seconds only. A time cut short would cut the grace period short, by up to a second.
fn whole_second_after(now: Timestamp) -> Timestamp {
    let up = TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Ceil);
    now.round(up).unwrap_or(now)
}

/// What an earlier update still has to do, and this one does not change again, is done by this one.
fn keep_pending(change: &mut Change, earlier: &State) {
    for (name, image) in &earlier.next_container_images {
        change.container_images.entry(name.clone()).or_insert_with(|| image.clone());
    }
    for (name, read) in &earlier.next_container_ref_metadata {
        let merged = change.container_ref_metadata.entry(name.clone()).or_default();
        for (key, value) in &read.labels {
            merged.labels.entry(key.clone()).or_insert_with(|| value.clone());
        }
        for (key, value) in &read.annotations {
            merged.annotations.entry(key.clone()).or_insert_with(|| value.clone());
        }
        change.update_env_from_metadata = true;
    }
    for (name, amounts) in &earlier.next_container_resources {
        let merged = change.container_resources.entry(name.clone()).or_default();
        for (key, value) in &amounts.limits {
            merged.limits.entry(key.clone()).or_insert_with(|| value.clone());
        }
        for (key, value) in &amounts.requests {
            merged.requests.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
}

/// New amounts of cpu and memory need no pause, unless the container says that it is restarted for them.
fn must_be_unready(pod: &Pod, change: &Change, options: &Options) -> bool {
    if !pod.has_readiness_gate(IN_PLACE_UPDATE_READY) {
        return false;
    }
    if !options.resize || !change.is_vertical_only() {
        return true;
    }
    pod.spec.containers.iter().any(|container| {
        let Some(amounts) = change.container_resources.get(&container.name) else { return false };
        let changes = |name: &str| amounts.limits.contains_key(name) || amounts.requests.contains_key(name);
        let policy = container.resize_policy;
        (policy.cpu_restarts && changes("cpu")) || (policy.memory_restarts && changes("memory"))
    })
}

fn unready(pod: &Pod, now: Timestamp) -> Effect {
    let mut conditions = vec![json!({
        "type": IN_PLACE_UPDATE_READY, "status": "False", "reason": "StartInPlaceUpdate", "message": null,
        "lastTransitionTime": readiness::seconds(now),
    })];
    conditions.extend(readiness::ready_without(pod, IN_PLACE_UPDATE_READY, now));
    readiness::status_patch(pod, conditions)
}

/// Ends the pause of a pod. A pod that was never updated gets its first condition so, together with its first
/// `KruisePodReady` where it waits for that too: both are needed before a new pod can serve.
pub(super) fn ready(pod: &Pod, now: Timestamp) -> Option<Effect> {
    let is_done = !pod.has_readiness_gate(IN_PLACE_UPDATE_READY)
        || pod.condition(IN_PLACE_UPDATE_READY).is_some_and(Condition::is_true);
    (!is_done).then(|| {
        let condition = json!({
            "type": IN_PLACE_UPDATE_READY, "status": "True", "reason": null, "message": null,
            "lastTransitionTime": readiness::seconds(now),
        });
        let is_first = pod.condition(IN_PLACE_UPDATE_READY).is_none();
        let other = (is_first && pod_readiness::is_waiting(pod)).then(|| pod_readiness::first(now));
        readiness::status_patch(pod, [condition].into_iter().chain(other).collect())
    })
}

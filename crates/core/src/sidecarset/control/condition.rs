//! The condition of a pod that says whether all of its sets can update it in place. Its message has one word for each
//! set, so several writers share it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::conditions::SIDECARSET_UPGRADABLE;
use serde_json::{Value, json};

use crate::{
    effect::{Effect, Patch, Target},
    object::POD,
    pod::Pod,
    readiness::seconds,
};

const UPGRADABLE: &str = "AllSidecarsetUpgradable";
const IMMUTABLE: &str = "UpdateImmutableField";

/// What the condition says about a set, if it says anything.
pub(super) fn says(pod: &Pod, set: &str) -> Option<bool> {
    answers(pod).get(set).copied()
}

/// The write after which the condition says this about a set, if one is needed.
pub(super) fn write(pod: &Pod, set: &str, is_upgradable: bool, now: Timestamp) -> Option<Effect> {
    let mut answers = answers(pod);
    answers.insert(set.to_owned(), is_upgradable);
    let all = answers.values().all(|upgradable| *upgradable);
    let (status, reason) = if all { ("True", UPGRADABLE) } else { ("False", IMMUTABLE) };
    let message = serde_json::to_string(&answers).unwrap_or_default();
    let present = pod.condition(SIDECARSET_UPGRADABLE);
    if present
        .is_some_and(|one| one.status == status && one.reason == reason && one.message == message.as_str())
    {
        return None;
    }
    let mut condition =
        json!({"type": SIDECARSET_UPGRADABLE, "status": status, "reason": reason, "message": message});
    if present.is_none_or(|one| one.status != status)
        && let Some(members) = condition.as_object_mut()
    {
        members.insert("lastTransitionTime".to_owned(), seconds(now));
    }
    Some(patch(pod, condition))
}

/// A message that others wrote counts as empty, and is replaced.
fn answers(pod: &Pod) -> BTreeMap<String, bool> {
    let message = pod.condition(SIDECARSET_UPGRADABLE).map(|condition| condition.message.as_str());
    message.and_then(|message| serde_json::from_str(message).ok()).unwrap_or_default()
}

fn patch(pod: &Pod, condition: Value) -> Effect {
    let target = Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone())
        .at_version(pod.metadata.resource_version.clone());
    let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
    Effect::Patch { target, subresource: Some("status"), patch }
}

//! What the results of probes do to a pod.
//!
//! A policy belongs to a result. The keys of every policy whose result it is not go, then those of the result that it is
//! are set, all in one write: a key that both results have is never absent between them. `Unknown` is the result of no policy.

use std::collections::{BTreeMap, BTreeSet};

use kruise_api::{
    kubernetes::validation::names, podprobemarker::v1alpha1::PodContainerProbe, probe::State, time::Time,
};
use serde_json::{Map, Value, json};

use super::RESERVED;
use crate::{
    effect::{Effect, Patch, Target},
    object::POD,
    pod::{Pairs, Pod},
};

/// What one probe found in a pod.
#[derive(Clone, Debug)]
pub struct Result<'a> {
    /// The probe, as its marker describes it.
    pub probe: &'a PodContainerProbe,
    /// What it found.
    pub state: State,
    /// What it said.
    pub message: &'a str,
    /// When it said so.
    pub probed: Option<Time>,
    /// When the state changed last.
    pub changed: Option<Time>,
}

/// What the results of a node change in a pod, if anything: conditions, labels and annotations in one write. Of two probes
/// that write the same condition the first one does.
pub fn by_results(pod: &Pod, results: &[Result<'_>]) -> Option<Effect> {
    let mut patch = Map::new();
    let metadata = metadata(pod, results);
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), metadata.into());
    }
    let mut written = BTreeSet::new();
    let mut conditions = Vec::new();
    for result in results {
        let kind = result.probe.pod_condition_type.as_deref().unwrap_or_default();
        // A condition, label or annotation that the server refuses would keep all others from being written.
        let is_possible = !RESERVED.contains(&kind) && names::qualified_name(kind).is_empty();
        if is_possible && written.insert(kind) {
            conditions.extend(condition(pod, kind, result));
        }
    }
    if !conditions.is_empty() {
        patch.insert("status".to_owned(), json!({"conditions": conditions}));
    }
    let patch = Patch::Strategic(patch.into());
    (patch != Patch::Strategic(json!({}))).then(|| write(pod, Some("status"), patch))
}

/// What the conditions of a pod change in its labels and annotations, if anything. The provider of its node writes the
/// conditions.
pub fn by_conditions(pod: &Pod, probes: &[PodContainerProbe]) -> Option<Effect> {
    let results: Vec<Result<'_>> = probes
        .iter()
        .filter_map(|probe| {
            Some((probe, probe.pod_condition_type.as_deref().filter(|kind| !kind.is_empty())?))
        })
        .map(|(probe, kind)| {
            let state = match pod.condition(kind).map(|condition| condition.status.as_str()) {
                Some("True") => State::Succeeded,
                Some("False") => State::Failed,
                _ => State::Unknown,
            };
            Result { probe, state, message: "", probed: None, changed: None }
        })
        .collect();
    let metadata = metadata(pod, &results);
    (!metadata.is_empty()).then(|| write(pod, None, Patch::Strategic(json!({"metadata": metadata}))))
}

fn write(pod: &Pod, subresource: Option<&'static str>, patch: Patch) -> Effect {
    let target = Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone());
    Effect::Patch { target, subresource, patch }
}

fn condition(pod: &Pod, kind: &str, result: &Result<'_>) -> Option<Value> {
    let status = if result.state == State::Succeeded { "True" } else { "False" };
    let is_same =
        |present: &crate::pod::Condition| present.status == status && present.message == result.message;
    if pod.condition(kind).is_some_and(is_same) {
        return None;
    }
    let mut written = json!({"type": kind, "status": status, "message": result.message});
    for (name, time) in
        [("lastProbeTime", result.probed), ("lastTransitionTime", result.changed.or(result.probed))]
    {
        if let Some(time) = time {
            kruise_api::json::set(&mut written, &[name], json!(time));
        }
    }
    Some(written)
}

/// The labels and annotations that change, as a patch of the metadata.
fn metadata(pod: &Pod, results: &[Result<'_>]) -> Map<String, Value> {
    let mut labels = BTreeMap::new();
    let mut annotations = BTreeMap::new();
    let policies = |is_met: bool| {
        results.iter().flat_map(move |result| {
            let policies = result.probe.marker_policy.iter();
            policies.filter(move |policy| (policy.state == result.state) == is_met)
        })
    };
    for policy in policies(false) {
        labels.extend(policy.labels.keys().map(|key| (key.as_str(), None)));
        annotations.extend(policy.annotations.keys().map(|key| (key.as_str(), None)));
    }
    for policy in policies(true) {
        labels.extend(policy.labels.iter().map(|(key, value)| (key.as_str(), Some(value.as_str()))));
        annotations
            .extend(policy.annotations.iter().map(|(key, value)| (key.as_str(), Some(value.as_str()))));
    }
    labels.retain(|key, value: &mut Option<&str>| {
        names::qualified_name(key).is_empty()
            && value.is_none_or(|value| names::label_value(value).is_empty())
    });
    // The server compares the keys of annotations in lower case.
    annotations.retain(|key, _: &mut Option<&str>| names::qualified_name(&key.to_lowercase()).is_empty());
    let parts =
        [("labels", labels, &pod.metadata.labels), ("annotations", annotations, &pod.metadata.annotations)];
    parts
        .into_iter()
        .filter_map(|(part, wanted, present)| Some((part.to_owned(), changes(&wanted, present)?.into())))
        .collect()
}

fn changes(wanted: &BTreeMap<&str, Option<&str>>, present: &Pairs) -> Option<Map<String, Value>> {
    let changes: Map<String, Value> = wanted
        .iter()
        .filter(|(key, value)| present.text(key) != **value)
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    (!changes.is_empty()).then_some(changes)
}

//! Objects in few words.

use std::{collections::BTreeMap, sync::Arc};

use kruise_api::persistentpodstate::v1beta1::PersistentPodState;
use serde_json::{Value, json};

use crate::{
    effect::{Effect, Patch},
    patch_model::merge,
    persistentpodstate::{Members, Observed, Plan, Set, decide},
    pod::{Pairs, Pod},
    statefulset::ordinals::Ordinals,
    text::Text,
    workload::Workload,
};

/// Labels written as `key=value,key=value`.
pub(super) fn pairs(text: &str) -> BTreeMap<String, String> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    parts.filter_map(|part| part.split_once('=')).map(|(key, value)| (key.into(), value.into())).collect()
}

/// An object about the native StatefulSet `web` that requires `zone` and prefers `host`, with changes.
pub(super) fn object(change: Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "PersistentPodState",
        "metadata": {"name": "web", "namespace": "shop", "uid": "pps-uid", "generation": 3, "resourceVersion": "7"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"},
            "requiredPersistentTopology": {"keys": ["zone"]},
            "preferredPersistentTopology": [{"weight": 100, "preference": {"keys": ["host"]}}],
        },
    });
    merge(&mut object, &change);
    object
}

pub(super) fn state(change: Value) -> PersistentPodState {
    serde_json::from_value(object(change)).unwrap()
}

/// Records written as `web-0:node:zone=a,host=n`.
pub(super) fn records(text: &str) -> Value {
    let record = |word: &str| {
        let mut parts = word.split(':');
        let (pod, node) = (parts.next().unwrap(), parts.next().unwrap());
        let mut record = json!({"nodeName": node});
        for field in ["nodeTopologyLabels", "annotations"] {
            let found = pairs(parts.next().unwrap_or_default());
            if !found.is_empty() {
                record[field] = json!(found);
            }
        }
        (pod.to_owned(), record)
    };
    Value::Object(text.split_whitespace().map(record).collect())
}

/// Pods written as `web-0:node:ready`, or `pending`, `ends` and `failed` instead of `ready`; then annotations.
pub(super) fn pods(text: &str) -> Vec<Arc<Pod>> {
    let pod = |word: &str| {
        let mut parts = word.split(':');
        let (name, node, is) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let ends = if is == "ends" { json!("2026-01-01T00:00:00Z") } else { Value::Null };
        let ready = if is == "pending" { "False" } else { "True" };
        let phase = if is == "failed" { "Failed" } else { "Running" };
        let pod = json!({
            "metadata": {"name": name, "namespace": "shop", "deletionTimestamp": ends,
                "annotations": pairs(parts.next().unwrap_or_default())},
            "spec": {"nodeName": node},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
        });
        Arc::new(serde_json::from_value(pod).unwrap())
    };
    text.split_whitespace().map(pod).collect()
}

/// Nodes written as `n1:zone=a,host=n1`.
pub(super) fn nodes(text: &str) -> BTreeMap<Text, Pairs> {
    let node = |word: &str| {
        let (name, labels) = word.split_once(':').unwrap_or((word, ""));
        let labels = pairs(labels).into_iter().map(|(key, value)| (key.into(), value.into()));
        (name.into(), labels.collect::<Pairs>())
    };
    text.split_whitespace().map(node).collect()
}

/// What a pass sees of a workload that wants so many pods from 0 on; nothing for none.
pub(super) fn seen(state: Value, replicas: Option<i64>, members: &str, known: &str) -> Observed {
    let of = |replicas| {
        let ordinals = Some(Ordinals::new(0, Vec::new(), replicas));
        Members { ordinals, pods: pods(members) }
    };
    Observed { state: Arc::new(self::state(state)), members: replicas.map(of), nodes: nodes(known) }
}

/// The object after the write of a plan.
pub(super) fn written(state: &PersistentPodState, plan: &Plan) -> Value {
    let mut object = serde_json::to_value(state).unwrap();
    if let Some(Effect::Patch { patch: Patch::Merge(change), subresource, .. }) = &plan.status {
        assert_eq!(*subresource, Some("status"));
        merge(&mut object, change);
    }
    object
}

/// The records after a pass, as [`records`] are written.
pub(super) fn after(seen: &Observed) -> String {
    let object = written(&seen.state, &decide(seen));
    let text = |map: &Value| {
        let pairs = map.as_object().into_iter().flatten();
        let pairs: Vec<String> =
            pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap())).collect();
        pairs.join(",")
    };
    let states = object["status"]["podStates"].as_object().cloned().unwrap_or_default();
    let line = |(pod, record): (&String, &Value)| {
        let node = record["nodeName"].as_str().unwrap_or_default();
        let line =
            format!("{pod}:{node}:{}:{}", text(&record["nodeTopologyLabels"]), text(&record["annotations"]));
        line.trim_end_matches(':').to_owned()
    };
    states.iter().map(line).collect::<Vec<_>>().join(" ")
}

/// The native StatefulSet `web` with annotations.
pub(super) fn set(uid: &str, annotations: Value) -> Set {
    let object = json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": uid, "annotations": annotations},
        "spec": {"replicas": 2},
    });
    Set::of_native(&serde_json::from_value::<Workload>(object).unwrap())
}

//! Budgets and pods in few words.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kruise_api::podunavailablebudget::v1beta1::PodUnavailableBudget;
use serde_json::{Value, json};

use super::super::*;
use crate::{patch_model, pod::Pod};

pub(super) fn start() -> Timestamp {
    "2026-11-16T00:00:00Z".parse().unwrap()
}

pub(super) fn after(seconds: i64) -> Timestamp {
    start() + SignedDuration::from_secs(seconds)
}

pub(super) fn at(seconds: i64) -> String {
    after(seconds).to_string()
}

/// The budget `web` with this spec besides a selector, and this status.
pub(super) fn object(spec: Value, status: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "b", "resourceVersion": "1", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": status,
    });
    patch_model::merge(&mut object["spec"], &spec);
    // The schema wants all numbers of a status that is there.
    match object["status"].as_object_mut().filter(|status| !status.is_empty()) {
        Some(status) => {
            for field in ["unavailableAllowed", "currentAvailable", "desiredAvailable", "totalReplicas"] {
                status.entry(field).or_insert_with(|| json!(0));
            }
        }
        None => {
            object.as_object_mut().unwrap().remove("status");
        }
    }
    object
}

pub(super) fn budget(spec: Value, status: Value) -> Budget {
    read(object(spec, status))
}

pub(super) fn read(object: Value) -> Budget {
    let object: PodUnavailableBudget = serde_json::from_value(object).unwrap();
    Budget::of(&Arc::new(object))
}

/// A ready pod that was made at a second, changed by a merge patch.
pub(super) fn pod(name: &str, made: i64, change: Value) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("{name}-{made}"), "creationTimestamp": at(made),
            "labels": {"app": "web"}, "annotations": {"pub.kruise.io/related-pub": "web"},
        },
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "main", "image": "app:1", "imageID": "x"}]},
    });
    patch_model::merge(&mut pod, &change);
    Arc::new(serde_json::from_value(pod).unwrap())
}

pub(super) fn pods(count: usize) -> Vec<Arc<Pod>> {
    (0..count).map(|number| pod(&format!("web-{number}"), -60, json!({}))).collect()
}

pub(super) fn not_ready() -> Value {
    json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
}

pub(super) fn observed(budget: &Budget, pods: &[Arc<Pod>], expected: u32, now: Timestamp) -> Observed {
    let recorded = pods.iter().map(|pod| (pod.metadata.name.clone(), pod.clone())).collect();
    Observed {
        budget: budget.clone(),
        budgets: vec![budget.clone()],
        pods: pods.iter().filter(|pod| pod.is_active()).cloned().collect(),
        owners: Default::default(),
        expected: Expected::Pods(expected),
        guessed: None,
        recorded,
        live: Default::default(),
        noticed: Default::default(),
        now,
    }
}

/// `allowed current desired total`.
pub(super) fn numbers(plan: &Plan) -> [i32; 4] {
    let status = &plan.counted;
    [status.unavailable_allowed, status.current_available, status.desired_available, status.total_replicas]
}

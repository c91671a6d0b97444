//! Spreads and pods in few words.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kruise_api::annotations::{MATCHED_WORKLOADSPREAD, POD_DELETION_COST};
use serde_json::{Value, json};

use super::super::*;
use crate::{
    effect::{Effect, Patch},
    node::Node,
    patch_model,
    pod::Pod,
    text::Text,
};

pub(super) fn start() -> Timestamp {
    "2026-11-16T00:00:00Z".parse().unwrap()
}

pub(super) fn after(seconds: i64) -> Timestamp {
    start() + SignedDuration::from_secs(seconds)
}

pub(super) fn at(seconds: i64) -> String {
    after(seconds).to_string()
}

/// The spread `w` over subsets like `a=3 b=30% c`, each of which requires the zone of its name. `kind` is the target's.
pub(super) fn object(kind: &str, subsets: &str) -> Value {
    let api_version = match kind {
        "CloneSet" => "apps.kruise.io/v1beta1",
        "Job" => "batch/v1",
        _ => "apps/v1",
    };
    let subsets: Vec<Value> = subsets
        .split_whitespace()
        .map(|word| {
            let (name, limit) =
                word.split_once('=').map_or((word, None), |(name, limit)| (name, Some(limit)));
            let zone = json!({"key": "zone", "operator": "In", "values": [name]});
            let mut subset = json!({"name": name, "requiredNodeSelector": {"matchExpressions": [zone]}});
            if let Some(limit) = limit {
                subset["maxReplicas"] = limit.parse::<i64>().map_or(json!(limit), |number| json!(number));
            }
            subset
        })
        .collect();
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
        "metadata": {"name": "w", "namespace": "shop", "uid": "w", "resourceVersion": "1", "generation": 1},
        "spec": {"targetRef": {"apiVersion": api_version, "kind": kind, "name": "web"}, "subsets": subsets},
    })
}

pub(super) fn read(object: &Value) -> Spread {
    Spread::of(&Arc::new(serde_json::from_value(object.clone()).unwrap()))
}

/// A running pod in a subset (`-` for none), made at a second and changed by a merge patch.
pub(super) fn pod(name: &str, subset: &str, made: i64, change: Value) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("{name}-{made}"), "creationTimestamp": at(made),
            "ownerReferences": [{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "c", "controller": true}],
        },
        "spec": {"nodeName": format!("node-{subset}")},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at(made)}]},
    });
    if subset != "-" {
        let mark = Mark { name: "w".into(), subset: subset.into(), uid: String::new() };
        pod["metadata"]["annotations"] = json!({MATCHED_WORKLOADSPREAD: mark.text()});
    }
    patch_model::merge(&mut pod, &change);
    Arc::new(serde_json::from_value(pod).unwrap())
}

/// A pod of a version of a Deployment.
pub(super) fn versioned(version: &str) -> Value {
    json!({"metadata": {"labels": {"pod-template-hash": version}, "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("web-{version}"), "uid": version, "controller": true}]}})
}

/// Waits for a node in vain since it was made.
pub(super) fn unschedulable() -> Value {
    json!({"spec": {"nodeName": null}, "status": {"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available."}]}})
}

pub(super) fn node(name: &str, labels: Value, taints: Value) -> (Text, Arc<Node>) {
    let node = json!({"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}});
    (name.into(), Arc::new(serde_json::from_value(node).unwrap()))
}

/// A pass over these pods, of which the workload wants as many as there are.
pub(super) fn seen(object: &Value, pods: Vec<Arc<Pod>>, now: i64) -> Observed {
    Observed {
        spread: read(object),
        total: Some(u32::try_from(pods.len()).unwrap()),
        pods,
        versioned: Versioned::default(),
        newest: Newest::All,
        nodes: BTreeMap::new(),
        whole: BTreeMap::new(),
        now: after(now),
    }
}

/// Carries out the write of a status if the version is the one that was read.
pub(super) fn write(object: &mut Value, effect: &Effect) -> bool {
    let Effect::Patch { target, patch: Patch::Merge(change), subresource: Some("status") } = effect else {
        panic!("{effect:?}")
    };
    let version = object["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    if target.resource_version.as_ref().map(Text::as_str) != Some(version.as_str()) {
        return false;
    }
    patch_model::merge(object, change);
    object["metadata"]["resourceVersion"] = json!((version.parse::<u64>().unwrap() + 1).to_string());
    true
}

/// The write of a plan, which must be there.
pub(super) fn carry_out(object: &mut Value, plan: &Plan) {
    assert!(write(object, plan.status.as_ref().unwrap()));
}

/// Admits a pod with a name: the subset, or `-`.
pub(super) fn admit(object: &mut Value, name: &str, version: &str, total: u32, now: i64) -> String {
    let spread = read(object);
    let fresh = format!("key-of-{name}-{now}");
    let asked = Asked { name, fresh: &fresh, version, total: Some(total), now: after(now) };
    let subset = |position: usize| spread.subsets[position].spec.name.clone();
    match place(&spread, &asked) {
        Placement::Nowhere => "-".to_owned(),
        Placement::Free(position) | Placement::Booked(position) => subset(position),
        Placement::Book(booking) => {
            assert!(write(object, &status_write(&spread.object, &booking.status).unwrap()));
            subset(booking.subset)
        }
    }
}

/// `name replicas/missing +bookings -deletions`, for each account of a list.
pub(super) fn told(accounts: &[kruise_api::workloadspread::v1beta1::SubsetStatus]) -> String {
    let one = |account: &kruise_api::workloadspread::v1beta1::SubsetStatus| {
        let keys = |sign: &str, keys: Vec<&String>| {
            keys.into_iter().map(|key| format!(" {sign}{key}")).collect::<String>()
        };
        let closed = account.conditions.iter().any(|condition| condition.status == "False");
        format!(
            "{} {}/{}{}{}{}",
            account.name,
            account.replicas,
            account.missing_replicas,
            keys("+", account.creating_pods.keys().collect()),
            keys("-", account.deleting_pods.keys().collect()),
            if closed { " closed" } else { "" }
        )
    };
    accounts.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The costs that a plan gives, `pod=cost` sorted by name.
pub(super) fn costs(plan: &Plan) -> String {
    let one = |write: &Write| {
        let Effect::Patch { target, patch: Patch::Merge(change), .. } = &write.effect else { return None };
        let cost = change["metadata"]["annotations"][POD_DELETION_COST].as_str()?;
        Some(format!("{}={cost}", target.key.name))
    };
    plan.pods.iter().filter_map(one).collect::<Vec<_>>().join(" ")
}

/// Reason and message of what people hear.
pub(super) fn events(plan: &Plan) -> Vec<String> {
    plan.events.iter().map(|event| format!("{}: {}", event.reason, event.message)).collect()
}

//! The status of a DaemonSet.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::object::{number, or_gone};
use super::super::pods::Pod;
use super::Pass;
use super::plan::{Node, Seen};
use crate::status::Status;

/// Writes the status if it changed. `made` are pods that this pass added to those it saw.
pub(super) async fn write(
    pass: &Pass<'_>,
    nodes: &[Node],
    made: &[Arc<Pod>],
    pods: &[Arc<Pod>],
    min_ready: i64,
) -> Result<(), Status> {
    let now = pass.cx.now();
    let seen = pods.iter().chain(made).map(|pod| Seen::of(pod, &pass.hash, min_ready, now));
    let status = status(&pass.set, nodes, &seen.collect::<Vec<_>>());
    if pass.set.get("status") == Some(&status) {
        return Ok(());
    }
    let mut set = pass.set.clone();
    if let Some(map) = set.as_object_mut() {
        map.insert("status".to_owned(), status);
    }
    or_gone(pass.cx.client.update(&pass.sets, Some("status"), set).await).map(|_| ())
}

fn status(set: &Value, nodes: &[Node], pods: &[Seen]) -> Value {
    let mut by_node: std::collections::BTreeMap<&str, &Seen> = std::collections::BTreeMap::new();
    for pod in pods {
        // The oldest pod of a node speaks for it.
        let known = by_node.entry(&pod.node).or_insert(pod);
        if pod.order() < known.order() {
            *known = pod;
        }
    }
    let (mut desired, mut current, mut stray, mut ready, mut updated, mut available) = (0, 0, 0, 0, 0, 0);
    for node in nodes {
        let pod = by_node.get(node.name.as_str());
        if !node.starts {
            stray += i64::from(pod.is_some());
            continue;
        }
        desired += 1;
        let Some(pod) = pod else { continue };
        current += 1;
        ready += i64::from(pod.ready);
        available += i64::from(pod.available);
        updated += i64::from(pod.updated);
    }
    let mut status = Map::new();
    for (key, count) in [
        ("currentNumberScheduled", current),
        ("desiredNumberScheduled", desired),
        ("numberMisscheduled", stray),
        ("numberReady", ready),
    ] {
        status.insert(key.to_owned(), json!(count));
    }
    for (key, count) in [
        ("numberAvailable", available),
        ("numberUnavailable", desired - available),
        ("updatedNumberScheduled", updated),
    ] {
        if count > 0 {
            status.insert(key.to_owned(), json!(count));
        }
    }
    if let Some(generation) = number(set, "/metadata/generation") {
        status.insert("observedGeneration".to_owned(), json!(generation));
    }
    for key in ["collisionCount", "conditions"] {
        if let Some(value) = set.pointer(&format!("/status/{key}")) {
            status.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(status)
}

//! What a DaemonSet on many nodes costs: created, updated in place a tenth at a time, and a tenth of the nodes that leave
//! and come back. Heartbeats of nodes should cost no reconcile: the stage `idle` counts them.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::local::http::Connection;
use super::stage::Stage;

const SET: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/daemonsets/bench";
const SETS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/daemonsets";
/// Longer than a simulated node takes between two signs of life.
const IDLE: Duration = Duration::from_secs(60);

pub(super) fn run(root: &Path, nodes: usize) -> Result<Value> {
    let mut stage = Stage::start(root, nodes)?;
    let leaving = names(&stage.connection.get("/api/v1/nodes?resourceVersion=0")?, nodes / 10);
    stage.measure(
        "create",
        |api| api.send("POST", SETS, Some(&set())).map(drop),
        |api| is_done(api, nodes),
    )?;
    stage.idle(IDLE)?;
    let image = json!({"spec": {"template": {"spec": {"containers": [container("v2")]}}}});
    stage.measure(
        "in_place",
        |api| api.send("PATCH", SET, Some(&image)).map(drop),
        |api| is_done(api, nodes),
    )?;
    let stay = nodes - leaving.len();
    stage.measure("nodes_leave", |api| label(api, &leaving, json!("away")), |api| is_done(api, stay))?;
    stage.measure("nodes_return", |api| label(api, &leaving, Value::Null), |api| is_done(api, nodes))?;
    stage.end()
}

fn names(nodes: &Value, count: usize) -> Vec<String> {
    let items = nodes.get("items").and_then(Value::as_array).into_iter().flatten();
    let names = items.filter_map(|node| node.pointer("/metadata/name")?.as_str());
    names.take(count).map(ToOwned::to_owned).collect()
}

fn label(api: &mut Connection, nodes: &[String], value: Value) -> Result<()> {
    let patch = json!({"metadata": {"labels": {"bench": value}}});
    for node in nodes {
        api.send("PATCH", &format!("/api/v1/nodes/{node}"), Some(&patch))?;
    }
    Ok(())
}

/// Whether exactly so many nodes run an updated and available pod.
fn is_done(api: &mut Connection, nodes: usize) -> Result<bool> {
    let set = api.get(SET)?;
    let number = |path: &str| set.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let wanted =
        ["desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable"];
    Ok(number("/status/observedGeneration") == number("/metadata/generation")
        && number("/status/numberMisscheduled") == 0
        && wanted.iter().all(|field| number(&format!("/status/{field}")) == nodes as u64))
}

fn container(version: &str) -> Value {
    json!({"name": "main", "image": format!("registry.example/agent:{version}")})
}

fn set() -> Value {
    let stays = json!({"key": "bench", "operator": "DoesNotExist"});
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet", "metadata": {"name": "bench"},
        "spec": {
            "selector": {"matchLabels": {"app": "bench"}},
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": "10%"},
            },
            "template": {
                "metadata": {"labels": {"app": "bench"}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [container("v1")],
                    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [stays]}],
                    }}},
                },
            },
        },
    })
}

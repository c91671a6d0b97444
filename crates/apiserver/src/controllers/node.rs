//! Nodes: silence makes a node unknown, its state becomes taints, and taints send pods away.

mod pods;
mod taints;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::object::{condition, deleting, items, merge, or_gone, set_condition, text, time};
use super::recorder::Involved;
use super::{Context, Key, Outcome};
use crate::registry::Resource;
use crate::status::Status;

pub(super) use pods::{collect, evict};
pub(super) use taints::tolerates;

const COMPONENT: &str = "node-controller";
const CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// Looks at one node. It is looked at again when its silence would become too long.
pub(super) async fn sync(cx: &Context, key: &Key) -> Outcome {
    let nodes = cx.client.resource("", "nodes")?;
    let Some(record) = or_gone(cx.client.get(&nodes, "", &key.name))? else { return Ok(None) };
    let mut node = record.value();
    if deleting(&node) {
        return Ok(None);
    }
    let now = cx.now();
    let grace = i64::try_from(cx.node_grace.as_secs()).unwrap_or(i64::MAX);
    let left = last_sign(cx, &node).as_second().saturating_add(grace) - now.as_second();
    let unknown = condition(&node, "Ready").is_some_and(|ready| text(ready, "/status") == "Unknown");
    if left <= 0 && !unknown {
        node = silence(cx, &nodes, node).await?;
    }
    taint(cx, &nodes, &node).await?;
    Ok((left > 0).then(|| Duration::from_secs(u64::try_from(left).unwrap_or(1))))
}

/// When the node was last heard of.
fn last_sign(cx: &Context, node: &Value) -> Timestamp {
    let born = time(node, "/metadata/creationTimestamp").unwrap_or(Timestamp::UNIX_EPOCH);
    let name = text(node, "/metadata/name");
    let lease = cx.client.server().store().get("coordination.k8s.io/leases", "kube-node-lease", name);
    let renewed = lease.and_then(|lease| time(&lease.value(), "/spec/renewTime"));
    let beat = condition(node, "Ready").and_then(|ready| time(ready, "/lastHeartbeatTime"));
    [renewed, beat].into_iter().flatten().max().unwrap_or(born).max(born).max(cx.began)
}

/// Nobody knows how the node is.
async fn silence(cx: &Context, nodes: &Arc<Resource>, mut node: Value) -> Result<Value, Status> {
    let now = cx.now_text();
    let was_ready = condition(&node, "Ready").is_some_and(|ready| text(ready, "/status") == "True");
    for kind in CONDITIONS {
        let known = condition(&node, kind).cloned();
        let (reason, message) = match known {
            Some(_) => ("NodeStatusUnknown", "Kubelet stopped posting node status."),
            None => ("NodeStatusNeverUpdated", "Kubelet never posted node status."),
        };
        let beat = known.as_ref().map(|known| text(known, "/lastHeartbeatTime")).filter(|at| !at.is_empty());
        let beat = beat.unwrap_or_else(|| text(&node, "/metadata/creationTimestamp")).to_owned();
        set_condition(
            &mut node,
            json!({
                "type": kind, "status": "Unknown", "reason": reason, "message": message,
                "lastHeartbeatTime": beat, "lastTransitionTime": now,
            }),
        );
    }
    let node = cx.client.update(nodes, Some("status"), node).await?.value();
    let name = text(&node, "/metadata/name");
    if was_ready {
        let message = format!("Node {name} status is now: NodeNotReady");
        cx.record(COMPONENT, &Involved::of(nodes, &node), "Normal", "NodeNotReady", &message).await;
    }
    unready_pods(cx, name).await?;
    Ok(node)
}

/// What runs on a silent node serves nobody.
async fn unready_pods(cx: &Context, node: &str) -> Result<(), Status> {
    let pods = cx.client.resource("", "pods")?;
    let on_node = cx.pods().on_node(node);
    for pod in on_node.into_iter().filter(|pod| pod.is_ready()) {
        let mut object = pod.record.value();
        let Some(mut ready) = condition(&object, "Ready").cloned() else { continue };
        if let Some(map) = ready.as_object_mut() {
            map.insert("status".to_owned(), json!("False"));
            map.insert("lastTransitionTime".to_owned(), json!(cx.now_text()));
        }
        set_condition(&mut object, ready);
        let status = json!({"status": {"conditions": items(&object, "/status/conditions")}});
        let (namespace, name) = (&pod.record.namespace, &pod.record.name);
        or_gone(cx.client.patch(&pods, namespace, name, Some("status"), &merge(status)).await)?;
        let involved = Involved::of(&pods, &object);
        cx.record(COMPONENT, &involved, "Warning", "NodeNotReady", "Node is not ready").await;
    }
    Ok(())
}

/// Writes the taints that follow from the node's state.
async fn taint(cx: &Context, nodes: &Arc<Resource>, node: &Value) -> Result<(), Status> {
    let wanted = taints::wanted(node, &cx.now_text());
    if items(node, "/spec/taints") == wanted.as_slice() {
        return Ok(());
    }
    let patch = merge(json!({
        "metadata": {"resourceVersion": text(node, "/metadata/resourceVersion")},
        "spec": {"taints": if wanted.is_empty() { Value::Null } else { Value::Array(wanted) }},
    }));
    or_gone(cx.client.patch(nodes, "", text(node, "/metadata/name"), None, &patch).await).map(|_| ())
}

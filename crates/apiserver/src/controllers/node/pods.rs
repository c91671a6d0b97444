//! Pods that have to leave their node, and pods whose node is gone.

use std::time::Duration;

use serde_json::json;

use super::super::object::{items, merge, or_gone, set_condition};
use super::super::pods::Pod;
use super::super::recorder::Involved;
use super::super::{Context, Key, Outcome, lock};
use super::taints::{Stay, stay};
use crate::rest::{DeleteOptions, Preconditions};
use crate::status::Status;

/// How long a node may be missing before its pods go.
const QUARANTINE: i64 = 40;

/// Deletes a pod that does not tolerate its node's taints (any longer).
pub(in super::super) async fn evict(cx: &Context, key: &Key) -> Outcome {
    let place = (key.namespace.clone(), key.name.clone());
    let forget = || lock(&cx.leaving).remove(&place);
    let Some(pod) = cx.pods().get(&key.namespace, &key.name) else {
        forget();
        return Ok(None);
    };
    let node = cx.client.server().store().get("/nodes", "", &pod.node);
    let Some(node) = node.filter(|_| !pod.record.deleting) else {
        forget();
        return Ok(None);
    };
    let node = node.value();
    let taints = items(&node, "/spec/taints");
    if taints.is_empty() {
        forget();
        return Ok(None);
    }
    let object = pod.record.value();
    let seconds = match stay(&object, taints) {
        Stay::ForEver => {
            forget();
            return Ok(None);
        }
        Stay::Seconds(seconds) => seconds,
    };
    let now = cx.now();
    let since = *lock(&cx.leaving).entry(place.clone()).or_insert(now);
    let left = since.as_second().saturating_add(seconds) - now.as_second();
    if left > 0 {
        return Ok(Some(Duration::from_secs(u64::try_from(left).unwrap_or(1))));
    }
    forget();
    let pods = cx.client.resource("", "pods")?;
    let message = format!("Marking for deletion Pod {}/{}", key.namespace, key.name);
    let involved = Involved::of(&pods, &object);
    cx.record("taint-eviction-controller", &involved, "Normal", "TaintManagerEviction", &message).await;
    let why = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint");
    remove(cx, &pod, why, false).await?;
    Ok(None)
}

/// Removes a pod by force when its node has been gone for a while.
pub(in super::super) async fn collect(cx: &Context, key: &Key) -> Outcome {
    let place = (key.namespace.clone(), format!("{}@gone", key.name));
    let Some(pod) = cx.pods().get(&key.namespace, &key.name) else { return Ok(None) };
    if pod.node.is_empty() || cx.client.server().store().get("/nodes", "", &pod.node).is_some() {
        lock(&cx.leaving).remove(&place);
        return Ok(None);
    }
    let now = cx.now();
    let since = *lock(&cx.leaving).entry(place.clone()).or_insert(now);
    let left = since.as_second() + QUARANTINE - now.as_second();
    if left > 0 {
        return Ok(Some(Duration::from_secs(u64::try_from(left).unwrap_or(1))));
    }
    lock(&cx.leaving).remove(&place);
    remove(cx, &pod, ("DeletionByPodGC", "PodGC: node no longer exists"), true).await?;
    Ok(None)
}

/// Says why, then deletes: with the pod's grace, or by force.
async fn remove(cx: &Context, pod: &Pod, (reason, message): (&str, &str), force: bool) -> Result<(), Status> {
    let pods = cx.client.resource("", "pods")?;
    let record = &pod.record;
    let mut object = record.value();
    set_condition(
        &mut object,
        json!({
            "type": "DisruptionTarget", "status": "True", "reason": reason, "message": message,
            "lastProbeTime": null, "lastTransitionTime": cx.now_text(),
        }),
    );
    let mut status = json!({"conditions": items(&object, "/status/conditions")});
    if force
        && !pod.is_finished()
        && let Some(map) = status.as_object_mut()
    {
        map.insert("phase".to_owned(), json!("Failed"));
    }
    let patch = merge(json!({"status": status}));
    if or_gone(cx.client.patch(&pods, &record.namespace, &record.name, Some("status"), &patch).await)?
        .is_none()
    {
        return Ok(());
    }
    let options = DeleteOptions {
        grace_period_seconds: force.then_some(0),
        preconditions: Preconditions { uid: Some(record.uid.to_string()), resource_version: None },
        ..DeleteOptions::default()
    };
    or_gone(cx.client.delete(&pods, &record.namespace, &record.name, &options).await).map(|_| ())
}

//! The status of a StatefulSet.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::object::{number, or_gone, text};
use super::super::pods::Pod;
use super::revisions::Revisions;
use super::{Pass, REVISION_LABEL};
use crate::status::Status;

/// Writes the status if it changed. An update that is through makes the new revision the current one.
pub(super) async fn write(
    pass: &Pass<'_>,
    pods: &[Arc<Pod>],
    revisions: &Revisions,
    min_ready: i64,
) -> Result<(), Status> {
    let status = status(&pass.set, pods, &revisions.current.0, &revisions.update.0, min_ready, pass.cx.now());
    if pass.set.get("status") == Some(&status) {
        return Ok(());
    }
    let mut set = pass.set.clone();
    if let Some(map) = set.as_object_mut() {
        map.insert("status".to_owned(), status);
    }
    or_gone(pass.cx.client.update(&pass.sets, Some("status"), set).await).map(|_| ())
}

fn status(
    set: &Value,
    pods: &[Arc<Pod>],
    current: &str,
    update: &str,
    min_ready: i64,
    now: jiff::Timestamp,
) -> Value {
    let count =
        |of: &dyn Fn(&Pod) -> bool| i64::try_from(pods.iter().filter(|pod| of(pod)).count()).unwrap_or(0);
    let live = |pod: &Pod| !pod.is_finished();
    let at =
        |pod: &Pod, revision: &str| pod.is_active() && pod.record.label(REVISION_LABEL) == Some(revision);
    let replicas = count(&live);
    let ready = count(&|pod| live(pod) && pod.is_ready());
    let available = count(&|pod| live(pod) && pod.is_available(min_ready, now));
    let updated = count(&|pod| at(pod, update));
    let mut on_current = count(&|pod| at(pod, current));
    let mut current = current;
    let wanted = number(set, "/spec/replicas").unwrap_or(1);
    let rolling = text(set, "/spec/updateStrategy/type") != "OnDelete";
    if rolling && updated == wanted && replicas == wanted && ready == wanted {
        current = update;
        on_current = updated;
    }
    let mut status = Map::new();
    status.insert("replicas".to_owned(), json!(replicas));
    status.insert("availableReplicas".to_owned(), json!(available));
    for (key, number) in
        [("readyReplicas", ready), ("currentReplicas", on_current), ("updatedReplicas", updated)]
    {
        if number > 0 {
            status.insert(key.to_owned(), json!(number));
        }
    }
    status.insert("currentRevision".to_owned(), json!(current));
    status.insert("updateRevision".to_owned(), json!(update));
    status.insert("collisionCount".to_owned(), json!(number(set, "/status/collisionCount").unwrap_or(0)));
    if let Some(generation) = number(set, "/metadata/generation") {
        status.insert("observedGeneration".to_owned(), json!(generation));
    }
    if let Some(conditions) = set.pointer("/status/conditions") {
        status.insert("conditions".to_owned(), conditions.clone());
    }
    Value::Object(status)
}

//! Runs the probes that the NodePodProbe of this node asks for, and writes what they found.

mod listing;
mod run;

use std::{sync::Arc, time::Duration};

use kruise_api::nodepodprobe::v1alpha1::NodePodProbe;
use kruise_core::{merge_patch, object::ObjectKey};
use kruise_runtime::{
    cache::Guarded,
    controller::{Context, Controller, Error, Next},
};
use serde_json::json;

use super::careful_status_patch;
use crate::{node::Node, probing::NODE_POD_PROBE};
pub use run::Probers;

/// The name of the queue of changed probes.
pub const NAME: &str = "sync_node_pod_probe";
/// The name of the queue of results.
pub const WRITER: &str = "update_node_pod_probe_status";
/// The name under which it tells events.
const COMPONENT: &str = "kruise-daemon-podprobe";
/// How long the cache may take to show an own write.
const PATIENCE: Duration = Duration::from_secs(10);
/// Results of many probes are written together: no more than one write in this time.
const REST: Duration = Duration::from_millis(500);

/// The controllers: the one that keeps the probes, and the one that writes results. The probes end with the daemon.
pub fn controllers(node: &Node) -> ([Controller; 2], Probers) {
    let probers = Probers::new(node, node.events.recorder(COMPONENT));
    let (of_sync, of_writer) = (probers.clone(), probers.clone());
    let (node_of_sync, node_of_writer) = (node.clone(), node.clone());
    let sync = Controller::new(NAME, &node.environment(NAME, PATIENCE))
        .queue(node.queue())
        .workers(1)
        .wake(&node.caches.probes, |change, wake| {
            let spec = |view: &Arc<Guarded<NodePodProbe>>| {
                view.object.as_ref().ok().map(|object| object.spec.clone())
            };
            if change.initial || change.old.as_ref().map(spec) != change.new.as_ref().map(spec) {
                wake(change.key.clone());
            }
        })
        .reconcile(move |_, key| {
            let (node, probers) = (node_of_sync.clone(), of_sync.clone());
            async move {
                let object = node.caches.probes.get(&key).and_then(|view| view.object.clone().ok());
                probers.sync(object.as_deref());
                Ok(Next::Done)
            }
        });
    let writer = Controller::new(WRITER, &node.environment(WRITER, PATIENCE))
        .queue(node.queue())
        .workers(1)
        .follow(&node.caches.probes)
        .reconcile(move |context, key| {
            let (node, probers) = (node_of_writer.clone(), of_writer.clone());
            async move { write(&node, &probers, &context, &key).await }
        });
    probers.tell(writer.queue());
    ([sync, writer], probers)
}

/// Writes all results if something about them is new.
async fn write(node: &Node, probers: &Probers, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
    let Some(view) = node.caches.probes.get(key) else { return Ok(Next::Forget) };
    let Ok(object) = &view.object else { return Ok(Next::Done) };
    let status = probers.status(&object.spec);
    let before = object.status.as_ref().and_then(|status| serde_json::to_value(status).ok());
    let after = serde_json::to_value(&status).unwrap_or_default();
    if let Some(patch) = merge_patch::between(&before.unwrap_or_else(|| json!({})), &after) {
        context.rest(key, REST);
        let patch = json!({ "status": patch });
        context.act(key, &[careful_status_patch(NODE_POD_PROBE, &view.metadata, patch)]).await?;
    }
    Ok(Next::Done)
}

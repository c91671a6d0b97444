//! PodProbeMarkers: how many pods each has, and that none goes before its probes.

use std::{sync::Arc, time::Duration};

use kruise_api::gates::Gate;
use kruise_core::{
    nodepodprobe::listed_markers,
    object::{ObjectKey, ObjectRef},
    pod::Pod,
    podprobemarker::{self, Observed, POD_PROBE_MARKER},
};
use kruise_runtime::{
    cache::Cache,
    controller::{Context, Controller, Error, Next},
};

use super::{environment, hopeless, tunable_queue, unreadable, workers};
use crate::{
    caches::{BY_MARKER, Markers, marker},
    shared::Shared,
};

/// The name.
pub const NAME: &str = "PodProbeMarker-controller";

/// When to look again while nodes are still being read for the first time.
const NO_NODES_YET: Duration = Duration::from_secs(1);

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    caches.nodes.want();
    let (by_pods, by_nodes) = (caches.probe_markers.clone(), caches.probe_markers.clone());
    let shared = shared.clone();
    Controller::new(NAME, &environment(&shared, NAME))
        .queue(tunable_queue(&shared))
        .workers(workers(&shared, NAME))
        .follow(&caches.probe_markers)
        .follow(&caches.pods)
        .wake(&caches.probe_markers, |change, wake| wake(change.key.clone()))
        .wake(&caches.pods, move |change, wake| {
            for pod in change.old.iter().chain(&change.new) {
                choosing(&by_pods, pod, wake);
            }
        })
        .wake(&caches.node_probes, move |change, wake| {
            // A marker that is to go waits until no node has a probe of it.
            let lists = change.old.iter().chain(&change.new).filter_map(|stored| stored.object.as_ref().ok());
            for listed in lists.flat_map(|list| listed_markers(list).collect::<Vec<_>>()) {
                let key = listed.split_once('/').map(|(namespace, name)| ObjectKey::new(namespace, name));
                let stored = key.and_then(|key| by_nodes.get(&key));
                if let Some(stored) = stored.filter(|stored| stored.metadata.is_deleting()) {
                    wake(stored.metadata.key());
                }
            }
        })
        .reconcile(move |context, key| {
            let shared = shared.clone();
            async move { pass(&shared, &context, &key).await }
        })
}

/// The markers that choose a pod.
fn choosing(markers: &Cache<Markers>, pod: &Pod, wake: &mut dyn FnMut(ObjectKey)) {
    if markers.is_empty() {
        return;
    }
    for stored in markers.in_namespace(&pod.metadata.namespace) {
        let marker = marker(&stored);
        if marker.chooses(pod) {
            wake(marker.key);
        }
    }
}

async fn pass(shared: &Shared, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
    let caches = &shared.caches;
    let Some(stored) = caches.probe_markers.get(key) else { return Ok(Next::Forget) };
    let object = match &stored.object {
        Ok(object) => object.clone(),
        Err(problem) => {
            let uid = stored.metadata.uid.clone();
            let object = ObjectRef { resource: POD_PROBE_MARKER, key: key.clone(), uid };
            return Err(unreadable(context, object, problem).await);
        }
    };
    if !caches.nodes.is_synced() {
        return Ok(Next::After(NO_NODES_YET));
    }
    let chooser = marker(&stored);
    let mut pods: Vec<Arc<Pod>> = caches.pods.in_namespace(&key.namespace);
    pods.retain(|pod| chooser.chooses(pod));
    let node = |pod: &Arc<Pod>| {
        let name = pod.spec.node_name.clone();
        caches.nodes.get(&ObjectKey::cluster(name.clone())).map(|node| (name, node))
    };
    let seen = Observed {
        nodes: pods.iter().filter_map(node).collect(),
        is_listed: !caches.node_probes.by_index(BY_MARKER, &key.to_string()).is_empty(),
        serverless: shared.settings.gates.enabled(Gate::EnablePodProbeMarkerOnServerless),
        marker: object,
        pods,
    };
    let plan = podprobemarker::plan(&seen);
    if let Some(waits) = plan.waits {
        tracing::debug!(reason = waits.as_str(), "waits");
    }
    let outcome = context.try_act(key, &plan.effects).await;
    context.rest(key, super::rest(seen.pods.len()));
    let regarding =
        ObjectRef { resource: POD_PROBE_MARKER, key: key.clone(), uid: stored.metadata.uid.clone() };
    if let Some(error) = hopeless(shared, context, regarding, seen.marker.as_ref(), &outcome).await {
        return Err(error);
    }
    outcome.ok()?;
    Ok(Next::Done)
}

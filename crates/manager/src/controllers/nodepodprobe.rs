//! NodePodProbes: what the daemon of each node asks its pods, and what becomes of the answers. A key is a node.

use std::{collections::BTreeSet, time::Duration};

use kruise_api::annotations::CONTAINER_PROBE_CONTEXT;
use kruise_core::{
    enhanced_liveness::take,
    nodepodprobe::{self, NODE_POD_PROBE, Observed},
    object::{ObjectKey, ObjectRef},
    pod::Pod,
    podprobemarker::Marker,
    text::Text,
};
use kruise_runtime::controller::{Context, Controller, Error, Next};

use super::{Once, environment, rest, tunable_queue, unreadable, workers};
use crate::{
    caches::{BY_MARKER, BY_NODE, marker},
    shared::Shared,
};

/// The name.
pub const NAME: &str = "NodePodProbe-controller";

/// When to look again while nodes are still being read for the first time.
const NO_NODES_YET: Duration = Duration::from_secs(1);

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    caches.nodes.want();
    let (markers, pods, lists) =
        (caches.probe_markers.clone(), caches.pods.clone(), caches.node_probes.clone());
    let liveness = take::runs(&shared.settings.gates);
    let (shared, told) = (shared.clone(), Once::default());
    Controller::new(NAME, &environment(&shared, NAME))
        .queue(tunable_queue(&shared))
        .workers(workers(&shared, NAME))
        .follow(&caches.node_probes)
        .follow(&caches.pods)
        .wake(&caches.node_probes, |change, wake| wake(change.key.clone()))
        .wake(&caches.nodes, |change, wake| match (&change.old, &change.new) {
            (Some(old), Some(new)) if !new.differs(old) => {}
            _ => wake(change.key.clone()),
        })
        .wake(&caches.pods, move |change, wake| {
            // Pods that nobody asks anything are none of its business, and must cost nothing.
            if markers.is_empty() && !liveness {
                return;
            }
            let is_asked = |pod: &Pod| {
                liveness && pod.metadata.annotations.contains(CONTAINER_PROBE_CONTEXT)
                    || !markers.in_namespace(&pod.metadata.namespace).is_empty()
            };
            let mut nodes: BTreeSet<&Text> = BTreeSet::new();
            for pod in change.old.iter().chain(&change.new) {
                if !pod.spec.node_name.is_empty() && is_asked(pod) {
                    nodes.insert(&pod.spec.node_name);
                }
            }
            nodes.into_iter().for_each(|node| wake(ObjectKey::cluster(node.clone())));
        })
        .wake(&caches.probe_markers, move |change, wake| {
            // Nodes of pods that it chooses or chose, and nodes that have probes of it.
            let mut nodes: BTreeSet<Text> = BTreeSet::new();
            for stored in change.old.iter().chain(&change.new) {
                let marker = marker(stored);
                let chosen = pods.in_namespace(&change.key.namespace);
                let chosen = chosen.iter().filter(|pod| marker.chooses(pod));
                nodes.extend(chosen.map(|pod| pod.spec.node_name.clone()).filter(|node| !node.is_empty()));
            }
            let listing = lists.by_index(BY_MARKER, &change.key.to_string());
            nodes.extend(listing.iter().map(|list| list.metadata.name.clone()));
            nodes.into_iter().for_each(|node| wake(ObjectKey::cluster(node)));
        })
        .reconcile(move |context, key| {
            let (shared, told) = (shared.clone(), told.clone());
            async move { pass(&shared, &told, &context, &key).await }
        })
}

async fn pass(shared: &Shared, told: &Once, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
    let caches = &shared.caches;
    if !caches.nodes.is_synced() {
        return Ok(Next::After(NO_NODES_YET));
    }
    let (node, stored) = (caches.nodes.get(key), caches.node_probes.get(key));
    let object = match stored.as_ref().map(|stored| &stored.object) {
        None if node.is_none() => {
            told.forget(key);
            return Ok(Next::Forget);
        }
        None => None,
        Some(Ok(object)) => Some(object.clone()),
        Some(Err(problem)) => {
            let uid = stored.as_ref().map(|stored| stored.metadata.uid.clone()).unwrap_or_default();
            let object = ObjectRef { resource: NODE_POD_PROBE, key: key.clone(), uid };
            return Err(unreadable(context, object, problem).await);
        }
    };
    let pods = caches.pods.by_index(BY_NODE, &key.name);
    let namespaces: BTreeSet<&Text> = pods.iter().map(|pod| &pod.metadata.namespace).collect();
    let stored = namespaces.into_iter().flat_map(|namespace| caches.probe_markers.in_namespace(namespace));
    let liveness = take::runs(&shared.settings.gates);
    let mut markers: Vec<Marker> = stored.map(|stored| marker(&stored)).collect();
    markers.sort_by(|one, other| one.key.cmp(&other.key));
    let seen = Observed { name: key.name.clone(), node, object, pods, markers, liveness };
    let plan = nodepodprobe::plan(&seen);
    // Events alone cannot fail.
    let _ = context.try_act(key, &told.news(key, plan.notices)).await;
    context.act(key, &plan.effects).await?;
    context.rest(key, rest(seen.pods.len()));
    Ok(Next::Done)
}

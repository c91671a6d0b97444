//! What rules of admission find in the caches, and what must be there before they are asked.

use std::{sync::Arc, time::Duration};

use kruise_api::{gates::Gate, json, sidecarset::v1beta1::SidecarSet};
use kruise_core::{
    admission::{Operation, Request, handler::Handler, kinds::Cluster},
    configuration::Data,
    object::{NAMESPACE, NODE, ObjectKey, POD},
    pod::{Pairs, Pod},
    podprobemarker::{Marker, POD_PROBE_MARKER},
    revision::Revision,
    sidecarset::{SIDECAR_SET, Sets},
};
use kruise_runtime::{cache::Plain, live};
use serde_json::Value;

use super::context;
use crate::{caches::marker, definitions, shared::Shared};

/// How long a request may wait for the first list of something. API servers wait for 10 seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is known: the caches, and what was looked up for one request.
pub(super) struct Found<'a> {
    shared: &'a Shared,
    /// The labels of the namespace of the request, if no cache has them.
    namespace: Option<Pairs>,
    /// What a new ContainerRecreateRequest is about.
    recreated: Option<Recreated>,
}

/// A pod with its node, as the server has them: what a request repeats of its pod must be what the pod says now.
struct Recreated {
    pod: Result<Option<Arc<Value>>, String>,
    node: Result<Pairs, String>,
}

/// Sees to it that everything is there that the answer depends on.
///
/// A replica that has just started answers no pod before it knows all SidecarSets: a pod without its sidecars is worse than
/// a pod that is made a second later.
pub(super) async fn prepare<'a>(
    shared: &'a Shared,
    handler: Handler,
    request: &Request,
) -> Result<Found<'a>, String> {
    let mut found = Found { shared, namespace: None, recreated: None };
    match handler {
        Handler::MutatePod => {
            sidecar_sets(shared).await?;
            probe_markers(shared).await?;
            if handler.needs_namespace(request, &context(shared, &found)) {
                found.namespace = Some(namespace(shared, &request.namespace).await?);
            }
        }
        Handler::Mutate("ContainerRecreateRequest") if request.operation == Operation::Create => {
            found.recreated = Some(recreated(shared, request).await);
        }
        Handler::Validate("SidecarSet") if request.operation != Operation::Delete => {
            sidecar_sets(shared).await?;
            let patches = json::at(&request.object, &["spec", "patchPodMetadata"]).and_then(Value::as_array);
            if patches.is_some_and(|patches| !patches.is_empty()) {
                configuration(shared).await?;
            }
        }
        _ => {}
    }
    Ok(found)
}

/// Waits for the sets of a cluster that has the kind.
async fn sidecar_sets(shared: &Shared) -> Result<(), String> {
    let caches = &shared.caches;
    if caches.sidecarsets.is_synced() && caches.revisions.is_synced() {
        return Ok(());
    }
    let waiting = async {
        let definition = definitions::name(SIDECAR_SET).unwrap_or_default();
        !shared.definitions.has(&definition).await
            || caches.sidecarsets.synced(PATIENCE).await && caches.revisions.synced(PATIENCE).await
    };
    match tokio::time::timeout(PATIENCE, waiting).await {
        Ok(true) => Ok(()),
        _ => Err("this replica has not read the SidecarSets yet, try again".to_owned()),
    }
}

/// Waits for the markers of a cluster that has the kind, where new pods are told of them.
async fn probe_markers(shared: &Shared) -> Result<(), String> {
    let (caches, gates) = (&shared.caches, &shared.settings.gates);
    if !gates.enabled(Gate::EnablePodProbeMarkerOnServerless) || caches.probe_markers.is_synced() {
        return Ok(());
    }
    let waiting = async {
        let definition = definitions::name(POD_PROBE_MARKER).unwrap_or_default();
        !shared.definitions.has(&definition).await || caches.probe_markers.synced(PATIENCE).await
    };
    match tokio::time::timeout(PATIENCE, waiting).await {
        Ok(true) => Ok(()),
        _ => Err("this replica has not read the PodProbeMarkers yet, try again".to_owned()),
    }
}

/// The pod that a new request names, and its node.
async fn recreated(shared: &Shared, request: &Request) -> Recreated {
    let name = json::text(&request.object, &["spec", "podName"]).unwrap_or_default();
    let nothing = || Recreated { pod: Ok(None), node: Err("it is not known".to_owned()) };
    if name.is_empty() {
        return nothing();
    }
    let key = ObjectKey::new(request.namespace.as_str(), name);
    let pod = match patiently(live::get::<Value>(&shared.client, POD, &key)).await {
        Ok(Some(pod)) => Arc::new(pod),
        Ok(None) => return nothing(),
        Err(error) => return Recreated { pod: Err(error), ..nothing() },
    };
    let name = json::text(&pod, &["spec", "nodeName"]).unwrap_or_default().to_owned();
    if name.is_empty() {
        return Recreated { pod: Ok(Some(pod)), ..nothing() };
    }
    let key = ObjectKey::cluster(name.as_str());
    let node = match patiently(live::get::<Plain>(&shared.client, NODE, &key)).await {
        Ok(Some(node)) => Ok(node.metadata.labels),
        Ok(None) => Err(format!("nodes {name:?} not found")),
        Err(error) => Err(error),
    };
    Recreated { pod: Ok(Some(pod)), node }
}

async fn patiently<T>(read: impl Future<Output = Result<T, kube::Error>>) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, read).await {
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(_) => Err("no answer in time".to_owned()),
    }
}

async fn configuration(shared: &Shared) -> Result<(), String> {
    let configuration = &shared.caches.configuration;
    configuration.want();
    if configuration.synced(PATIENCE).await {
        return Ok(());
    }
    Err("this replica has not read ConfigMap kruise-configuration yet, try again".to_owned())
}

/// The labels of a namespace, from the server: a pod may follow its namespace within a moment.
async fn namespace(shared: &Shared, name: &str) -> Result<Pairs, String> {
    let key = ObjectKey::cluster(name);
    let read = tokio::time::timeout(PATIENCE, live::get::<Plain>(&shared.client, NAMESPACE, &key)).await;
    match read {
        Ok(Ok(Some(namespace))) => Ok(namespace.metadata.labels),
        Ok(Ok(None)) => Err(format!("namespaces {name:?} not found")),
        Ok(Err(error)) => Err(format!("failed to read namespace {name:?}: {error}")),
        Err(_) => Err(format!("failed to read namespace {name:?} in time")),
    }
}

impl Cluster for Found<'_> {
    fn pod(&self, key: &ObjectKey) -> Option<Arc<Pod>> {
        self.shared.caches.pods.get(key)
    }

    fn whole_pod(&self, _: &ObjectKey) -> Result<Option<Arc<Value>>, String> {
        self.recreated.as_ref().map_or(Ok(None), |recreated| recreated.pod.clone())
    }

    fn node(&self, name: &str) -> Result<Pairs, String> {
        let missing = || Err(format!("nodes {name:?} not found"));
        self.recreated.as_ref().map_or_else(missing, |recreated| recreated.node.clone())
    }

    fn pod_probe_markers(&self, namespace: &str) -> Vec<Marker> {
        let stored = self.shared.caches.probe_markers.in_namespace(namespace);
        let mut markers: Vec<Marker> = stored.iter().map(|stored| marker(stored)).collect();
        markers.sort_by(|one, other| one.key.cmp(&other.key));
        markers
    }

    fn namespace(&self, name: &str) -> Option<Pairs> {
        let cached = self.shared.caches.namespaces.get(&ObjectKey::cluster(name));
        cached.map(|namespace| namespace.metadata.labels.clone()).or_else(|| self.namespace.clone())
    }

    fn sidecar_sets(&self) -> Arc<Sets> {
        self.shared.sidecar_sets.ready()
    }

    fn stored_sidecar_sets(&self) -> Vec<Arc<SidecarSet>> {
        let stored = self.shared.caches.sidecarsets.list();
        stored.iter().filter_map(|set| set.object.as_ref().ok().cloned()).collect()
    }

    fn sidecar_set_revisions(&self, set: &str) -> Vec<Arc<Revision>> {
        self.shared.caches.sidecar_set_revisions(&self.shared.settings.environment.namespace, set)
    }

    fn configuration(&self) -> Option<Arc<Data>> {
        let stored = self.shared.caches.configuration.list();
        let data = json::at(&stored.first()?.object, &["data"]).cloned().unwrap_or_default();
        Some(Arc::new(serde_json::from_value(data).unwrap_or_default()))
    }
}

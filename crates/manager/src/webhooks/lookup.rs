//! What rules of admission find in the caches, and what must be there before they are asked.

use std::{sync::Arc, time::Duration};

use kruise_api::{
    gates::Gate, json, persistentpodstate::v1beta1::PersistentPodState,
    podunavailablebudget::v1beta1::PodUnavailableBudget, sidecarset::v1beta1::SidecarSet,
    workloadspread::v1beta1::WorkloadSpread,
};
use kruise_core::{
    admission::{Operation, Request, handler::Handler, kinds::Cluster},
    configuration::Data,
    object::{CONTROLLER_REVISION, NAMESPACE, NODE, ObjectKey, POD},
    persistentpodstate::{self, Kinds, PERSISTENT_POD_STATE, Target},
    pod::{Owner, Pairs, Pod},
    podprobemarker::{Marker, POD_PROBE_MARKER},
    podunavailablebudget::{self, POD_UNAVAILABLE_BUDGET},
    resourcedistribution::validate::{TrialRefused, to_try},
    revision::Revision,
    sidecarset::{SIDECAR_SET, Sets},
    volume_claim::StorageClass,
    workload::{self, REPLICA_SET, Workload},
    workloadspread::{
        Placed, family,
        validate::{needs_list, tried_on},
    },
};
use kruise_runtime::{
    cache::Plain,
    effects::{self, Why},
    live,
};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::time::Instant;

use super::context;
use crate::{
    caches::marker,
    definitions,
    shared::Shared,
    spreads::{Taken, are_read},
    workloads,
};

/// How long a request may wait for the first list of something. API servers wait for 10 seconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same for what can be made good later.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);

/// How long all reads of records for a new pod may take. API servers wait for five seconds.
const RECORDS_PATIENCE: Duration = Duration::from_secs(2);
/// How often a read of records is tried again.
const TRIES: u32 = 2;

/// What is known: the caches, and what was looked up for one request.
pub(super) struct Found<'a> {
    shared: &'a Shared,
    /// The labels of the namespace of the request, if no cache has them.
    namespace: Option<Pairs>,
    /// What a new ContainerRecreateRequest is about.
    recreated: Option<Recreated>,
    /// The controllers of a new pod.
    owners: Vec<Owner>,
    /// Why the server would not take what is to be distributed.
    refused_trial: Option<TrialRefused>,
    /// The PersistentPodStates of the namespace, where no cache has them yet.
    states: Option<Vec<Arc<PersistentPodState>>>,
    /// The place of a new pod.
    taken: Option<Taken>,
    /// The workload whose template patches are tried on.
    workload: Option<Arc<Value>>,
}

impl Found<'_> {
    /// The place of a new pod, if a spread gave it one.
    pub(super) fn taken(&self) -> Option<&Taken> {
        self.taken.as_ref()
    }
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
    let mut found = Found {
        shared,
        namespace: None,
        recreated: None,
        owners: Vec::new(),
        refused_trial: None,
        states: None,
        taken: None,
        workload: None,
    };
    match handler {
        Handler::MutatePod => {
            sidecar_sets(shared).await?;
            probe_markers(shared).await?;
            found.owners = owners(shared, request).await;
            if tokio::time::timeout(RECORDS_PATIENCE, pod_states(&mut found, request)).await.is_err() {
                tracing::warn!(
                    namespace = request.namespace,
                    "the records of a new pod were not read in time"
                );
            }
            if handler.needs_namespace(request, &context(shared, &found)) {
                found.namespace = Some(namespace(shared, &request.namespace).await?);
            }
            // Last: a place is only booked for a pod of which everything else is known.
            found.taken = super::spreads::place(shared, request).await?;
        }
        Handler::Mutate("ContainerRecreateRequest") if request.operation == Operation::Create => {
            found.recreated = Some(recreated(shared, request).await);
        }
        Handler::Validate("PodUnavailableBudget") if request.operation != Operation::Delete => {
            budgets(shared, PATIENCE).await;
        }
        Handler::Validate("ResourceDistribution") if request.operation != Operation::Delete => {
            found.refused_trial = refused_trial(shared, request).await;
        }
        Handler::Validate("PersistentPodState") if request.operation != Operation::Delete => {
            states(shared, PATIENCE).await;
            if persistentpodstate::validate::needs_list(&request.object) {
                configuration(shared, PATIENCE).await?;
            }
        }
        Handler::Validate("WorkloadSpread") if request.operation != Operation::Delete => {
            are_read(shared, Instant::now() + PATIENCE).await;
            if needs_list(&request.object) {
                configuration(shared, PATIENCE).await?;
            }
            found.workload = tried_on_workload(shared, request).await?;
        }
        Handler::Validate("StatefulSet") if request.operation == Operation::Update => {
            storage_classes(shared).await?;
        }
        Handler::Validate("SidecarSet") if request.operation != Operation::Delete => {
            sidecar_sets(shared).await?;
            let patches = json::at(&request.object, &["spec", "patchPodMetadata"]).and_then(Value::as_array);
            if patches.is_some_and(|patches| !patches.is_empty()) {
                configuration(shared, PATIENCE).await?;
            }
        }
        _ => {}
    }
    Ok(found)
}

/// Waits for the sets of a cluster that has the kind. While they cannot be read, which may last, nobody is kept waiting: the
/// request is refused with the reason. A pod that is let through would never get its sidecars.
async fn sidecar_sets(shared: &Shared) -> Result<(), String> {
    let caches = &shared.caches;
    if caches.sidecarsets.is_synced() && caches.revisions.is_synced() {
        return Ok(());
    }
    for (resource, is_synced) in
        [(SIDECAR_SET, caches.sidecarsets.is_synced()), (CONTROLLER_REVISION, caches.revisions.is_synced())]
    {
        if let Some(problem) = shared.kinds.problem(resource).filter(|_| !is_synced) {
            return Err(format!("nobody knows which sidecars are wanted, try again later: {problem}"));
        }
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

/// Waits for the storage classes, where claims grow with their templates.
async fn storage_classes(shared: &Shared) -> Result<(), String> {
    let classes = &shared.caches.storage_classes;
    if !shared.settings.gates.enabled(Gate::StatefulSetAutoResizePVCGate) || classes.is_synced() {
        return Ok(());
    }
    classes.want();
    match classes.synced(PATIENCE).await {
        true => Ok(()),
        false => Err("this replica has not read the storage classes yet, try again".to_owned()),
    }
}

/// Waits for the markers of a cluster that has the kind, where new pods are told of them.
async fn probe_markers(shared: &Shared) -> Result<(), String> {
    let (caches, gates) = (&shared.caches, &shared.settings.gates);
    if !gates.enabled(Gate::EnablePodProbeMarkerOnServerless) || caches.probe_markers.is_synced() {
        return Ok(());
    }
    if let Some(problem) = shared.kinds.problem(POD_PROBE_MARKER) {
        return Err(format!("nobody knows which probes are wanted, try again later: {problem}"));
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

/// Waits for the budgets, but not for long: without them a new pod gets its budget from the controller.
async fn budgets(shared: &Shared, patience: Duration) {
    let (caches, gates) = (&shared.caches, &shared.settings.gates);
    let definition = definitions::name(POD_UNAVAILABLE_BUDGET).unwrap_or_default();
    let is_idle = !podunavailablebudget::is_on(gates) || shared.definitions.is_missing(&definition);
    if is_idle || caches.budgets.is_synced() || shared.kinds.problem(POD_UNAVAILABLE_BUDGET).is_some() {
        return;
    }
    let waiting =
        async { !shared.definitions.has(&definition).await || caches.budgets.synced(patience).await };
    if !tokio::time::timeout(patience, waiting).await.unwrap_or(false) {
        tracing::warn!("the PodUnavailableBudgets are not read yet: new pods are noted later");
    }
}

/// The controllers of a new pod, where a budget of its namespace names a workload. The set of a pod may be younger than what
/// the cache shows, so the server is asked for it.
async fn owners(shared: &Shared, request: &Request) -> Vec<Owner> {
    if request.operation != Operation::Create
        || !request.subresource.is_empty()
        || !podunavailablebudget::is_on(&shared.settings.gates)
    {
        return Vec::new();
    }
    budgets(shared, SHORT_PATIENCE).await;
    let caches = &shared.caches;
    let stored = caches.budgets.in_namespace(&request.namespace);
    let mut readable = stored.iter().filter_map(|stored| stored.object.as_ref().ok());
    if !readable.any(|budget| budget.spec.target_ref.is_some()) {
        return Vec::new();
    }
    let Some(first) = controller(&request.object) else { return Vec::new() };
    let mut found = workloads::owners(shared, &request.namespace, Some(&first));
    if found.len() == 1 && workload::known(first.group(), &first.kind) == Some(REPLICA_SET) {
        let key = ObjectKey::new(request.namespace.as_str(), first.name.clone());
        let read = live::get::<Workload>(&shared.client, REPLICA_SET, &key);
        match tokio::time::timeout(SHORT_PATIENCE, read).await {
            Ok(Ok(Some(set))) => {
                found.extend(workloads::owners(shared, &request.namespace, set.metadata.controller()));
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => tracing::warn!(%error, %key, "the ReplicaSet of a new pod cannot be read"),
            Err(_) => tracing::warn!(%key, "the ReplicaSet of a new pod was not read in time"),
        }
    }
    found
}

/// Waits for the PersistentPodStates, but not for long. Returns whether the cache has them.
async fn states(shared: &Shared, patience: Duration) -> bool {
    let caches = &shared.caches;
    let definition = definitions::name(PERSISTENT_POD_STATE).unwrap_or_default();
    if caches.persistent_pod_states.is_synced() || shared.definitions.is_missing(&definition) {
        return true;
    }
    if shared.kinds.problem(PERSISTENT_POD_STATE).is_some() {
        return false;
    }
    let waiting = async {
        !shared.definitions.has(&definition).await || caches.persistent_pod_states.synced(patience).await
    };
    tokio::time::timeout(patience, waiting).await.unwrap_or(false)
}

/// Sees to it that a new pod can be sent to where it was. Whatever fails, the pod is created all the same.
async fn pod_states(found: &mut Found<'_>, request: &Request) {
    if request.operation != Operation::Create || !request.subresource.is_empty() {
        return;
    }
    let Some(owner) = controller(&request.object) else { return };
    let (shared, namespace, target) = (found.shared, request.namespace.as_str(), Target::owner(&owner));
    let is_cached = states(shared, SHORT_PATIENCE).await;
    if !is_cached {
        let read = live::list::<PersistentPodState>(&shared.client, PERSISTENT_POD_STATE, namespace);
        match tokio::time::timeout(SHORT_PATIENCE, read).await {
            Ok(Ok(states)) => {
                found.states = Some(states.unwrap_or_default().into_iter().map(Arc::new).collect());
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, namespace, "the PersistentPodStates of a new pod cannot be read");
            }
            Err(_) => tracing::warn!(namespace, "the PersistentPodStates of a new pod were not read in time"),
        }
    }
    let mut states = found.persistent_pod_states(namespace);
    states.retain(|state| Target::of(state) == target);
    if states.is_empty() {
        return;
    }
    if !Kinds::is_built_in(target.group, target.kind)
        && let Err(problem) = configuration(shared, SHORT_PATIENCE).await
    {
        tracing::warn!(problem, "a new pod is left where it is put");
    }
    // A pod may be replaced within the moment in which the cache hears of its record.
    if is_cached && let Ok(Some(newest)) = tokio::time::timeout(SHORT_PATIENCE, newest(shared, &states)).await
    {
        found.states = Some(newest);
    }
}

/// These objects as the server has them, without those that are gone; nothing where it does not answer.
async fn newest(shared: &Shared, states: &[Arc<PersistentPodState>]) -> Option<Vec<Arc<PersistentPodState>>> {
    let mut found = Vec::new();
    for state in states {
        let key = persistentpodstate::reference(state).key;
        let mut tries = 0;
        loop {
            match live::get::<PersistentPodState>(&shared.client, PERSISTENT_POD_STATE, &key).await {
                Ok(state) => {
                    found.extend(state.map(Arc::new));
                    break;
                }
                Err(error) if tries == TRIES => {
                    tracing::warn!(%error, %key, "the records of a new pod are those of the cache");
                    return None;
                }
                Err(_) => tries += 1,
            }
        }
    }
    Some(found)
}

/// The controller of a new pod.
fn controller(pod: &Value) -> Option<Owner> {
    let references = json::at(pod, &["metadata", "ownerReferences"]).and_then(Value::as_array);
    let mut references = references.into_iter().flatten().filter_map(|one| Owner::deserialize(one).ok());
    references.find(|owner| owner.controller)
}

/// The workload whose template the patches of a spread are tried on. One that is not there yet, or of a kind that only the
/// server knows, is not looked at.
async fn tried_on_workload(shared: &Shared, request: &Request) -> Result<Option<Arc<Value>>, String> {
    let Some([group, _, kind, name]) = tried_on(&request.object) else { return Ok(None) };
    let Some(family) = family(group, kind) else { return Ok(None) };
    let key = ObjectKey::new(request.namespace.as_str(), name);
    let read = patiently(live::get::<Value>(&shared.client, family.resource(), &key)).await;
    read.map(|found| found.map(Arc::new)).map_err(|error| format!("failed to read {kind} {key}: {error}"))
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

/// Asks the server whether it would take what is to be distributed, in the namespace of the manager.
async fn refused_trial(shared: &Shared, request: &Request) -> Option<TrialRefused> {
    let settings = &shared.settings;
    if !settings.gates.enabled(Gate::ResourceDistributionGate) || !request.subresource.is_empty() {
        return None;
    }
    let namespace = &settings.environment.namespace;
    let (kind, object) = to_try(&request.object, &request.old_object, namespace)?;
    match effects::would_create(&shared.client, kind.resource(), namespace, object, PATIENCE).await {
        Ok(()) => None,
        Err(Why::Refused { code, message, .. }) => Some(TrialRefused { code, message }),
        Err(why) => Some(TrialRefused { code: 500, message: why.to_string() }),
    }
}

async fn patiently<T>(read: impl Future<Output = Result<T, kube::Error>>) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, read).await {
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(_) => Err("no answer in time".to_owned()),
    }
}

async fn configuration(shared: &Shared, patience: Duration) -> Result<(), String> {
    let configuration = &shared.caches.configuration;
    configuration.want();
    if configuration.synced(patience).await {
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

    fn budgets(&self, namespace: &str) -> Vec<Arc<PodUnavailableBudget>> {
        let stored = self.shared.caches.budgets.in_namespace(namespace);
        stored.iter().filter_map(|stored| stored.object.as_ref().ok().cloned()).collect()
    }

    fn refused_trial(&self) -> Option<TrialRefused> {
        self.refused_trial.clone()
    }

    fn persistent_pod_states(&self, namespace: &str) -> Vec<Arc<PersistentPodState>> {
        if let Some(states) = &self.states {
            return states.clone();
        }
        let stored = self.shared.caches.persistent_pod_states.in_namespace(namespace);
        stored.iter().filter_map(|stored| stored.object.as_ref().ok().cloned()).collect()
    }

    fn spreads(&self, namespace: &str) -> Vec<Arc<WorkloadSpread>> {
        let stored = self.shared.caches.spreads.in_namespace(namespace);
        stored.iter().filter_map(|stored| stored.object.as_ref().ok().cloned()).collect()
    }

    fn spread_workload(&self) -> Option<Arc<Value>> {
        self.workload.clone()
    }

    fn placed(&self) -> Option<Arc<Placed>> {
        self.taken.as_ref().map(|taken| taken.placed.clone())
    }

    fn owners(&self) -> Vec<Owner> {
        self.owners.clone()
    }

    fn storage_class(&self, name: &str) -> Option<Arc<StorageClass>> {
        self.shared.caches.storage_classes.get(&ObjectKey::cluster(name))
    }

    fn default_storage_class(&self) -> Option<Arc<StorageClass>> {
        let classes = self.shared.caches.storage_classes.list();
        let defaults = classes.into_iter().filter(|class| class.is_default());
        // Of several the newest counts, as on the server.
        defaults.max_by(|one, other| {
            let age = |class: &StorageClass| class.metadata.creation_timestamp;
            age(one).cmp(&age(other)).then_with(|| other.metadata.name.cmp(&one.metadata.name))
        })
    }

    fn configuration(&self) -> Option<Arc<Data>> {
        self.shared.caches.configuration.list().first()?;
        Some(Arc::new(self.shared.configuration.data()))
    }
}

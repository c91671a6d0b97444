//! Everything a pass may know of a spread, from caches, and from the server where a cache would not do.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kruise_api::{
    cloneset::v1beta1::CloneSet, labels::POD_TEMPLATE_HASH, workloadspread::v1beta1::WorkloadSpread,
};
use kruise_core::{
    object::{ObjectKey, POD},
    pod::{Metadata, Pod},
    text::Text,
    workload::Workload,
    workloadspread::{Family, Mark, Newest, Observed, Spread, strays},
};
use kruise_runtime::{controller::Context, live};
use serde_json::Value;

use super::wake::REVISION;
use crate::{
    caches::BY_OWNER,
    shared::Shared,
    spreads::{known_total, white_list, workload_of},
    workloads::{self, Found},
};

/// How often the server is asked about workloads of kinds that nobody watches.
const ASK_EVERY: Duration = Duration::from_secs(10);
/// How many pods are read whole in one pass, because patches of subsets are compared with them.
const READ_WHOLE: usize = 100;

/// Gathers. Clones are the same.
#[derive(Clone)]
pub(super) struct Observer {
    shared: Shared,
    /// Pods that were read whole, by their spread, with the version that was read.
    whole: Arc<Mutex<BTreeMap<ObjectKey, Whole>>>,
}

type Whole = BTreeMap<Text, (Text, Arc<Value>)>;

/// The pods of a workload, and which of their versions is the newest.
struct Members {
    pods: Vec<Arc<Pod>>,
    newest: Newest,
}

impl Members {
    fn of(pods: Vec<Arc<Pod>>) -> Self {
        Self { pods, newest: Newest::All }
    }
}

impl Observer {
    pub(super) fn new(shared: &Shared) -> Self {
        Self { shared: shared.clone(), whole: Arc::default() }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) fn forget(&self, key: &ObjectKey) {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// When to look again at a workload that nobody watches.
    pub(super) fn asks_again(&self, spread: &Spread) -> Option<Duration> {
        (spread.family.is_none() || !spread.replicas_paths().is_empty()).then_some(ASK_EVERY)
    }

    /// Everything; nothing while something is still being read for the first time.
    pub(super) async fn observe(
        &self,
        context: &Context,
        key: &ObjectKey,
        object: &Arc<WorkloadSpread>,
    ) -> Result<Option<Observed>, String> {
        let shared = &self.shared;
        let spread = Spread::of(object);
        let Some(mut members) = self.members(&spread).await? else { return Ok(None) };
        members.pods.retain(|pod| spread.filter.accepts(|key| pod.metadata.labels.text(key)));
        let total = match known_total(shared, &spread) {
            Some(total) => Some(total),
            // A workload of a known kind that is not there wants nothing.
            None if spread.family.is_some() && spread.replicas_paths().is_empty() => Some(0),
            None => shared.spreads.total(shared, &spread).await?,
        };
        let Some(nodes) = self.nodes(&spread, &members.pods) else { return Ok(None) };
        let whole = self.whole(key, &spread, &members.pods).await?;
        Ok(Some(Observed {
            pods: members.pods,
            total,
            versioned: shared.spreads.versioned().clone(),
            newest: members.newest,
            nodes,
            whole,
            now: context.clock().now(),
            spread,
        }))
    }

    async fn members(&self, spread: &Spread) -> Result<Option<Members>, String> {
        let (shared, caches) = (&self.shared, &self.shared.caches);
        let Some(family) = spread.family else { return self.listed(spread).await.map(Some) };
        let name = spread.target.name.as_str();
        let key = ObjectKey { namespace: spread.key.namespace.clone(), name: name.into() };
        if family == Family::Job {
            caches.jobs.want();
            if !caches.jobs.is_synced() {
                return Ok(None);
            }
            let pods = caches.jobs.get(&key).map(|job| self.owned(&job.metadata)).unwrap_or_default();
            return Ok(Some(Members::of(pods)));
        }
        let workload = match workloads::find(shared, family.resource(), &key) {
            Found::There(workload) => workload,
            Found::Missing => return Ok(Some(Members::of(Vec::new()))),
            Found::NotRead => return Ok(None),
            // Until it can be read again, accounts and costs stay as they are.
            Found::Unreadable => return Err(format!("{} {key} cannot be read", family.resource().kind)),
        };
        let mut members = match family {
            Family::Deployment => {
                caches.replica_sets.want();
                if !caches.replica_sets.is_synced() {
                    return Ok(None);
                }
                let sets = self.replica_sets(&workload.metadata.uid);
                let pods = sets.iter().flat_map(|set| self.owned(&set.metadata)).collect();
                let newest = newest_set(&workload, &sets);
                Members { pods, newest: newest.map_or(Newest::Unknown, Newest::Version) }
            }
            _ => Members::of(self.owned(&workload.metadata)),
        };
        if family == Family::CloneSet && shared.spreads.versioned().counts(family.resource().kind) {
            let set = caches.clonesets.get(&key);
            let newest = set.and_then(|stored| newest_of_clone_set(stored.object.as_deref().ok()?));
            members.newest = newest.map_or(Newest::Unknown, Newest::Version);
        }
        Ok(Some(members))
    }

    /// The pods of a workload of a kind that only the server knows: its own, those of its ReplicaSets, and those that
    /// admission has found to be its.
    async fn listed(&self, spread: &Spread) -> Result<Members, String> {
        let caches = &self.shared.caches;
        // Until the list can be read again, accounts and costs stay as they are.
        white_list(&self.shared).await?;
        caches.replica_sets.want();
        let namespace = &spread.key.namespace;
        let Some(object) = workload_of(&self.shared, namespace, spread).await? else {
            return Ok(Members::of(Vec::new()));
        };
        let uid = kruise_api::json::text(&object, &["metadata", "uid"]).unwrap_or_default();
        let sets: BTreeSet<Text> =
            self.replica_sets(uid).iter().map(|set| set.metadata.uid.clone()).collect();
        let is_own = |pod: &Arc<Pod>| {
            let owner = pod.metadata.controller();
            owner.is_some_and(|owner| owner.uid == *uid || sets.contains(&owner.uid))
                || Mark::of(&pod.metadata.annotations)
                    .is_some_and(|mark| spread.key.name == *mark.name.as_str() && owner.is_some())
        };
        Ok(Members::of(caches.pods.in_namespace(namespace).into_iter().filter(is_own).collect()))
    }

    fn owned(&self, owner: &Metadata) -> Vec<Arc<Pod>> {
        let mut pods = self.shared.caches.pods.by_index(BY_OWNER, &owner.uid);
        pods.retain(|pod| pod.metadata.controller().is_some_and(|one| one.uid == owner.uid));
        pods
    }

    fn replica_sets(&self, owner: &str) -> Vec<Arc<Workload>> {
        let mut sets = self.shared.caches.replica_sets.by_index(BY_OWNER, owner);
        sets.retain(|set| set.metadata.controller().is_some_and(|one| one.uid == *owner));
        sets
    }

    /// The nodes of pods that may be adopted; nothing while they are being read.
    fn nodes(
        &self,
        spread: &Spread,
        pods: &[Arc<Pod>],
    ) -> Option<BTreeMap<Text, Arc<kruise_core::node::Node>>> {
        let nodes = &self.shared.caches.nodes;
        let mut found = BTreeMap::new();
        for pod in strays(spread, pods) {
            nodes.want();
            if !nodes.is_synced() {
                return None;
            }
            let key = ObjectKey::cluster(pod.spec.node_name.clone());
            found.extend(nodes.get(&key).map(|node| (pod.spec.node_name.clone(), node)));
        }
        Some(found)
    }

    /// Pods that may be adopted, as the server has them, where patches are compared with them. Each version is read once.
    async fn whole(
        &self,
        key: &ObjectKey,
        spread: &Spread,
        pods: &[Arc<Pod>],
    ) -> Result<BTreeMap<Text, Arc<Value>>, String> {
        if spread.subsets.iter().all(|subset| subset.spec.patch.is_none()) {
            return Ok(BTreeMap::new());
        }
        let mut known =
            self.whole.lock().unwrap_or_else(PoisonError::into_inner).remove(key).unwrap_or_default();
        let mut found = Whole::new();
        for pod in strays(spread, pods).take(READ_WHOLE) {
            let (name, version) = (&pod.metadata.name, &pod.metadata.resource_version);
            let entry = match known.remove(name).filter(|(read, _)| read == version) {
                Some(entry) => Some(entry),
                None => {
                    let read = live::get::<Value>(&self.shared.client, POD, &pod.metadata.key()).await;
                    let read = read.map_err(|error| format!("failed to read pod {name}: {error}"))?;
                    read.map(|read| (version.clone(), Arc::new(read)))
                }
            };
            found.extend(entry.map(|entry| (name.clone(), entry)));
        }
        let result = found.iter().map(|(name, (_, pod))| (name.clone(), pod.clone())).collect();
        if !found.is_empty() {
            self.whole.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), found);
        }
        Ok(result)
    }
}

/// The hash of the ReplicaSet of a Deployment's present template: the one with the Deployment's own revision, once its
/// controller has seen the present spec.
fn newest_set(deployment: &Workload, sets: &[Arc<Workload>]) -> Option<String> {
    let Metadata { annotations, generation, .. } = &deployment.metadata;
    if deployment.status.observed_generation < Some(*generation) {
        return None;
    }
    let revision = annotations.text(REVISION)?;
    let set = sets.iter().find(|set| set.metadata.annotations.text(REVISION) == Some(revision))?;
    set.metadata.labels.text(POD_TEMPLATE_HASH).map(str::to_owned)
}

/// The hash of the revision that a CloneSet updates to, once its controller has seen the present spec.
fn newest_of_clone_set(set: &CloneSet) -> Option<String> {
    let status = set.status.as_ref()?;
    (status.observed_generation >= set.metadata.generation).then_some(())?;
    let revision = status.update_revision.as_deref()?;
    revision.rsplit('-').next().map(str::to_owned)
}

//! Everything a pass may know, gathered from caches.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    cloneset::v1beta1::CloneSet,
    gates::{Gate, Gates},
};
use kruise_core::{
    cloneset::{self, Observed, Purpose, Room},
    nodeimage::Node,
    object::ObjectKey,
    pod::{Metadata, Pod},
    pre_download,
    revision::Revision,
};
use kruise_runtime::{
    cache::{Cache, Guarded, View},
    controller::Context,
    effects::{Outcome, Why},
};

use super::report::Told;
use crate::{
    caches::{BY_KIN, BY_OWNER, named_after, orphans_of},
    shared::Shared,
};

/// Gathers. Clones are the same.
#[derive(Clone)]
pub(super) struct Observer {
    shared: Shared,
    gates: Arc<Gates>,
    /// Where the ids of the next pods come from, for each set. It stays until a pod was certainly made.
    seeds: Arc<Mutex<BTreeMap<ObjectKey, u64>>>,
    /// When the status of each set was written last.
    told: Arc<Mutex<BTreeMap<ObjectKey, Timestamp>>>,
}

impl Observer {
    pub(super) fn new(shared: &Shared) -> Self {
        let gates = Arc::new(shared.settings.gates.clone());
        Self { shared: shared.clone(), gates, seeds: Arc::default(), told: Arc::default() }
    }

    /// Whether images are pulled ahead of updates in place.
    pub(super) fn pulls_ahead(&self) -> bool {
        self.gates.enabled(Gate::PreDownloadImageForInPlaceUpdate)
    }

    pub(super) fn find(&self, key: &ObjectKey) -> Option<Arc<Guarded<CloneSet>>> {
        self.shared.caches.clonesets.get(key)
    }

    /// Everything; nothing while something is still being read for the first time.
    pub(super) fn observe(
        &self,
        context: &Context,
        key: &ObjectKey,
        set: Arc<CloneSet>,
        room: Room,
    ) -> Option<Observed> {
        let caches = &self.shared.caches;
        let uid = set.metadata.uid.clone().unwrap_or_default();
        let pods = caches.pods.by_index(BY_OWNER, &uid);
        let mut nodes = BTreeMap::new();
        if cloneset::needs_nodes(&set) {
            caches.nodes.want();
            if !caches.nodes.is_synced() {
                return None;
            }
            nodes = labels_of_nodes(&caches.nodes, &pods);
        }
        Some(Observed {
            claims: metadata(caches.claims.by_index(BY_OWNER, &uid)),
            revisions: self.revisions(key, &uid),
            jobs: self.jobs(key, &uid),
            pods,
            nodes,
            protected: BTreeSet::new(),
            now: context.clock().now(),
            gates: self.gates.clone(),
            exclude_preparing_delete: self.shared.settings.options.cloneset_scaling_exclude_preparing_delete,
            room,
            resize_subresource: self.shared.resize_subresource,
            seed: *self.seeds().entry(key.clone()).or_insert_with(|| context.random().next_u64()),
            set,
        })
    }

    /// Those that belong to the set or to nobody, and those whose names stand in the way of new ones.
    fn revisions(&self, key: &ObjectKey, uid: &str) -> Vec<Arc<Revision>> {
        let texts = [uid.to_owned(), orphans_of(&key.namespace), named_after(&key.namespace, &key.name)];
        let found = texts.iter().flat_map(|text| self.shared.caches.revisions.by_index(BY_KIN, text));
        let unique: BTreeMap<_, _> =
            found.map(|revision| (revision.metadata.name.clone(), revision)).collect();
        unique.into_values().collect()
    }

    /// Those that the set controls, and those that have the names of its own.
    fn jobs(&self, key: &ObjectKey, uid: &str) -> Vec<Arc<Metadata>> {
        if !self.pulls_ahead() {
            return Vec::new();
        }
        let jobs = &self.shared.caches.pull_jobs;
        let names = self.revisions(key, uid);
        let names = names.iter().flat_map(|revision| pre_download::names(revision));
        let namesakes = names
            .filter_map(|name| jobs.get(&ObjectKey { namespace: key.namespace.clone(), name }))
            .filter(|job| !job.metadata.owner_references.iter().any(|owner| owner.uid == uid));
        let mut found = jobs.by_index(BY_OWNER, uid);
        found.extend(namesakes);
        metadata(found)
    }

    /// The next pods get other ids once these were all made: those that were not find the claims that were made for them.
    pub(super) fn remember(&self, context: &Context, key: &ObjectKey, told: &Told, outcome: &Outcome) {
        let is_pod = |index: usize| matches!(told.purposes.get(index), Some(Purpose::CreatePod(_)));
        let failed: BTreeMap<usize, &Why> =
            outcome.failed.iter().map(|failure| (failure.index, &failure.why)).collect();
        let mut pods = (0..told.purposes.len()).filter(|index| is_pod(*index)).peekable();
        let all_made = pods.peek().is_some() && pods.all(|index| !failed.contains_key(&index));
        // A stranger has the name: with the same ids it would stand in the way for ever.
        let is_taken = |why: &&Why| matches!(why, Why::Refused { code: 409, .. });
        let taken = failed.iter().any(|(index, why)| is_pod(*index) && is_taken(why));
        if taken || all_made {
            self.seeds().insert(key.clone(), context.random().next_u64());
        }
    }

    /// The status was written.
    pub(super) fn has_told(&self, key: &ObjectKey, now: Timestamp) {
        self.told().insert(key.clone(), now);
    }

    /// Whether the status was written within this time.
    pub(super) fn told_within(&self, key: &ObjectKey, now: Timestamp, time: SignedDuration) -> bool {
        self.told().get(key).is_some_and(|told| now.duration_since(*told) < time)
    }

    pub(super) fn forget(&self, key: &ObjectKey) {
        self.seeds().remove(key);
        self.told().remove(key);
    }

    fn told(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Timestamp>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seeds(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, u64>> {
        self.seeds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn metadata<V: View>(objects: Vec<Arc<V>>) -> Vec<Arc<Metadata>> {
    objects.into_iter().map(|object| Arc::new(object.metadata().clone())).collect()
}

fn labels_of_nodes(
    nodes: &Cache<Node>,
    pods: &[Arc<Pod>],
) -> BTreeMap<kruise_core::text::Text, kruise_core::pod::Pairs> {
    let names: BTreeSet<_> = pods.iter().map(|pod| &pod.spec.node_name).collect();
    let known = names.into_iter().filter_map(|name| {
        let node = nodes.get(&ObjectKey::cluster(name.clone()))?;
        Some((name.clone(), node.metadata.labels.clone()))
    });
    known.collect()
}

//! Everything a reconcile may know, gathered from caches.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kruise_api::{
    gates::{Gate, Gates},
    statefulset::v1beta1::StatefulSet,
};
use kruise_core::{
    object::ObjectKey,
    plan::WriteBudget,
    pod::Metadata,
    pre_download,
    revision::Revision,
    statefulset::{Observed, reference, wanted},
    text::Text,
};
use kruise_runtime::{cache::View, controller::Context};

use super::{super::workload::Written, memory::Memory};
use crate::{
    caches::{BY_KIN, BY_OWNER, named_after, orphans_of},
    shared::Shared,
};

/// Gathers. Clones are the same.
#[derive(Clone)]
pub(super) struct Observer {
    pub(super) shared: Shared,
    pub(super) written: Written,
    gates: Arc<Gates>,
    memory: Arc<Mutex<BTreeMap<ObjectKey, Memory>>>,
}

impl Observer {
    pub(super) fn new(shared: &Shared) -> Self {
        let gates = Arc::new(shared.settings.gates.clone());
        Self { shared: shared.clone(), written: Written::default(), gates, memory: Arc::default() }
    }

    /// Whether images are pulled ahead of updates in place.
    pub(super) fn pulls_ahead(&self) -> bool {
        self.gates.enabled(Gate::PreDownloadImageForInPlaceUpdate)
    }

    /// Whether claims can grow with their templates.
    pub(super) fn grows_claims(&self) -> bool {
        self.gates.enabled(Gate::StatefulSetAutoResizePVCGate)
    }

    /// Everything; nothing while something is still being read for the first time.
    pub(super) fn gather(
        &self,
        context: &Context,
        key: &ObjectKey,
        set: Arc<StatefulSet>,
        budget: WriteBudget,
    ) -> Option<Observed> {
        let caches = &self.shared.caches;
        let uid = set.metadata.uid.clone().unwrap_or_default();
        let mut pods = caches.pods.by_index(BY_OWNER, &uid);
        let owned: BTreeSet<Text> = pods.iter().map(|pod| pod.metadata.name.clone()).collect();
        let free = caches.pods.by_index(BY_KIN, &named_after(&key.namespace, &key.name));
        pods.extend(free.into_iter().filter(|pod| !owned.contains(&pod.metadata.name)));
        let mut storage_classes = BTreeMap::new();
        if self.grows_claims() {
            caches.storage_classes.want();
            if !caches.storage_classes.is_synced() {
                return None;
            }
            let classes = caches.storage_classes.list().into_iter();
            storage_classes = classes.map(|class| (class.metadata.name.clone(), class)).collect();
        }
        let mut seen = Observed {
            pods,
            taken: BTreeMap::new(),
            claims: Vec::new(),
            storage_classes,
            revisions: self.revisions(key, &uid),
            jobs: self.jobs(key, &uid),
            now: context.clock().now(),
            gates: self.gates.clone(),
            resize_subresource: self.shared.resize_subresource,
            refusals: self.with_memory(&set, |memory| memory.refusals.clone()),
            budget,
            set,
        };
        let wanted = wanted(&seen);
        let place = |name: &Text| ObjectKey { namespace: key.namespace.clone(), name: name.clone() };
        let taken = wanted.pods.into_iter().filter_map(|name| {
            let pod = caches.pods.get(&place(&name))?;
            let owner = pod.metadata.controller().map(|owner| format!("{} {}", owner.kind, owner.name));
            Some((name, owner))
        });
        seen.taken = taken.collect();
        seen.claims = wanted.claims.iter().filter_map(|name| caches.claims.get(&place(name))).collect();
        Some(seen)
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
        found.into_iter().map(|job| Arc::new(job.metadata().clone())).collect()
    }

    /// Works with what is remembered of a set.
    pub(super) fn with_memory<T>(&self, set: &StatefulSet, work: impl FnOnce(&mut Memory) -> T) -> T {
        let mut all = self.memory();
        work(all.entry(reference(set).key).or_insert_with(|| Memory::of(set)))
    }

    pub(super) fn forget_set(&self, key: &ObjectKey) {
        self.memory().remove(key);
    }

    fn memory(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

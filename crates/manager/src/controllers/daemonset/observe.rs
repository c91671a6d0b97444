//! Everything a reconcile may know, gathered from caches.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kruise_api::{
    daemonset::v1beta1::DaemonSet,
    gates::{Gate, Gates},
};
use kruise_core::{
    daemonset::{Observed, Purpose},
    object::ObjectKey,
    plan::WriteBudget,
    pod::Metadata,
    pre_download,
    revision::Revision,
};
use kruise_runtime::{cache::View as _, controller::Context};

use super::{
    super::workload::{Acted, Written},
    memory::{Lesson, Memory},
};
use crate::{
    caches::{BY_KIN, BY_NO_OWNER, BY_OWNER, named_after, orphans_of},
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

    /// Whether images are pulled ahead of updates.
    pub(super) fn pulls_ahead(&self) -> bool {
        self.gates.enabled(Gate::PreDownloadImageForDaemonSetUpdate)
    }

    /// Everything; nothing while nodes are still being read for the first time.
    pub(super) fn gather(
        &self,
        context: &Context,
        key: &ObjectKey,
        set: Arc<DaemonSet>,
        write_budget: WriteBudget,
    ) -> Option<Observed> {
        let caches = &self.shared.caches;
        // Only a cluster with DaemonSets pays for its nodes.
        caches.nodes.want();
        if !caches.nodes.is_synced() {
            return None;
        }
        let uid = set.metadata.uid.clone().unwrap_or_default();
        let mut pods = caches.pods.by_index(BY_OWNER, &uid);
        pods.extend(caches.pods.by_index(BY_NO_OWNER, &key.namespace));
        let Memory { seed, refusals, backoff, refused, .. } = self.of(context, key);
        Some(Observed {
            pods,
            nodes: caches.nodes.list(),
            revisions: self.revisions(key, &uid),
            jobs: self.jobs(key, &uid),
            now: context.clock().now(),
            gates: self.gates.clone(),
            assign_by_scheduler: self.shared.settings.options.assign_pods_by_scheduler,
            resize_subresource: self.shared.resize_subresource,
            refusals,
            backoff,
            refused,
            write_budget,
            seed,
            set,
        })
    }

    /// What is remembered of a set.
    pub(super) fn of(&self, context: &Context, key: &ObjectKey) -> Memory {
        self.memory().entry(key.clone()).or_insert_with(|| Memory::new(context.random())).clone()
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

    /// Remembers what became of a plan.
    pub(super) fn remember(
        &self,
        context: &Context,
        key: &ObjectKey,
        seen: &Observed,
        acted: &Acted<Purpose>,
    ) -> Lesson {
        let mut all = self.memory();
        let memory = all.entry(key.clone()).or_insert_with(|| Memory::new(context.random()));
        memory.learn(context.random(), seen, acted)
    }

    /// Whether the last plan of a set was carried out.
    pub(super) fn is_done(&self, key: &ObjectKey) -> bool {
        self.memory().get(key).is_some_and(|memory| memory.is_done)
    }

    /// For how many nodes of a set the server refuses the pod.
    pub(super) fn refused_nodes(&self, key: &ObjectKey) -> u32 {
        let nodes = self.memory().get(key).map_or(0, |memory| memory.refused.nodes());
        u32::try_from(nodes).unwrap_or(u32::MAX)
    }

    pub(super) fn forget_set(&self, key: &ObjectKey) {
        self.memory().remove(key);
    }

    fn memory(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

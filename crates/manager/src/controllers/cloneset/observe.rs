//! Everything a pass may know, gathered from caches.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kruise_api::{
    cloneset::v1beta1::CloneSet,
    gates::{Gate, Gates},
};
use kruise_core::{
    cloneset::{self, Observed},
    node::Node,
    object::ObjectKey,
    plan::WriteBudget,
    pod::{Metadata, Pod},
    pre_download,
    revision::Revision,
};
use kruise_runtime::{
    cache::{Cache, View},
    controller::Context,
};

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
    pub(super) memory: Memory,
    gates: Arc<Gates>,
}

impl Observer {
    pub(super) fn new(shared: &Shared) -> Self {
        let gates = Arc::new(shared.settings.gates.clone());
        Self { shared: shared.clone(), written: Written::default(), memory: Memory::default(), gates }
    }

    /// Whether images are pulled ahead of updates in place.
    pub(super) fn pulls_ahead(&self) -> bool {
        self.gates.enabled(Gate::PreDownloadImageForInPlaceUpdate)
    }

    /// Everything; nothing while something is still being read for the first time.
    pub(super) fn gather(
        &self,
        context: &Context,
        key: &ObjectKey,
        set: Arc<CloneSet>,
        write_budget: WriteBudget,
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
            now: context.clock().now(),
            gates: self.gates.clone(),
            exclude_preparing_delete: self.shared.settings.options.cloneset_scaling_exclude_preparing_delete,
            refusals: self.memory.refusals(key, &set),
            write_budget,
            resize_subresource: self.shared.resize_subresource,
            seed: self.memory.seed(context, key),
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

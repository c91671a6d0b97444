//! Everything a pass may know, gathered from caches, and what is remembered between passes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{labels::SIDECARSET_NAME, sidecarset::v1beta1::SidecarSet};
use kruise_core::{
    object::ObjectKey,
    pod::{Pairs, Pod},
    revision::Revision,
    sidecarset::control::{Observed, needs_namespaces},
    text::Text,
};
use kruise_runtime::{cache::Guarded, controller::Context};

use crate::{
    caches::{BY_KIN, BY_SIDECAR_SET, named_after},
    shared::Shared,
};

/// How long a pod is left alone after the server refused its update. The others go on meanwhile.
const HOLD: SignedDuration = SignedDuration::from_secs(10);
/// How often people are told why something waits.
const TOLD_EVERY: SignedDuration = SignedDuration::from_secs(60);

/// The set that a revision names.
pub(super) fn set_of(revision: &Revision) -> Option<Text> {
    revision.metadata.labels.get(SIDECARSET_NAME).cloned()
}

/// Gathers. Clones are the same.
#[derive(Clone)]
pub(super) struct Observer {
    shared: Shared,
    memory: Arc<Mutex<BTreeMap<ObjectKey, Memory>>>,
}

/// What is remembered of a set. All of it may be lost: the cluster has what matters.
#[derive(Default)]
struct Memory {
    /// Pods whose update the server refused: why, and when.
    held: BTreeMap<ObjectKey, (Text, Timestamp)>,
    /// When people heard last why something waits.
    told: Option<Timestamp>,
    /// When the status was written last.
    counted: Option<Timestamp>,
}

impl Observer {
    pub(super) fn new(shared: &Shared) -> Self {
        Self { shared: shared.clone(), memory: Arc::default() }
    }

    pub(super) fn find(&self, key: &ObjectKey) -> Option<Arc<Guarded<SidecarSet>>> {
        self.shared.caches.sidecarsets.get(key)
    }

    /// Everything; nothing while something is still being read for the first time.
    pub(super) fn observe(
        &self,
        context: &Context,
        key: &ObjectKey,
        set: Arc<SidecarSet>,
    ) -> Option<Observed> {
        let caches = &self.shared.caches;
        let pods = caches.pods.by_index(BY_SIDECAR_SET, &key.name);
        let mut namespaces = BTreeMap::new();
        if needs_namespaces(&set) {
            caches.namespaces.want();
            if !caches.namespaces.is_synced() {
                return None;
            }
            namespaces = self.namespaces(&pods);
        }
        let now = context.clock().now();
        let manager_namespace = Text::from(self.shared.settings.environment.namespace.as_str());
        Some(Observed {
            revisions: self.revisions(&manager_namespace, &key.name),
            held: self.held(key, now),
            set,
            pods,
            namespaces,
            manager_namespace,
            now,
        })
    }

    fn namespaces(&self, pods: &[Arc<Pod>]) -> BTreeMap<Text, Pairs> {
        let mut found = BTreeMap::new();
        for namespace in pods.iter().map(|pod| &pod.metadata.namespace) {
            if !found.contains_key(namespace)
                && let Some(known) = self.shared.caches.namespaces.get(&ObjectKey::cluster(namespace.clone()))
            {
                found.insert(namespace.clone(), known.metadata.labels.clone());
            }
        }
        found
    }

    /// Those that name the set, and those whose names stand in the way of new ones.
    fn revisions(&self, namespace: &str, set: &str) -> Vec<Arc<Revision>> {
        let caches = &self.shared.caches;
        let mut found = caches.sidecar_set_revisions(namespace, set);
        found.extend(caches.revisions.by_index(BY_KIN, &named_after(namespace, set)));
        let unique: BTreeMap<_, _> =
            found.into_iter().map(|revision| (revision.metadata.name.clone(), revision)).collect();
        unique.into_values().collect()
    }

    fn held(&self, key: &ObjectKey, now: Timestamp) -> BTreeMap<ObjectKey, Text> {
        let mut memory = self.memory();
        let Some(Memory { held, .. }) = memory.get_mut(key) else { return BTreeMap::new() };
        held.retain(|_, (_, since)| now.duration_since(*since) < HOLD);
        held.iter().map(|(pod, (why, _))| (pod.clone(), why.clone())).collect()
    }

    /// Leaves pods alone for a while whose update was refused.
    pub(super) fn remember(&self, context: &Context, key: &ObjectKey, refused: &[(ObjectKey, Text)]) {
        if refused.is_empty() {
            return;
        }
        let now = context.clock().now();
        let mut memory = self.memory();
        let held = &mut memory.entry(key.clone()).or_default().held;
        held.extend(refused.iter().map(|(pod, why)| (pod.clone(), (why.clone(), now))));
    }

    /// Whether people should hear now why something waits.
    pub(super) fn may_tell(&self, context: &Context, key: &ObjectKey, reasons: &[String]) -> bool {
        if reasons.is_empty() {
            return false;
        }
        let now = context.clock().now();
        let mut memory = self.memory();
        let told = &mut memory.entry(key.clone()).or_default().told;
        let may = told.is_none_or(|told| now.duration_since(told) >= TOLD_EVERY);
        if may {
            *told = Some(now);
        }
        may
    }

    /// The status was written.
    pub(super) fn has_counted(&self, key: &ObjectKey, now: Timestamp) {
        self.memory().entry(key.clone()).or_default().counted = Some(now);
    }

    /// Whether the status was written within this time.
    pub(super) fn counted_within(&self, key: &ObjectKey, now: Timestamp, time: SignedDuration) -> bool {
        let counted = self.memory().get(key).and_then(|memory| memory.counted);
        counted.is_some_and(|counted| now.duration_since(counted) < time)
    }

    /// Why new pods get nothing from a set.
    pub(super) fn problem(&self, key: &ObjectKey) -> Option<String> {
        self.shared.sidecar_sets.problem(&key.name)
    }

    pub(super) fn forget(&self, key: &ObjectKey) {
        self.memory().remove(key);
    }

    fn memory(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Everything a pass may know, gathered from caches, and what is remembered between passes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{labels::SIDECARSET_NAME, sidecarset::v1beta1::SidecarSet};
use kruise_core::{
    object::ObjectKey,
    pod::{Pairs, Pod},
    podunavailablebudget::is_by_budget,
    revision::Revision,
    sidecarset::control::{self, Observed, needs_namespaces},
    text::Text,
};
use kruise_runtime::controller::Context;

use super::super::workload::Written;
use crate::{
    caches::{BY_KIN, BY_SIDECAR_SET, named_after},
    shared::Shared,
};

/// How long a pod is left alone after the server refused its update, which doubles. The others go on meanwhile.
const HOLD: SignedDuration = SignedDuration::from_secs(10);
/// The longest such time: how late an update goes on after the server takes it again.
const LONGEST_HOLD: SignedDuration = SignedDuration::from_secs(300);

/// The set that a revision names.
pub(super) fn set_of(revision: &Revision) -> Option<Text> {
    revision.metadata.labels.get(SIDECARSET_NAME).cloned()
}

/// Gathers. Clones are the same.
#[derive(Clone)]
pub(super) struct Observer {
    pub(super) shared: Shared,
    pub(super) written: Written,
    memory: Arc<Mutex<BTreeMap<ObjectKey, Memory>>>,
}

/// What is remembered of a set. All of it may be lost: the cluster has what matters.
#[derive(Default)]
struct Memory {
    /// Pods whose update the server refused.
    held: BTreeMap<ObjectKey, Held>,
    /// The generation of the set that they refused.
    generation: Option<i64>,
}

/// A pod whose update the server refused.
struct Held {
    why: Text,
    since: Timestamp,
    times: u32,
    /// A budget refused it: as soon as that allows something it is tried again.
    by_budget: bool,
}

impl Held {
    /// How long it is still left alone.
    fn left(&self, now: Timestamp) -> Option<Duration> {
        let pause = HOLD.checked_mul(1 << self.times.saturating_sub(1).min(16)).unwrap_or(LONGEST_HOLD);
        let left = pause.min(LONGEST_HOLD).saturating_sub(now.duration_since(self.since));
        Duration::try_from(left).ok().filter(|left| !left.is_zero())
    }
}

impl Observer {
    pub(super) fn new(shared: &Shared) -> Self {
        Self { shared: shared.clone(), written: Written::default(), memory: Arc::default() }
    }

    /// Everything; nothing while something is still being read for the first time.
    pub(super) fn gather(
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
            held: self.held(key, set.metadata.generation, &pods, now),
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

    /// Pods that are left alone now. A set that was changed, and a pod that is new, start anew.
    fn held(
        &self,
        key: &ObjectKey,
        generation: Option<i64>,
        pods: &[Arc<Pod>],
        now: Timestamp,
    ) -> BTreeMap<ObjectKey, control::Held> {
        let mut memory = self.memory();
        let Some(memory) = memory.get_mut(key) else { return BTreeMap::new() };
        if memory.generation != generation {
            memory.held.clear();
            memory.generation = generation;
        }
        if memory.held.is_empty() {
            return BTreeMap::new();
        }
        let present: BTreeSet<ObjectKey> = pods.iter().map(|pod| pod.metadata.key()).collect();
        memory.held.retain(|pod, held| present.contains(pod) && !(held.by_budget && self.allows(pod)));
        let held = memory.held.iter().filter_map(|(pod, held)| {
            Some((
                pod.clone(),
                control::Held { why: held.why.clone(), left: held.left(now)?, by_budget: held.by_budget },
            ))
        });
        held.collect()
    }

    /// Leaves pods alone for a while whose update was refused.
    pub(super) fn remember(&self, context: &Context, key: &ObjectKey, refused: &[(ObjectKey, Text)]) {
        if refused.is_empty() {
            return;
        }
        let now = context.clock().now();
        let mut memory = self.memory();
        let held = &mut memory.entry(key.clone()).or_default().held;
        for (pod, why) in refused {
            let known = self.shared.caches.pods.get(pod).filter(|_| is_by_budget(why));
            if let Some((_, why)) = known.and_then(|pod| self.shared.budgets.reason(&self.shared, &pod)) {
                held.insert(pod.clone(), Held { why: why.into(), since: now, times: 1, by_budget: true });
                continue;
            }
            let times = held.get(pod).map_or(0, |held| held.times).saturating_add(1);
            held.insert(pod.clone(), Held { why: why.clone(), since: now, times, by_budget: false });
        }
    }

    /// Whether the budget of a pod may let it go now.
    fn allows(&self, pod: &ObjectKey) -> bool {
        let pod = self.shared.caches.pods.get(pod);
        pod.is_none_or(|pod| !self.shared.budgets.is_used_up(&pod))
    }

    /// Why new pods get nothing from a set.
    pub(super) fn problem(&self, key: &ObjectKey) -> Option<String> {
        self.shared.sidecar_sets.problem(&key.name)
    }

    pub(super) fn forget_set(&self, key: &ObjectKey) {
        self.memory().remove(key);
    }

    fn memory(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

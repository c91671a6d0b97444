//! Which changes of nodes and of pods without an owner concern which sets.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kruise_api::daemonset::v1beta1::DaemonSet;
use kruise_core::{
    daemonset::{DAEMON_SET, Watched, is_heartbeat},
    node::Node,
    object::ObjectKey,
    pod::Pod,
};
use kruise_runtime::cache::{Change, Guarded};

use crate::{caches::BY_NODE, shared::Shared};

/// Knows what each set looks for. Clones are the same.
#[derive(Clone)]
pub(super) struct Wakers {
    shared: Shared,
    watched: Arc<Mutex<BTreeMap<ObjectKey, Watched>>>,
}

impl Wakers {
    pub(super) fn new(shared: &Shared) -> Self {
        Self { shared: shared.clone(), watched: Arc::default() }
    }

    /// A set has come, was changed or is gone. What it looks for is read once, not for each change of a node.
    pub(super) fn remember(&self, change: &Change<Guarded<DaemonSet>>) {
        let read = |set: &Option<Arc<Guarded<DaemonSet>>>| set.as_ref()?.object.as_ref().ok().cloned();
        let (old, new) = (read(&change.old), read(&change.new));
        match (old, new) {
            (Some(old), Some(new)) if old.spec == new.spec => {}
            (_, Some(new)) => {
                self.watched().insert(change.key.clone(), Watched::of(&new));
            }
            (_, None) => {
                self.watched().remove(&change.key);
            }
        }
    }

    /// A heartbeat wakes nobody. What changes the meaning of a node wakes the sets for which it does; a node that becomes
    /// ready or stops to be wakes the sets that have a pod there.
    pub(super) fn node(&self, change: &Change<Node>, wake: &mut dyn FnMut(ObjectKey)) {
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        if let (Some(old), Some(new)) = (old, new) {
            if is_heartbeat(old, new) {
                return;
            }
            if old.status.ready_since.is_some() != new.status.ready_since.is_some() {
                for pod in self.shared.caches.pods.by_index(BY_NODE, &new.metadata.name) {
                    let owner = pod
                        .metadata
                        .controller()
                        .filter(|owner| owner.kind == DAEMON_SET.kind && owner.group() == DAEMON_SET.group);
                    if let Some(owner) = owner {
                        wake(ObjectKey::new(pod.metadata.namespace.clone(), owner.name.clone()));
                    }
                }
            }
        }
        let watched = self.watched();
        let concerned = watched.iter().filter(|(_, watched)| watched.is_news(old, new));
        concerned.for_each(|(key, _)| wake(key.clone()));
    }

    /// A pod without a controller wakes the sets that may adopt it, and when it is gone those that could not: it kept its node
    /// from getting another one.
    pub(super) fn orphan(&self, change: &Change<Pod>, wake: &mut dyn FnMut(ObjectKey)) {
        let orphan = |pod: &Option<Arc<Pod>>| {
            pod.clone().filter(|pod| pod.metadata.controller().is_none() && pod.is_active())
        };
        let (old, new) = (orphan(&change.old), orphan(&change.new));
        let is_same = old.iter().zip(&new).any(|(old, new)| {
            old.metadata.labels == new.metadata.labels
                && old.metadata.owner_references == new.metadata.owner_references
                && old.node() == new.node()
        });
        let Some(pod) = new.or(old).filter(|_| !is_same) else { return };
        for set in self.shared.caches.daemonsets.in_namespace(&pod.metadata.namespace) {
            let matcher = set.object.as_ref().ok().and_then(|set| set.spec.selector.matcher().ok());
            if matcher.is_some_and(|matcher| matcher.accepts(|key| pod.metadata.labels.text(key))) {
                wake(set.metadata.key());
            }
        }
    }

    fn watched(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

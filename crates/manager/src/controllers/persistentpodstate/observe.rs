//! Everything a pass may know, from caches, and from the server before something is forgotten.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kruise_api::{persistentpodstate::v1beta1::PersistentPodState, statefulset::v1beta1::StatefulSet};
use kruise_core::{
    object::{NODE, ObjectKey, Resource},
    persistentpodstate::{Kinds, Members, Observed, Set, Target, wanted_nodes},
    pod::{Metadata, Pairs, Pod},
    statefulset::STATEFUL_SET,
    text::Text,
    workload::{self, Workload},
};
use kruise_runtime::{
    cache::{Guarded, Plain},
    controller::Error,
    live,
};
use serde::Deserialize as _;
use serde_json::Value;

use super::FIRST_LIST;
use crate::{caches::BY_OWNER, definitions, listed_workloads::Found, shared::Shared};

/// When to look again for workloads of a kind that the cluster does not have.
const KIND_AGAIN: Duration = Duration::from_secs(10);

/// Gathers. Clones are the same.
#[derive(Clone)]
pub(super) struct Observer {
    shared: Shared,
}

/// What a pass sees of the pods.
pub(super) enum Seen {
    /// All of it.
    All(Box<All>),
    /// The workload is of no kind that is supported, or it cannot be read: what is noted stays.
    Nothing,
    /// Something is still being read for the first time; to be tried again after this time.
    NotRead(Duration),
}

/// What caches say.
pub(super) struct All {
    pub(super) observed: Observed,
    /// The kind of the workload.
    resource: Resource,
    /// Its name.
    key: ObjectKey,
    /// Its identity, if it is there.
    uid: Option<Text>,
}

impl Observer {
    pub(super) fn new(shared: &Shared) -> Self {
        Self { shared: shared.clone() }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) fn find(&self, key: &ObjectKey) -> Option<Arc<Guarded<PersistentPodState>>> {
        self.shared.caches.persistent_pod_states.get(key)
    }

    /// The kinds that are supported.
    pub(super) fn kinds(&self) -> Kinds {
        Kinds::read(&self.shared.configuration.data())
    }

    /// The workloads of a name, as far as they can be read; nothing while they are being read for the first time.
    pub(super) fn sets_named(&self, key: &ObjectKey) -> Option<Vec<Set>> {
        let mut sets = Vec::new();
        for resource in [workload::STATEFUL_SET, STATEFUL_SET] {
            match self.built_in(resource, key) {
                Found::There(set) => sets.push(*set),
                Found::NotRead if self.shared.kinds.problem(resource).is_none() => return None,
                Found::NotRead | Found::Missing(_) | Found::Unreadable => {}
            }
        }
        sets.extend(self.shared.listed_workloads.named(key));
        Some(sets)
    }

    fn built_in(&self, resource: Resource, key: &ObjectKey) -> Found {
        let caches = &self.shared.caches;
        if resource == workload::STATEFUL_SET {
            let native = &caches.native_statefulsets;
            native.want();
            return match native.get(key) {
                _ if !native.is_synced() => Found::NotRead,
                None => Found::Missing(resource),
                Some(set) if set.metadata.unreadable => Found::Unreadable,
                Some(set) => Found::There(Box::new(Set::of_native(&set))),
            };
        }
        let definition = definitions::name(resource).unwrap_or_default();
        if self.shared.definitions.is_missing(&definition) {
            return Found::Missing(resource);
        }
        match caches.statefulsets.get(key) {
            _ if !caches.statefulsets.is_synced() => Found::NotRead,
            None => Found::Missing(resource),
            Some(stored) => match &stored.object {
                Err(_) => Found::Unreadable,
                Ok(set) => {
                    let gates = &self.shared.settings.gates;
                    Found::There(Box::new(Set::of_own(&stored.metadata, set, gates)))
                }
            },
        }
    }

    /// What caches say about the pods that an object is about.
    pub(super) async fn observe(&self, state: &Arc<PersistentPodState>) -> Seen {
        let target = Target::of(state);
        let namespace = state.metadata.namespace.as_deref().unwrap_or_default();
        let key = ObjectKey::new(namespace, target.name);
        let (found, again) = if Kinds::is_built_in(target.group, target.kind) {
            let native = workload::STATEFUL_SET;
            let resource = if target.group == native.group { native } else { STATEFUL_SET };
            (self.built_in(resource, &key), FIRST_LIST)
        } else if self.kinds().supports(target.group, target.kind) {
            (self.shared.listed_workloads.find(target.group, target.kind, &key), KIND_AGAIN)
        } else {
            return Seen::Nothing;
        };
        let (resource, uid, members) = match found {
            Found::NotRead => return Seen::NotRead(again),
            Found::Unreadable => return Seen::Nothing,
            Found::Missing(resource) => (resource, None, None),
            Found::There(set) => (set.resource, Some(set.metadata.uid.clone()), self.members(&set)),
        };
        let pods = members.as_ref().map_or(&[][..], |members| members.pods.as_slice());
        let Some(nodes) = self.nodes(pods).await else { return Seen::NotRead(FIRST_LIST) };
        let observed = Observed { state: state.clone(), members, nodes };
        Seen::All(Box::new(All { observed, resource, key, uid }))
    }

    /// The pods of a workload that does not end.
    fn members(&self, set: &Set) -> Option<Members> {
        if set.metadata.is_deleting() {
            return None;
        }
        let uid = &set.metadata.uid;
        let mut pods: Vec<Arc<Pod>> = self.shared.caches.pods.by_index(BY_OWNER, uid);
        pods.retain(|pod| pod.metadata.controller().is_some_and(|owner| owner.uid == *uid));
        Some(Members { ordinals: set.ordinals.clone(), pods })
    }

    /// The labels of the nodes that matter, without those that cannot be read; nothing while they are being read for the
    /// first time.
    async fn nodes(&self, pods: &[Arc<Pod>]) -> Option<BTreeMap<Text, Pairs>> {
        let wanted = wanted_nodes(pods);
        let nodes = &self.shared.caches.nodes;
        if wanted.is_empty() {
            return Some(BTreeMap::new());
        }
        nodes.want();
        if !nodes.is_synced() {
            return None;
        }
        let mut found = BTreeMap::new();
        for name in wanted {
            let key = ObjectKey::cluster(name.clone());
            if let Some(node) = nodes.get(&key) {
                found.insert(name, node.metadata.labels.clone());
                continue;
            }
            // A node that has just joined is not in the cache yet.
            match live::get::<Plain>(&self.shared.client, NODE, &key).await {
                Ok(Some(node)) => {
                    found.insert(name, node.metadata.labels);
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, node = %name, "failed to read a node"),
            }
        }
        Some(found)
    }

    /// The same with the workload as the server has it; nothing where the cache is behind.
    pub(super) async fn confirm(&self, seen: All) -> Result<Option<Observed>, Error> {
        let All { mut observed, resource, key, uid } = seen;
        let found = self.read(resource, &key).await?;
        if found.as_ref().map(|set| &set.metadata.uid) != uid.as_ref() {
            return Ok(None);
        }
        let Some(set) = found else { return Ok(Some(observed)) };
        if set.metadata.is_deleting() {
            observed.members = None;
            return Ok(Some(observed));
        }
        let Some(members) = &mut observed.members else { return Ok(None) };
        members.ordinals = set.ordinals;
        Ok(Some(observed))
    }

    async fn read(&self, resource: Resource, key: &ObjectKey) -> Result<Option<Set>, Error> {
        let client = &self.shared.client;
        if resource != STATEFUL_SET {
            let found = live::get::<Workload>(client, resource, key).await.map_err(Error::other)?;
            let of = |set: Workload| match resource {
                workload::STATEFUL_SET => Set::of_native(&set),
                _ => Set::of_listed(resource, &set),
            };
            return Ok(found.map(of));
        }
        let Some(object) = live::get::<Value>(client, resource, key).await.map_err(Error::other)? else {
            return Ok(None);
        };
        let metadata = object.get("metadata").cloned().unwrap_or_default();
        let metadata = Metadata::deserialize(metadata).map_err(Error::other)?;
        let set = StatefulSet::deserialize(object).map_err(Error::other)?;
        Ok(Some(Set::of_own(&metadata, &set, &self.shared.settings.gates)))
    }
}

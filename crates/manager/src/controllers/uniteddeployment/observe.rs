//! Everything a reconcile may know, gathered from caches; workloads that are to be changed are read from the server.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kruise_core::{
    object::ObjectKey,
    pod::{Metadata, Pod},
    revision::Revision,
    uniteddeployment::{self, Child, Kind, News, Observed, Purpose, UnitedDeployment},
    waiting::text,
    workload::Workload,
};
use kruise_runtime::{
    cache::{Cache, Guarded},
    controller::Context,
    live,
};
use serde_json::Value;

use super::{
    super::workload::{Acted, Written},
    memory::Memory,
    owned,
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
    memory: Arc<Mutex<BTreeMap<ObjectKey, Memory>>>,
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
        object: Arc<UnitedDeployment>,
    ) -> Option<Observed> {
        let caches = &self.shared.caches;
        // Only a cluster with UnitedDeployments pays for these.
        caches.deployments.want();
        caches.native_statefulsets.want();
        if !caches.deployments.is_synced() || !caches.native_statefulsets.is_synced() {
            return None;
        }
        let uid = object.metadata.uid.clone();
        let children = self.children(key, &uid);
        let mut pods = BTreeMap::new();
        for child in &children {
            pods.insert(child.metadata.uid.clone(), self.pods(child)?);
        }
        let Memory { seed, refused, timed_out, .. } = self.of(context, key);
        Some(Observed {
            children,
            pods,
            revisions: self.revisions(key, &uid),
            live: BTreeMap::new(),
            unread: BTreeMap::new(),
            now: context.clock().now(),
            refused,
            timed_out,
            seed,
            object,
        })
    }

    /// The workloads that the object controls, and those of the namespace that say they are of a subset and belong to nobody.
    fn children(&self, key: &ObjectKey, uid: &str) -> Vec<Child> {
        let caches = &self.shared.caches;
        let mut found = Vec::new();
        for (kind, cache) in
            [(Kind::Deployment, &caches.deployments), (Kind::StatefulSet, &caches.native_statefulsets)]
        {
            let all: Vec<Arc<Workload>> =
                owned(cache, uid).into_iter().chain(cache.by_index(BY_NO_OWNER, &key.namespace)).collect();
            found.extend(all.iter().map(|workload| Child::of_native(kind, workload)));
        }
        found.extend(guarded(&caches.clonesets, key, uid, Kind::CloneSet, Child::of_clone_set));
        found.extend(guarded(
            &caches.statefulsets,
            key,
            uid,
            Kind::AdvancedStatefulSet,
            Child::of_stateful_set,
        ));
        found
    }

    /// The pods of a workload; nothing while the ReplicaSets between them are being read for the first time.
    fn pods(&self, child: &Child) -> Option<Vec<Arc<Pod>>> {
        let caches = &self.shared.caches;
        let uid = &child.metadata.uid;
        if child.kind != Kind::Deployment {
            return Some(caches.pods.by_index(BY_OWNER, uid));
        }
        caches.replica_sets.want();
        if !caches.replica_sets.is_synced() {
            return None;
        }
        let sets = caches.replica_sets.by_index(BY_OWNER, uid);
        Some(sets.iter().flat_map(|set| caches.pods.by_index(BY_OWNER, &set.metadata.uid)).collect())
    }

    /// Those that belong to the object or to nobody, and those whose names stand in the way of new ones.
    fn revisions(&self, key: &ObjectKey, uid: &str) -> Vec<Arc<Revision>> {
        let texts = [uid.to_owned(), orphans_of(&key.namespace), named_after(&key.namespace, &key.name)];
        let found = texts.iter().flat_map(|text| self.shared.caches.revisions.by_index(BY_KIN, text));
        let unique: BTreeMap<_, _> =
            found.map(|revision| (revision.metadata.name.clone(), revision)).collect();
        unique.into_values().collect()
    }

    /// Reads the workloads that the plan will change.
    pub(super) async fn read(&self, seen: &mut Observed) {
        for child in uniteddeployment::to_read(seen) {
            let found = live::get::<Value>(&self.shared.client, child.resource, &child.key).await;
            let uid = |object: &Value| {
                object.pointer("/metadata/uid").and_then(Value::as_str) == Some(child.uid.as_str())
            };
            match found {
                Ok(Some(object)) if uid(&object) => {
                    seen.live.insert(child.uid.clone(), object);
                }
                Ok(_) => {}
                Err(error) => {
                    seen.unread.insert(child.uid.clone(), text::foreign(&error.to_string()));
                }
            }
        }
    }

    /// What is remembered of an object.
    fn of(&self, context: &Context, key: &ObjectKey) -> Memory {
        self.memory().entry(key.clone()).or_insert_with(|| Memory::new(context.random())).clone()
    }

    /// Remembers what became of a plan. What to say about the division, and when to look again.
    pub(super) fn remember(
        &self,
        context: &Context,
        key: &ObjectKey,
        seen: &Observed,
        news: Option<News>,
        acted: &Acted<Purpose>,
    ) -> (Option<String>, Option<Duration>) {
        let mut all = self.memory();
        let memory = all.entry(key.clone()).or_insert_with(|| Memory::new(context.random()));
        memory.learn(context.random(), acted);
        news.map(|news| memory.news(news, seen.now)).unwrap_or_default()
    }

    pub(super) fn forget_object(&self, key: &ObjectKey) {
        self.memory().remove(key);
    }

    fn memory(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same for a kind of ours. One that cannot be read is there, and nobody touches it.
fn guarded<T: Send + Sync>(
    cache: &Cache<Guarded<T>>,
    key: &ObjectKey,
    uid: &str,
    kind: Kind,
    view: fn(&Metadata, &T) -> Child,
) -> Vec<Child>
where
    Guarded<T>: kruise_runtime::cache::View,
{
    let all = owned(cache, uid).into_iter().chain(cache.by_index(BY_NO_OWNER, &key.namespace));
    let child = |stored: Arc<Guarded<T>>| match &stored.object {
        Ok(set) => view(&stored.metadata, set),
        Err(_) => Child::unreadable(kind, &stored.metadata),
    };
    all.map(child).collect()
}

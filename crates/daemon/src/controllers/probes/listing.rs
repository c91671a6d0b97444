//! The containers of the node for many probes: asked for once, used by all for a moment.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use kruise_api::probe::Probe;
use tokio::{sync::Mutex as Lock, time::Instant};

use crate::{
    cri::{self, Container, Detail, Runtime, Runtimes, keys},
    probing::Instance,
};

/// How old a list may be.
const FRESH: Duration = Duration::from_millis(500);

type Pods = Arc<BTreeMap<String, Vec<Container>>>;

/// The containers of the node by pod.
pub(super) struct Listing {
    runtimes: Runtimes,
    /// One list for each runtime, and when it was made.
    lists: Vec<Lock<Option<(Instant, Pods)>>>,
    /// When containers were started: that never changes.
    started: Mutex<BTreeMap<Named, Timestamp>>,
    /// The addresses of sandboxes: they do not change either.
    addresses: Mutex<BTreeMap<Named, Vec<String>>>,
}

/// The name of a runtime, and an id in it.
type Named = (String, String);

impl Listing {
    pub(super) fn new(runtimes: Runtimes) -> Self {
        let lists = runtimes.iter().map(|_| Lock::default()).collect();
        Self { runtimes, lists, started: Mutex::default(), addresses: Mutex::default() }
    }

    /// The addresses of the pod of a container, as far as a probe needs them.
    pub(super) async fn addresses(
        &self,
        runtime: &dyn Runtime,
        container: &Container,
        probe: &Probe,
    ) -> Result<Vec<String>, cri::Error> {
        if probe.exec.is_some() {
            return Ok(Vec::new());
        }
        let key = (runtime.name().to_owned(), container.sandbox.clone());
        if let Some(known) = lock(&self.addresses).get(&key) {
            return Ok(known.clone());
        }
        let addresses = runtime.sandbox_addresses(&container.sandbox).await?;
        lock(&self.addresses).insert(key, addresses.clone());
        Ok(addresses)
    }

    /// The newest container of this name, with its runtime.
    pub(super) async fn find(
        &self,
        pod_uid: &str,
        name: &str,
    ) -> Result<Option<(Arc<dyn Runtime>, Container, Instance)>, cri::Error> {
        let mut problem = None;
        for (runtime, list) in self.runtimes.iter().zip(&self.lists) {
            let pods = match self.pods(&**runtime, list).await {
                Ok(pods) => pods,
                // The pod may belong to another one, which answers.
                Err(error) => {
                    problem = Some(error);
                    continue;
                }
            };
            let container = pods.get(pod_uid).and_then(|containers| cri::newest(containers, name));
            if let Some(container) = container {
                let instance = self.instance(&**runtime, container).await?;
                return Ok(Some((runtime.clone(), container.clone(), instance)));
            }
        }
        problem.map_or(Ok(None), Err)
    }

    /// The list of a runtime. Who comes while it is being made waits for it.
    async fn pods(
        &self,
        runtime: &dyn Runtime,
        list: &Lock<Option<(Instant, Pods)>>,
    ) -> Result<Pods, cri::Error> {
        let mut list = list.lock().await;
        if let Some((made, pods)) = &*list
            && made.elapsed() < FRESH
        {
            return Ok(pods.clone());
        }
        let made = Instant::now();
        let mut pods: BTreeMap<String, Vec<Container>> = BTreeMap::new();
        for mut container in runtime.containers(None).await? {
            let Some(uid) = container.labels.remove(keys::POD_UID) else { continue };
            container.annotations.clear();
            pods.entry(uid).or_default().push(container);
        }
        // What belongs to another runtime stands in another list.
        let stays = |name: &str, holds: &dyn Fn(&Container) -> bool| {
            name != runtime.name() || pods.values().flatten().any(holds)
        };
        lock(&self.started).retain(|(name, id), _| stays(name, &|container| container.id == *id));
        lock(&self.addresses).retain(|(name, id), _| stays(name, &|container| container.sandbox == *id));
        let pods = Arc::new(pods);
        *list = Some((made, pods.clone()));
        Ok(pods)
    }

    async fn instance(&self, runtime: &dyn Runtime, container: &Container) -> Result<Instance, cri::Error> {
        let Container { id, state, .. } = container;
        let key = (runtime.name().to_owned(), id.clone());
        let mut started_at = lock(&self.started).get(&key).copied();
        if started_at.is_none() && *state == cri::State::Running {
            let inspected = runtime.inspect(id, Detail::State).await?;
            started_at = inspected.and_then(|inspected| inspected.started_at);
            if let Some(started) = started_at {
                lock(&self.started).insert(key, started);
            }
        }
        Ok(Instance { id: id.clone(), state: *state, started_at })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

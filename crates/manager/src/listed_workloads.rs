//! Workloads of the kinds that the white list of PersistentPodState names. Each of them that the cluster has is followed as
//! long as it is listed; the others are looked for again and again.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use kruise_core::{
    configuration,
    object::{ObjectKey, Resource},
    persistentpodstate::{Kinds, Set},
    workload::Workload,
};
use kruise_runtime::cache::{self, Cache, Change};
use tokio::{
    sync::Notify,
    task::{AbortHandle, JoinSet},
};

use crate::{caches::Caches, shared::Shared, workloads};

/// How often the server is asked for kinds that it does not have.
const AGAIN: Duration = Duration::from_secs(10);
/// How long the last change of the list is old before it is acted on.
const GATHER: Duration = Duration::from_millis(100);

/// Hears of changes of workloads: what was before, and what is.
pub type Listener = Arc<dyn Fn(&ObjectKey, Option<&Set>, Option<&Set>) + Send + Sync>;

/// Workloads of listed kinds. Clones are the same.
#[derive(Clone)]
pub struct ListedWorkloads(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct State {
    /// The kinds that are followed, by group and kind.
    followed: BTreeMap<(String, String), Followed>,
    /// Kinds that the cluster does not have, which was reported.
    missing: Vec<(String, String)>,
    /// Kinds as the rest of the program names them. They stay for ever, so each is made once.
    resources: Vec<Resource>,
    listener: Option<Listener>,
}

struct Followed {
    /// The version as it is listed.
    version: String,
    cache: Cache<Workload>,
    task: AbortHandle,
}

/// What is known of a workload of a listed kind.
#[derive(Clone, Debug)]
pub enum Found {
    /// It is there.
    There(Box<Set>),
    /// It is not.
    Missing(Resource),
    /// Nobody knows, because its kind is not followed (yet) or not read yet.
    NotRead,
    /// It cannot be read.
    Unreadable,
}

impl fmt::Debug for ListedWorkloads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ListedWorkloads").field(&self.0.state().followed.keys()).finish()
    }
}

impl ListedWorkloads {
    /// Nothing is followed before somebody [wants to hear](Self::report_to) of changes.
    pub fn follow(caches: &Caches) -> Self {
        let own = Self(Arc::new(Inner { state: Mutex::default(), changed: Arc::default() }));
        let weak: Weak<Notify> = Arc::downgrade(&own.0.changed);
        caches.configuration.subscribe(move |_| {
            if let Some(changed) = weak.upgrade() {
                changed.notify_one();
            }
        });
        own
    }

    /// Reports all changes from now on, and what is known already. Whoever wanted that before hears of none any more.
    pub fn report_to(&self, listener: Listener) {
        let mut state = self.0.state();
        for Followed { cache, .. } in state.followed.values() {
            subscribe(cache, &listener);
        }
        state.listener = Some(listener);
        self.0.changed.notify_one();
    }

    /// Looks up a workload.
    pub fn find(&self, group: &str, kind: &str, key: &ObjectKey) -> Found {
        let state = self.0.state();
        let Some(Followed { cache, .. }) = state.followed.get(&(group.to_owned(), kind.to_owned())) else {
            return Found::NotRead;
        };
        if !cache.is_synced() {
            return Found::NotRead;
        }
        match cache.get(key) {
            None => Found::Missing(cache.resource()),
            Some(workload) if workload.metadata.unreadable => Found::Unreadable,
            Some(workload) => Found::There(Box::new(Set::of_listed(cache.resource(), &workload))),
        }
    }

    /// All workloads of this name.
    pub fn named(&self, key: &ObjectKey) -> Vec<Set> {
        let state = self.0.state();
        let known = state.followed.values();
        let found = known.filter_map(|one| Some((one.cache.resource(), one.cache.get(key)?)));
        found
            .filter(|(_, workload)| !workload.metadata.unreadable)
            .map(|(resource, workload)| Set::of_listed(resource, &workload))
            .collect()
    }

    /// Follows the listed kinds for ever.
    pub(crate) async fn run(&self, shared: &Shared, options: cache::Options) {
        let mut tasks = JoinSet::new();
        loop {
            let all_there = self.look(shared, &options, &mut tasks).await;
            let changed = self.0.changed.notified();
            if all_there {
                changed.await;
            } else {
                let _ = tokio::time::timeout(AGAIN, changed).await;
            }
            tokio::time::sleep(GATHER).await;
            while tasks.try_join_next().is_some() {}
        }
    }

    /// Follows what is listed and stops following what is not. Returns whether all listed kinds are followed.
    async fn look(&self, shared: &Shared, options: &cache::Options, tasks: &mut JoinSet<()>) -> bool {
        if self.0.state().listener.is_none() {
            return true;
        }
        let kinds = Kinds::read(&shared.configuration.data());
        let is_listed = |(group, kind): &(String, String), version: &str| {
            kinds.listed().any(|one| one.group == *group && one.kind == *kind && one.version == version)
        };
        {
            let mut state = self.0.state();
            state.followed.retain(|kind, followed| {
                let stays = is_listed(kind, &followed.version);
                if !stays {
                    followed.task.abort();
                }
                stays
            });
            state.missing.retain(|(group, kind)| kinds.supports(group, kind));
        }
        let mut all_there = true;
        for one in kinds.listed() {
            let id = (one.group.clone(), one.kind.clone());
            if self.0.state().followed.contains_key(&id) {
                continue;
            }
            match discover(shared, one).await {
                Ok(Some((version, plural))) => self.begin(shared, one, &version, &plural, options, tasks),
                Ok(None) => {
                    all_there = false;
                    let mut state = self.0.state();
                    if !state.missing.contains(&id) {
                        let (group, kind) = &id;
                        tracing::info!(
                            group,
                            kind,
                            "a kind of the white list is not installed; it is left out"
                        );
                        state.missing.push(id);
                    }
                }
                Err(error) => {
                    all_there = false;
                    let (group, kind) = &id;
                    tracing::warn!(group, kind, error, "a kind of the white list cannot be looked up");
                }
            }
        }
        all_there
    }

    fn begin(
        &self,
        shared: &Shared,
        listed: &configuration::Workload,
        version: &str,
        plural: &str,
        options: &cache::Options,
        tasks: &mut JoinSet<()>,
    ) {
        let mut state = self.0.state();
        let resource = state.resource(&listed.group, version, &listed.kind, plural);
        let cache = Cache::<Workload>::new(resource).with_metrics(&shared.metrics);
        if let Some(listener) = &state.listener {
            subscribe(&cache, listener);
        }
        let (own, client, options) = (cache.clone(), shared.client.clone(), options.clone());
        let task = tasks.spawn(async move { own.run(client, options).await });
        let id = (listed.group.clone(), listed.kind.clone());
        state.missing.retain(|missing| *missing != id);
        state.followed.insert(id, Followed { version: listed.version.clone(), cache, task });
        let Resource { group, kind, .. } = resource;
        tracing::info!(group, version, kind, "follows a kind of the white list");
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn resource(&mut self, group: &str, version: &str, kind: &str, plural: &str) -> Resource {
        let is_it = |one: &&Resource| {
            (one.group, one.version, one.kind, one.plural) == (group, version, kind, plural)
        };
        if let Some(known) = self.resources.iter().find(is_it) {
            return *known;
        }
        // The program knows its kinds by texts that live as long as it does. An administrator lists few kinds.
        let lasting = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        let resource = Resource::namespaced(lasting(group), lasting(version), lasting(kind), lasting(plural));
        self.resources.push(resource);
        resource
    }
}

fn subscribe(cache: &Cache<Workload>, listener: &Listener) {
    let (resource, listener) = (cache.resource(), Arc::downgrade(listener));
    cache.subscribe(move |change: &Change<Workload>| {
        let Some(listener) = listener.upgrade() else { return };
        let set = |one: &Workload| Set::of_listed(resource, one);
        let (old, new) = (change.old.as_deref().map(set), change.new.as_deref().map(set));
        listener(&change.key, old.as_ref(), new.as_ref());
    });
}

/// The version and the plural of a listed kind, if the cluster has it.
async fn discover(
    shared: &Shared,
    listed: &configuration::Workload,
) -> Result<Option<(String, String)>, String> {
    let version = match listed.version.as_str() {
        "" => workloads::preferred_version(shared, &listed.group).await?,
        version => Some(version.to_owned()),
    };
    let Some(version) = version else { return Ok(None) };
    let plural = workloads::plural(shared, &listed.group, &version, &listed.kind).await?;
    Ok(plural.map(|plural| (version, plural)))
}

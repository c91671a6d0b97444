//! The newest state of WorkloadSpreads, and booking places in them.
//!
//! A place is booked by a write with the version that was read, before a pod is admitted. One request after the other books in
//! a spread in a process; between processes the server decides, and who comes second reads again.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use kruise_api::{
    json,
    workloadspread::v1beta1::{Status, WorkloadSpread},
};
use kruise_core::{
    configuration::{self, WorkloadWhiteList},
    object::{JOB, ObjectKey},
    pod::{Owner, Pod},
    podunavailablebudget::Target,
    text::Text,
    workload,
    workloadspread::{
        Asked, Booking, Family, Leaving, Left, Mark, Observed, Placed, Placement, Plan, Spread, Versioned,
        WORKLOAD_SPREAD, by_ordinal, decide, family, give_back, has_pods_of_its_own, leave, listed, place,
        status_write, total_at,
    },
};
use kruise_runtime::{
    cache::Plain,
    effects::{self, Why},
    live, version,
};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::{
    sync::Mutex as Turn,
    time::{Instant, sleep, timeout_at},
};

use crate::{
    caches::Caches,
    definitions,
    shared::Shared,
    workloads::{self, Found},
};

/// How often a write is tried, as long as there is time.
const TRIES: u32 = 8;
/// The wait after the first conflict; each further one doubles it.
const PAUSE: Duration = Duration::from_millis(10);
/// How many controllers above a pod are looked at.
const DEPTH: usize = 10;
/// How long a pod waits for the first list of spreads or of the white list. Without them it is adopted later.
const FIRST_LIST: Duration = Duration::from_secs(1);

/// The spreads as this process knows them. Clones are the same.
#[derive(Clone)]
pub struct Spreads(Arc<Inner>);

struct Inner {
    caches: Caches,
    versioned: Versioned,
    slots: Mutex<BTreeMap<ObjectKey, Arc<Slot>>>,
}

/// What is known of one spread besides the cache.
#[derive(Default)]
struct Slot {
    /// Whose turn it is to book.
    turn: Turn<()>,
    /// What this process wrote or read last, until the cache shows it.
    newest: Mutex<Option<Arc<WorkloadSpread>>>,
}

impl fmt::Debug for Spreads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Spreads").field(&lock(&self.0.slots).len()).finish()
    }
}

/// A new pod with its place.
#[derive(Clone, Debug)]
pub struct Taken {
    /// What the pod gets.
    pub placed: Arc<Placed>,
    booked: Option<Booked>,
}

/// Where a place is booked.
#[derive(Clone, Debug)]
struct Booked {
    spread: ObjectKey,
    version: String,
    record: String,
}

/// What somebody wants of a spread.
enum Wish<T> {
    /// Nothing is to be written.
    Done(T),
    /// Nothing is to be written, if the server says the same.
    Look(T),
    /// This status is to be written first.
    Write(T, Box<Status>),
}

impl Spreads {
    /// Those of these caches.
    pub fn follow(caches: &Caches, versioned: Versioned) -> Self {
        let inner = Arc::new(Inner { caches: caches.clone(), versioned, slots: Mutex::default() });
        // The caches must not keep alive what keeps them alive.
        let told: Weak<Inner> = Arc::downgrade(&inner);
        caches.spreads.subscribe(move |change| {
            if change.new.is_none()
                && let Some(inner) = told.upgrade()
            {
                lock(&inner.slots).remove(&change.key);
            }
        });
        Self(inner)
    }

    /// Which kinds have versions.
    pub fn versioned(&self) -> &Versioned {
        &self.0.versioned
    }

    /// A spread as it was seen or written last by this process. Nothing for one that cannot be read: it places no pods and
    /// keeps none from being made.
    pub fn newest(&self, key: &ObjectKey) -> Option<Arc<WorkloadSpread>> {
        let cached = self.0.caches.spreads.get(key)?.object.as_ref().ok()?.clone();
        let slot = lock(&self.0.slots).get(key).cloned();
        let Some(slot) = slot else { return Some(cached) };
        let mut own = lock(&slot.newest);
        if own.as_deref().is_some_and(|known| version::reached(version_of(&cached), version_of(known))) {
            *own = None;
        }
        Some(own.clone().unwrap_or(cached))
    }

    /// Where a new pod goes; nothing where no spread says so, or none of its subsets has room. An error keeps the pod from
    /// being made, and whoever makes it tries again.
    pub async fn place(
        &self,
        shared: &Shared,
        namespace: &str,
        pod: &Value,
        until: Instant,
    ) -> Result<Option<Taken>, String> {
        let references = json::at(pod, &["metadata", "ownerReferences"]).and_then(Value::as_array);
        let references = references.into_iter().flatten().filter_map(|one| Owner::deserialize(one).ok());
        let Some(owner) = references.into_iter().find(|owner| owner.controller) else { return Ok(None) };
        let Some(spread) = self.find(shared, namespace, pod, &owner, until).await? else { return Ok(None) };
        let label = |key: &str| json::text(pod, &["metadata", "labels", key]);
        let name = json::text(pod, &["metadata", "name"]).unwrap_or_default();
        let taken = |spread: &Spread, subset: usize, uid: String, booked: Option<Booked>| {
            let subset = spread.subsets.get(subset)?.spec.clone();
            let mark = Mark { name: spread.key.name.to_string(), subset: subset.name.clone(), uid };
            Some(Taken { placed: Arc::new(Placed { subset, mark }), booked })
        };
        if spread.is_open() {
            return Ok(taken(&spread, 0, String::new(), None));
        }
        if spread.family.is_some_and(Family::is_by_ordinal) {
            let Some(newest) = self.newest(&spread.key) else { return Ok(None) };
            let spread = Spread::of(&newest);
            let found = by_ordinal(&spread, name);
            return Ok(found.and_then(|subset| taken(&spread, subset, String::new(), None)));
        }
        let total = match spread.has_shares() {
            true => match timeout_at(until, self.total(shared, &spread)).await {
                Ok(total) => Some(total?.unwrap_or(0)),
                Err(_) => return Err(too_slow(&spread.key)),
            },
            false => None,
        };
        let version = self.0.versioned.version(&owner.kind, label);
        let fresh = shared.settings.random.uuid();
        let wish = |spread: &Spread| {
            let now = shared.settings.clock.now();
            let asked = Asked { name, fresh: &fresh, version: &version, total, now };
            let booked = |record: &str| {
                let (version, record) = (version.clone(), record.to_owned());
                Some(Booked { spread: spread.key.clone(), version, record })
            };
            match place(spread, &asked) {
                Placement::Nowhere => Wish::Done(None),
                Placement::Free(subset) => Wish::Done(taken(spread, subset, String::new(), None)),
                Placement::Booked(subset) => Wish::Done(taken(spread, subset, fresh.clone(), booked(&fresh))),
                Placement::Book(Booking { subset, by_name, again, status }) => {
                    let (uid, record) =
                        if by_name { (String::new(), name) } else { (fresh.clone(), fresh.as_str()) };
                    // The request before may still succeed: it needs the place that both have.
                    let booked = booked(record).filter(|_| !again);
                    Wish::Write(taken(spread, subset, uid, booked), status)
                }
            }
        };
        Ok(self.write(shared, &spread.key, until, wish).await?.flatten())
    }

    /// Gives a booking back, because its pod was refused after all. Without this it would run out by itself.
    pub async fn give_back(&self, shared: &Shared, taken: &Taken, until: Instant) {
        let Some(Booked { spread, version, record }) = &taken.booked else { return };
        let wish = |spread: &Spread| match give_back(spread, version, record) {
            Some(status) => Wish::Write((), Box::new(status)),
            None => Wish::Done(()),
        };
        if let Err(why) = self.write(shared, spread, until, wish).await {
            tracing::debug!(why, "a booking is left to run out");
        }
    }

    /// Counts a pod that somebody may delete.
    pub async fn leave(&self, shared: &Shared, pod: &Pod, until: Instant) -> Result<(), String> {
        let Some(mark) = Mark::of(&pod.metadata.annotations) else { return Ok(()) };
        let key = ObjectKey { namespace: pod.metadata.namespace.clone(), name: mark.name.as_str().into() };
        let Some(known) =
            self.newest(&key).filter(|_| pod.is_active() && pod.metadata.controller().is_some())
        else {
            return Ok(());
        };
        let total = known_total(shared, &Spread::of(&known));
        let version = self.0.versioned.of(pod);
        let wish = |spread: &Spread| {
            let now = shared.settings.clock.now();
            let left = Left { name: &pod.metadata.name, mark: &mark, version: &version, total, now };
            match leave(spread, &left) {
                Leaving::Write(status) => Wish::Write((), status),
                Leaving::Nothing => Wish::Done(()),
                Leaving::Unknown => Wish::Look(()),
            }
        };
        self.write(shared, &key, until, wish).await.map(drop)
    }

    /// Writes what the controller counted, in turn with those who book: where pods are booked all the time, a count beside them
    /// always comes too late. Returns the plan for the state that it was written to.
    pub async fn count(
        &self,
        shared: &Shared,
        seen: &Observed,
        until: Instant,
    ) -> Result<Option<Plan>, String> {
        let wish = |spread: &Spread| {
            let plan = decide(&Observed { spread: spread.clone(), ..seen.clone() });
            let status = plan.status.is_some().then(|| Box::new(plan.counted.clone()));
            match status {
                Some(status) => Wish::Write(plan, status),
                None => Wish::Done(plan),
            }
        };
        self.write(shared, &seen.spread.key, until, wish).await
    }

    /// The spread of a pod with this controller, the first by name.
    async fn find(
        &self,
        shared: &Shared,
        namespace: &str,
        pod: &Value,
        first: &Owner,
        until: Instant,
    ) -> Result<Option<Spread>, String> {
        let label = |key: &str| json::text(pod, &["metadata", "labels", key]);
        let stored = self.0.caches.spreads.in_namespace(namespace);
        let readable = stored.iter().filter_map(|stored| stored.object.as_ref().ok());
        let mut spreads: Vec<Spread> = readable.map(Spread::of).collect();
        spreads.retain(|spread| !spread.is_deleting() && spread.filter.accepts(label));
        spreads.sort_by(|left, right| left.key.cmp(&right.key));
        if spreads.is_empty() {
            return Ok(None);
        }
        let mut owner = first.clone();
        for _ in 0..DEPTH {
            let kind = family(owner.group(), &owner.kind);
            if kind.is_none()
                && listed(&white_list_of_pods(shared).await, owner.group(), &owner.kind).is_none()
            {
                return Ok(None);
            }
            if let Some(found) = spreads.iter().position(|spread| spread.targets(&owner)) {
                return Ok(Some(spreads.swap_remove(found)));
            }
            // Most workloads make their pods themselves: then there is nothing above to look for.
            let is_above = |spread: &Spread| match spread.family {
                Some(Family::Deployment) => kind == Some(Family::ReplicaSet),
                family => !has_pods_of_its_own(family),
            };
            if !spreads.iter().any(is_above) {
                return Ok(None);
            }
            match timeout_at(until, controller_of(shared, namespace, &owner)).await {
                Ok(Ok(Some(above))) => owner = above,
                Ok(Ok(None)) => return Ok(None),
                Ok(Err(why)) => return Err(why),
                Err(_) => {
                    return Err(format!("failed to read {} {namespace}/{} in time", owner.kind, owner.name));
                }
            }
        }
        Ok(None)
    }

    /// How many pods the workload of a spread wants now, as the server says; nothing where nobody knows.
    pub async fn total(&self, shared: &Shared, spread: &Spread) -> Result<Option<u32>, String> {
        let (target, namespace) = (&spread.target, &spread.key.namespace);
        let what = format!("{} {namespace}/{}", target.kind, target.name);
        let mut paths: Vec<String> = spread.replicas_paths().to_vec();
        if paths.is_empty() && spread.family.is_none() {
            let list = white_list_of_pods(shared).await;
            let path = list.find(&target.group, &target.kind).map(|entry| entry.replicas_path.clone());
            paths.extend(path.filter(|path| !path.is_empty()));
        }
        if paths.is_empty() && spread.family.is_none() {
            let scaled = workloads::scaled(shared, namespace, target).await?;
            let replicas = scaled.replicas.filter(|_| !scaled.is_gone);
            let replicas = if scaled.is_gone { Some(0) } else { replicas };
            return Ok(replicas.map(|replicas| u32::try_from(replicas.max(0)).unwrap_or(u32::MAX)));
        }
        let Some(object) = workload_of(shared, namespace, spread).await? else { return Ok(Some(0)) };
        match spread.family {
            Some(family) if paths.is_empty() => {
                let number = json::at(&object, &family.replicas_path()).and_then(Value::as_i64).unwrap_or(1);
                Ok(Some(u32::try_from(number.max(0)).unwrap_or(u32::MAX)))
            }
            _ => total_at(&object, paths.iter().map(String::as_str), &what).map(Some),
        }
    }

    /// Writes what somebody wants of the newest state. Nothing where the spread is gone, or is so broken that nothing can be
    /// written to it: such an object keeps no pod from being made or deleted.
    async fn write<T>(
        &self,
        shared: &Shared,
        key: &ObjectKey,
        until: Instant,
        wish: impl Fn(&Spread) -> Wish<T>,
    ) -> Result<Option<T>, String> {
        let slot = lock(&self.0.slots).entry(key.clone()).or_default().clone();
        let written = self.in_turn(shared, key, &slot, until, wish).await;
        // Of a spread that does not exist nothing is kept.
        if self.0.caches.spreads.get(key).is_none() {
            lock(&self.0.slots).remove(key);
        }
        written
    }

    async fn in_turn<T>(
        &self,
        shared: &Shared,
        key: &ObjectKey,
        slot: &Slot,
        until: Instant,
        wish: impl Fn(&Spread) -> Wish<T>,
    ) -> Result<Option<T>, String> {
        let Ok(_turn) = timeout_at(until, slot.turn.lock()).await else { return Err(too_slow(key)) };
        let Some(mut known) = self.newest(key) else { return Ok(None) };
        let mut pause = PAUSE;
        let mut problem = too_slow(key);
        let mut is_sure = false;
        for _ in 0..TRIES {
            let (wanted, status) = match wish(&Spread::of(&known)) {
                Wish::Done(wanted) => return Ok(Some(wanted)),
                Wish::Look(wanted) if is_sure => return Ok(Some(wanted)),
                Wish::Look(wanted) => match timeout_at(until, self.look(shared, key, slot)).await {
                    Ok(Ok(Some(read))) => {
                        (known, is_sure) = (read, true);
                        continue;
                    }
                    Ok(Ok(None)) => return Ok(None),
                    // It only makes the place free a little later.
                    Ok(Err(_)) | Err(_) => return Ok(Some(wanted)),
                },
                Wish::Write(wanted, status) => (wanted, status),
            };
            let Some(write) = status_write(&known, &status) else { return Ok(Some(wanted)) };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            match effects::once(&shared.client, &write, left).await {
                Ok(version) => {
                    remember(slot, &known, *status, version);
                    return Ok(Some(wanted));
                }
                Err(Why::Refused { code: 404, .. }) => {
                    *lock(&slot.newest) = None;
                    return Ok(None);
                }
                Err(why @ Why::Refused { code: 400 | 422, .. }) => {
                    tracing::warn!(%why, %key, "a WorkloadSpread that takes no status places no pods");
                    return Ok(None);
                }
                // Whether it happened is seen in what the server has now: the record stands there.
                Err(why @ (Why::Conflict | Why::Uncertain(_) | Why::Throttled(_))) => {
                    problem = format!("couldn't update WorkloadSpread {key}: {why}");
                }
                Err(why) => return Err(format!("couldn't update WorkloadSpread {key}: {why}")),
            }
            known = match timeout_at(until, self.look(shared, key, slot)).await {
                Ok(Ok(Some(known))) => known,
                Ok(Ok(None)) => return Ok(None),
                // The next write says whether what is known is still right.
                Ok(Err(why)) => {
                    problem = why;
                    known
                }
                Err(_) => break,
            };
            let jitter = shared.settings.random.below(u64::try_from(pause.as_millis()).unwrap_or(1).max(1));
            let wake = Instant::now() + pause / 2 + Duration::from_millis(jitter);
            if wake >= until {
                break;
            }
            sleep(wake.saturating_duration_since(Instant::now())).await;
            pause *= 2;
        }
        Err(problem)
    }

    /// Reads a spread from the server. One that cannot be understood is as good as none.
    async fn look(
        &self,
        shared: &Shared,
        key: &ObjectKey,
        slot: &Slot,
    ) -> Result<Option<Arc<WorkloadSpread>>, String> {
        let read = match live::get::<WorkloadSpread>(&shared.client, WORKLOAD_SPREAD, key).await {
            Ok(read) => read.map(Arc::new),
            Err(kube::Error::SerdeError(error)) => {
                tracing::warn!(%error, %key, "a WorkloadSpread that cannot be read places no pods");
                None
            }
            Err(error) => return Err(format!("failed to read WorkloadSpread {key}: {error}")),
        };
        lock(&slot.newest).clone_from(&read);
        Ok(read)
    }
}

fn remember(slot: &Slot, before: &WorkloadSpread, status: Status, version: Option<Text>) {
    let newest = version.map(|version| {
        let mut newest = before.clone();
        newest.metadata.resource_version = Some(version.into());
        newest.status = Some(status);
        Arc::new(newest)
    });
    *lock(&slot.newest) = newest;
}

/// Waits for the spreads, but not for long: a pod that is made without them is adopted later. Returns whether they are known.
pub async fn are_read(shared: &Shared, until: Instant) -> bool {
    let spreads = &shared.caches.spreads;
    if spreads.is_synced() {
        return true;
    }
    let definition = definitions::name(WORKLOAD_SPREAD).unwrap_or_default();
    if shared.definitions.is_missing(&definition) || shared.kinds.problem(WORKLOAD_SPREAD).is_some() {
        return false;
    }
    let waiting = async { shared.definitions.has(&definition).await && spreads.synced(FIRST_LIST).await };
    let is_read = timeout_at(until.min(Instant::now() + FIRST_LIST), waiting).await.unwrap_or(false);
    if !is_read {
        tracing::debug!("the WorkloadSpreads are not read yet: new pods are placed later");
    }
    is_read
}

/// The kinds that may be spread besides the known ones.
pub async fn white_list(shared: &Shared) -> Result<WorkloadWhiteList, String> {
    let configuration = &shared.caches.configuration;
    configuration.want();
    configuration.synced(FIRST_LIST).await;
    configuration::workloadspread_workloads(&data(shared)).map_err(|error| error.to_string())
}

/// The same for pods: a list that cannot be read counts as empty.
async fn white_list_of_pods(shared: &Shared) -> WorkloadWhiteList {
    white_list(shared).await.unwrap_or_default()
}

/// The settings that need no restart, as far as they are read.
fn data(shared: &Shared) -> configuration::Data {
    let stored = shared.caches.configuration.list();
    let data = stored.first().and_then(|stored| json::at(&stored.object, &["data"]).cloned());
    serde_json::from_value(data.unwrap_or_default()).unwrap_or_default()
}

/// The workload of a spread as the server has it.
pub async fn workload_of(shared: &Shared, namespace: &str, spread: &Spread) -> Result<Option<Value>, String> {
    let target = &spread.target;
    match spread.family {
        Some(family) => {
            let key = ObjectKey::new(namespace, target.name.as_str());
            let read = live::get::<Value>(&shared.client, family.resource(), &key).await;
            read.map_err(|error| format!("failed to read {} {key}: {error}", target.kind))
        }
        None => workloads::object(shared, namespace, target).await,
    }
}

/// The controller of an owner of a pod. One that is not there yet is an error: it will be in a moment.
pub async fn controller_of(shared: &Shared, namespace: &str, owner: &Owner) -> Result<Option<Owner>, String> {
    let key = ObjectKey::new(namespace, owner.name.clone());
    let missing = || format!("{} {key}, which controls the pod, is not found; try again", owner.kind);
    let known = workload::known(owner.group(), &owner.kind);
    if let Some(resource) = known
        && let Found::There(found) = workloads::find(shared, resource, &key)
        && found.metadata.uid == owner.uid
    {
        return Ok(found.metadata.controller().cloned());
    }
    let resource = known.or_else(|| family(owner.group(), &owner.kind).map(Family::resource));
    let Some(resource) = resource else {
        let version = owner.api_version.as_str();
        let target = Target {
            group: owner.group().to_owned(),
            version: version.split_once('/').map_or(version, |(_, version)| version).to_owned(),
            kind: owner.kind.to_string(),
            name: owner.name.to_string(),
        };
        let object = workloads::object(shared, namespace, &target).await?.ok_or_else(missing)?;
        let references = json::at(&object, &["metadata", "ownerReferences"]).and_then(Value::as_array);
        let references = references.into_iter().flatten().filter_map(|one| Owner::deserialize(one).ok());
        return Ok(references.into_iter().find(|owner| owner.controller));
    };
    match live::get::<Plain>(&shared.client, resource, &key).await {
        Ok(Some(found)) => Ok(found.metadata.controller().cloned()),
        Ok(None) => Err(missing()),
        Err(error) => Err(format!("failed to read {} {key}: {error}", owner.kind)),
    }
}

/// How many pods the workload of a spread wants, as far as caches know.
pub fn known_total(shared: &Shared, spread: &Spread) -> Option<u32> {
    let family = spread.family.filter(|_| spread.replicas_paths().is_empty())?;
    let key = ObjectKey { namespace: spread.key.namespace.clone(), name: spread.target.name.as_str().into() };
    let number = if family.resource() == JOB {
        shared.caches.jobs.get(&key)?.spec.parallelism.unwrap_or(1)
    } else {
        match workloads::find(shared, family.resource(), &key) {
            Found::There(found) => found.replicas(),
            Found::Missing | Found::NotRead | Found::Unreadable => return None,
        }
    };
    Some(u32::try_from(number.max(0)).unwrap_or(u32::MAX))
}

fn too_slow(key: &ObjectKey) -> String {
    format!("WorkloadSpread {key} could not be asked in time")
}

fn version_of(spread: &WorkloadSpread) -> &str {
    spread.metadata.resource_version.as_deref().unwrap_or_default()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

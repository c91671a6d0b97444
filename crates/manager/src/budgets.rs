//! The newest state of PodUnavailableBudgets, and taking from them.
//!
//! A share of a budget is taken by a write with the version that was read, before anybody gets a yes. One request after the
//! other takes from a budget in a process; between processes the server decides, and who comes second reads again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use kruise_api::podunavailablebudget::v1beta1::{Operation, PodUnavailableBudget, Status};
use kruise_core::{
    object::{ObjectKey, Resource},
    pod::Pod,
    podunavailablebudget::{
        Asked, Budget, Kind, POD_UNAVAILABLE_BUDGET, Recount, Refusal, Turns, Verdict, admit, counted,
        is_exempt, related, status_write,
    },
};
use kruise_runtime::{
    cache::{Change, Guarded},
    effects::{self, Why},
    live, version,
};
use tokio::{
    sync::Mutex as Turn,
    time::{Instant, sleep, timeout_at},
};

use crate::{caches::Caches, shared::Shared, workloads};

/// How often a write is tried, as long as there is time.
const TRIES: u32 = 8;
/// The wait after the first conflict; each further one doubles it.
const PAUSE: Duration = Duration::from_millis(10);
/// How long a read may take that nobody waits for.
const REFRESH_WITHIN: Duration = Duration::from_secs(5);
/// An answer from a cache that takes no share is checked with the server, but not more often than this for each budget.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The budgets as this process knows them. Clones are the same.
#[derive(Clone)]
pub struct Budgets(Arc<Inner>);

struct Inner {
    caches: Caches,
    /// Who waits for budgets, by the kind of the object that waits.
    waiters: Mutex<BTreeMap<Resource, Waiting>>,
    slots: Mutex<BTreeMap<ObjectKey, Arc<Slot>>>,
    /// When this process began: what times between records are counted from.
    began: Instant,
}

/// What is known of one budget besides the cache.
#[derive(Default)]
struct Slot {
    /// Whose turn it is to take from it, and when the server was asked last.
    turn: Turn<Option<Instant>>,
    /// What this process wrote or read last, until the cache shows it.
    newest: Mutex<Option<Arc<PodUnavailableBudget>>>,
    /// How records ended, and the version of the status that showed it last.
    turns: Mutex<(String, Turns)>,
}

impl fmt::Debug for Budgets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Budgets").field(&lock(&self.0.slots).len()).finish()
    }
}

/// What became of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// Go on: the pod is not held back, or it was paid for. `is_taken` says that a share was taken now.
    Go {
        /// Whether this question took a share.
        is_taken: bool,
    },
    /// Not now.
    Refused(Box<Refusal>),
    /// Nobody knows.
    Failed(String),
    /// Nobody knows yet: there was no time, or the server wants a pause.
    Late(String),
}

/// Who wants to do what to a pod.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// The name of the budget that protects the pod.
    pub budget: &'a str,
    /// The pod as it is now.
    pub pod: &'a Pod,
    /// What is done to it.
    pub operation: &'a Operation,
    /// Where it is recorded.
    pub record: Kind,
    /// Nothing will happen.
    pub dry_run: bool,
    /// When the answer must be there.
    pub until: Instant,
}

impl Budgets {
    /// Those of these caches.
    pub fn follow(caches: &Caches) -> Self {
        let inner = Arc::new(Inner {
            caches: caches.clone(),
            waiters: Mutex::default(),
            slots: Mutex::default(),
            began: Instant::now(),
        });
        // The caches must not keep alive what keeps them alive.
        let told: Weak<Inner> = Arc::downgrade(&inner);
        caches.budgets.subscribe(move |change| {
            let Some(inner) = told.upgrade() else { return };
            let Some(new) = &change.new else {
                lock(&inner.slots).remove(&change.key);
                return;
            };
            let Ok(budget) = &new.object else { return };
            let known = lock(&inner.slots).get(&change.key).cloned();
            match known {
                Some(slot) => inner.see(&change.key, &slot, budget),
                // Only how records end is of interest.
                None if has_records(budget) => {
                    let slot = lock(&inner.slots).entry(change.key.clone()).or_default().clone();
                    inner.see(&change.key, &slot, budget);
                }
                None => {}
            }
        });
        Self(inner)
    }

    /// The objects of a kind that wait for budgets.
    pub fn waiters(&self, resource: Resource) -> Waiting {
        lock(&self.0.waiters).entry(resource).or_default().clone()
    }

    fn slot(&self, key: &ObjectKey) -> Arc<Slot> {
        lock(&self.0.slots).entry(key.clone()).or_default().clone()
    }

    /// A budget as it was seen or written last by this process; the error of one that cannot be read.
    pub fn newest(&self, key: &ObjectKey) -> Result<Option<Arc<PodUnavailableBudget>>, String> {
        let cached = match self.0.caches.budgets.get(key) {
            None => None,
            Some(stored) => Some(
                stored
                    .object
                    .clone()
                    .map_err(|why| format!("PodUnavailableBudget {key} cannot be read: {why}"))?,
            ),
        };
        let slot = lock(&self.0.slots).get(key).cloned();
        let Some(slot) = slot else { return Ok(cached) };
        let mut own = lock(&slot.newest);
        if let (Some(cached), Some(known)) = (&cached, own.as_deref())
            && version::reached(version_of(cached), version_of(known))
        {
            *own = None;
        }
        Ok(own.clone().or(cached))
    }

    /// Whether the pod may go now. A share of its budget is taken when the answer is yes and none was taken for it before.
    pub async fn ask(&self, shared: &Shared, wish: &Wish<'_>) -> Answered {
        if is_exempt(wish.pod) {
            return Answered::Go { is_taken: false };
        }
        let key = ObjectKey::new(wish.pod.metadata.namespace.clone(), wish.budget);
        let slot = self.slot(&key);
        let answered = self.in_turn(shared, wish, &key, &slot).await;
        // Of a budget that does not exist nothing is kept.
        if self.0.caches.budgets.get(&key).is_none() && lock(&slot.newest).is_none() {
            lock(&self.0.slots).remove(&key);
        }
        answered
    }

    async fn in_turn(&self, shared: &Shared, wish: &Wish<'_>, key: &ObjectKey, slot: &Slot) -> Answered {
        let known = match self.newest(key) {
            Ok(known) => known,
            Err(why) => return Answered::Failed(why),
        };
        let Ok(mut looked) = timeout_at(wish.until, slot.turn.lock()).await else {
            return known.map_or(too_slow(wish), |budget| refused_by_conflicts(&budget));
        };
        let mut known = match self.newest(key) {
            Ok(Some(known)) => known,
            Ok(None) => match self.look(shared, wish.until, key, slot, &mut looked).await {
                Ok(Some(known)) => known,
                Ok(None) => return Answered::Go { is_taken: false },
                Err(why) => return Answered::Failed(why),
            },
            Err(why) => return Answered::Failed(why),
        };
        let mut pause = PAUSE;
        for _ in 0..TRIES {
            let budget = Budget::of(&known);
            // Nobody counts for it any more.
            if budget.is_deleting() {
                return Answered::Go { is_taken: false };
            }
            self.0.see(key, slot, &known);
            let others_first = lock(&slot.turns).1.others_first(wish.pod, self.0.began.elapsed());
            let status = match verdict(shared, &budget, wish, others_first) {
                Verdict::Free => return Answered::Go { is_taken: false },
                Verdict::Take(status) => status,
                Verdict::Open => {
                    if looked.is_some_and(|looked| looked.elapsed() < LOOK_EVERY) {
                        return Answered::Go { is_taken: false };
                    }
                    match self.look(shared, wish.until, key, slot, &mut looked).await {
                        Ok(Some(newer)) if version_of(&newer) != version_of(&known) => known = newer,
                        Ok(_) => return Answered::Go { is_taken: false },
                        Err(why) => return Answered::Failed(why),
                    }
                    continue;
                }
                Verdict::Refuse(refusal) => {
                    if looked.is_some_and(|looked| looked.elapsed() < LOOK_EVERY) {
                        return Answered::Refused(refusal);
                    }
                    match self.look(shared, wish.until, key, slot, &mut looked).await {
                        Ok(Some(newer)) if version_of(&newer) != version_of(&known) => known = newer,
                        Ok(Some(_)) | Err(_) => return Answered::Refused(refusal),
                        Ok(None) => return Answered::Go { is_taken: false },
                    }
                    continue;
                }
            };
            let Some(write) = status_write(&known, &status) else { return Answered::Go { is_taken: false } };
            let left = wish.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            match effects::once(&shared.client, &write, left).await {
                Ok(version) => {
                    if wish.record == Kind::Unavailable {
                        lock(&slot.turns).1.updates(wish.pod);
                    }
                    if let Some(taken) = remember(slot, &known, &status, version) {
                        self.0.see(key, slot, &taken);
                    }
                    return Answered::Go { is_taken: true };
                }
                Err(Why::Refused { code: 404, .. }) => {
                    *lock(&slot.newest) = None;
                    return Answered::Go { is_taken: false };
                }
                // Whether it happened is seen in what the server has now: the record stands there.
                Err(Why::Conflict | Why::Uncertain(_)) => {}
                Err(why) => {
                    let message = format!("couldn't update PodUnavailableBudget {}: {why}", key.name);
                    return match why {
                        Why::Throttled(_) => Answered::Late(message),
                        _ => Answered::Failed(message),
                    };
                }
            }
            known = match self.look(shared, wish.until, key, slot, &mut looked).await {
                Ok(Some(known)) => known,
                Ok(None) => return Answered::Go { is_taken: false },
                Err(why) => return Answered::Failed(why),
            };
            let jitter = shared.settings.random.below(u64::try_from(pause.as_millis()).unwrap_or(1).max(1));
            let wake = Instant::now() + pause / 2 + Duration::from_millis(jitter);
            if wake >= wish.until {
                break;
            }
            sleep(wake.saturating_duration_since(Instant::now())).await;
            pause *= 2;
        }
        refused_by_conflicts(&known)
    }

    /// Reads a budget from the server, whose newest state is known then.
    pub async fn refresh(&self, shared: &Shared, key: &ObjectKey) -> Result<(), String> {
        let until = Instant::now() + REFRESH_WITHIN;
        let slot = self.slot(key);
        let Ok(mut looked) = timeout_at(until, slot.turn.lock()).await else {
            return Err(format!("PodUnavailableBudget {key} is being asked all the time"));
        };
        self.look(shared, until, key, &slot, &mut looked).await.map(drop)
    }

    /// Reads a budget from the server.
    async fn look(
        &self,
        shared: &Shared,
        until: Instant,
        key: &ObjectKey,
        slot: &Slot,
        looked: &mut Option<Instant>,
    ) -> Result<Option<Arc<PodUnavailableBudget>>, String> {
        let read = live::get::<PodUnavailableBudget>(&shared.client, POD_UNAVAILABLE_BUDGET, key);
        let read = match timeout_at(until, read).await {
            Err(_) => return Err(format!("failed to read PodUnavailableBudget {key} in time")),
            Ok(Err(error)) => return Err(format!("failed to read PodUnavailableBudget {key}: {error}")),
            Ok(Ok(read)) => read.map(Arc::new),
        };
        *looked = Some(Instant::now());
        lock(&slot.newest).clone_from(&read);
        Ok(read)
    }
}

impl Inner {
    /// Learns from a state of a budget how its records ended. What is older than what was seen says nothing.
    fn see(&self, key: &ObjectKey, slot: &Slot, budget: &PodUnavailableBudget) {
        let mut turns = lock(&slot.turns);
        let version = version_of(budget);
        if version::reached(&turns.0, version) {
            return;
        }
        version.clone_into(&mut turns.0);
        let pod = |name: &str| {
            self.caches.pods.get(&ObjectKey { namespace: key.namespace.clone(), name: name.into() })
        };
        turns.1.see(&budget.status.clone().unwrap_or_default(), pod, self.began.elapsed());
    }
}

fn has_records(budget: &PodUnavailableBudget) -> bool {
    let status = budget.status.as_ref();
    status.is_some_and(|status| !status.disrupted_pods.is_empty() || !status.unavailable_pods.is_empty())
}

/// Keeps what was written until the cache shows it.
fn remember(
    slot: &Slot,
    before: &PodUnavailableBudget,
    status: &Status,
    version: Option<kruise_core::text::Text>,
) -> Option<Arc<PodUnavailableBudget>> {
    let newest = version.map(|version| {
        let mut newest = before.clone();
        newest.metadata.resource_version = Some(version.into());
        newest.status = Some(status.clone());
        Arc::new(newest)
    });
    lock(&slot.newest).clone_from(&newest);
    newest
}

/// Decides. Pods are only counted where the status would let one go: that is seldom, and refusals are many.
fn verdict(shared: &Shared, budget: &Budget, wish: &Wish<'_>, others_first: bool) -> Verdict {
    let asked = Asked {
        pod: wish.pod,
        operation: wish.operation,
        record: wish.record,
        dry_run: wish.dry_run,
        gates: &shared.settings.gates,
        recount: None,
        others_first,
        now: shared.settings.clock.now(),
    };
    let status = budget.status();
    let is_observed = status.observed_generation >= Some(budget.object.metadata.generation.unwrap_or(0));
    let first = admit(budget, &asked);
    let is_free = matches!(first, Verdict::Free | Verdict::Open);
    if is_observed && (matches!(first, Verdict::Refuse(_)) || is_free && !wish.dry_run) {
        return first;
    }
    let recount = recount(shared, budget, &status);
    if recount.is_none() { first } else { admit(budget, &Asked { recount, ..asked }) }
}

fn recount(shared: &Shared, budget: &Budget, status: &Status) -> Option<Recount> {
    if !shared.caches.pods.is_synced() {
        return None;
    }
    let members = workloads::members(shared, budget);
    // Pods of other kinds may be found by a selector that only the server knows.
    if !members.not_read.is_empty()
        || !members.unreadable.is_empty()
        || !members.foreign.is_empty() && members.pods.is_empty()
    {
        return None;
    }
    let expected = members.expected(budget.total);
    Some(Recount { available: counted(status, &members.pods), expected })
}

fn refused_by_conflicts(budget: &Arc<PodUnavailableBudget>) -> Answered {
    Answered::Refused(Box::new(Refusal::conflicts(&Budget::of(budget))))
}

fn too_slow(wish: &Wish<'_>) -> Answered {
    Answered::Late(format!("PodUnavailableBudget {} could not be asked in time", wish.budget))
}

fn version_of(budget: &PodUnavailableBudget) -> &str {
    budget.metadata.resource_version.as_deref().unwrap_or_default()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who waits for which budget: a budget that allows something again wakes them. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Waiting(Arc<Mutex<BTreeMap<ObjectKey, BTreeSet<ObjectKey>>>>);

impl Waiting {
    /// Somebody was refused by a budget.
    pub fn add(&self, budget: &ObjectKey, who: &ObjectKey) {
        lock(&self.0).entry(budget.clone()).or_default().insert(who.clone());
    }

    /// Somebody is gone.
    pub fn forget(&self, who: &ObjectKey) {
        lock(&self.0).retain(|_, waiting| {
            waiting.remove(who);
            !waiting.is_empty()
        });
    }

    /// Wakes those who wait for a budget, if it may let something go now.
    pub fn wake(&self, change: &Change<Guarded<PodUnavailableBudget>>, wake: &mut dyn FnMut(ObjectKey)) {
        let allows = match change.new.as_ref().map(|stored| &stored.object) {
            None => true,
            Some(Ok(budget)) => allowed(budget) > 0,
            Some(Err(_)) => false,
        };
        if allows {
            let waiting = lock(&self.0).remove(&change.key);
            waiting.into_iter().flatten().for_each(wake);
        }
    }
}

/// How many pods a budget would let go now, by its status. One without limit lets all go.
fn allowed(budget: &PodUnavailableBudget) -> i32 {
    let status = budget.status.as_ref();
    status.map_or(1, |status| if status.desired_available == 0 { 1 } else { status.unavailable_allowed })
}

impl Budgets {
    /// Why a pod was refused, as the reason `BudgetRefuses` says it, and which budget it was.
    pub fn reason(&self, shared: &Shared, pod: &Pod) -> Option<(ObjectKey, String)> {
        let key = self.of(pod)?;
        let budget = Budget::of(&self.newest(&key).ok().flatten()?);
        let refusal = Refusal::now(&budget, recount(shared, &budget, &budget.status()));
        Some((key, refusal.waits(std::slice::from_ref(&pod.metadata.name))))
    }

    /// Whether the budget of a pod has nothing left for it, as far as is known.
    pub fn is_used_up(&self, pod: &Pod) -> bool {
        let Some(key) = self.of(pod) else { return false };
        let Some(budget) = self.newest(&key).ok().flatten() else { return false };
        let slot = lock(&self.0.slots).get(&key).cloned();
        let others_first =
            slot.is_some_and(|slot| lock(&slot.turns).1.others_first(pod, self.0.began.elapsed()));
        let is_limited = budget.status.as_ref().is_some_and(|status| status.desired_available != 0);
        allowed(&budget) <= i32::from(others_first && is_limited)
    }

    fn of(&self, pod: &Pod) -> Option<ObjectKey> {
        let name = related(&pod.metadata.annotations)?;
        Some(ObjectKey { namespace: pod.metadata.namespace.clone(), name: name.into() })
    }
}

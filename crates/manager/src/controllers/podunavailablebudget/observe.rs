//! Everything a pass may know of a budget, from caches, and from the server where a cache would not do.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kruise_api::podunavailablebudget::v1beta1::PodUnavailableBudget;
use kruise_core::{
    object::{ObjectKey, POD},
    pod::{Owner, Pod},
    podunavailablebudget::{Budget, Covers, Expected, Noticed, Observed, Target, doubtful, notice, related},
    text::Text,
};
use kruise_runtime::{
    cache::Guarded,
    controller::{Context, Error},
    live, version,
};
use tokio::time::Instant;

use crate::{
    shared::Shared,
    workloads::{self, Members, Scaled},
};

/// How often the server is asked about workloads of kinds that nobody watches.
const ASK_EVERY: Duration = Duration::from_secs(30);

/// How many pods are read at the same time.
const READS_AT_ONCE: usize = 16;
/// How long a kind may be read for the first time before that is reported.
const REPORT_AFTER: Duration = Duration::from_secs(30);

/// What caches lack.
enum Unread {
    /// Nothing that has to be counted.
    Nothing,
    /// A kind that is being read for the first time.
    Waits,
    /// Something that cannot be read, and why.
    Fails(String),
}

/// Gathers. Clones are the same.
#[derive(Clone)]
pub(super) struct Observer {
    shared: Shared,
    memory: Arc<Mutex<BTreeMap<ObjectKey, Memory>>>,
}

/// What is remembered of a budget.
#[derive(Default)]
struct Memory {
    noticed: Noticed,
    /// Since when something that has to be counted cannot be read.
    unread_since: Option<Instant>,
    /// What the server said of pods of which the cache shows an older state: the uid of the pod in the cache, and the pod. The
    /// cache may have missed what happened.
    overruled: BTreeMap<Text, (Text, Option<Arc<Pod>>)>,
    /// What the server said of workloads of other kinds, or why it could not be asked, and when.
    asked: BTreeMap<(String, String, String), (Instant, ScaleAnswer)>,
}

/// What the server said of the scale of a workload, or why it could not be asked.
type ScaleAnswer = Result<Scaled, String>;

impl Observer {
    pub(super) fn new(shared: &Shared) -> Self {
        Self { shared: shared.clone(), memory: Arc::default() }
    }

    pub(super) fn find(&self, key: &ObjectKey) -> Option<Arc<Guarded<PodUnavailableBudget>>> {
        self.shared.caches.budgets.get(key).filter(|stored| !stored.metadata.is_deleting())
    }

    pub(super) fn forget(&self, key: &ObjectKey) {
        self.memory().remove(key);
    }

    /// A pod as the server has it.
    async fn read(&self, key: &ObjectKey, name: &Text) -> Result<(Text, Option<Arc<Pod>>), Error> {
        let pod = ObjectKey { namespace: key.namespace.clone(), name: name.clone() };
        let read = live::get::<Pod>(&self.shared.client, POD, &pod).await.map_err(Error::other)?;
        Ok((name.clone(), read.map(Arc::new)))
    }

    /// Reads a budget from the server: what is known of it was old.
    pub(super) async fn refresh(&self, key: &ObjectKey) {
        if let Err(why) = self.shared.budgets.refresh(&self.shared, key).await {
            tracing::debug!(%why, "the cache is asked again");
        }
    }

    /// When the server is to be asked again, if it was.
    pub(super) fn asks_again(&self, key: &ObjectKey) -> Option<Duration> {
        let memory = self.memory();
        let memory = memory.get(key)?;
        let oldest = memory.asked.values().map(|(when, _)| *when).min();
        let asks = oldest.map(|when| ASK_EVERY.saturating_sub(when.elapsed()).max(Duration::from_secs(1)));
        asks.into_iter().chain(memory.unread_since.map(|_| ASK_EVERY)).min()
    }

    /// Everything; nothing while something is still being read for the first time.
    pub(super) async fn observe(
        &self,
        context: &Context,
        key: &ObjectKey,
    ) -> Result<Option<Observed>, Error> {
        let shared = &self.shared;
        let Some(object) = shared.budgets.newest(key).map_err(Error::other)? else { return Ok(None) };
        let budget = Budget::of(&object);
        let mut members = workloads::members(shared, &budget);
        let (expected, guessed) = match self.unread(key, &budget, &members) {
            Unread::Nothing => self.expected(key, &budget, &mut members).await,
            Unread::Waits => return Ok(None),
            Unread::Fails(why) => (Expected::Unread(why), None),
        };
        let now = context.clock().now();
        let status = budget.status();
        let noticed = {
            let mut memory = self.memory();
            let noticed = &mut memory.entry(key.clone()).or_default().noticed;
            notice(noticed, &status, now);
            noticed.clone()
        };
        let names = status.disrupted_pods.keys().chain(status.unavailable_pods.keys());
        let recorded: BTreeMap<Text, Arc<Pod>> = names
            .filter_map(|name| {
                let name = Text::from(name.as_str());
                let key = ObjectKey { namespace: key.namespace.clone(), name: name.clone() };
                Some((name, shared.caches.pods.get(&key)?))
            })
            .collect();
        let mut live = self.overruled(key);
        let doubtful = doubtful(&status, &noticed, |name| recorded.get(name), now);
        let mut reads = Vec::with_capacity(doubtful.len());
        // Thousands may run out at once.
        for names in doubtful.chunks(READS_AT_ONCE) {
            let reading = names.iter().map(|name| self.read(key, name));
            reads.extend(futures::future::try_join_all(reading).await?);
        }
        for (name, read) in reads {
            if let Some(cached) = recorded.get(&name) {
                let uid = cached.metadata.uid.clone();
                let mut memory = self.memory();
                let overruled = &mut memory.entry(key.clone()).or_default().overruled;
                overruled.insert(name.clone(), (uid, read.clone()));
            }
            live.insert(name, read);
        }
        Ok(Some(Observed {
            budgets: self.budgets(&key.namespace),
            owners: self.owners(&budget, &members.pods),
            pods: members.pods,
            budget,
            expected,
            guessed,
            recorded,
            live,
            noticed,
            now,
        }))
    }

    /// Whether caches lack a workload that has to be counted. After a while it is reported, and records run out all the same.
    fn unread(&self, key: &ObjectKey, budget: &Budget, members: &Members) -> Unread {
        let mut memory = self.memory();
        let since = &mut memory.entry(key.clone()).or_default().unread_since;
        if budget.total.is_some() && members.not_read.is_empty() {
            // The workload need not say how many pods it wants.
            *since = None;
            return Unread::Nothing;
        }
        if let Some((kind, name)) = members.unreadable.first() {
            since.get_or_insert_with(Instant::now);
            return Unread::Fails(format!("{kind} {name} cannot be read"));
        }
        let Some(kind) = members.not_read.first() else {
            *since = None;
            return Unread::Nothing;
        };
        match since.get_or_insert_with(Instant::now).elapsed() < REPORT_AFTER {
            true => Unread::Waits,
            false => Unread::Fails(format!("objects of kind {kind} cannot be read")),
        }
    }

    /// Pods of which the cache still shows what the server has already said to be old.
    fn overruled(&self, key: &ObjectKey) -> BTreeMap<Text, Option<Arc<Pod>>> {
        let mut memory = self.memory();
        let Some(memory) = memory.get_mut(key) else { return BTreeMap::new() };
        let pods = &self.shared.caches.pods;
        memory.overruled.retain(|name, (uid, live)| {
            let pod = ObjectKey { namespace: key.namespace.clone(), name: name.clone() };
            pods.get(&pod).is_some_and(|cached| is_older(&cached, uid, live.as_deref()))
        });
        memory.overruled.iter().map(|(name, (_, pod))| (name.clone(), pod.clone())).collect()
    }

    /// All budgets of a namespace that can be read, sorted by name.
    fn budgets(&self, namespace: &str) -> Vec<Budget> {
        let stored = self.shared.caches.budgets.in_namespace(namespace);
        stored.iter().filter_map(|stored| stored.object.as_ref().ok()).map(Budget::of).collect()
    }

    /// The controllers of pods that are not noted as protected by the budget.
    fn owners(&self, budget: &Budget, pods: &[Arc<Pod>]) -> BTreeMap<Text, Vec<Owner>> {
        let is_open = |pod: &&Arc<Pod>| related(&pod.metadata.annotations) != Some(budget.key.name.as_str());
        let owners =
            |pod: &Pod| workloads::owners(&self.shared, &pod.metadata.namespace, pod.metadata.controller());
        pods.iter().filter(is_open).map(|pod| (pod.metadata.name.clone(), owners(pod))).collect()
    }

    /// How many pods there should be, and why some of them are guessed. The server is asked about workloads of kinds that nobody
    /// watches; where they say how their pods are chosen, those are the pods.
    async fn expected(
        &self,
        key: &ObjectKey,
        budget: &Budget,
        members: &mut Members,
    ) -> (Expected, Option<String>) {
        let (mut unread, mut unknown) = (None, None);
        let is_target = matches!(&budget.covers, Covers::Workload(_));
        let foreign = std::mem::take(&mut members.foreign);
        self.keep_asked(key, &foreign);
        let (mut counted, mut guessed) = (members.has_known, 0);
        for target in &foreign {
            let said = match self.scaled(key, target).await {
                Ok(said) => said,
                Err(why) => {
                    unread.get_or_insert(why);
                    continue;
                }
            };
            if said.is_gone {
                if is_target {
                    (members.is_gone, members.pods) = (true, Vec::new());
                }
                continue;
            }
            if let Some(selector) = said.selector.as_ref().filter(|_| is_target && members.pods.is_empty()) {
                members.pods = workloads::labelled(&self.shared.caches, &key.namespace, selector);
            }
            match said.replicas {
                Some(replicas) => {
                    counted = true;
                    members.wanted = members.wanted.saturating_add(replicas);
                }
                None => {
                    let is_its =
                        |pod: &&Arc<Pod>| pod.metadata.controller().is_some_and(|owner| target.is(owner));
                    guessed += i64::try_from(members.pods.iter().filter(is_its).count()).unwrap_or(0);
                    let Target { kind, name, .. } = target;
                    let why = format!(
                        "{kind} {name} has no scale subresource; set spec.protectTotalReplicas of the budget"
                    );
                    unknown.get_or_insert(why);
                }
            }
        }
        if budget.total.is_some() || members.is_gone {
            return (Expected::Pods(members.expected(budget.total).unwrap_or(0)), None);
        }
        if let Some(why) = unread {
            return (Expected::Unread(why), None);
        }
        match unknown {
            None => (Expected::Pods(members.expected(None).unwrap_or(0)), None),
            // One pod of a Job among those of a Deployment must not open the budget: it counts as one that is wanted.
            Some(why) if counted && !is_target => {
                members.wanted = members.wanted.saturating_add(guessed);
                (Expected::Pods(members.expected(None).unwrap_or(0)), Some(why))
            }
            Some(why) => (Expected::Unknown(why), None),
        }
    }

    /// What the server said last, while that is not old. When it cannot be asked, what it said before counts on.
    async fn scaled(&self, key: &ObjectKey, target: &Target) -> Result<Scaled, String> {
        let place = (target.group.clone(), target.kind.clone(), target.name.clone());
        let known = self.memory().get(key).and_then(|memory| memory.asked.get(&place).cloned());
        if let Some((when, said)) = &known
            && when.elapsed() < ASK_EVERY
        {
            return said.clone();
        }
        let said = match workloads::scaled(&self.shared, &key.namespace, target).await {
            Ok(said) => Ok(said),
            Err(why) => {
                tracing::warn!(budget = %key, %why, "cannot read how many pods a workload wants");
                known.map_or(Err(why), |(_, before)| before)
            }
        };
        let asked = (Instant::now(), said.clone());
        self.memory().entry(key.clone()).or_default().asked.insert(place, asked);
        said
    }

    /// Forgets workloads that the budget does not count any more.
    fn keep_asked(&self, key: &ObjectKey, foreign: &[Target]) {
        if let Some(memory) = self.memory().get_mut(key) {
            memory.asked.retain(|(group, kind, name), _| {
                foreign
                    .iter()
                    .any(|target| (&target.group, &target.kind, &target.name) == (group, kind, name))
            });
        }
    }

    fn memory(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a cache shows a pod as it was before the server was asked about it: then what the server said counts on. Nothing
/// means that the pod with this uid is gone.
fn is_older(cached: &Pod, uid: &Text, live: Option<&Pod>) -> bool {
    match live {
        Some(live) => !version::reached(&cached.metadata.resource_version, &live.metadata.resource_version),
        None => cached.metadata.uid == *uid,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_server_said_counts_until_the_cache_shows_it() {
        let pod = |uid: &str, version: &str| -> Pod {
            let metadata = json!({"name": "web-0", "uid": uid, "resourceVersion": version});
            serde_json::from_value(json!({"metadata": metadata})).unwrap()
        };
        let live = pod("a", "50");
        let found = ["10", "20", "50", "60"].map(|seen| is_older(&pod("a", seen), &"a".into(), Some(&live)));
        assert_eq!(found, [true, true, false, false]);
        let gone = ["a", "b"].map(|uid| is_older(&pod(uid, "20"), &"a".into(), None));
        assert_eq!(gone, [true, false]);
    }
}

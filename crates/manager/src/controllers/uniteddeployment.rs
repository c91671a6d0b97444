//! UnitedDeployments: which changes wake an object, what it observes, what it remembers, and its status.

mod memory;
mod observe;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_api::{labels::SUBSET_NAME, uniteddeployment::v1beta1::LooseCondition};
use kruise_core::{
    conditions,
    effect::{Event, Level},
    object::{ObjectKey, Resource},
    plan::{Failures, Plan, WriteBudget},
    pod::{Metadata, Owner, Pod},
    uniteddeployment::{
        self, Kind, Observed, Purpose, Standing, UNITED_DEPLOYMENT, UnitedDeployment, subset_of,
    },
    waiting,
    workload::{REPLICA_SET, is_owner},
};
use kruise_runtime::{
    cache::{Cache, Change, Guarded, View},
    controller::{Context, Controller},
};

use super::{
    environment, owners, tunable_queue, workers,
    workload::{self, Acted, Aftermath, StatusWrite, Workload, Written},
};
use crate::{
    caches::{BY_OWNER, Caches},
    shared::Shared,
};
use observe::Observer;

/// The name.
pub const NAME: &str = "uniteddeployment-controller";

/// How long an event about the division waits for the one before it.
const NEWS_EVERY: Duration = Duration::from_secs(10);

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    let observer = Observer::new(shared);
    let waiters = shared.budgets.waiters(UNITED_DEPLOYMENT);
    let (of_pods, of_sets) = (caches.clone(), caches.clone());
    let mut builder = Controller::new(NAME, &environment(shared, NAME))
        .queue(tunable_queue(shared))
        .workers(workers(shared, NAME))
        .follow(&caches.united_deployments)
        .follow(&caches.clonesets)
        .follow(&caches.statefulsets)
        .follow(&caches.deployments)
        .follow(&caches.native_statefulsets)
        .follow(&caches.pods)
        .follow(&caches.revisions)
        .wake(&caches.united_deployments, |change, wake| wake(change.key.clone()))
        .wake(&caches.budgets, move |change, wake| waiters.wake(change, wake))
        .wake(&caches.revisions, |change, wake| owners(UNITED_DEPLOYMENT, change, wake))
        .wake(&caches.pods, move |change, wake| of_pod(&of_pods, change, wake))
        .wake(&caches.replica_sets, move |change, wake| {
            let sets = change.old.iter().chain(&change.new);
            sets.for_each(|set| above(&of_sets, &set.metadata, wake));
        });
    builder = by_child(builder, caches, &caches.clonesets);
    builder = by_child(builder, caches, &caches.statefulsets);
    builder = by_child(builder, caches, &caches.deployments);
    builder = by_child(builder, caches, &caches.native_statefulsets);
    workload::reconcile(builder, observer)
}

/// Wakes the owners of workloads, and every UnitedDeployment of the namespace that may adopt one.
fn by_child<V: View>(
    builder: kruise_runtime::controller::Builder,
    caches: &Caches,
    cache: &Cache<V>,
) -> kruise_runtime::controller::Builder {
    let caches = caches.clone();
    builder.wake(cache, move |change: &Change<V>, wake| {
        owners(UNITED_DEPLOYMENT, change, wake);
        let is_free = change.new.as_ref().is_some_and(|new| {
            let metadata = new.metadata();
            metadata.controller().is_none() && metadata.labels.contains(SUBSET_NAME)
        });
        if is_free {
            let all = caches.united_deployments.in_namespace(&change.key.namespace);
            all.iter().for_each(|stored| wake(stored.metadata.key()));
        }
    })
}

/// Wakes the UnitedDeployment above the workload of a pod. Other pods have no subset.
fn of_pod(caches: &Caches, change: &Change<Pod>, wake: &mut dyn FnMut(ObjectKey)) {
    let pods = change.old.iter().chain(&change.new);
    for pod in pods.filter(|pod| subset_of(pod).is_some()) {
        above(caches, &pod.metadata, wake);
    }
}

/// Wakes the UnitedDeployment above the workload that controls an object.
fn above(caches: &Caches, metadata: &Metadata, wake: &mut dyn FnMut(ObjectKey)) {
    let Some(owner) = metadata.controller() else { return };
    let key = ObjectKey { namespace: metadata.namespace.clone(), name: owner.name.clone() };
    if owner.group() == REPLICA_SET.group && owner.kind == REPLICA_SET.kind {
        if let Some(set) = caches.replica_sets.get(&key) {
            above(caches, &set.metadata, wake);
        }
        return;
    }
    let controller = Kind::ALL.into_iter().find(|kind| is_of(*kind, owner)).and_then(|kind| match kind {
        Kind::CloneSet => caches.clonesets.get(&key)?.metadata.controller().cloned(),
        Kind::AdvancedStatefulSet => caches.statefulsets.get(&key)?.metadata.controller().cloned(),
        Kind::StatefulSet => caches.native_statefulsets.get(&key)?.metadata.controller().cloned(),
        Kind::Deployment => caches.deployments.get(&key)?.metadata.controller().cloned(),
    });
    let Resource { group, kind, .. } = UNITED_DEPLOYMENT;
    if let Some(found) = controller.filter(|found| is_owner(found, group, kind, &found.name)) {
        wake(ObjectKey { namespace: metadata.namespace.clone(), name: found.name });
    }
}

fn is_of(kind: Kind, owner: &Owner) -> bool {
    let Resource { group, kind, .. } = kind.resource();
    owner.group() == group && owner.kind == kind
}

impl Workload for Observer {
    type Object = UnitedDeployment;
    type Observed = Observed;
    type Purpose = Purpose;
    type Standing = Standing;

    const RESOURCE: Resource = UNITED_DEPLOYMENT;

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn objects(&self) -> &Cache<Guarded<UnitedDeployment>> {
        &self.shared.caches.united_deployments
    }

    fn written(&self) -> &Written {
        &self.written
    }

    fn observe(
        &self,
        context: &Context,
        key: &ObjectKey,
        object: Arc<UnitedDeployment>,
        _: WriteBudget,
    ) -> Option<Observed> {
        self.gather(context, key, object)
    }

    async fn prepare(&self, _: &ObjectKey, seen: &mut Observed) {
        self.read(seen).await;
    }

    fn size(&self, seen: &Observed) -> (usize, Timestamp) {
        (seen.pods.values().map(Vec::len).sum(), seen.now)
    }

    fn decide(&self, seen: &Observed) -> (Plan<Purpose>, Standing) {
        uniteddeployment::decide(seen)
    }

    fn acted(
        &self,
        context: &Context,
        key: &ObjectKey,
        seen: &Observed,
        plan: &Plan<Purpose>,
        acted: &Acted<Purpose>,
    ) -> Aftermath {
        let mut events = counted(seen, acted);
        let is_whole = !plan.steps.iter().any(|step| step.purpose == Purpose::Revision);
        let news = is_whole.then(|| uniteddeployment::news(seen)).flatten();
        let (told, again) = self.remember(context, key, seen, news, acted);
        events.extend(told.map(|message| event(seen, "SubsetAllocation", message)));
        Aftermath { events, again, ..Aftermath::default() }
    }

    fn told(&self, seen: &Observed) -> Option<String> {
        let conditions = &seen.object.status.as_ref()?.conditions;
        conditions::get(conditions, waiting::CONDITION)?.reason.clone()
    }

    fn status(
        &self,
        seen: &Observed,
        standing: &Standing,
        failures: &Failures,
        plan: &Plan<Purpose>,
    ) -> Option<StatusWrite> {
        let status = standing.status(seen, failures, plan, &plan.waits)?;
        let effect = uniteddeployment::status_write(&seen.object, &status)?;
        let before = seen.object.status.clone().unwrap_or_default();
        let mut others = status.clone();
        others.conditions = with_waiting_of(&before.conditions, &status.conditions);
        let is_alone =
            seen.object.status.is_some() && uniteddeployment::status_write(&seen.object, &others).is_none();
        if is_alone && waiting::is_taken_over(&before.conditions, &plan.waits) {
            return None;
        }
        let same_wait = waiting::is_only_text(&before.conditions, &status.conditions);
        let can_wait = seen.object.status.is_some()
            && before.observed_generation == status.observed_generation
            && others.conditions == before.conditions
            && same_wait;
        Some(StatusWrite { effect, can_wait, only_text: is_alone && same_wait })
    }

    fn forget(&self, key: &ObjectKey) {
        self.forget_object(key);
    }
}

/// The new conditions, but with what the old ones say about waiting.
fn with_waiting_of(before: &[LooseCondition], after: &[LooseCondition]) -> Vec<LooseCondition> {
    let mut all = after.to_vec();
    match conditions::get(before, waiting::CONDITION) {
        Some(known) => conditions::put(&mut all, known.clone()),
        None => conditions::remove(&mut all, waiting::CONDITION),
    }
    all
}

/// One event for all workloads that were made, and one for those that were deleted.
fn counted(seen: &Observed, acted: &Acted<Purpose>) -> Vec<Event> {
    let mut events = Vec::new();
    for kind in Kind::ALL {
        let (mut made, mut deleted) = (0, 0);
        for (_, purpose, why) in acted.steps() {
            match purpose {
                Purpose::CreateSubset { kind: one, .. } if *one == kind && why.is_none() => made += 1,
                Purpose::DeleteSubset { kind: one, .. } if *one == kind && why.is_none() => deleted += 1,
                _ => {}
            }
        }
        for (verb, count) in [("Create", made), ("Delete", deleted)] {
            if count > 0 {
                let message = format!("{verb} {count} Subset ({})", kind.as_str());
                events.push(event(seen, "SuccessfulUpdateSubset", message));
            }
        }
    }
    events
}

fn event(seen: &Observed, reason: &str, message: String) -> Event {
    let regarding = uniteddeployment::reference(&seen.object);
    Event { regarding, level: Level::Normal, reason: reason.into(), message }
}

/// The workloads of a kind that an object controls.
fn owned<V: View>(cache: &Cache<V>, uid: &str) -> Vec<Arc<V>> {
    cache.by_index(BY_OWNER, uid)
}

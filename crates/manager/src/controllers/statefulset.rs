//! StatefulSets: which changes wake a set, what it observes, what it remembers, and its status.

mod memory;
mod observe;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_api::statefulset::v1beta1::{StatefulSet, Status};
use kruise_core::{
    conditions,
    effect::Effect,
    object::{ObjectKey, Resource},
    plan::{Failures, Part, Plan, WriteBudget},
    statefulset::{self, Observed, Purpose, STATEFUL_SET, Standing, parts},
    waiting,
};
use kruise_runtime::{
    cache::{Cache, Guarded},
    controller::{Context, Controller},
};

use super::{
    environment, owners, tunable_queue, workers,
    workload::{self, Acted, Aftermath, StatusWrite, Workload, Written},
};
use crate::{
    caches::{BY_CLAIM, named_after},
    shared::Shared,
};
use observe::Observer;

/// The name.
pub const NAME: &str = "statefulset-controller";

/// When to look again after the server refused or answered something: pods return to service.
const AT_ONCE: Duration = Duration::from_millis(20);
/// When to look again at what cannot be done as things stand, if nothing wakes the set before.
const TRY_AGAIN: Duration = Duration::from_secs(60);

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    let waiters = shared.budgets.waiters(STATEFUL_SET);
    let observer = Observer::new(shared);
    let (sets, namesakes, growing) =
        (caches.statefulsets.clone(), caches.statefulsets.clone(), caches.statefulsets.clone());
    let mut builder = Controller::new(NAME, &environment(shared, NAME))
        .queue(tunable_queue(shared))
        .workers(workers(shared, NAME))
        .follow(&caches.statefulsets)
        .follow(&caches.pods)
        .follow(&caches.claims)
        .follow(&caches.revisions)
        .wake(&caches.statefulsets, |change, wake| wake(change.key.clone()))
        .wake(&caches.budgets, move |change, wake| waiters.wake(change, wake))
        .wake(&caches.pods, move |change, wake| {
            owners(STATEFUL_SET, change, wake);
            // A pod without a controller may be adopted; one that is gone may free a name.
            if let Some((set, _)) = parts(&change.key.name) {
                let key = ObjectKey { namespace: change.key.namespace.clone(), name: set.into() };
                if namesakes.get(&key).is_some() {
                    wake(key);
                }
            }
        })
        .wake(&caches.claims, move |change, wake| {
            let Some((prefix, _)) = parts(&change.key.name) else { return };
            for set in sets.by_index(BY_CLAIM, &named_after(&change.key.namespace, prefix)) {
                wake(set.metadata.key());
            }
        })
        .wake(&caches.revisions, |change, wake| owners(STATEFUL_SET, change, wake));
    if observer.pulls_ahead() {
        builder = builder
            .follow(&caches.pull_jobs)
            .wake(&caches.pull_jobs, |change, wake| owners(STATEFUL_SET, change, wake));
    }
    if observer.grows_claims() {
        // A class that appears, or lets claims grow from now on, ends the wait of every set whose claims are to grow.
        builder = builder.wake(&caches.storage_classes, move |_, wake| {
            let grows = |set: &StatefulSet| set.spec.volume_claim_update_strategy.is_some();
            for set in growing.list() {
                if set.object.as_ref().is_ok_and(|set| grows(set)) {
                    wake(set.metadata.key());
                }
            }
        });
    }
    workload::reconcile(builder, observer)
}

impl Workload for Observer {
    type Object = StatefulSet;
    type Observed = Observed;
    type Purpose = Purpose;
    type Standing = Standing;

    const RESOURCE: Resource = STATEFUL_SET;

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn objects(&self) -> &Cache<Guarded<StatefulSet>> {
        &self.shared.caches.statefulsets
    }

    fn written(&self) -> &Written {
        &self.written
    }

    fn observe(
        &self,
        context: &Context,
        key: &ObjectKey,
        set: Arc<StatefulSet>,
        budget: WriteBudget,
    ) -> Option<Observed> {
        self.gather(context, key, set, budget)
    }

    fn size(&self, seen: &Observed) -> (usize, Timestamp) {
        (seen.pods.len(), seen.now)
    }

    fn decide(&self, seen: &Observed) -> (Plan<Purpose>, Standing) {
        let (mut plan, standing) = statefulset::decide(seen);
        let set = statefulset::reference(&seen.set);
        for event in self.with_memory(&seen.set, |memory| memory.news(&set, &standing)) {
            let purpose = Purpose::Quiet(Part::Housekeeping);
            plan.add(Effect::Event(event), purpose, "running pods lack a volume");
        }
        (plan, standing)
    }

    fn acted(
        &self,
        _context: &Context,
        _key: &ObjectKey,
        seen: &Observed,
        plan: &Plan<Purpose>,
        acted: &Acted<Purpose>,
    ) -> Aftermath {
        let update_failure = self.with_memory(&seen.set, |memory| {
            let refused = memory.hear(seen, acted);
            memory.note_failures(acted, plan, refused.as_deref());
            refused
        });
        let was_asked = acted.steps().any(|(_, purpose, _)| matches!(purpose, Purpose::AskInPlace { .. }));
        // Neither a refusal nor an answer changes anything that would wake the set.
        let at_once = (update_failure.is_some() || was_asked).then_some(AT_ONCE);
        let again = at_once.or(plan.failure(Part::Update).map(|_| TRY_AGAIN));
        Aftermath { update_failure, again, ..Aftermath::default() }
    }

    fn status(
        &self,
        seen: &Observed,
        standing: &Standing,
        _failures: &Failures,
        plan: &Plan<Purpose>,
    ) -> Option<StatusWrite> {
        let failures = self.with_memory(&seen.set, |memory| memory.failures.clone());
        let status = standing.status(seen, &failures, &plan.waits);
        let effect = statefulset::status_write(&seen.set, &status)?;
        let before = seen.set.status.clone().unwrap_or_default();
        let without = |status: &Status| {
            let mut conditions = status.conditions.clone();
            conditions::remove(&mut conditions, waiting::CONDITION);
            conditions
        };
        let same_facts = without(&before) == without(&status);
        let unchanged = if same_facts { &before } else { &status };
        let others = Status { conditions: unchanged.conditions.clone(), ..status.clone() };
        let is_alone = seen.set.status.is_some() && statefulset::status_write(&seen.set, &others).is_none();
        if is_alone && waiting::is_taken_over(&before.conditions, &plan.waits) {
            return None;
        }
        let same_wait = waiting::is_only_text(&before.conditions, &status.conditions);
        let can_wait = seen.set.status.is_some()
            && before.observed_generation == status.observed_generation
            && same_facts
            && same_wait;
        Some(StatusWrite { effect, can_wait, only_text: is_alone && same_wait })
    }

    fn told(&self, seen: &Observed) -> Option<String> {
        let conditions = &seen.set.status.as_ref()?.conditions;
        conditions::get(conditions, waiting::CONDITION)?.reason.clone()
    }

    fn forget(&self, key: &ObjectKey) {
        self.forget_set(key);
    }
}

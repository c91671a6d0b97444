//! CloneSets: which changes wake a set, what it observes, what it remembers, and its status.

mod memory;
mod observe;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_api::cloneset::v1beta1::{CloneSet, Status};
use kruise_core::{
    cloneset::{self, CLONE_SET, Observed, Purpose, Standing},
    conditions,
    object::{ObjectKey, Resource},
    plan::{Failures, Plan, WriteBudget},
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
use crate::shared::Shared;
use observe::Observer;

/// The name.
pub const NAME: &str = "cloneset-controller";

/// When to look again after the server refused or answered something: pods go back into service.
const AT_ONCE: Duration = Duration::from_millis(20);

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    let leaks = shared.registry.counter(
        "cloneset_scale_expectation_leakage",
        "CloneSet Scale Expectation Leakage",
        &["namespace", "name"],
    );
    let waiters = shared.budgets.waiters(CLONE_SET);
    let observer = Observer::new(shared);
    let mut builder = Controller::new(NAME, &environment(shared, NAME))
        .queue(tunable_queue(shared))
        .workers(workers(shared, NAME))
        .follow(&caches.clonesets)
        .follow(&caches.pods)
        .follow(&caches.claims)
        .follow(&caches.revisions)
        .on_overdue(move |key| leaks.inc(&[&key.namespace, &key.name]))
        .wake(&caches.clonesets, |change, wake| wake(change.key.clone()))
        .wake(&caches.budgets, move |change, wake| waiters.wake(change, wake))
        .wake(&caches.pods, |change, wake| owners(CLONE_SET, change, wake))
        .wake(&caches.claims, |change, wake| owners(CLONE_SET, change, wake))
        .wake(&caches.revisions, |change, wake| owners(CLONE_SET, change, wake));
    if observer.pulls_ahead() {
        builder = builder
            .follow(&caches.pull_jobs)
            .wake(&caches.pull_jobs, |change, wake| owners(CLONE_SET, change, wake));
    }
    workload::reconcile(builder, observer)
}

impl Workload for Observer {
    type Object = CloneSet;
    type Observed = Observed;
    type Purpose = Purpose;
    type Standing = Standing;

    const RESOURCE: Resource = CLONE_SET;

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn objects(&self) -> &Cache<Guarded<CloneSet>> {
        &self.shared.caches.clonesets
    }

    fn written(&self) -> &Written {
        &self.written
    }

    fn observe(
        &self,
        context: &Context,
        key: &ObjectKey,
        set: Arc<CloneSet>,
        budget: WriteBudget,
    ) -> Option<Observed> {
        self.gather(context, key, set, budget)
    }

    fn size(&self, seen: &Observed) -> (usize, Timestamp) {
        (seen.pods.len(), seen.now)
    }

    fn decide(&self, seen: &Observed) -> (Plan<Purpose>, Standing) {
        cloneset::decide(seen)
    }

    fn acted(
        &self,
        context: &Context,
        key: &ObjectKey,
        seen: &Observed,
        _plan: &Plan<Purpose>,
        acted: &Acted<Purpose>,
    ) -> Aftermath {
        self.memory.choose_ids(context, key, acted);
        let update_failure = self.memory.hear(context, seen, key, acted);
        let was_asked = acted.steps().any(|(_, purpose, _)| matches!(purpose, Purpose::AskInPlace { .. }));
        // Neither a refusal nor an answer changes anything that would wake the set.
        let again = (update_failure.is_some() || was_asked).then_some(AT_ONCE);
        Aftermath { update_failure, again, ..Aftermath::default() }
    }

    fn status(
        &self,
        seen: &Observed,
        standing: &Standing,
        failures: &Failures,
        plan: &Plan<Purpose>,
    ) -> Option<StatusWrite> {
        let status = standing.status(seen, failures, &plan.waits);
        let effect = cloneset::status_write(&seen.set, &status)?;
        let before = seen.set.status.clone().unwrap_or_default();
        let without = |status: &Status| {
            let mut conditions = status.conditions.clone();
            conditions::remove(&mut conditions, waiting::CONDITION);
            conditions
        };
        let same_facts = without(&before) == without(&status);
        let unchanged = if same_facts { &before } else { &status };
        let others = Status { conditions: unchanged.conditions.clone(), ..status.clone() };
        let is_alone = cloneset::status_write(&seen.set, &others).is_none();
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
        self.memory.forget(key);
    }
}

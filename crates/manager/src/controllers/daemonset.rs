//! Advanced DaemonSets: which changes wake a set, what it observes, what it remembers, and its status.

mod memory;
mod observe;
mod wake;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_api::daemonset::v1beta1::{DaemonSet, Status};
use kruise_core::{
    conditions,
    daemonset::{self, DAEMON_SET, Observed, Purpose, Standing},
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
use wake::Wakers;

/// The name.
pub const NAME: &str = "daemonset-controller";

/// When to look again after the server refused or answered something: pods go back into service.
const AT_ONCE: Duration = Duration::from_millis(20);
/// When to try another node after the server refused the pod of one, for each node that it refused.
const NEXT_NODE: Duration = Duration::from_millis(100);
const NEXT_NODE_AT_MOST: Duration = Duration::from_secs(30);

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    let observer = Observer::new(shared);
    let waiters = shared.budgets.waiters(DAEMON_SET);
    let wakers = Wakers::new(shared);
    let (of_sets, of_pods, of_nodes) = (wakers.clone(), wakers.clone(), wakers);
    let mut builder = Controller::new(NAME, &environment(shared, NAME))
        .queue(tunable_queue(shared))
        .workers(workers(shared, NAME))
        .follow(&caches.daemonsets)
        .follow(&caches.pods)
        .follow(&caches.revisions)
        .wake(&caches.daemonsets, move |change, wake| {
            of_sets.remember(change);
            wake(change.key.clone());
        })
        .wake(&caches.pods, move |change, wake| {
            owners(DAEMON_SET, change, wake);
            of_pods.orphan(change, wake);
        })
        .wake(&caches.budgets, move |change, wake| waiters.wake(change, wake))
        .wake(&caches.nodes, move |change, wake| of_nodes.node(change, wake))
        .wake(&caches.revisions, |change, wake| owners(DAEMON_SET, change, wake));
    if observer.pulls_ahead() {
        builder = builder
            .follow(&caches.pull_jobs)
            .wake(&caches.pull_jobs, |change, wake| owners(DAEMON_SET, change, wake));
    }
    workload::reconcile(builder, observer)
}

impl Workload for Observer {
    type Object = DaemonSet;
    type Observed = Observed;
    type Purpose = Purpose;
    type Standing = Standing;

    const RESOURCE: Resource = DAEMON_SET;

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn objects(&self) -> &Cache<Guarded<DaemonSet>> {
        &self.shared.caches.daemonsets
    }

    fn written(&self) -> &Written {
        &self.written
    }

    fn observe(
        &self,
        context: &Context,
        key: &ObjectKey,
        set: Arc<DaemonSet>,
        budget: WriteBudget,
    ) -> Option<Observed> {
        self.gather(context, key, set, budget)
    }

    fn size(&self, seen: &Observed) -> (usize, Timestamp) {
        (seen.pods.len(), seen.now)
    }

    fn decide(&self, seen: &Observed) -> (Plan<Purpose>, Standing) {
        daemonset::decide(seen)
    }

    fn missing(&self, standing: &Standing) -> usize {
        standing.missing()
    }

    fn acted(
        &self,
        context: &Context,
        key: &ObjectKey,
        seen: &Observed,
        _plan: &Plan<Purpose>,
        acted: &Acted<Purpose>,
    ) -> Aftermath {
        let lesson = self.remember(context, key, seen, acted);
        // The next try begins with another node: those that can have their pod must not wait as long as those that cannot.
        if lesson.is_node_news {
            context.again(key, NEXT_NODE.saturating_mul(self.refused_nodes(key)).min(NEXT_NODE_AT_MOST));
        }
        let was_asked = acted.steps().any(|(_, purpose, _)| matches!(purpose, Purpose::AskInPlace { .. }));
        // Neither a refusal nor an answer changes anything that would wake the set.
        Aftermath { again: (lesson.is_refused || was_asked).then_some(AT_ONCE), ..Aftermath::default() }
    }

    fn status(
        &self,
        seen: &Observed,
        standing: &Standing,
        failures: &Failures,
        plan: &Plan<Purpose>,
    ) -> Option<StatusWrite> {
        let key = daemonset::reference(&seen.set).key;
        let failed = failures.scale.is_some() || failures.update.is_some();
        let is_complete = !failed && self.is_done(&key);
        let status = standing.status(seen, is_complete, &plan.waits);
        let effect = daemonset::status_write(&seen.set, &status)?;
        let before = seen.set.status.clone().unwrap_or_default();
        let others = Status { conditions: before.conditions.clone(), ..status.clone() };
        let is_alone = daemonset::status_write(&seen.set, &others).is_none();
        if is_alone && waiting::is_taken_over(&before.conditions, &plan.waits) {
            return None;
        }
        let same_wait = waiting::is_only_text(&before.conditions, &status.conditions);
        let can_wait = seen.set.status.is_some()
            && before.observed_generation == status.observed_generation
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

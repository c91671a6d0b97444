//! PodUnavailableBudgets: gathers what a pass may know, lets the planner decide, notes budgets on pods, tells people and
//! writes the status.

mod observe;

use std::time::Duration;

use kruise_core::{
    object::{ObjectKey, ObjectRef},
    pod::Metadata,
    podunavailablebudget::{self, Covers, POD_UNAVAILABLE_BUDGET, decide},
    workload::{self, Workload},
};
use kruise_runtime::{
    cache::{Cache, Change, Guarded, View},
    controller::{Builder, Context, Controller, Error, Next},
};

use super::{Once, environment, rest, tunable_queue, unreadable, workers};
use crate::{caches::Caches, shared::Shared};
use observe::Observer;

/// The name.
pub const NAME: &str = "podunavailablebudget-controller";

/// When to look again while something is still being read for the first time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// When to look again after somebody else has written the status.
const AT_ONCE: Duration = Duration::from_millis(50);

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    let (observer, told) = (Observer::new(shared), Once::default());
    let (of_pods, of_budgets) = (caches.clone(), caches.clone());
    let mut builder = Controller::new(NAME, &environment(shared, NAME))
        .queue(tunable_queue(shared))
        .workers(workers(shared, NAME))
        .follow(&caches.budgets)
        .follow(&caches.pods)
        .wake(&caches.budgets, move |change, wake| {
            wake(change.key.clone());
            // Its pods may be those of another one from now on.
            let ends = |stored: &Guarded<_>| stored.metadata.is_deleting();
            if change.new.as_deref().is_none_or(ends) {
                all_in(&of_budgets, &change.key.namespace, wake);
            }
        })
        .wake(&caches.pods, move |change, wake| {
            let (old, new) = (change.old.as_deref(), change.new.as_deref());
            let named = podunavailablebudget::wakes(old, new);
            // A pod is protected by one budget, and may be counted by others. At the start all budgets are counted anyway.
            let is_news = !named.is_empty() && !change.initial;
            named.into_iter().for_each(&mut *wake);
            // A pod that names no budget may be one that admission did not see, and other labels may make it one of another budget.
            let Some(pod) = new.or(old) else { return };
            let has_other_labels = old.is_some_and(|old| old.metadata.labels != pod.metadata.labels);
            let is_open = podunavailablebudget::related(&pod.metadata.annotations).is_none();
            if is_news || has_other_labels || old.is_none() && is_open {
                let stored = of_pods.budgets.in_namespace(&change.key.namespace);
                let budgets = stored.iter().filter_map(|stored| stored.object.as_ref().ok());
                let pods = || old.into_iter().chain(new);
                let about =
                    budgets.filter(|budget| pods().any(|pod| podunavailablebudget::may_cover(budget, pod)));
                about.for_each(|budget| wake(podunavailablebudget::reference(budget).key));
            }
        });
    for resource in workload::KNOWN {
        if let Some(cache) = caches.workloads(resource) {
            let caches = caches.clone();
            builder = builder.wake(cache, move |change: &Change<Workload>, wake| {
                let replicas = |one: &Workload| (one.replicas(), one.metadata.is_deleting());
                of_workload(
                    &caches,
                    resource,
                    &change.key,
                    change.old.as_deref(),
                    change.new.as_deref(),
                    &replicas,
                    wake,
                );
            });
        }
    }
    builder = wake_by_own(builder, caches, &caches.clonesets, Workload::of_clone_set);
    builder = wake_by_own(builder, caches, &caches.statefulsets, Workload::of_stateful_set);
    builder = wake_by_own(builder, caches, &caches.united_deployments, Workload::of_united_deployment);
    builder.reconcile(move |context, key| {
        let (observer, told) = (observer.clone(), told.clone());
        async move { pass(&observer, &told, &context, &key).await }
    })
}

/// Wakes budgets by the workloads of a kind that has a controller of ours.
fn wake_by_own<T: Send + Sync + 'static>(
    builder: Builder,
    caches: &Caches,
    cache: &Cache<Guarded<T>>,
    view: fn(&Metadata, &T) -> Workload,
) -> Builder
where
    Guarded<T>: View,
{
    let (own, resource) = (caches.clone(), cache.resource());
    builder.wake(cache, move |change, wake| {
        if own.budgets.in_namespace(&change.key.namespace).is_empty() {
            return;
        }
        let view = |stored: &Guarded<T>| stored.object.as_ref().ok().map(|set| view(&stored.metadata, set));
        let (old, new) = (change.old.as_deref().and_then(view), change.new.as_deref().and_then(view));
        let replicas = |one: &Workload| (one.replicas(), one.metadata.is_deleting());
        of_workload(&own, resource, &change.key, old.as_ref(), new.as_ref(), &replicas, wake);
    })
}

fn all_in(caches: &Caches, namespace: &str, wake: &mut dyn FnMut(ObjectKey)) {
    caches.budgets.in_namespace(namespace).iter().for_each(|stored| wake(stored.metadata.key()));
}

/// Wakes the budgets that a change of a workload is news for: it came, it is gone, or it wants another number of pods.
fn of_workload(
    caches: &Caches,
    resource: kruise_core::object::Resource,
    key: &ObjectKey,
    old: Option<&Workload>,
    new: Option<&Workload>,
    replicas: &dyn Fn(&Workload) -> (i64, bool),
    wake: &mut dyn FnMut(ObjectKey),
) {
    if old.map(replicas) == new.map(replicas) {
        return;
    }
    let stored = caches.budgets.in_namespace(&key.namespace);
    let budgets = stored.iter().filter_map(|stored| stored.object.as_ref().ok());
    for budget in budgets.map(podunavailablebudget::Budget::of) {
        let is_meant = match &budget.covers {
            Covers::Workload(target) => {
                target.group == resource.group
                    && target.kind == resource.kind
                    && key.name == *target.name.as_str()
            }
            Covers::Labels(labels) => old
                .into_iter()
                .chain(new)
                .any(|workload| labels.accepts(|key| workload.spec.pod_labels.text(key))),
            Covers::Nothing => false,
        };
        if is_meant {
            wake(budget.key.clone());
        }
    }
}

async fn pass(observer: &Observer, told: &Once, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
    let Some(stored) = observer.find(key) else {
        observer.forget(key);
        told.forget(key);
        return Ok(Next::Forget);
    };
    if let Err(problem) = &stored.object {
        let uid = stored.metadata.uid.clone();
        let object = ObjectRef { resource: POD_UNAVAILABLE_BUDGET, key: key.clone(), uid };
        return Err(unreadable(context, object, problem).await);
    }
    let Some(seen) = observer.observe(context, key).await? else { return Ok(Next::After(LOOK_AGAIN)) };
    let plan = decide(&seen);
    let notices = told.news(key, plan.notices.iter().cloned());
    // Events alone cannot fail.
    let _ = context.try_act(key, &notices).await;
    // Before the annotations of pods, which may be thousands: admission counts on the status.
    if let Some(write) = &plan.status {
        match context.act(key, std::slice::from_ref(write)).await {
            // Somebody took from the budget meanwhile. The cache may be late to show that.
            Err(error) if error.is_conflict() => {
                observer.refresh(key).await;
                return Ok(Next::After(AT_ONCE));
            }
            written => written?,
        }
    }
    let noted = context.try_act(key, &plan.effects).await;
    // A pod that changed or went meanwhile comes again by itself.
    if let Err(error) = noted.ok()
        && !error.is_conflict()
    {
        return Err(error.into());
    }
    context.rest(key, rest(seen.pods.len()));
    if let Some(failure) = plan.failure {
        return Err(Error::terminal(failure));
    }
    if let Some(why) = &plan.unread {
        tracing::warn!(budget = %key, %why, "the numbers of the last count stay");
    }
    let again = observer.asks_again(key);
    Ok([plan.wake_after, again].into_iter().flatten().min().into())
}

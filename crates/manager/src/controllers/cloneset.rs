//! CloneSets: gathers what a pass may know, lets the planner decide, carries it out, tells people and writes the status.

mod observe;
mod report;

use std::time::Duration;

use jiff::SignedDuration;
use kruise_api::cloneset::v1beta1::Status;
use kruise_core::{
    cloneset::{self, CLONE_SET, Room},
    object::{ObjectKey, ObjectRef, POD},
};
use kruise_runtime::controller::{Context, Controller, Error, Next};

use super::{environment, owners, rest, tunable_queue, unreadable, workers};
use crate::shared::Shared;
use observe::Observer;

/// The name.
pub const NAME: &str = "cloneset-controller";

/// A pass plans as much as can be written within this time, and then looks again: a set that is scaled by thousands must
/// hear soon that someone has changed their mind, and a pod must not wait long for its next step.
const PASS: Duration = Duration::from_secs(1);
/// How old a status may become while pods are changed.
const TELL_EVERY: SignedDuration = SignedDuration::from_secs(5);
/// When to look again after a pass that changed something, if its changes are not heard of before.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// When to try again what can wait and was refused.
const TRY_AGAIN: Duration = Duration::from_secs(60);

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    let leaks = shared.registry.counter(
        "cloneset_scale_expectation_leakage",
        "CloneSet Scale Expectation Leakage",
        &["namespace", "name"],
    );
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
        .wake(&caches.pods, |change, wake| owners(CLONE_SET, change, wake))
        .wake(&caches.claims, |change, wake| owners(CLONE_SET, change, wake))
        .wake(&caches.revisions, |change, wake| owners(CLONE_SET, change, wake));
    if observer.pulls_ahead() {
        builder = builder
            .follow(&caches.pull_jobs)
            .wake(&caches.pull_jobs, |change, wake| owners(CLONE_SET, change, wake));
    }
    builder.reconcile(move |context, key| {
        let observer = observer.clone();
        async move { pass(&observer, &context, &key).await }
    })
}

async fn pass(observer: &Observer, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
    let Some(stored) = observer.find(key) else {
        observer.forget(key);
        return Ok(Next::Forget);
    };
    let set = match &stored.object {
        Ok(set) => set.clone(),
        Err(problem) => {
            let uid = stored.metadata.uid.clone();
            let object = ObjectRef { resource: CLONE_SET, key: key.clone(), uid };
            return Err(unreadable(context, object, problem).await);
        }
    };
    let room =
        Room { pods: context.room((POD, None), PASS), status: context.room((POD, Some("status")), PASS) };
    let Some(seen) = observer.observe(context, key, set, room) else {
        return Ok(Next::After(LOOK_AGAIN));
    };
    let (plan, standing) = cloneset::decide(&seen);
    for reason in &plan.reasons {
        tracing::debug!(reason, "waits");
    }
    for problem in [&plan.failures.scale, &plan.failures.update].into_iter().flatten() {
        tracing::warn!(problem, "cannot go on with all pods");
    }
    let told = report::told(&plan, &cloneset::reference(&seen.set));
    let outcome = context.try_act(key, &told.effects).await;
    observer.remember(context, key, &told, &outcome);
    let failures = report::failures(&told, &outcome, context, key).await.or(plan.failures.clone());

    let status = standing.status(&seen, &failures, &plan.reasons);
    let write = cloneset::status_write(&seen.set, &status);
    let facts = |status: &Status| {
        let conditions = status.conditions.iter().filter(|condition| condition.kind != cloneset::WAITING);
        (status.observed_generation, conditions.cloned().collect::<Vec<_>>())
    };
    let is_told = seen.set.status.as_ref().is_some_and(|before| facts(before) == facts(&status));
    // What was changed is counted when it is seen, a moment later. Who watches a long rollout still sees it move.
    let counts_later = outcome.done > 0 && is_told && observer.told_within(key, seen.now, TELL_EVERY);
    let mut written = Ok(());
    if let Some(write) = write.filter(|_| !counts_later) {
        written = context.act(key, &[write]).await;
        observer.has_told(key, seen.now);
    }
    context.rest(key, rest(seen.pods.len()));
    // A grace period ends on time, whatever else fails.
    plan.wake_after.into_iter().for_each(|after| context.again(key, after));
    let (serious, can_wait) = report::serious(&told, outcome);
    serious.ok()?;
    written?;
    let again = counts_later.then_some(LOOK_AGAIN);
    let later = can_wait.then_some(TRY_AGAIN);
    Ok([plan.wake_after, again, later].into_iter().flatten().min().into())
}

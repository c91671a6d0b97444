//! SidecarSets: gathers what a pass may know, lets the planner decide, carries it out, tells people and writes the status.

mod observe;
mod report;

use std::time::Duration;

use jiff::SignedDuration;
use kruise_core::{
    effect::Effect,
    object::{ObjectKey, ObjectRef},
    sidecarset::{
        SIDECAR_SET,
        control::{self, needs_namespaces},
        reference,
    },
};
use kruise_runtime::controller::{Context, Controller, Error, Next};

use super::{environment, rest, tunable_queue, unreadable, workers};
use crate::shared::Shared;
use observe::Observer;

/// The name.
pub const NAME: &str = "sidecarset-controller";

/// How old a status may become while pods are changed.
const COUNT_EVERY: SignedDuration = SignedDuration::from_secs(5);
/// When to look again after a pass that changed something, if its changes are not heard of before.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    let observer = Observer::new(shared);
    let (choosy, manager_namespace) =
        (caches.sidecarsets.clone(), shared.settings.environment.namespace.clone());
    Controller::new(NAME, &environment(shared, NAME))
        .queue(tunable_queue(shared))
        .workers(workers(shared, NAME))
        .follow(&caches.sidecarsets)
        .follow(&caches.pods)
        .follow(&caches.revisions)
        .wake(&caches.sidecarsets, |change, wake| wake(change.key.clone()))
        .wake(&caches.pods, |change, wake| {
            for set in control::wakes(change.old.as_deref(), change.new.as_deref()) {
                wake(ObjectKey::cluster(set));
            }
        })
        .wake(&caches.revisions, move |change, wake| {
            let revision = change.latest().filter(|one| one.metadata.namespace == *manager_namespace);
            if let Some(set) = revision.and_then(|revision| observe::set_of(revision)) {
                wake(ObjectKey::cluster(set));
            }
        })
        .wake(&caches.namespaces, move |_, wake| {
            for set in choosy.list() {
                if set.object.as_ref().is_ok_and(|set| needs_namespaces(set)) {
                    wake(set.metadata.key());
                }
            }
        })
        .reconcile(move |context, key| {
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
            let object = ObjectRef { resource: SIDECAR_SET, key: key.clone(), uid };
            return Err(unreadable(context, object, problem).await);
        }
    };
    let Some(seen) = observer.observe(context, key, set) else {
        return Ok(Next::After(LOOK_AGAIN));
    };
    let (plan, status) = control::decide(&seen);
    let told = report::told(&plan);
    let outcome = context.try_act(key, &told.effects).await;
    observer.remember(context, key, &report::refused(&told, &outcome));
    let mut events = report::failures(&told, &outcome);
    let set = reference(&seen.set);
    events.extend(observer.problem(key).map(|problem| report::unusable(&set, &problem)));
    events.extend(plan.failures.iter().map(|problem| report::unusable(&set, problem)));
    if observer.may_tell(context, key, &plan.reasons) {
        events.extend(control::waiting(&set, &plan.reasons));
    }
    let events: Vec<Effect> = events.into_iter().map(Effect::Event).collect();
    // Events alone cannot fail.
    let _ = context.try_act(key, &events).await;

    // What was changed is counted when it is seen, a moment later.
    let observed = |status: &kruise_api::sidecarset::v1beta1::Status| status.observed_generation;
    let is_told = seen.set.status.as_ref().is_some_and(|before| observed(before) == observed(&status));
    let counts_later = outcome.done > 0 && is_told && observer.counted_within(key, seen.now, COUNT_EVERY);
    let mut written = Ok(());
    if let Some(write) = control::status_write(&seen.set, &status).filter(|_| !counts_later) {
        written = context.act(key, &[write]).await;
        observer.has_counted(key, seen.now);
    }
    context.rest(key, rest(seen.pods.len()));
    outcome.ok()?;
    written?;
    if !plan.failures.is_empty() {
        return Err(Error::terminal(plan.failures.join("; ")));
    }
    let again = counts_later.then_some(LOOK_AGAIN);
    Ok([plan.wake_after, again].into_iter().flatten().min().into())
}

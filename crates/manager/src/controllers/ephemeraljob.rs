//! EphemeralJobs: adds containers to running pods, a few at a time.

use std::sync::Arc;

use kruise_core::{
    effect::{Effect, Event, Level},
    ephemeraljob::{self, CREATE_FAILED, EPHEMERAL_JOB, Observed},
    object::{ObjectKey, ObjectRef},
    pod::Pod,
};
use kruise_runtime::{
    controller::{Context, Controller, Error, Next},
    effects::{Outcome, Why},
};

use super::{environment, hopeless, unreadable, workers};
use crate::shared::Shared;

/// The name.
pub const NAME: &str = "ephemeraljob-controller";

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    let jobs = caches.ephemeral_jobs.clone();
    let shared = shared.clone();
    Controller::new(NAME, &environment(&shared, NAME))
        .workers(workers(&shared, NAME))
        .follow(&caches.ephemeral_jobs)
        .follow(&caches.pods)
        .wake(&caches.ephemeral_jobs, |change, wake| wake(change.key.clone()))
        .wake(&caches.pods, move |change, wake| {
            let (old, new) = (change.old.as_deref(), change.new.as_deref());
            if jobs.is_empty() || !ephemeraljob::is_interesting(old, new) {
                return;
            }
            for job in jobs.in_namespace(&change.key.namespace) {
                let selector = job.object.as_ref().ok().map(|job| &job.spec.selector);
                let Some(matcher) = selector.and_then(|selector| selector.matcher().ok()) else { continue };
                let chooses = |pod: &Pod| matcher.accepts(|key| pod.metadata.labels.text(key));
                if old.is_some_and(chooses) || new.is_some_and(chooses) {
                    wake(job.metadata.key());
                }
            }
        })
        .reconcile(move |context, key| {
            let shared = shared.clone();
            async move { pass(&shared, &context, &key).await }
        })
}

async fn pass(shared: &Shared, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
    let Some(stored) = shared.caches.ephemeral_jobs.get(key) else { return Ok(Next::Forget) };
    let job = match &stored.object {
        Ok(job) => job.clone(),
        Err(problem) => {
            let uid = stored.metadata.uid.clone();
            let object = ObjectRef { resource: EPHEMERAL_JOB, key: key.clone(), uid };
            return Err(unreadable(context, object, problem).await);
        }
    };
    let mut pods: Vec<Arc<Pod>> = shared.caches.pods.in_namespace(&key.namespace);
    if let Ok(matcher) = job.spec.selector.matcher() {
        pods.retain(|pod| matcher.accepts(|key| pod.metadata.labels.text(key)));
    }
    let seen = Observed { job, pods, now: context.clock().now() };
    let plan = ephemeraljob::plan(&seen);
    if let Some(waits) = plan.waits {
        tracing::debug!(reason = waits.as_str(), "waits");
    }
    let injected = context.try_act(key, &plan.injections).await;
    let events = refusals(&seen, &injected);
    let written = context.act(key, &[plan.effects, events].concat()).await;
    context.rest(key, super::rest(seen.pods.len()));
    let job = ephemeraljob::reference(&seen.job);
    if let Some(error) = hopeless(shared, context, job, seen.job.as_ref(), &injected).await {
        return Err(error);
    }
    injected.ok()?;
    written?;
    Ok(plan.wake_after.into())
}

/// Tells of pods that did not get the containers. Everything but a refusal is settled by looking again.
fn refusals(seen: &Observed, injected: &Outcome) -> Vec<Effect> {
    let refused = injected.failed.iter().filter_map(|failure| match &failure.why {
        Why::Refused { message, .. } => Some((&failure.object, message)),
        _ => None,
    });
    refused
        .map(|(pod, message)| {
            Effect::Event(Event {
                regarding: ephemeraljob::reference(&seen.job),
                level: Level::Warning,
                reason: CREATE_FAILED.into(),
                message: format!("failed to create ephemeral container in pod {pod}: {message}"),
            })
        })
        .collect()
}

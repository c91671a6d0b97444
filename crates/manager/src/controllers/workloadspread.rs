//! WorkloadSpreads: gathers what a pass may know, lets the planner decide, marks pods, writes the status, tells people and
//! deletes pods that move.

mod observe;
mod wake;

use std::time::Duration;

use kruise_core::{
    effect::Effect,
    object::{ObjectKey, ObjectRef, POD},
    waiting::{self, Waits},
    workloadspread::{WORKLOAD_SPREAD, Write, decide, reference, undecided},
};
use kruise_runtime::{
    controller::{Context, Controller, Error, Next},
    effects::{Outcome, Why},
};
use tokio::time::Instant;

use super::{Once, environment, rest, tunable_queue, unreadable, workers};
use crate::shared::Shared;
use observe::Observer;

/// The name.
pub const NAME: &str = "workloadspread-controller";

/// When to look again while something is still being read for the first time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long a count is tried that comes between bookings; pods wait for it.
const COUNT_WITHIN: Duration = Duration::from_secs(1);
/// When to look again after somebody else has written the status or a pod.
const AT_ONCE: Duration = Duration::from_millis(50);

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    let (observer, told) = (Observer::new(shared), Once::default());
    let builder = Controller::new(NAME, &environment(shared, NAME))
        .queue(tunable_queue(shared))
        .workers(workers(shared, NAME))
        .follow(&caches.spreads)
        .follow(&caches.pods)
        .wake(&caches.spreads, |change, wake| wake(change.key.clone()));
    wake::by_workloads(wake::by_pods(builder, shared), shared).reconcile(move |context, key| {
        let (observer, told) = (observer.clone(), told.clone());
        async move { pass(&observer, &told, &context, &key).await }
    })
}

async fn pass(observer: &Observer, told: &Once, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
    let shared = observer.shared();
    let stored = shared.caches.spreads.get(key).filter(|stored| !stored.metadata.is_deleting());
    let Some(stored) = stored else {
        observer.forget(key);
        told.forget(key);
        shared.waiting.forget(WORKLOAD_SPREAD, key);
        return Ok(Next::Forget);
    };
    if let Err(problem) = &stored.object {
        let uid = stored.metadata.uid.clone();
        let object = ObjectRef { resource: WORKLOAD_SPREAD, key: key.clone(), uid };
        return Err(unreadable(context, object, problem).await);
    }
    let Some(object) = shared.spreads.newest(key) else { return Ok(Next::Forget) };
    let own = reference(&object);
    let seen = match observer.observe(context, key, &object).await {
        Ok(Some(seen)) => seen,
        Ok(None) => return Ok(Next::After(LOOK_AGAIN)),
        Err(why) => {
            let _ = report(shared, context, &own, undecided(&why)).await;
            return Err(Error::other(why));
        }
    };
    let mut plan = decide(&seen);
    let marked = carry_out(context, key, &plan.pods, &mut plan.waits).await;
    // Events alone cannot fail.
    let _ = context.try_act(key, &told.news(key, plan.notices.iter().cloned())).await;
    if let Some(write) = &plan.status {
        match context.act(key, std::slice::from_ref(write)).await {
            // Somebody was admitted meanwhile, and the next one may be any moment.
            Err(error) if error.is_conflict() => {
                match shared.spreads.count(shared, &seen, Instant::now() + COUNT_WITHIN).await {
                    Ok(Some(again)) => {
                        let before = std::mem::replace(&mut plan, again);
                        plan.waits.join(before.waits);
                    }
                    Ok(None) | Err(_) => return Ok(Next::After(AT_ONCE)),
                }
            }
            written => written?,
        }
    }
    let _ = context.try_act(key, &plan.events.iter().cloned().map(Effect::Event).collect::<Vec<_>>()).await;
    // The status says that their subset is closed: the pods that come for these go elsewhere.
    let moved = carry_out(context, key, &plan.moves, &mut plan.waits).await;
    let lasts = report(shared, context, &own, plan.waits).await;
    let mut late = None;
    for outcome in [marked, moved] {
        match outcome.ok() {
            Ok(()) => {}
            // A pod that changed meanwhile: not every change of it wakes its spread.
            Err(error) if error.is_conflict() => late = Some(AT_ONCE),
            Err(error) => return Err(error.into()),
        }
    }
    context.rest(key, rest(seen.pods.len()));
    let again = observer.asks_again(&seen.spread);
    Ok([plan.wake_after, lasts, again, late].into_iter().flatten().min().into())
}

/// Makes writes to pods, and tells people of those that were refused.
async fn carry_out(context: &Context, key: &ObjectKey, writes: &[Write], waits: &mut Waits) -> Outcome {
    let effects: Vec<Effect> = writes.iter().map(|write| write.effect.clone()).collect();
    let outcome = context.try_act(key, &effects).await;
    let mut events = Vec::new();
    for failure in &outcome.failed {
        let Why::Refused { code, message, .. } = &failure.why else { continue };
        events.extend(writes.get(failure.index).map(|write| Effect::Event(write.failed.clone())));
        if let Some((reason, sentence)) =
            waiting::refused(failure.verb, POD, &failure.object, *code, message, 0)
        {
            waits.add(reason, sentence);
        }
    }
    let _ = context.try_act(key, &events).await;
    outcome
}

/// Says why a spread waits. Returns when to look again so that a reason that lasts is reported.
async fn report(shared: &Shared, context: &Context, own: &ObjectRef, waits: Waits) -> Option<Duration> {
    let (events, next) = shared.waiting.note(own, &waits, None, context.clock().now());
    let _ = context.try_act(&own.key, &events.into_iter().map(Effect::Event).collect::<Vec<_>>()).await;
    next
}

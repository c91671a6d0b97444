//! AdvancedCronJobs: gathers what a pass may know, lets the planner decide, carries it out, sends events and writes the
//! status.

use std::sync::Arc;

use jiff::tz::TimeZone;
use kruise_api::advancedcronjob::v1beta1::AdvancedCronJob;
use kruise_core::{
    advancedcronjob::{
        self, ADVANCED_CRON_JOB, Child, Job, Observed, Plan, Purpose, children_of, status_write,
    },
    broadcastjob::BROADCAST_JOB,
    effect::Effect,
    imagelistpulljob::IMAGE_LIST_PULL_JOB,
    object::{JOB, ObjectKey, ObjectRef},
};
use kruise_runtime::{
    cache::{Change, Guarded, View},
    controller::{Context, Controller, Error, Next},
    effects::{Failure, Outcome, Why},
};

use super::{Once, Unanswered, environment, job_waits, named, owners, unreadable, workers};
use crate::{caches::BY_OWNER, shared::Shared};

/// The name.
pub const NAME: &str = "advancedcronjob-controller";

/// What is remembered between passes. Clones are the same.
#[derive(Clone, Default)]
struct Memory {
    told: Once,
    unanswered: Unanswered,
}

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    let (own, memory) = (shared.clone(), Memory::default());
    let zone = shared.settings.environment.time_zone.clone();
    tracing::info!(
        zone = zone.iana_name().unwrap_or("that of the machine"),
        "schedules that name no time zone are in this one"
    );
    Controller::new(NAME, &named(environment(shared, NAME)))
        .workers(workers(shared, NAME))
        .follow(&caches.cron_jobs)
        .follow(&caches.jobs)
        .follow(&caches.broadcast_jobs)
        .follow(&caches.list_pull_jobs)
        .wake(&caches.cron_jobs, |change, wake| wake(change.key.clone()))
        .wake(&caches.jobs, |change, wake| wake_owner(change, Child::of_job, wake))
        .wake(&caches.broadcast_jobs, |change, wake| {
            wake_owner(change, |job| Child::of_broadcast_job(&job.metadata, readable(job)), wake);
        })
        .wake(&caches.list_pull_jobs, |change, wake| {
            wake_owner(change, |list| Child::of_list(&list.metadata, readable(list)), wake);
        })
        .reconcile(move |context, key| {
            let (shared, memory, zone) = (own.clone(), memory.clone(), zone.clone());
            async move { pass(&shared, &memory, &zone, &context, &key).await }
        })
}

fn readable<K>(stored: &Guarded<K>) -> Option<&K> {
    stored.object.as_deref().ok()
}

/// Wakes the owner of a job that came, ended or is deleted. That it counts its pods does not matter.
fn wake_owner<V: View>(change: &Change<V>, child: impl Fn(&V) -> Child, wake: &mut dyn FnMut(ObjectKey)) {
    let (old, new) = (change.old.as_deref().map(&child), change.new.as_deref().map(&child));
    if Child::differs(old.as_ref(), new.as_ref()) {
        owners(ADVANCED_CRON_JOB, change, wake);
    }
}

async fn pass(
    shared: &Shared,
    memory: &Memory,
    zone: &TimeZone,
    context: &Context,
    key: &ObjectKey,
) -> Result<Next, Error> {
    let Some(stored) = shared.caches.cron_jobs.get(key) else {
        memory.told.forget(key);
        memory.unanswered.forget(key);
        shared.waiting.forget(ADVANCED_CRON_JOB, key);
        return Ok(Next::Forget);
    };
    let cron = match &stored.object {
        Ok(cron) => cron.clone(),
        Err(problem) => {
            let uid = stored.metadata.uid.clone();
            let object = ObjectRef { resource: ADVANCED_CRON_JOB, key: key.clone(), uid };
            return Err(unreadable(context, object, problem).await);
        }
    };
    let Some(children) = children(shared, &cron) else { return Ok(Next::After(super::FIRST_LIST)) };
    let kind = children_of(&cron).map_or("", |resource| resource.kind);
    let seen = Observed { cron: cron.clone(), children, now: context.clock().now(), zone: zone.clone() };
    let plan = advancedcronjob::plan(&seen);
    let own = advancedcronjob::reference(&cron);
    if plan.run.is_none()
        && let Some(next) = plan.next
    {
        // The sentence is the original's: people search for it.
        tracing::info!(now = %seen.now, next = %next, "no upcoming scheduled times, sleeping until next now");
    }
    let (effects, purposes) = with_events(&plan, &own, kind);
    let outcome = context.try_act(key, &effects).await;
    let has_failed = |index: usize| outcome.failed.iter().any(|failure| failure.index == index);
    let started_at = purposes.iter().position(|purpose| matches!(purpose, Some(Purpose::Start(_))));
    let is_started = started_at.is_some_and(|index| !has_failed(index));
    let mut waits = plan.waits.clone();
    waits.join(job_waits(shared, &own, &effects, &outcome, 1));
    waits.join(memory.unanswered.waits(key, &outcome));
    let (waiting, lasts) = shared.waiting.note(&own, &waits, None, seen.now);
    // Events alone cannot fail.
    let _ = context.try_act(key, &refusals(&purposes, &outcome, &own, kind)).await;
    let news = memory.told.news(key, plan.notices.clone()).into_iter();
    let _ =
        context.try_act(key, &news.chain(waiting.into_iter().map(Effect::Event)).collect::<Vec<_>>()).await;
    let write = plan.status_after(is_started).and_then(|status| status_write(&cron, &status));
    let written = context.act(key, write.as_slice()).await;
    let is_in_the_way = |failure: &Failure| {
        let purpose = purposes.get(failure.index).and_then(Option::as_ref);
        matches!((purpose, &failure.why), (Some(Purpose::Replace(_)), Why::Refused { .. }))
    };
    // A job that may not be deleted is tried again less and less often.
    let wake = match outcome.failed.iter().any(is_in_the_way) {
        true => plan.until_next(seen.now),
        false => plan.wake_after,
    };
    let wake = [wake, lasts, waits.wake_after()].into_iter().flatten().min();
    // The next run is started on time, whatever else fails.
    wake.into_iter().for_each(|after| context.again(key, after));
    serious(outcome, &purposes).ok()?;
    written?;
    Ok(wake.into())
}

/// The jobs that an object may control; nothing while they are being read for the first time.
fn children(shared: &Shared, cron: &AdvancedCronJob) -> Option<Vec<Child>> {
    let caches = &shared.caches;
    let uid = cron.metadata.uid.as_deref().unwrap_or_default();
    match children_of(cron) {
        Some(JOB) => {
            caches.jobs.want();
            let jobs: Vec<Arc<Job>> = caches.jobs.by_index(BY_OWNER, uid);
            caches.jobs.is_synced().then(|| jobs.iter().map(|job| Child::of_job(job)).collect())
        }
        Some(BROADCAST_JOB) => {
            let jobs = caches.broadcast_jobs.by_index(BY_OWNER, uid);
            Some(jobs.iter().map(|job| Child::of_broadcast_job(&job.metadata, readable(job))).collect())
        }
        Some(IMAGE_LIST_PULL_JOB) => {
            let lists = caches.list_pull_jobs.by_index(BY_OWNER, uid);
            Some(lists.iter().map(|list| Child::of_list(&list.metadata, readable(list))).collect())
        }
        _ => Some(Vec::new()),
    }
}

/// The effects of a plan, each followed by its events, and what each is for.
fn with_events(plan: &Plan, own: &ObjectRef, kind: &str) -> (Vec<Effect>, Vec<Option<Purpose>>) {
    let (mut effects, mut purposes) = (Vec::new(), Vec::new());
    for (effect, purpose) in plan.effects.iter().zip(&plan.purposes) {
        effects.push(effect.clone());
        purposes.push(Some(purpose.clone()));
        effects.push(Effect::Event(purpose.done(own, kind)));
        if matches!(purpose, Purpose::Start(_)) {
            effects.extend(plan.told.iter().cloned().map(Effect::Event));
        }
        purposes.resize(effects.len(), None);
    }
    (effects, purposes)
}

/// Reports what the server refused. Everything else is settled by looking again.
fn refusals(purposes: &[Option<Purpose>], outcome: &Outcome, own: &ObjectRef, kind: &str) -> Vec<Effect> {
    let failed = outcome.failed.iter().filter_map(|failure| {
        let Why::Refused { message, .. } = &failure.why else { return None };
        Some(Effect::Event(purposes.get(failure.index)?.as_ref()?.failed(own, kind, message)))
    });
    failed.collect()
}

/// What went wrong, without old jobs that could not be deleted: they wait for the next pass.
fn serious(mut outcome: Outcome, purposes: &[Option<Purpose>]) -> Outcome {
    outcome.failed.retain(|failure| {
        let is_clean_up = matches!(purposes.get(failure.index), Some(Some(Purpose::CleanUp(_))));
        !(is_clean_up && matches!(failure.why, Why::Refused { .. } | Why::LeftOut))
    });
    outcome
}

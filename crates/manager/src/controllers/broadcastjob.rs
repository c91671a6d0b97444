//! BroadcastJobs: gathers what a pass may know, lets the planner decide, carries it out, sends events and writes the status.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kruise_api::broadcastjob::v1beta1::{BroadcastJob, Status};
use kruise_core::{
    broadcastjob::{self, BROADCAST_JOB, Observed, Plan, Purpose, Report, is_concerned, status_write},
    conditions,
    effect::{Effect, Event},
    object::{ObjectKey, ObjectRef, POD},
    waiting::{self, Waits},
};
use kruise_runtime::{
    controller::{Context, Controller, Error, Next},
    effects::{Failure, Outcome, Why},
};

use super::{
    Once, Unanswered, environment, hopeless, job_waits, named, owners, rest, tunable_queue, unreadable,
    workers, workload::Written,
};
use crate::{caches::BY_OWNER, shared::Shared};

/// The name.
pub const NAME: &str = "broadcastjob-controller";

/// A pass creates as many pods as can be written within this time, so that a change of the job takes effect soon.
const PASS: Duration = Duration::from_secs(1);

/// What is remembered between passes. Clones are the same.
#[derive(Clone, Default)]
struct Memory {
    told: Once,
    unanswered: Unanswered,
    written: Written,
    /// The jobs that had a pass in this process, and whether they wait as they did when it found them.
    met: Arc<Mutex<BTreeMap<ObjectKey, bool>>>,
    /// Where names of pods come from, for jobs where a stranger has a name. All others begin with the same, so that every process
    /// gives the pod of a node the same name: a create of one that died then makes no second pod.
    seeds: Arc<Mutex<BTreeMap<ObjectKey, u64>>>,
}

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    let (own, memory, jobs) = (shared.clone(), Memory::default(), caches.broadcast_jobs.clone());
    Controller::new(NAME, &named(environment(shared, NAME)))
        .queue(tunable_queue(shared))
        .workers(workers(shared, NAME))
        .follow(&caches.broadcast_jobs)
        .follow(&caches.pods)
        .wake(&caches.broadcast_jobs, |change, wake| wake(change.key.clone()))
        .wake(&caches.pods, |change, wake| owners(BROADCAST_JOB, change, wake))
        .wake(&caches.nodes, move |change, wake| {
            let (old, new) = (change.old.as_deref(), change.new.as_deref());
            if let (Some(old), Some(new)) = (old, new)
                && !new.fits_otherwise(old)
            {
                return;
            }
            for job in jobs.list() {
                if job.object.as_ref().is_ok_and(|job| is_concerned(job, old, new)) {
                    wake(job.metadata.key());
                }
            }
        })
        .reconcile(move |context, key| {
            let (shared, memory) = (own.clone(), memory.clone());
            async move { pass(&shared, &memory, &context, &key).await }
        })
}

async fn pass(shared: &Shared, memory: &Memory, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
    let Some(stored) = shared.caches.broadcast_jobs.get(key) else {
        memory.forget(key);
        shared.waiting.forget(BROADCAST_JOB, key);
        return Ok(Next::Forget);
    };
    let job = match &stored.object {
        Ok(job) => job.clone(),
        Err(problem) => {
            let uid = stored.metadata.uid.clone();
            let object = ObjectRef { resource: BROADCAST_JOB, key: key.clone(), uid };
            return Err(unreadable(context, object, problem).await);
        }
    };
    let Some(seen) = observe(shared, memory, context, key, job) else {
        return Ok(Next::After(super::FIRST_LIST));
    };
    let plan = broadcastjob::plan(&seen);
    let own = broadcastjob::reference(&seen.job);
    let (effects, purposes) = with_events(&plan, &own);
    let outcome = context.try_act(key, &effects).await;
    let failure = |index: usize| outcome.failed.iter().find(|failure| failure.index == index);
    memory.learn(key, &outcome);
    let creates =
        || purposes.iter().enumerate().filter(|(_, purpose)| matches!(purpose, Some(Purpose::Create(_))));
    let created = creates().filter(|(index, _)| failure(*index).is_none()).count();
    let missing = creates().count() - created;
    let mut waits = plan.waits.clone();
    waits.join(job_waits(shared, &own, &effects, &outcome, missing));
    waits.join(memory.unanswered.waits(key, &outcome));
    let (waiting, lasts) = shared.waiting.note(&own, &waits, told(&seen), seen.now);
    // Events alone cannot fail.
    let _ = context.try_act(key, &refusals(&purposes, &outcome, &own)).await;
    let news = memory.told.news(key, plan.notices.clone()).into_iter();
    let _ =
        context.try_act(key, &news.chain(waiting.into_iter().map(Effect::Event)).collect::<Vec<_>>()).await;
    let mut written = Ok(());
    let report = plan.report.clone().filter(|report| !report.needs_all || outcome.failed.is_empty());
    let status = report.map(|report| memory.status(key, &seen, report.counting(created), &waits));
    let mut text_later = None;
    if let Some(Reported { write: Some(write), events, only_text }) = status {
        text_later = memory.written.left(key, seen.now).filter(|_| only_text);
        if text_later.is_none() {
            let events = events.into_iter().map(Effect::Event);
            written = context.act(key, &[write].into_iter().chain(events).collect::<Vec<_>>()).await;
            memory.written.note(key, seen.now);
        }
    }
    context.rest(key, rest(seen.pods.len()));
    // A deadline is kept, whatever else fails.
    let wake = [plan.wake_after, lasts, waits.wake_after(), text_later].into_iter().flatten().min();
    wake.into_iter().for_each(|after| context.again(key, after));
    if let Some(error) = hopeless(shared, context, own, seen.job.as_ref(), &outcome).await {
        return Err(error);
    }
    outcome.ok()?;
    written?;
    Ok(wake.into())
}

/// The reason that the condition `Waiting` has already.
fn told(seen: &Observed) -> Option<&str> {
    let conditions = &seen.job.status.as_ref()?.conditions;
    conditions::get(conditions, waiting::CONDITION)?.reason.as_deref()
}

/// The write of a status.
struct Reported {
    write: Option<Effect>,
    events: Vec<Event>,
    /// Only the message of the condition `Waiting` changes.
    only_text: bool,
}

/// Everything a pass may know; nothing while nodes are being read for the first time.
fn observe(
    shared: &Shared,
    memory: &Memory,
    context: &Context,
    key: &ObjectKey,
    job: Arc<BroadcastJob>,
) -> Option<Observed> {
    let caches = &shared.caches;
    let mut nodes = Vec::new();
    if !broadcastjob::is_over(&job) {
        caches.nodes.want();
        if !caches.nodes.is_synced() {
            return None;
        }
        nodes = caches.nodes.list();
    }
    Some(Observed {
        pods: caches.pods.by_index(BY_OWNER, job.metadata.uid.as_deref().unwrap_or_default()),
        nodes,
        now: context.clock().now(),
        assign_by_scheduler: shared.settings.options.assign_bcj_pods_by_scheduler,
        room: context.room((POD, None), PASS),
        seed: memory.seed(key),
        job,
    })
}

/// The effects of a plan, each followed by its event, and what each is for.
fn with_events(plan: &Plan, own: &ObjectRef) -> (Vec<Effect>, Vec<Option<Purpose>>) {
    let (mut effects, mut purposes) = (Vec::new(), Vec::new());
    for (effect, purpose) in plan.effects.iter().zip(&plan.purposes) {
        effects.push(effect.clone());
        purposes.push(Some(purpose.clone()));
        if let Some(event) = purpose.done(own) {
            effects.push(Effect::Event(event));
            purposes.push(None);
        }
    }
    (effects, purposes)
}

/// Reports what the server refused. Everything else is settled by looking again.
fn refusals(purposes: &[Option<Purpose>], outcome: &Outcome, own: &ObjectRef) -> Vec<Effect> {
    let failed = outcome.failed.iter().filter_map(|failure| {
        let Why::Refused { message, .. } = &failure.why else { return None };
        purposes.get(failure.index)?.as_ref()?.failed(own, message)
    });
    failed.map(Effect::Event).collect()
}

impl Memory {
    fn seed(&self, key: &ObjectKey) -> u64 {
        self.seeds.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied().unwrap_or(0)
    }

    /// A stranger has the name of a pod: with the same seed it would stand in the way for ever.
    fn learn(&self, key: &ObjectKey, outcome: &Outcome) {
        let is_taken = |failure: &Failure| matches!(failure.why, Why::Refused { code: 409, .. });
        if outcome.failed.iter().any(is_taken) {
            let mut seeds = self.seeds.lock().unwrap_or_else(PoisonError::into_inner);
            *seeds.entry(key.clone()).or_insert(0) += 1;
        }
    }

    /// The status with why the job waits.
    fn status(&self, key: &ObjectKey, seen: &Observed, report: Report, waits: &Waits) -> Reported {
        let Report { mut status, events, .. } = report;
        let before = seen.job.status.clone().unwrap_or_default();
        let is_alone = status_write(&seen.job, &status).is_none();
        if !self.is_taken_over(
            key,
            &before,
            &status,
            is_alone && waiting::is_taken_over(&before.conditions, waits),
        ) {
            waiting::set_condition(&mut status.conditions, waits, seen.now);
        }
        let only_text = is_alone && waiting::is_only_text(&before.conditions, &status.conditions);
        Reported { write: status_write(&seen.job, &status), events, only_text }
    }

    /// Whether a job waits as it did when this process found it: that is written with the next change of its status, and not for
    /// its own sake. `is_alone` says whether nothing else changes.
    fn is_taken_over(&self, key: &ObjectKey, before: &Status, status: &Status, is_alone: bool) -> bool {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        let is_found = met.entry(key.clone()).or_insert(before.start_time.is_some());
        *is_found = *is_found && is_alone && before.start_time == status.start_time;
        *is_found
    }

    fn forget(&self, key: &ObjectKey) {
        self.told.forget(key);
        self.unanswered.forget(key);
        self.written.forget(key);
        self.met.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        self.seeds.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names follow from the job and the node, so that a create that one process has sent makes no second pod beside that of the
    /// next.
    #[test]
    fn processes_begin_with_the_same_names() {
        let key = ObjectKey::new("shop", "job");
        let (one, other) = (Memory::default(), Memory::default());
        assert_eq!(one.seed(&key), other.seed(&key));
        let taken = Why::Refused { code: 409, reason: "AlreadyExists".into(), message: String::new() };
        let failure = Failure { index: 0, verb: "create", resource: "pods", object: key.clone(), why: taken };
        one.learn(&key, &Outcome { done: 0, failed: vec![failure] });
        assert_ne!(one.seed(&key), other.seed(&key), "a stranger has the name");
    }
}

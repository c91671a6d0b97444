//! ImagePullJobs: gathers what a pass may know, lets the planner decide, carries it out and writes the status.
//!
//! Which news wakes a job is said in [`kruise_core::imagepulljob`]. News of nodes and pods comes at a shared pace.

mod observe;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kruise_api::imagepulljob::v1beta1::ImagePullJob;
use kruise_core::{
    causes,
    effect::{Effect, Event, Level},
    image_pull::Pace,
    imagepulljob::{self, IMAGE_PULL_JOB, Selection, is_news, jobs_with_news, reference, status_write},
    nodeimage::{NODE_IMAGE, NodeImage},
    object::{ObjectKey, ObjectRef},
    pod::Pod,
};
use kruise_runtime::{
    cache::{Cache, Change, Guarded, Plain},
    clock::Clock,
    controller::{Context, Controller, Error, Next},
    queue::Queue,
};

use super::{environment, hopeless, unreadable, workers};
use crate::{
    caches::{BY_PODS, BY_PROGRESS, RUNNING},
    shared::Shared,
};
use observe::Observer;

/// The name.
pub const NAME: &str = "imagepulljob-controller";

/// A pass asks as many nodes as can be written within this time, and then looks again.
const PASS: Duration = Duration::from_secs(1);
/// When to look again while something is still being read for the first time.
const NOT_READ_YET: Duration = Duration::from_secs(1);

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    let environment = environment(shared, NAME);
    let observer = Observer::new(shared, environment.client.clone());
    let turns = Turns { pace: Arc::default(), clock: shared.settings.clock.clone() };
    let (begun, own) = (turns.clone(), shared.clone());
    let controller = Controller::new(NAME, &environment)
        .workers(workers(shared, NAME))
        .follow(&caches.pull_jobs)
        .follow(&caches.node_images)
        .follow(&caches.secrets)
        .wake(&caches.pull_jobs, |change, wake| {
            let readable =
                |job: &Option<Arc<Guarded<ImagePullJob>>>| job.as_ref()?.object.as_ref().ok().cloned();
            match (readable(&change.old), readable(&change.new)) {
                (Some(old), Some(new)) if !change.initial && !is_news(&old, &new) => {}
                _ => wake(change.key.clone()),
            }
        })
        .reconcile(move |context, key| {
            let (shared, observer) = (own.clone(), observer.clone());
            begun.begin(&key);
            async move { pass(&shared, &observer, &context, &key).await }
        });
    let queue = controller.queue();
    let (jobs, own_turns, own_queue) = (caches.pull_jobs.clone(), turns.clone(), queue.clone());
    caches.node_images.subscribe(move |change| {
        for job in woken_by_node(&jobs, change) {
            own_turns.take(&own_queue, job);
        }
    });
    let (jobs, own_turns, own_queue) = (caches.pull_jobs.clone(), turns, queue.clone());
    caches.pods.subscribe(move |change| {
        for job in woken_by_pod(&jobs, change) {
            own_turns.take(&own_queue, job);
        }
    });
    let (jobs, own_queue) = (caches.pull_jobs.clone(), queue.clone());
    let config_namespace = shared.settings.environment.daemon_config_namespace.clone();
    caches.secrets.subscribe(move |change| {
        woken_by_secret(&jobs, change, &config_namespace).into_iter().for_each(|job| own_queue.add(job));
    });
    controller
}

/// The turns of all jobs. Clones are the same.
#[derive(Clone)]
struct Turns {
    pace: Arc<Mutex<Pace>>,
    clock: Clock,
}

impl Turns {
    fn take(&self, queue: &Queue, job: ObjectKey) {
        let now = self.clock.now();
        let turn = self.pace.lock().unwrap_or_else(PoisonError::into_inner).turn(&job, now);
        if let Some(wait) = turn {
            queue.add_after(job, wait);
        }
    }

    fn begin(&self, job: &ObjectKey) {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner).begin(job);
    }
}

/// What a first list shows is no news: every job is passed at the start, when all is read.
fn woken_by_node(jobs: &Cache<Guarded<ImagePullJob>>, change: &Change<NodeImage>) -> Vec<ObjectKey> {
    if change.initial {
        return Vec::new();
    }
    let (old, new) = (change.old.as_deref(), change.new.as_deref());
    let mut woken: Vec<ObjectKey> = match (old, new) {
        (Some(old), Some(new)) => jobs_with_news(old, new).into_iter().collect(),
        _ => Vec::new(),
    };
    let place = |node: Option<&NodeImage>| {
        node.filter(|node| !node.metadata.is_deleting()).map(|node| node.metadata.labels.clone())
    };
    if place(old) != place(new) {
        let running = jobs.by_index(BY_PROGRESS, RUNNING);
        let concerned =
            running.into_iter().filter(|job| selection(job).is_some_and(|one| one.is_concerned(old, new)));
        woken.extend(concerned.map(|job| job.metadata.key()));
    }
    woken
}

fn woken_by_pod(jobs: &Cache<Guarded<ImagePullJob>>, change: &Change<Pod>) -> Vec<ObjectKey> {
    if change.initial {
        return Vec::new();
    }
    let by_pods = jobs.by_index(BY_PODS, &change.key.namespace);
    let moved = by_pods.into_iter().filter(|job| {
        selection(job).is_some_and(|one| one.is_moved(change.old.as_deref(), change.new.as_deref()))
    });
    moved.map(|job| job.metadata.key()).collect()
}

fn selection(job: &Guarded<ImagePullJob>) -> Option<Selection> {
    Selection::of(job.object.as_ref().ok()?).ok()
}

/// A secret that comes or changes wakes the running jobs that name it. One that daemons read is written by us; when it is
/// gone, those that used it make it again.
fn woken_by_secret(
    jobs: &Cache<Guarded<ImagePullJob>>,
    change: &Change<Plain>,
    config_namespace: &str,
) -> Vec<ObjectKey> {
    if change.initial {
        return Vec::new();
    }
    let is_copy = change.key.namespace == *config_namespace;
    if is_copy && change.new.is_some() {
        return Vec::new();
    }
    let names = |job: &ImagePullJob| {
        let names = &job.spec.template.pull_secrets;
        match is_copy {
            true => !names.is_empty(),
            false => names.iter().any(|name| *name == *change.key.name),
        }
    };
    let running = jobs.by_index(BY_PROGRESS, RUNNING).into_iter();
    let named = running.filter(|job| is_copy || job.metadata.namespace == change.key.namespace);
    let named = named.filter(|job| job.object.as_ref().is_ok_and(|job| names(job)));
    named.map(|job| job.metadata.key()).collect()
}

async fn pass(
    shared: &Shared,
    observer: &Observer,
    context: &Context,
    key: &ObjectKey,
) -> Result<Next, Error> {
    let Some(stored) = observer.find(key) else {
        observer.forget(key);
        return Ok(Next::Forget);
    };
    let job = match &stored.object {
        Ok(job) => job.clone(),
        Err(problem) => {
            let uid = stored.metadata.uid.clone();
            let object = ObjectRef { resource: IMAGE_PULL_JOB, key: key.clone(), uid };
            return Err(unreadable(context, object, problem).await);
        }
    };
    let room = context.room((NODE_IMAGE, None), PASS);
    let seen = match observer.observe(context, key, job.clone(), room).await {
        Ok(Some(seen)) => seen,
        Ok(None) => return Ok(Next::After(NOT_READ_YET)),
        Err(observe::Error::Job(error)) => return Err(unusable(context, &job, &error).await),
        Err(observe::Error::Read(error)) => return Err(Error::other(error)),
    };
    let plan = match imagepulljob::plan(&seen) {
        Ok(plan) => plan,
        Err(error) => return Err(unusable(context, &job, &error).await),
    };
    for reason in &plan.reasons {
        tracing::debug!(reason, "waits");
    }
    let mut effects = plan.effects.clone();
    effects.extend(plan.notice.clone().filter(|notice| observer.is_new(key, notice)).map(Effect::Event));
    let outcome = context.try_act(key, &effects).await;
    let has_failed = |index: usize| outcome.failed.iter().any(|failure| failure.index == index);
    let asked = plan.asks.iter().enumerate().filter(|(index, asks)| **asks && !has_failed(*index)).count();
    let write = plan.status_after(asked).and_then(|status| status_write(&job, &status));
    let written = context.act(key, write.as_slice()).await;
    if let Some(error) = hopeless(shared, context, reference(&job), job.as_ref(), &outcome).await {
        return Err(error);
    }
    outcome.ok()?;
    written?;
    Ok(plan.wake_after.into())
}

/// Admission refuses such a job; one that was stored before is told about.
async fn unusable(context: &Context, job: &ImagePullJob, error: &imagepulljob::Error) -> Error {
    let regarding = reference(job);
    let key = regarding.key.clone();
    let message = causes::told(error);
    let event =
        Event { regarding, level: Level::Warning, reason: "Invalid".into(), message: message.clone() };
    match context.act(&key, &[Effect::Event(event)]).await {
        Ok(()) => Error::terminal(message),
        Err(error) => error.into(),
    }
}

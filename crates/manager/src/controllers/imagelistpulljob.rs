//! ImageListPullJobs: gathers what a pass may know, lets the planner decide, carries it out, tells people and writes the
//! status.

use std::sync::Arc;

use kruise_api::{imagelistpulljob::v1beta1::ImageListPullJob, imagepulljob::v1beta1::ImagePullJob};
use kruise_core::{
    effect::Effect,
    imagelistpulljob::{self, Deed, IMAGE_LIST_PULL_JOB, Observed, Plan, is_news_of_child, status_write},
    object::{ObjectKey, ObjectRef},
};
use kruise_runtime::{
    cache::Guarded,
    controller::{Context, Controller, Error, Next},
    effects::{Outcome, Why},
};

use super::{Once, environment, hopeless, owners, unreadable, workers};
use crate::{caches::BY_OWNER, shared::Shared};

/// The name.
pub const NAME: &str = "imagelistpulljob-controller";

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    let (own, told) = (shared.clone(), Once::default());
    Controller::new(NAME, &environment(shared, NAME))
        .workers(workers(shared, NAME))
        .follow(&caches.list_pull_jobs)
        .follow(&caches.pull_jobs)
        .wake(&caches.list_pull_jobs, |change, wake| wake(change.key.clone()))
        .wake(&caches.pull_jobs, |change, wake| {
            let child =
                |job: &Option<Arc<Guarded<ImagePullJob>>>| job.as_ref()?.object.as_ref().ok().cloned();
            if is_news_of_child(child(&change.old).as_deref(), child(&change.new).as_deref()) {
                owners(IMAGE_LIST_PULL_JOB, change, wake);
            }
        })
        .reconcile(move |context, key| {
            let (shared, told) = (own.clone(), told.clone());
            async move { pass(&shared, &told, &context, &key).await }
        })
}

async fn pass(shared: &Shared, told: &Once, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
    let caches = &shared.caches;
    let Some(stored) = caches.list_pull_jobs.get(key) else {
        told.forget(key);
        return Ok(Next::Forget);
    };
    let list = match &stored.object {
        Ok(list) => list.clone(),
        Err(problem) => {
            let uid = stored.metadata.uid.clone();
            let object = ObjectRef { resource: IMAGE_LIST_PULL_JOB, key: key.clone(), uid };
            return Err(unreadable(context, object, problem).await);
        }
    };
    let uid = stored.metadata.uid.clone();
    let is_controlled = |child: &Arc<Guarded<ImagePullJob>>| {
        child.metadata.controller().is_some_and(|controller| controller.uid == uid)
    };
    let children = caches.pull_jobs.by_index(BY_OWNER, &uid).into_iter().filter(is_controlled);
    let children = children.filter_map(|child| child.object.clone().ok()).collect();
    let seen = Observed { list: list.clone(), children, now: context.clock().now() };
    let plan = imagelistpulljob::plan(&seen);
    let outcome = context.try_act(key, &plan.effects).await;
    let mut events: Vec<Effect> = events(&list, &plan, &outcome);
    events.extend(told.news(key, plan.notice.clone()));
    // Events alone cannot fail.
    let _ = context.try_act(key, &events).await;
    let write = plan.status.as_ref().and_then(|status| status_write(&list, status));
    let written = context.act(key, write.as_slice()).await;
    if let Some(error) =
        hopeless(shared, context, imagelistpulljob::reference(&list), list.as_ref(), &outcome).await
    {
        return Err(error);
    }
    outcome.ok()?;
    written?;
    Ok(plan.wake_after.into())
}

fn events(list: &ImageListPullJob, plan: &Plan, outcome: &Outcome) -> Vec<Effect> {
    let failure = |index: usize| outcome.failed.iter().find(|failure| failure.index == index);
    let done = |deed: Deed| {
        let deeds = plan.deeds.iter().enumerate();
        deeds.filter(|(index, one)| **one == deed && failure(*index).is_none()).count()
    };
    let mut events: Vec<_> = imagelistpulljob::created(list, done(Deed::Create)).into_iter().collect();
    events.extend(imagelistpulljob::deleted(list, done(Deed::Delete)));
    for failure in &outcome.failed {
        // Everything else is settled by looking again.
        if let (Some(Deed::Create), Why::Refused { message, .. }) =
            (plan.deeds.get(failure.index), &failure.why)
        {
            events.push(imagelistpulljob::failed_create(list, message));
        }
    }
    events.into_iter().map(Effect::Event).collect()
}

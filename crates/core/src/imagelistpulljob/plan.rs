//! The next step of a list.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    imagelistpulljob::v1beta1::{ImageListPullJob, Status},
    imagepulljob::v1beta1::ImagePullJob,
    labels::CONTROLLER_REVISION_HASH,
    time::Time,
};
use serde_json::json;

use super::{
    children::{Children, Template},
    reference,
    status::status,
};
use crate::{
    effect::{Effect, Event, Level, Patch, Target},
    imagepulljob as job,
    object::ObjectRef,
};

/// Everything a pass may know.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The list.
    pub list: Arc<ImageListPullJob>,
    /// The ImagePullJobs that it controls.
    pub children: Vec<Arc<ImagePullJob>>,
    /// The time.
    pub now: Timestamp,
}

/// What an effect is, for what people are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A child is made.
    Create,
    /// A child is deleted.
    Delete,
    /// Nothing that people are told.
    Other,
}

/// What to do next, as data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes, in any order.
    pub effects: Vec<Effect>,
    /// What each of them is, in the same order.
    pub deeds: Vec<Deed>,
    /// The status. Nothing where it stays as it is.
    pub status: Option<Status>,
    /// When to look again, if nothing happens before.
    pub wake_after: Option<Duration>,
    /// What was left out, and why. To be told once.
    pub notice: Option<Event>,
}

impl Plan {
    fn add(&mut self, deed: Deed, effect: Effect) {
        self.effects.push(effect);
        self.deeds.push(deed);
    }
}

/// Decides the next step of a list.
pub fn plan(seen: &Observed) -> Plan {
    let mut plan = Plan::default();
    let list = seen.list.as_ref();
    if list.metadata.deletion_timestamp.is_some() {
        return plan;
    }
    if let Some(completed) = list.status.as_ref().and_then(|status| status.completion_time) {
        end(seen, completed, &mut plan);
        return plan;
    }
    let template = Template::of(list);
    let children = Children::of(list, &template, &seen.children);
    plan.notice = left_out(list, &children);
    let label = list.metadata.labels.as_ref().and_then(|labels| labels.get(CONTROLLER_REVISION_HASH));
    // Admission refuses any change of a list that it would not take.
    if label != Some(&template.hash) && children.left_out.is_empty() {
        let ObjectRef { resource, key, uid } = reference(list);
        let patch = Patch::Merge(json!({"metadata": {"labels": {CONTROLLER_REVISION_HASH: template.hash}}}));
        let target = Target::with_uid(resource, key, uid);
        plan.add(Deed::Other, Effect::Patch { target, subresource: None, patch });
    }
    plan.status = Some(status(list, &children, seen.now));
    for (image, child) in &children.by_image {
        match child {
            Some(child) => template.adopt(child).into_iter().for_each(|effect| plan.add(Deed::Other, effect)),
            None => plan.add(Deed::Create, template.create(list, image)),
        }
    }
    for child in &children.surplus {
        let ObjectRef { resource, key, uid } = job::reference(child);
        let target = Target::with_uid(resource, key, uid);
        plan.add(Deed::Delete, Effect::Delete { target, grace: None, follows: false });
    }
    plan
}

fn end(seen: &Observed, completed: Time, plan: &mut Plan) {
    let completion = &seen.list.spec.template.completion_policy;
    let Some(ttl) = completion.ttl_seconds_after_finished else { return };
    let left = SignedDuration::from_secs(ttl.into()) - seen.now.duration_since(completed.0);
    if left <= SignedDuration::ZERO {
        let ObjectRef { resource, key, uid } = reference(&seen.list);
        let target = Target::with_uid(resource, key, uid);
        plan.add(Deed::Other, Effect::Delete { target, grace: None, follows: false });
    } else {
        plan.wake_after = Duration::try_from(left).ok();
    }
}

/// Names the images that are left out; nothing if there are none.
fn left_out(list: &ImageListPullJob, children: &Children<'_>) -> Option<Event> {
    let problems: Vec<&str> = children.left_out.iter().map(|(_, problem)| problem.as_str()).collect();
    let message = format!("no ImagePullJob is made for some images: {}", problems.join("; "));
    let regarding = reference(list);
    (!problems.is_empty()).then_some(Event {
        regarding,
        level: Level::Warning,
        reason: "Invalid".into(),
        message,
    })
}

/// Tells of children that were made; nothing if there was none.
pub fn created(list: &ImageListPullJob, count: usize) -> Option<Event> {
    tell(list, count, "Successful create ImagePullJob", "Create")
}

/// Tells of children that were deleted; nothing if there was none.
pub fn deleted(list: &ImageListPullJob, count: usize) -> Option<Event> {
    tell(list, count, "Successful delete ImagePullJob", "Delete")
}

fn tell(list: &ImageListPullJob, count: usize, reason: &str, verb: &str) -> Option<Event> {
    let message = format!("{verb} {count} ImagePullJob");
    let (regarding, reason) = (reference(list), reason.into());
    (count > 0).then_some(Event { regarding, level: Level::Normal, reason, message })
}

/// Tells of a child that could not be made.
pub fn failed_create(list: &ImageListPullJob, error: &str) -> Event {
    Event {
        regarding: reference(list),
        level: Level::Warning,
        reason: "FailedCreate".into(),
        message: error.to_owned(),
    }
}

//! What a job tells about itself.

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    imagepulljob::v1beta1::{ImagePullJob, Status},
    time::Time,
};
use serde_json::json;

use super::{
    desired::{Completion, Desired},
    reference,
};
use crate::{
    effect::{Effect, Patch, Target},
    merge_patch,
    nodeimage::{Answer, NodeImage, PullSecret},
    object::ObjectRef,
};

/// Where a node is with the image of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It was not asked to pull yet, or not by this job.
    Unasked,
    /// It was asked.
    Pulling,
    /// It has the image.
    Succeeded,
    /// It could not pull.
    Failed,
}

/// Where a node is with the image of the job with this uid.
pub(super) fn place(node: &NodeImage, desired: &Desired<'_>, uid: &str) -> Place {
    let name = desired.image.name.as_str();
    let tag = node.image(name).and_then(|image| image.tag(desired.image.version.as_str()));
    match tag.filter(|(_, tag)| tag.is_wanted_by(uid)).map(|(_, tag)| node.answer(name, tag)) {
        None => Place::Unasked,
        Some(Answer::None | Answer::Begun) => Place::Pulling,
        Some(Answer::Succeeded) => Place::Succeeded,
        Some(Answer::Failed) => Place::Failed,
    }
}

/// Whether a node that was asked does not know all the secrets.
pub(super) fn lacks_secret(node: &NodeImage, desired: &Desired<'_>, secrets: &[PullSecret]) -> bool {
    let known = node.image(&desired.image.name).map_or(&[][..], |image| &image.pull_secrets);
    secrets.iter().any(|secret| !known.iter().any(|known| known.key() == secret.key()))
}

/// How many nodes are where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) unasked: Vec<String>,
    pub(super) pulling: Vec<String>,
    pub(super) succeeded: usize,
    pub(super) failed: Vec<String>,
}

impl Counts {
    pub(super) fn add(&mut self, node: &NodeImage, place: Place) {
        let name = || node.metadata.name.to_string();
        match place {
            Place::Unasked => self.unasked.push(name()),
            Place::Pulling => self.pulling.push(name()),
            Place::Succeeded => self.succeeded += 1,
            Place::Failed => self.failed.push(name()),
        }
    }

    fn desired(&self) -> usize {
        self.unasked.len() + self.pulling.len() + self.succeeded + self.failed.len()
    }

    fn done(&self) -> usize {
        self.succeeded + self.failed.len()
    }
}

/// How much time a job has left, if it has a deadline.
pub(super) fn time_left(job: &ImagePullJob, desired: &Desired<'_>, now: Timestamp) -> Option<SignedDuration> {
    let Completion::Always { deadline: Some(deadline), .. } = desired.completion else { return None };
    let started = job.status.as_ref().and_then(|status| status.start_time).map_or(now, |start| start.0);
    Some(SignedDuration::from_secs(deadline).saturating_sub(now.duration_since(started)))
}

/// The status of a job whose nodes are there. The time of its end is set when it is over.
pub(super) fn status(
    job: &ImagePullJob,
    desired: &Desired<'_>,
    mut counts: Counts,
    now: Timestamp,
) -> Status {
    let total = counts.desired();
    let is_late = time_left(job, desired, now).is_some_and(|left| left <= SignedDuration::ZERO);
    let is_late = is_late && counts.done() < total;
    if is_late {
        counts.failed.append(&mut counts.pulling);
        counts.failed.append(&mut counts.unasked);
    }
    let is_complete = desired.completion != Completion::Never && counts.done() == total;
    counts.failed.sort();
    counts.failed.dedup();
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let start = job.status.as_ref().and_then(|status| status.start_time);
    Status {
        start_time: Some(start.unwrap_or(Time(now))),
        completion_time: is_complete.then_some(Time(now)),
        desired: number(total),
        active: Some(number(counts.pulling.len())),
        succeeded: Some(number(counts.succeeded)),
        failed: Some(number(counts.failed.len())),
        message: Some(match (is_late, is_complete, total) {
            (true, ..) => "job exceeds activeDeadlineSeconds".to_owned(),
            (false, true, _) => "job has completed".to_owned(),
            (false, false, 0) => "job is running, no progress".to_owned(),
            (false, false, _) => {
                let share = 100.0 * f64::from(number(counts.done())) / f64::from(number(total));
                format!("job is running, progress {share:.1}%")
            }
        }),
        failed_nodes: counts.failed,
    }
}

/// The write that brings a status up to date, if one is needed. Nobody else writes it, so it needs no version.
pub fn status_write(job: &ImagePullJob, status: &Status) -> Option<Effect> {
    let value = |status: &Status| serde_json::to_value(status).unwrap_or_default();
    let before = job.status.as_ref().map(value).unwrap_or_default();
    let change = merge_patch::between(&before, &value(status))?;
    let ObjectRef { resource, key, uid } = reference(job);
    let patch = Patch::Merge(json!({"status": change}));
    Some(Effect::Patch { target: Target::with_uid(resource, key, uid), subresource: Some("status"), patch })
}

//! The next step of a job.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    finalizers,
    imagepulljob::v1beta1::{ImagePullJob, Status},
};
use serde_json::json;

use super::{
    Error,
    desired::{Completion, Desired},
    reference,
    status::{Counts, Place, lacks_secret, place, status, time_left},
    tags::{Wish, is_full},
};
use crate::{
    effect::{Effect, Event, Level, Patch, Target},
    hash, image_secrets,
    nodeimage::{NodeImage, validate::MOST_IMAGES},
    object::ObjectRef,
    text::Text,
};

/// When to look again after a step that others follow.
const NEXT_STEP: Duration = Duration::from_secs(1);

/// Everything a pass may know.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The job.
    pub job: Arc<ImagePullJob>,
    /// The NodeImages that it [selects](super::Selection), in the order in which they pull. Not needed when it is
    /// [over](super::is_over).
    pub nodes: Vec<Arc<NodeImage>>,
    /// What is known of its pull secrets. Not needed when it has none.
    pub secrets: image_secrets::Observed,
    /// Seconds: the flag `--default-ttlseconds-for-always-nodeimage`.
    pub ttl_of_tags: i64,
    /// How many NodeImages may be written.
    pub room: usize,
    /// Makes the times of tags differ.
    pub seed: u64,
    /// The time.
    pub now: Timestamp,
}

/// What to do next, as data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes, in any order.
    pub effects: Vec<Effect>,
    /// Which of them ask a node to pull, in the same order.
    pub asks: Vec<bool>,
    /// The status before these writes. Nothing where it stays as it is.
    pub status: Option<Status>,
    /// When to look again, if nothing happens before.
    pub wake_after: Option<Duration>,
    /// What the job waits for, made for people.
    pub reasons: Vec<String>,
    /// What people should hear once: the same text need not be told again for this job.
    pub notice: Option<Event>,
}

impl Plan {
    fn add(&mut self, effect: Effect) {
        self.effects.push(effect);
        self.asks.push(false);
    }

    fn ask(&mut self, effect: Effect) {
        self.effects.push(effect);
        self.asks.push(true);
    }

    fn wake(&mut self, after: Duration) {
        self.wake_after = Some(self.wake_after.map_or(after, |known| known.min(after)));
    }

    /// The status after the writes, given how many nodes were really asked. They pull now: nobody else tells the job.
    pub fn status_after(&self, asked: usize) -> Option<Status> {
        let mut status = self.status.clone()?;
        let asked = i32::try_from(asked).unwrap_or(i32::MAX);
        status.active = Some(status.active.unwrap_or(0).saturating_add(asked));
        Some(status)
    }
}

/// Decides the next step of a job.
pub fn plan(seen: &Observed) -> Result<Plan, Error> {
    if super::is_over(&seen.job) {
        return Ok(end(seen));
    }
    let desired = Desired::of(&seen.job)?;
    let mut plan = Plan::default();
    let (job, metadata) = (reference(&seen.job), &seen.job.metadata);
    let names = &seen.job.spec.template.pull_secrets;
    if !has_finalizer(&seen.job) {
        let mut all = metadata.finalizers.clone().unwrap_or_default();
        all.push(finalizers::IMAGE_PULL_JOB.to_owned());
        plan.add(set_finalizers(&seen.job, &all));
        if !names.is_empty() {
            // Copies of secrets must not be made before their end is certain.
            plan.wake(NEXT_STEP);
            return Ok(plan);
        }
    }
    let secrets = image_secrets::keep(&job.key, names, &seen.secrets);
    plan.notice = missing(&job, &secrets);
    run(seen, &desired, &job, secrets, &mut plan);
    Ok(plan)
}

fn run(
    seen: &Observed,
    desired: &Desired<'_>,
    job: &ObjectRef,
    secrets: image_secrets::Plan,
    plan: &mut Plan,
) {
    let mut counts = Counts::default();
    let (mut unasked, mut uninformed) = (Vec::new(), Vec::new());
    for node in &seen.nodes {
        let place = place(node, desired, &job.uid);
        counts.add(node, place);
        match place {
            Place::Unasked => unasked.push(node),
            _ if lacks_secret(node, desired, &secrets.references) => uninformed.push(node),
            _ => {}
        }
    }
    let slots = desired.parallelism.saturating_sub(counts.pulling.len());
    let status = status(&seen.job, desired, counts, seen.now);
    let is_complete = status.completion_time.is_some();
    plan.status = Some(status);
    if is_complete {
        return;
    }
    if let Some(left) = time_left(&seen.job, desired, seen.now) {
        plan.wake(at_least(left, Duration::from_secs(1)));
    }
    if !secrets.effects.is_empty() {
        // A node must not begin before it can read them.
        secrets.effects.into_iter().for_each(|effect| plan.add(effect));
        plan.reasons.push("copies of pull secrets are made first".to_owned());
        plan.wake(NEXT_STEP);
        return;
    }
    let wish = |node: &NodeImage| Wish {
        job,
        desired,
        secrets: &secrets.references,
        policy: desired.pull_policy(seen.ttl_of_tags, spread(seen.seed, node)),
        now: seen.now,
    };
    let mut room = seen.room;
    for node in uninformed {
        if let Some(effect) = wish(node).write(node).filter(|_| room > 0) {
            plan.add(effect);
            room -= 1;
        }
    }
    let (full, free): (Vec<_>, Vec<_>) = unasked.into_iter().partition(|node| is_full(node, desired));
    let waiting = free.len().saturating_sub(slots);
    for node in free.iter().take(slots.min(room)) {
        if let Some(effect) = wish(node).write(node) {
            plan.ask(effect);
        }
    }
    if free.len().min(slots) > room {
        plan.wake(NEXT_STEP);
    }
    reasons(desired, waiting, &full, plan);
}

fn reasons(desired: &Desired<'_>, waiting: usize, full: &[&Arc<NodeImage>], plan: &mut Plan) {
    if waiting > 0 {
        let parallelism = desired.parallelism;
        plan.reasons.push(match parallelism {
            0 => format!("paused: parallelism is 0, and {waiting} nodes are not asked yet"),
            _ => format!("parallelism is {parallelism}: {waiting} nodes wait for their turn"),
        });
    }
    if let Some(first) = full.first() {
        let (count, name) = (full.len(), &first.metadata.name);
        plan.reasons.push(format!("{count} nodes have {MOST_IMAGES} images to pull already, such as {name}"));
    }
}

fn missing(job: &ObjectRef, secrets: &image_secrets::Plan) -> Option<Event> {
    let names: Vec<&str> = secrets.missing.iter().map(Text::as_str).collect();
    (!names.is_empty()).then(|| Event {
        regarding: job.clone(),
        level: Level::Warning,
        reason: "PullSecretNotFound".into(),
        message: format!(
            "secret {} does not exist in namespace {}: images are pulled without",
            names.join(", "),
            job.key.namespace
        ),
    })
}

/// A job that is over leaves its copies of secrets first, then nothing holds it, then it goes after its time.
fn end(seen: &Observed) -> Plan {
    let mut plan = Plan::default();
    let job = reference(&seen.job);
    if !seen.job.spec.template.pull_secrets.is_empty() && job.key.namespace != seen.secrets.config_namespace {
        image_secrets::release(&job.key, &seen.secrets.copies)
            .into_iter()
            .for_each(|effect| plan.add(effect));
    }
    if !plan.effects.is_empty() {
        plan.wake(NEXT_STEP);
        return plan;
    }
    if has_finalizer(&seen.job) {
        let all = seen.job.metadata.finalizers.iter().flatten();
        let others: Vec<String> = all.filter(|one| *one != finalizers::IMAGE_PULL_JOB).cloned().collect();
        plan.add(set_finalizers(&seen.job, &others));
    }
    if seen.job.metadata.deletion_timestamp.is_some() {
        return plan;
    }
    let completed = seen.job.status.as_ref().and_then(|status| status.completion_time);
    let ttl = match Desired::of(&seen.job).map(|desired| desired.completion) {
        Ok(Completion::Always { ttl, .. }) => ttl,
        Ok(Completion::Never) | Err(_) => None,
    };
    if let (Some(completed), Some(ttl)) = (completed, ttl) {
        let left = SignedDuration::from_secs(ttl.into()) - seen.now.duration_since(completed.0);
        if left <= SignedDuration::ZERO {
            let target = Target::with_uid(job.resource, job.key, job.uid);
            plan.add(Effect::Delete { target, grace: None, follows: false });
        } else {
            plan.wake(at_least(left, Duration::ZERO));
        }
    }
    plan
}

fn at_least(left: SignedDuration, least: Duration) -> Duration {
    Duration::try_from(left).unwrap_or_default().max(least)
}

/// Another number for each node.
fn spread(seed: u64, node: &NodeImage) -> u64 {
    seed.wrapping_add(hash::fnv1a(node.metadata.name.bytes()).into())
}

fn has_finalizer(job: &ImagePullJob) -> bool {
    job.metadata.finalizers.iter().flatten().any(|one| one == finalizers::IMAGE_PULL_JOB)
}

fn set_finalizers(job: &ImagePullJob, all: &[String]) -> Effect {
    let ObjectRef { resource, key, uid } = reference(job);
    let version = job.metadata.resource_version.as_deref().unwrap_or_default();
    Effect::Patch {
        target: Target::with_uid(resource, key, uid).at_version(version.into()),
        subresource: None,
        patch: Patch::Merge(json!({"metadata": {"finalizers": all}})),
    }
}

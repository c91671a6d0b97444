//! The next step for a job.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    env::EPHEMERAL_JOB_ID,
    ephemeraljob::v1alpha1::{DEFAULT_PARALLELISM, DEFAULT_TTL_SECONDS, EphemeralJob},
    finalizers::EPHEMERAL_JOB as FINALIZER,
    json,
};
use serde_json::{Value, json};

use super::{
    Observed,
    outcome::{Outcome, Target, targets, template},
    reference,
    status::{Counts, start, status},
};
use crate::{
    effect::{self, Effect, Patch},
    merge_patch,
    object::{ObjectRef, POD},
    pod::Pod,
};

/// What to do next, as data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes to pods, in any order: each gives one pod the containers.
    pub injections: Vec<Effect>,
    /// The writes to the job, in any order.
    pub effects: Vec<Effect>,
    /// When to look again, if nothing happens before.
    pub wake_after: Option<Duration>,
    /// What the job waits for, if it waits.
    pub waits: Option<Waits>,
}

/// What a job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// There is no pod for it.
    ForPods,
    /// As many pods as may be are at work.
    ForContainers,
    /// Someone paused it.
    Paused,
    /// It has ended and is kept for a while.
    ForItsTime,
}

impl Waits {
    /// The reason in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ForPods => "no pod matches the selector",
            Self::ForContainers => "containers of the job have not ended",
            Self::Paused => "the job is paused",
            Self::ForItsTime => "the job has ended and is kept for ttlSecondsAfterFinished",
        }
    }
}

/// Whether a change of a pod can matter to a job: it came, it ends, or its labels or ephemeral containers changed.
pub fn is_interesting(old: Option<&Pod>, new: Option<&Pod>) -> bool {
    let facts = |pod: &Pod| {
        (
            pod.is_active(),
            pod.metadata.labels.clone(),
            pod.spec.ephemeral_containers.clone(),
            pod.status.ephemeral_container_statuses.clone(),
        )
    };
    old.map(facts) != new.map(facts)
}

/// Decides the next step for a job.
pub fn plan(seen: &Observed) -> Plan {
    let job = seen.job.as_ref();
    let is_ours = |finalizer: &&str| *finalizer == FINALIZER;
    let has_finalizer = finalizers(job).any(|finalizer| is_ours(&finalizer));
    if job.metadata.deletion_timestamp.is_some() {
        // There is nothing to clean up: the containers stay in their pods.
        let without = || finalizers(job).filter(|finalizer| !is_ours(finalizer)).collect();
        let effects = has_finalizer.then(|| write_finalizers(job, without())).into_iter().collect();
        return Plan { effects, ..Plan::default() };
    }
    if !has_finalizer {
        let with = finalizers(job).chain([FINALIZER]).collect();
        return Plan { effects: vec![write_finalizers(job, with)], ..Plan::default() };
    }
    if let Some(ended) = job.status.as_ref().and_then(|status| status.completion_time) {
        return over(seen, ended.0);
    }
    work(seen)
}

fn over(seen: &Observed, ended: Timestamp) -> Plan {
    let ttl = seen.job.spec.ttl_seconds_after_finished.unwrap_or(DEFAULT_TTL_SECONDS);
    match left(ended, SignedDuration::from_secs(ttl.into()), seen.now) {
        Some(rest) => Plan { wake_after: Some(rest), waits: Some(Waits::ForItsTime), ..Plan::default() },
        None => {
            let target = target(&seen.job);
            Plan { effects: vec![Effect::Delete { target, grace: None, follows: false }], ..Plan::default() }
        }
    }
}

fn work(seen: &Observed) -> Plan {
    let job = seen.job.as_ref();
    let targets = targets(seen);
    let counts = Counts::of(&targets);
    let status = status(seen, counts);
    let is_over = status.completion_time.is_some();
    let mut plan =
        Plan { effects: write_status(job, &json!(status)).into_iter().collect(), ..Plan::default() };
    if is_over {
        return plan;
    }
    let deadline = job.spec.active_deadline_seconds.map(SignedDuration::from_secs);
    plan.wake_after = deadline.and_then(|deadline| left(start(seen), deadline, seen.now));
    if job.spec.paused == Some(true) {
        plan.waits = Some(Waits::Paused);
        return plan;
    }
    plan.injections = injections(job, &targets, counts);
    plan.waits = match (counts.matched, plan.injections.is_empty()) {
        (0, _) => Some(Waits::ForPods),
        (_, true) => Some(Waits::ForContainers),
        (_, false) => None,
    };
    plan
}

/// Gives the containers to as many pods as may be at work at once.
fn injections(job: &EphemeralJob, targets: &[Target<'_>], counts: Counts) -> Vec<Effect> {
    let parallelism = job.spec.parallelism.unwrap_or(DEFAULT_PARALLELISM);
    let parallelism = usize::try_from(parallelism).unwrap_or(0);
    let room = parallelism.saturating_sub(counts.running + counts.waiting);
    let containers = marked(job);
    if containers.is_empty() {
        return Vec::new();
    }
    let untouched = targets.iter().filter(|target| target.outcome == Outcome::Untouched);
    untouched
        .take(room)
        .map(|Target { pod, .. }| Effect::Patch {
            target: effect::Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone()),
            subresource: Some("ephemeralcontainers"),
            patch: Patch::Strategic(json!({"spec": {"ephemeralContainers": containers}})),
        })
        .collect()
}

/// The containers of the template, each with the variable that says whose it is.
fn marked(job: &EphemeralJob) -> Vec<Value> {
    let uid = job.metadata.uid.as_deref().unwrap_or_default();
    let mark = |container: &Value| {
        let mut container = container.clone();
        let present = json::at(&container, &["env"]).and_then(Value::as_array).cloned().unwrap_or_default();
        let others =
            present.into_iter().filter(|variable| json::text(variable, &["name"]) != Some(EPHEMERAL_JOB_ID));
        let env: Vec<Value> = others.chain([json!({"name": EPHEMERAL_JOB_ID, "value": uid})]).collect();
        json::set(&mut container, &["env"], env);
        container
    };
    template(job).iter().map(mark).collect()
}

fn write_status(job: &EphemeralJob, status: &Value) -> Option<Effect> {
    let before = job.status.as_ref().map(|status| json!(status)).unwrap_or_else(|| json!({}));
    let change = merge_patch::between(&before, status)?;
    Some(Effect::Patch {
        target: target(job),
        subresource: Some("status"),
        patch: Patch::Merge(json!({"status": change})),
    })
}

fn target(job: &EphemeralJob) -> effect::Target {
    let ObjectRef { resource, key, uid } = reference(job);
    effect::Target::with_uid(resource, key, uid)
}

fn finalizers(job: &EphemeralJob) -> impl Iterator<Item = &str> {
    job.metadata.finalizers.iter().flatten().map(String::as_str)
}

/// The list is written as a whole, so only to the version that it was read from.
fn write_finalizers(job: &EphemeralJob, finalizers: Vec<&str>) -> Effect {
    let version = job.metadata.resource_version.as_deref().unwrap_or_default();
    Effect::Patch {
        target: target(job).at_version(version.into()),
        subresource: None,
        patch: Patch::Merge(json!({"metadata": {"finalizers": finalizers}})),
    }
}

/// What is left of a time, if anything.
fn left(since: Timestamp, limit: SignedDuration, now: Timestamp) -> Option<Duration> {
    let rest = limit.saturating_sub(now.duration_since(since));
    Duration::try_from(rest).ok().filter(|rest| !rest.is_zero())
}

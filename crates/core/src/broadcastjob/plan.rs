//! The next step of a job.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    annotations::BROADCASTJOB_ACKNOWLEDGED_FAILED,
    broadcastjob::v1beta1::{BroadcastJob, FailureType, Phase, Status},
};
use serde_json::json;

use super::{
    Desired, Error,
    desired::Completion,
    new_pod::{self, Names},
    pods::{Bucket, Standing},
    reference,
    status::{End, ended, finished, running},
    waits,
};
use crate::{
    causes,
    effect::{Effect, Event, Level, Patch, Target},
    node::Node,
    object::{ObjectRef, POD},
    pod::Pod,
    text::Text,
    waiting::{Reason, Waits},
};

/// A clock may be set while nobody looks.
const LONGEST_SLEEP: Duration = Duration::from_secs(10 * 60);

/// Everything a pass may know.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The job.
    pub job: Arc<BroadcastJob>,
    /// The pods that have an owner reference to it.
    pub pods: Vec<Arc<Pod>>,
    /// All nodes of the cluster.
    pub nodes: Vec<Arc<Node>>,
    /// The time.
    pub now: Timestamp,
    /// Flag `--assign-bcj-pods-by-scheduler`.
    pub assign_by_scheduler: bool,
    /// How many pods may be made in this pass.
    pub room: usize,
    /// Makes names of new pods. To be changed when one of them was taken by a stranger.
    pub seed: u64,
}

/// What an effect is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A pod is made.
    Create(Text),
    /// A pod is deleted.
    Delete(Text),
    /// A change of the job itself.
    Change,
}

/// What to do next, as data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes, in any order.
    pub effects: Vec<Effect>,
    /// What each of them is for, in the same order.
    pub purposes: Vec<Purpose>,
    /// The status after them.
    pub report: Option<Report>,
    /// Why the job does not go on.
    pub waits: Waits,
    /// Events that are sent once, for as long as their reason lasts.
    pub notices: Vec<Event>,
    /// When to look again, if nothing happens before.
    pub wake_after: Option<Duration>,
}

/// The status after the writes of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The status without the pods that the plan makes: those that were made are to be [counted](Report::counting).
    pub status: Status,
    /// Events that are sent once the status is written.
    pub events: Vec<Event>,
    /// Whether it may only be written when all writes of the plan happened.
    pub needs_all: bool,
}

impl Report {
    /// The same after so many pods were made.
    #[must_use]
    pub fn counting(mut self, created: usize) -> Self {
        let created = i32::try_from(created).unwrap_or(i32::MAX);
        self.status.active = self.status.active.map(|active| active.saturating_add(created));
        self
    }
}

impl Plan {
    fn add(&mut self, effect: Effect, purpose: Purpose) {
        self.effects.push(effect);
        self.purposes.push(purpose);
    }

    fn wake(&mut self, after: Duration) {
        let after = after.min(LONGEST_SLEEP);
        self.wake_after = Some(self.wake_after.map_or(after, |known| known.min(after)));
    }
}

/// Decides the next step of a job.
pub fn plan(seen: &Observed) -> Plan {
    let job = reference(&seen.job);
    if seen.job.metadata.deletion_timestamp.is_some() {
        return Plan::default();
    }
    let desired = match Desired::of(&seen.job) {
        Ok(desired) => desired,
        Err(error) => return misfit(seen, &error),
    };
    let standing = Standing::of(seen, &desired, &job);
    let mut step = Step { seen, job: &job, desired: &desired, standing: &standing, plan: Plan::default() };
    if let (Completion::Always { ttl, .. }, Some(completed)) = (desired.completion, finished(&seen.job)) {
        step.after_the_end(ttl, completed);
        return step.plan;
    }
    step.decide();
    step.notices();
    step.plan
}

/// A spec that cannot be carried out leaves everything as it is.
fn misfit(seen: &Observed, error: &Error) -> Plan {
    let mut plan = Plan::default();
    let message = causes::told(error);
    plan.waits.add(Reason::SpecInvalid, format!("the spec cannot be carried out: {message}"));
    let status = seen.job.status.clone().unwrap_or_default();
    plan.report = Some(Report { status, events: Vec::new(), needs_all: false });
    plan
}

/// A step while it is decided.
struct Step<'a> {
    seen: &'a Observed,
    job: &'a ObjectRef,
    desired: &'a Desired,
    standing: &'a Standing<'a>,
    plan: Plan,
}

impl Step<'_> {
    /// Deletes what still runs of a job that has failed, and the job after its time.
    fn after_the_end(&mut self, ttl: Option<SignedDuration>, completed: Timestamp) {
        if self.has_failed() {
            self.delete_running();
        }
        let Some(ttl) = ttl else { return };
        match left(completed, ttl, self.seen.now) {
            Some(rest) => self.plan.wake(rest),
            None => {
                let ObjectRef { resource, key, uid } = self.job.clone();
                let target = Target::with_uid(resource, key, uid);
                self.plan.add(Effect::Delete { target, grace: None, follows: false }, Purpose::Change);
            }
        }
    }

    fn has_failed(&self) -> bool {
        self.seen.job.status.as_ref().is_some_and(|status| status.phase == Some(Phase::Failed))
    }

    fn decide(&mut self) {
        let before = self.seen.job.status.clone().unwrap_or_default();
        let start = before.start_time.map_or(self.seen.now, |start| start.0);
        let counts = self.standing.counts();
        let mut status = running(self.seen, self.standing, start);
        if self.has_failed() {
            // A job of type Never that has failed: it is counted on.
            status.phase = Some(Phase::Failed);
            self.delete_running();
            return self.report(status, Vec::new());
        }
        if self.desired.paused {
            if self.is_to_pause(counts.failed_alone) && self.acknowledged().is_none() {
                // Without this mark, it would look like a job that the original paused once somebody lets it go on.
                self.acknowledge(0);
            }
            status.phase = Some(Phase::Paused);
            let told = (before.phase != Some(Phase::Paused) && self.is_to_pause(counts.failed_alone))
                .then(|| self.event(Level::Warning, "Paused", "job is paused, due to failed pod".to_owned()));
            return self.report(status, told.into_iter().collect());
        }
        let mut events = Vec::new();
        if before.phase == Some(Phase::Paused) {
            if self.is_to_pause(counts.failed_alone) && self.acknowledged().is_none() {
                // The original pauses a job without `spec.paused`: nobody let this one go on.
                self.pause();
                status.phase = Some(Phase::Paused);
                return self.report(status, events);
            }
            // What failed so far was seen by whoever lets the job go on. This comes first: it must not pause again for them.
            if self.is_to_pause(counts.failed_alone) {
                self.acknowledge(counts.failed_alone);
                status.phase = Some(Phase::Paused);
                return self.report(status, events);
            }
            events.push(self.event(Level::Normal, "Continue", "continue to process job".to_owned()));
        }
        if self.is_to_pause(counts.failed_alone) {
            self.pause();
            return self.report(status, events);
        }
        if self.acknowledged().is_some_and(|seen| seen > counts.failed_alone) {
            // A failed pod was deleted: the next one that fails is news again.
            self.acknowledge(counts.failed_alone);
        }
        if counts.failed_alone > 0 && self.desired.failure == FailureType::FailFast {
            return self.fail(start, &End::FailFast, events);
        }
        if let Completion::Always { deadline: Some(deadline), .. } = self.desired.completion {
            match left(start, deadline, self.seen.now) {
                None => return self.fail(start, &End::Deadline, events),
                Some(rest) => self.plan.wake(rest),
            }
        }
        let misplaced = self.standing.misplaced.len();
        for one in &self.standing.misplaced {
            self.delete(one.pod);
        }
        // A pod that is deleted here counts as failed from now on. What restarted too often did so before.
        let moved = self.standing.misplaced_active();
        status.active = status.active.map(|active| active.saturating_sub(moved));
        status.failed = status.failed.map(|failed| failed.saturating_add(moved));
        self.create();
        let creates = self.plan.purposes.iter().any(|purpose| matches!(purpose, Purpose::Create(_)));
        let ends = matches!(self.desired.completion, Completion::Always { .. });
        if ends && !creates && misplaced == 0 && self.standing.is_complete() {
            let (status, event) = ended(self.seen, self.job, status, &End::Complete);
            events.push(event);
            return self.report(status, events);
        }
        self.report(status, events);
    }

    /// How many failed pods someone has seen when they let the job go on.
    fn acknowledged(&self) -> Option<usize> {
        let annotations = self.seen.job.metadata.annotations.as_ref();
        let seen = annotations.and_then(|all| all.get(BROADCASTJOB_ACKNOWLEDGED_FAILED));
        seen.map(|seen| seen.parse().unwrap_or(0))
    }

    /// Whether pods failed that nobody has seen yet, and the job is to pause for them.
    fn is_to_pause(&self, failed: usize) -> bool {
        self.desired.failure == FailureType::Pause && failed > self.acknowledged().unwrap_or(0)
    }

    /// Pauses the job, with the mark by which the next reconcile knows that it was not the original that did.
    fn pause(&mut self) {
        let number = self.acknowledged().unwrap_or(0).to_string();
        let annotations = json!({BROADCASTJOB_ACKNOWLEDGED_FAILED: number});
        self.change(json!({"metadata": {"annotations": annotations}, "spec": {"paused": true}}));
    }

    fn acknowledge(&mut self, failed: usize) {
        let number = failed.to_string();
        self.change(json!({"metadata": {"annotations": {BROADCASTJOB_ACKNOWLEDGED_FAILED: number}}}));
    }

    /// Ends the job: deletes the pods that run, and counts them as failed.
    ///
    /// Pods that restarted too often stay until the end is written: they prove the failure. A reconcile that is cut short before
    /// that finds them again and fails the job, instead of taking it for complete.
    fn fail(&mut self, start: Timestamp, end: &End, mut events: Vec<Event>) {
        self.delete_all(Bucket::Active);
        let counts = self.standing.counts();
        let mut status = running(self.seen, self.standing, start);
        // Pods that are being deleted already may have been deleted by a reconcile that was cut short.
        let failed = counts.failed + counts.active + counts.ignored;
        status.failed = Some(i32::try_from(failed).unwrap_or(i32::MAX));
        status.active = Some(0);
        let (status, event) = ended(self.seen, self.job, status, end);
        events.push(event);
        self.plan.report = Some(Report { status, events, needs_all: true });
    }

    /// Deletes what has not ended although the job has failed.
    fn delete_running(&mut self) {
        self.delete_all(Bucket::Active);
        self.delete_all(Bucket::RestartedTooOften);
    }

    fn delete_all(&mut self, bucket: Bucket) {
        let readable = self.standing.pods.iter().filter(|one| !one.pod.metadata.unreadable);
        let pods: Vec<&Pod> = readable.filter(|one| one.bucket == bucket).map(|one| one.pod).collect();
        pods.into_iter().for_each(|pod| self.delete(pod));
    }

    /// Makes pods for nodes that have none, as many as may be active at once.
    fn create(&mut self) {
        let counts = self.standing.counts();
        let limit = self.desired.parallelism.of(self.standing.nodes.len());
        if self.standing.is_blind {
            return;
        }
        let active = counts.active;
        let number = limit.saturating_sub(active).min(self.seen.room);
        let mut names = Names::new(self.job, self.seen);
        for node in self.standing.without_pod().take(number) {
            let name = names.next(&node.metadata.name);
            let effect = new_pod::create(self.seen, self.job, &name, &node.metadata.name);
            self.plan.add(effect, Purpose::Create(name));
        }
    }

    fn delete(&mut self, pod: &Pod) {
        let target = Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone());
        let name = pod.metadata.name.clone();
        self.plan.add(Effect::Delete { target, grace: None, follows: false }, Purpose::Delete(name));
    }

    fn change(&mut self, change: serde_json::Value) {
        let ObjectRef { resource, key, uid } = self.job.clone();
        let target = Target::with_uid(resource, key, uid);
        self.plan
            .add(Effect::Patch { target, subresource: None, patch: Patch::Merge(change) }, Purpose::Change);
    }

    fn report(&mut self, status: Status, events: Vec<Event>) {
        self.plan.waits = waits::of(self.seen, self.desired, self.standing, &status);
        self.plan.report = Some(Report { status, events, needs_all: false });
    }

    /// What is odd for as long as it lasts.
    fn notices(&mut self) {
        let limit = self.desired.parallelism.of(self.standing.nodes.len());
        if self.standing.counts().active > limit {
            let message = "Number of active pods exceed parallelism limit".to_owned();
            self.plan.notices.push(self.event(Level::Warning, "TooManyActivePods", message));
        }
        for (pod, node) in &self.standing.duplicates {
            let message = format!("Duplicated pod {} found on same node {node}", pod.metadata.name);
            let event = self.event(Level::Warning, "DuplicatePodCreatedOnSameNode", message);
            self.plan.notices.push(event);
        }
    }

    fn event(&self, level: Level, reason: &str, message: String) -> Event {
        event(self.job, level, reason, message)
    }
}

impl Standing<'_> {
    /// How many of the misplaced pods are active.
    fn misplaced_active(&self) -> i32 {
        let active = self.misplaced.iter().filter(|one| one.bucket == Bucket::Active);
        i32::try_from(active.count()).unwrap_or(i32::MAX)
    }
}

impl Purpose {
    /// The event to send after the effect took place.
    pub fn done(&self, job: &ObjectRef) -> Option<Event> {
        let (reason, message) = match self {
            Self::Create(pod) => ("SuccessfulCreate", format!("Created pod: {pod}")),
            Self::Delete(pod) => ("SuccessfulDelete", format!("Delete pod: {pod}")),
            Self::Change => return None,
        };
        Some(event(job, Level::Normal, reason, message))
    }

    /// The event to send when the server refused the effect.
    pub fn failed(&self, job: &ObjectRef, error: &str) -> Option<Event> {
        let (reason, message) = match self {
            Self::Create(_) => ("FailedCreate", format!("Error creating: {error}")),
            Self::Delete(_) => ("FailedDelete", format!("Error deleting: {error}")),
            Self::Change => return None,
        };
        Some(event(job, Level::Warning, reason, message))
    }
}

pub(super) fn event(job: &ObjectRef, level: Level, reason: &str, message: String) -> Event {
    Event { regarding: job.clone(), level, reason: reason.into(), message }
}

/// What is left of a time, if anything.
fn left(since: Timestamp, limit: SignedDuration, now: Timestamp) -> Option<Duration> {
    let rest = limit.saturating_sub(now.duration_since(since));
    Duration::try_from(rest).ok().filter(|rest| !rest.is_zero())
}

//! The next step: which run is due, which jobs are deleted, and when to look again.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use kruise_api::{
    advancedcronjob::v1beta1::{AdvancedCronJob, JobKind, ObjectReference, Status},
    annotations::SCHEDULED_AT,
    json as paths,
    time::Time,
};
use serde_json::{Value, json};

use super::{Child, Desired, Outcome, Policy, desired::template, reference};
use crate::{
    conditions,
    effect::{Effect, Event, Level, Target},
    object::{ObjectRef, Resource},
    text::Text,
    waiting::{Reason, Waits, text},
};

/// More missed runs than this are reported.
const MANY: usize = 100;
/// A clock may be set while nobody looks.
const LONGEST_SLEEP: Duration = Duration::from_secs(10 * 60);
/// A last run that is further ahead than this was started under a clock that was wrong.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);
/// When to go on after jobs were deleted that stood in the way, if that is not noticed before.
const GO_ON: Duration = Duration::from_secs(1);

/// Everything a pass may know.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The object.
    pub cron: Arc<AdvancedCronJob>,
    /// The jobs of the kind of its template that it controls, by uid.
    pub children: Vec<Child>,
    /// The time.
    pub now: Timestamp,
    /// The zone of schedules that name none.
    pub zone: TimeZone,
}

/// What an effect is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A job is made.
    Start(Text),
    /// A job is deleted because a new one is due.
    Replace(Text),
    /// An old job is deleted.
    CleanUp(Text),
}

/// What to do next, as data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes, in any order.
    pub effects: Vec<Effect>,
    /// What each of them is for, in the same order.
    pub purposes: Vec<Purpose>,
    /// The status, without the run that the plan starts. Nothing where there is no template.
    pub status: Option<Status>,
    /// The run that the plan starts: the time of the last run once its job was made.
    pub run: Option<Timestamp>,
    /// Events that are sent once the run was started.
    pub told: Vec<Event>,
    /// Events that are sent once, for as long as their reason lasts.
    pub notices: Vec<Event>,
    /// Why no run is started.
    pub waits: Waits,
    /// When a run is due again, where nothing else is to be done before.
    pub next: Option<Timestamp>,
    /// When to look again, if nothing happens before.
    pub wake_after: Option<Duration>,
}

impl Plan {
    fn add(&mut self, effect: Effect, purpose: Purpose) {
        self.effects.push(effect);
        self.purposes.push(purpose);
    }

    /// How long it is until a run is due again, for those who cannot do what the plan says before.
    pub fn until_next(&self, now: Timestamp) -> Option<Duration> {
        self.next.map(|next| until(next, now))
    }

    /// The status after the writes; `started` says whether the run was started.
    pub fn status_after(&self, started: bool) -> Option<Status> {
        let mut status = self.status.clone()?;
        if started {
            status.last_schedule_time = status.last_schedule_time.max(self.run.map(Time));
        }
        Some(status)
    }
}

/// Decides the next step.
pub fn plan(seen: &Observed) -> Plan {
    let cron = seen.cron.as_ref();
    let mut plan = Plan::default();
    if cron.metadata.deletion_timestamp.is_some() {
        return plan;
    }
    let Some((resource, template)) = template(cron) else { return plan };
    let own = reference(cron);
    let mut children: Vec<&Child> =
        seen.children.iter().filter(|child| is_of(child, &own, resource)).collect();
    children.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
    let status = status(cron, resource, &children);
    let last = status.last_schedule_time;
    plan.status = Some(status);
    if last != cron.status.as_ref().and_then(|status| status.last_schedule_time) {
        // A job that alone remembers its run must not be deleted before the run is written down.
        plan.wake_after = Some(GO_ON);
        return plan;
    }
    clean_up(cron, &children, &mut plan);
    if cron.spec.paused == Some(true) {
        plan.waits.add(Reason::ScheduleSuspended, suspended(last.map(|last| last.0)));
        return plan;
    }
    let desired = match Desired::of(cron, &seen.zone) {
        Ok(desired) => desired,
        Err(error) => {
            plan.notices.push(event(&own, Level::Warning, error.reason(), error.to_string()));
            let path = error.path();
            plan.waits.add(Reason::SpecInvalid, format!("the spec cannot be carried out: {path}: {error}"));
            return plan;
        }
    };
    let created = cron.metadata.creation_timestamp.as_ref().map_or(seen.now, |time| time.0);
    let start = last.map_or(created, |last| last.0);
    plan.next = desired.schedule.upcoming(start, seen.now);
    plan.wake_after = plan.next.map(|next| until(next, seen.now));
    if let Some(Time(last)) = last.filter(|last| last.0.duration_since(seen.now) > CLOCK_SKEW) {
        let time = last.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S UTC");
        let message =
            format!("The last run was due at {time}, which is in the future: nothing is started before it");
        plan.notices.push(event(&own, Level::Warning, "ClockSkew", message));
    }
    let Some(due) = desired.schedule.latest(start, seen.now) else { return plan };
    if desired.deadline.is_some_and(|deadline| due.duration_since(seen.now) <= -deadline) {
        let time = due.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S UTC");
        let message = format!("Missed scheduled time to start a job: {time}");
        plan.notices.push(event(&own, Level::Warning, "MissSchedule", message));
        return plan;
    }
    let active: Vec<&&Child> = children.iter().filter(|child| child.outcome == Outcome::Active).collect();
    if desired.policy == Policy::Forbid && !active.is_empty() {
        let kind = resource.kind;
        let message = format!(
            "Not starting {kind} because prior execution is running and concurrency policy is Forbid"
        );
        plan.notices.push(event(&own, Level::Normal, "JobAlreadyActive", message));
        let sentence = format!(
            "{kind} {} still runs (concurrencyPolicy: Forbid); the run of {} starts when it ends",
            text::names(active.iter().map(|child| child.metadata.name.as_str())),
            text::time(due)
        );
        plan.waits.add(Reason::ConcurrencyForbids, sentence);
        return plan;
    }
    if desired.policy == Policy::Replace {
        let mut in_the_way = active
            .iter()
            .filter(|child| !child.metadata.is_deleting() && !child.metadata.unreadable)
            .filter(|child| child.scheduled_at() != Some(due))
            .peekable();
        if in_the_way.peek().is_some() {
            in_the_way
                .for_each(|child| plan.add(delete(child), Purpose::Replace(child.metadata.name.clone())));
            plan.wake_after = Some(GO_ON);
            return plan;
        }
    }
    if missed_many(&desired, start, due, seen.now) {
        let message = "too many missed start times (> 100). Set or decrease .spec.startingDeadlineSeconds or check \
                       clock skew";
        plan.told.push(event(&own, Level::Warning, "TooManyMissedTimes", message.to_owned()));
    }
    let name = Text::from(format!("{}-{}", own.key.name, due.as_second()));
    plan.add(create(&own, resource, &template, &name, due), Purpose::Start(name));
    plan.run = Some(due);
    plan
}

fn suspended(last: Option<Timestamp>) -> String {
    let since = last.map_or_else(
        || "spec.paused is true and no run was started yet".to_owned(),
        |last| format!("spec.paused is true since the run of {}", text::time(last)),
    );
    format!("{since}; set it to false to continue")
}

/// Whether a job is one of the object's, whatever its name and the version of its reference are.
fn is_of(child: &Child, own: &ObjectRef, resource: Resource) -> bool {
    child.resource == resource
        && child.metadata.namespace == own.key.namespace
        && child.metadata.controller().is_some_and(|owner| owner.uid == own.uid)
}

fn status(cron: &AdvancedCronJob, resource: Resource, children: &[&Child]) -> Status {
    let before = cron.status.clone().unwrap_or_default();
    let newest = children.iter().filter_map(|child| child.scheduled_at()).max().map(Time);
    let active = children.iter().filter(|child| child.outcome == Outcome::Active);
    let refer = |child: &&&Child| {
        let metadata = &child.metadata;
        // A job that counts its pods has another version each time: that is no reason to write.
        let known = before.active.iter().find(|known| known.uid.as_deref() == Some(metadata.uid.as_str()));
        known.cloned().unwrap_or_else(|| ObjectReference {
            api_version: Some(resource.api_version()),
            kind: Some(resource.kind.to_owned()),
            namespace: Some(metadata.namespace.to_string()),
            name: Some(metadata.name.to_string()),
            uid: Some(metadata.uid.to_string()),
            resource_version: Some(metadata.resource_version.to_string()),
            field_path: None,
        })
    };
    Status {
        kind: Some(JobKind::from(resource.kind)),
        active: active.map(|child| refer(&child)).collect(),
        last_schedule_time: before.last_schedule_time.max(newest),
    }
}

/// Deletes the oldest of those that ended, beyond those that are kept.
fn clean_up(cron: &AdvancedCronJob, children: &[&Child], plan: &mut Plan) {
    let limits = [
        (Outcome::Failed, cron.spec.failed_jobs_history_limit),
        (Outcome::Successful, cron.spec.successful_jobs_history_limit),
    ];
    for (outcome, limit) in limits {
        let Some(limit) = limit else { continue };
        let mut ended: Vec<&&Child> = children.iter().filter(|child| child.outcome == outcome).collect();
        ended.sort_by_key(|child| {
            let Child { metadata, started, .. } = child;
            (*started, metadata.creation_timestamp, metadata.name.clone())
        });
        let surplus = ended.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        for child in ended.into_iter().take(surplus) {
            if !child.metadata.is_deleting() && !child.metadata.unreadable {
                plan.add(delete(child), Purpose::CleanUp(child.metadata.name.clone()));
            }
        }
    }
}

fn delete(child: &Child) -> Effect {
    let target = Target::with_uid(child.resource, child.metadata.key(), child.metadata.uid.clone());
    Effect::Delete { target, grace: None, follows: false }
}

/// Whether more runs were missed than people expect. Not all of them are counted.
fn missed_many(desired: &Desired, start: Timestamp, due: Timestamp, now: Timestamp) -> bool {
    let earliest = desired.deadline.and_then(|deadline| now.checked_sub(deadline).ok());
    let mut time = earliest.map_or(start, |earliest| earliest.max(start));
    for _ in 0..MANY {
        match desired.schedule.upcoming(start, time) {
            Some(next) if next < due => time = next,
            _ => return false,
        }
    }
    true
}

fn create(own: &ObjectRef, resource: Resource, template: &Value, name: &Text, due: Timestamp) -> Effect {
    let part = |key: &str| {
        let part = paths::at(template, &["metadata", key]).cloned();
        part.filter(|part| part.as_object().is_some_and(|part| !part.is_empty()))
    };
    let mut metadata = json!({
        "name": name,
        "namespace": own.key.namespace,
        "ownerReferences": [own.controller_reference()],
    });
    for key in ["labels", "annotations"] {
        if let Some(part) = part(key) {
            paths::set(&mut metadata, &[key], part);
        }
    }
    paths::set(&mut metadata, &["annotations", SCHEDULED_AT], json!(Time(due)));
    let object = json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": metadata,
        "spec": paths::at(template, &["spec"]).cloned().unwrap_or_else(|| json!({})),
    });
    Effect::Create { resource, namespace: own.key.namespace.clone(), object }
}

fn until(next: Timestamp, now: Timestamp) -> Duration {
    let left = next.duration_since(now).max(SignedDuration::ZERO);
    Duration::try_from(left).unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
}

impl Purpose {
    /// The event to send after the effect took place.
    pub fn done(&self, cron: &ObjectRef, kind: &str) -> Event {
        let (reason, message) = match self {
            Self::Start(name) => ("SuccessfulCreate", format!("Created {kind} {name}")),
            Self::Replace(name) | Self::CleanUp(name) => {
                ("SuccessfulDelete", format!("Deleted {kind} {name}"))
            }
        };
        event(cron, Level::Normal, reason, message)
    }

    /// The event to send when the server refused the effect.
    pub fn failed(&self, cron: &ObjectRef, kind: &str, error: &str) -> Event {
        let (reason, verb) = match self {
            Self::Start(_) => ("FailedCreate", "creating"),
            Self::Replace(_) | Self::CleanUp(_) => ("FailedDelete", "deleting"),
        };
        event(cron, Level::Warning, reason, format!("Error {verb} {kind}: {error}"))
    }
}

fn event(cron: &ObjectRef, level: Level, reason: &str, message: String) -> Event {
    Event { regarding: cron.clone(), level, reason: reason.into(), message }
}

/// The write that brings a status up to date, if one is needed.
pub fn status_write(cron: &AdvancedCronJob, status: &Status) -> Option<Effect> {
    conditions::status_write(&reference(cron), cron.status.as_ref(), status)
}

//! CronJobs: a job each time that a schedule names.

mod due;
mod history;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kruise_api::cron::{self, Schedule};
use serde_json::{Value, json};

use super::object::{
    condition_is_true, controller_of, controller_reference, deleting, flag, is_terminating, items, number,
    or_gone, set, text, time,
};
use super::recorder::Involved;
use super::{Context, Key, Outcome, lock};
use crate::clock::seconds_text;
use crate::registry::Resource;
use crate::rest::{DeleteOptions, Preconditions, Propagation};
use crate::status::Status;
use crate::store::{Event, Record};
use due::{Due, Missed};

const COMPONENT: &str = "cronjob-controller";
const SCHEDULED_AT: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/// A little later than due, so that clocks that differ a little do no harm.
const PADDING: Duration = Duration::from_millis(100);

/// CronJobs whose schedule changed, and when they may start something again; unknown until they were looked at.
pub(super) type Rescheduled = BTreeMap<(String, String), Option<Timestamp>>;

/// What one pass works with. The object's status changes on the way.
struct Pass<'c> {
    cx: &'c Context,
    crons: Arc<Resource>,
    jobs: Arc<Resource>,
    cron: Value,
    children: Vec<Value>,
}

/// Takes note of a change of a schedule: what it would have started in the past stays undone.
pub(super) fn note(cx: &Context, event: &Event) {
    let (Some(old), new) = (event.old.as_deref().map(Record::value), event.new.value()) else { return };
    let part =
        |cron: &Value| (text(cron, "/spec/schedule").to_owned(), cron.pointer("/spec/timeZone").cloned());
    if part(&old) != part(&new) {
        let name = (event.new.namespace.to_string(), event.new.name.to_string());
        lock(&cx.rescheduled).insert(name, None);
    }
}

/// Looks at one CronJob.
pub(super) async fn sync(cx: &Context, key: &Key) -> Outcome {
    let crons = cx.client.resource("batch", "cronjobs")?;
    let name = (key.namespace.clone(), key.name.clone());
    let Some(record) = or_gone(cx.client.get(&crons, &key.namespace, &key.name))? else {
        lock(&cx.rescheduled).remove(&name);
        return Ok(None);
    };
    let cron = record.value();
    if let Some(wait) = resting(cx, &name, &cron) {
        return Ok(Some(wait));
    }
    let jobs = cx.client.resource("batch", "jobs")?;
    let children = children(cx, &cron);
    let before = cron.get("status").cloned();
    let mut pass = Pass { cx, crons, jobs, cron, children };
    let started = pass.run().await;
    pass.clean_up().await;
    if pass.cron.get("status") != before.as_ref() {
        or_gone(cx.client.update(&pass.crons, Some("status"), pass.cron).await)?;
    }
    started
}

/// How long a CronJob whose schedule changed still waits.
fn resting(cx: &Context, name: &(String, String), cron: &Value) -> Option<Duration> {
    let mut all = lock(&cx.rescheduled);
    let until = *all.get(name)?;
    let now = cx.now();
    let until = match until {
        Some(until) => Some(until),
        None => {
            let until = schedule(cron)
                .ok()
                .and_then(|schedule| next(&schedule, cron, now).and_then(|wait| now.checked_add(wait).ok()));
            all.insert(name.clone(), until);
            until
        }
    };
    let left = until.map(|until| until.duration_since(now)).and_then(|left| Duration::try_from(left).ok());
    if left.is_none_or(|left| left.is_zero()) {
        all.remove(name);
        return None;
    }
    left
}

/// The jobs that a CronJob controls, by name.
fn children(cx: &Context, cron: &Value) -> Vec<Value> {
    let store = cx.client.server().store();
    let keys = cx.graph().controlled("batch/jobs", text(cron, "/metadata/uid"));
    keys.iter()
        .filter_map(|(table, namespace, name)| store.get(table, namespace, name))
        .map(|record| record.value())
        .collect()
}

fn schedule(cron: &Value) -> Result<Schedule, cron::Error> {
    let parsed = Schedule::parse(text(cron, "/spec/schedule"))?;
    Ok(match zone(cron) {
        Some(Some(zone)) => parsed.in_zone(zone),
        _ => parsed,
    })
}

/// The time zone; `None` where there is none, `Some(None)` where nobody knows it.
fn zone(cron: &Value) -> Option<Option<TimeZone>> {
    cron.pointer("/spec/timeZone").and_then(Value::as_str).map(cron::time_zone)
}

fn due(schedule: &Schedule, cron: &Value, now: Timestamp, with_deadline: bool) -> Result<Due, due::Error> {
    let created = time(cron, "/metadata/creationTimestamp").unwrap_or(Timestamp::UNIX_EPOCH);
    let earliest = time(cron, "/status/lastScheduleTime").unwrap_or(created);
    let deadline = number(cron, "/spec/startingDeadlineSeconds").filter(|_| with_deadline);
    due::due(schedule, earliest, deadline, now)
}

/// How long until the schedule names a time again.
fn next(schedule: &Schedule, cron: &Value, now: Timestamp) -> Option<Duration> {
    let from = match due(schedule, cron, now, false) {
        Err(_) => now,
        Ok(due) => match (due.recent, due.missed) {
            (Some(recent), _) => recent,
            (None, Missed::None) => due.earliest,
            (None, _) => now,
        },
    };
    let next = schedule.next(from)?;
    Some(Duration::try_from(next.duration_since(now)).unwrap_or_default() + PADDING)
}

fn is_active(cron: &Value, uid: &str) -> bool {
    items(cron, "/status/active").iter().any(|job| text(job, "/uid") == uid)
}

fn is_finished(job: &Value) -> bool {
    condition_is_true(job, "Complete") || condition_is_true(job, "Failed")
}

impl Pass<'_> {
    async fn tell(&self, kind: &'static str, reason: &str, message: &str) {
        let involved = Involved::of(&self.crons, &self.cron);
        self.cx.record(COMPONENT, &involved, kind, reason, message).await;
    }

    /// Starts what is due. Returns when something is due again.
    async fn run(&mut self) -> Outcome {
        self.count().await?;
        if deleting(&self.cron) {
            return Ok(None);
        }
        if let Some(None) = zone(&self.cron) {
            let name = text(&self.cron, "/spec/timeZone");
            let message = format!("invalid timeZone: {name:?}: unknown time zone {name}");
            self.tell("Warning", "UnknownTimeZone", &message).await;
            return Ok(None);
        }
        if flag(&self.cron, "/spec/suspend") {
            return Ok(None);
        }
        let now = self.cx.now();
        let written = text(&self.cron, "/spec/schedule").to_owned();
        let schedule = match schedule(&self.cron) {
            Ok(schedule) => schedule,
            Err(error) => {
                let message = format!("unparseable schedule: {written:?} : {error}");
                self.tell("Warning", "UnparseableSchedule", &message).await;
                return Ok(None);
            }
        };
        let due = match due(&schedule, &self.cron, now, true) {
            Ok(due) => due,
            Err(error) => {
                let message = format!("invalid schedule: {written} : {error}");
                self.tell("Warning", "InvalidSchedule", &message).await;
                return Ok(None);
            }
        };
        let Some(at) = due.recent.filter(|at| *at <= now) else {
            return Ok(next(&schedule, &self.cron, now));
        };
        if due.missed == Missed::Many {
            let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
            self.tell("Warning", "TooManyMissedTimes", message).await;
        }
        self.start(at, now).await?;
        Ok(next(&schedule, &self.cron, now))
    }

    /// Brings the list of active jobs up to date.
    async fn count(&mut self) -> Result<(), Status> {
        let children = std::mem::take(&mut self.children);
        for job in &children {
            let (name, uid) = (text(job, "/metadata/name"), text(job, "/metadata/uid"));
            let active = is_active(&self.cron, uid);
            if !is_finished(job) {
                if !active {
                    let message = format!("Saw a job that the controller did not create or forgot: {name}");
                    self.tell("Warning", "UnexpectedJob", &message).await;
                }
                continue;
            }
            let complete = condition_is_true(job, "Complete");
            if active {
                self.drop_active(uid);
                let how = if complete { "Complete" } else { "Failed" };
                let message = format!("Saw completed job: {name}, condition: {how}");
                self.tell("Normal", "SawCompletedJob", &message).await;
            }
            let ended = time(job, "/status/completionTime").filter(|_| complete);
            let known = time(&self.cron, "/status/lastSuccessfulTime");
            if let Some(ended) = ended.filter(|ended| known.is_none_or(|known| *ended > known)) {
                set(&mut self.cron, "status", "lastSuccessfulTime", json!(seconds_text(ended)));
            }
        }
        let lost: Vec<Value> = items(&self.cron, "/status/active")
            .iter()
            .filter(|known| !children.iter().any(|job| text(job, "/metadata/uid") == text(known, "/uid")))
            .cloned()
            .collect();
        self.children = children;
        for job in lost {
            let (namespace, name) = (text(&job, "/namespace"), text(&job, "/name"));
            if or_gone(self.cx.client.get(&self.jobs, namespace, name))?.is_none() {
                self.tell("Normal", "MissingJob", &format!("Active job went missing: {name}")).await;
                self.drop_active(text(&job, "/uid"));
            }
        }
        Ok(())
    }

    fn drop_active(&mut self, uid: &str) {
        let Some(status) = self.cron.get_mut("status").and_then(Value::as_object_mut) else { return };
        let Some(list) = status.get_mut("active").and_then(Value::as_array_mut) else { return };
        list.retain(|job| text(job, "/uid") != uid);
        if list.is_empty() {
            status.remove("active");
        }
    }

    /// Starts the job of a time, if rules allow.
    async fn start(&mut self, at: Timestamp, now: Timestamp) -> Result<(), Status> {
        let deadline = number(&self.cron, "/spec/startingDeadlineSeconds");
        if deadline.is_some_and(|seconds| at.as_second().saturating_add(seconds) < now.as_second()) {
            let when = at.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S %z").to_string();
            let message = format!("Missed scheduled time to start a job: {when}");
            self.tell("Warning", "MissSchedule", &message).await;
            return Ok(());
        }
        let name = format!("{}-{}", text(&self.cron, "/metadata/name"), at.as_second().div_euclid(60));
        let active = items(&self.cron, "/status/active").to_vec();
        let done = active.iter().any(|job| text(job, "/name") == name)
            || time(&self.cron, "/status/lastScheduleTime") == Some(at);
        if done {
            return Ok(());
        }
        match text(&self.cron, "/spec/concurrencyPolicy") {
            "Forbid" if !active.is_empty() => {
                let message =
                    "Not starting job because prior execution is running and concurrency policy is Forbid";
                self.tell("Normal", "JobAlreadyActive", message).await;
                return Ok(());
            }
            "Replace" => {
                for job in &active {
                    self.delete(text(job, "/name"), text(job, "/uid")).await?;
                }
            }
            _ => {}
        }
        self.create(&name, at).await
    }

    async fn create(&mut self, name: &str, at: Timestamp) -> Result<(), Status> {
        let job = job(&self.crons, &self.cron, name, at);
        let namespace = text(&self.cron, "/metadata/namespace").to_owned();
        let record = match self.cx.client.create(&self.jobs, &namespace, job).await {
            Ok(record) => {
                self.tell("Normal", "SuccessfulCreate", &format!("Created job {name}")).await;
                record
            }
            Err(status) if is_terminating(&status) => return Ok(()),
            // Ours, and only the note about it is missing; or of somebody else, who cares for it.
            Err(status) if status.reason == "AlreadyExists" => {
                let record = self.cx.client.get(&self.jobs, &namespace, name)?;
                let known = record.value();
                let mine =
                    controller_of(&known).is_some_and(|owner| owner.2 == text(&self.cron, "/metadata/uid"));
                if !mine || is_active(&self.cron, &record.uid) {
                    return Ok(());
                }
                record
            }
            Err(status) => {
                let message = format!("Error creating job: {}", status.message);
                self.tell("Warning", "FailedCreate", &message).await;
                return Err(status);
            }
        };
        let made = record.value();
        let reference = json!({
            "apiVersion": "batch/v1", "kind": "Job", "name": name, "namespace": namespace,
            "resourceVersion": text(&made, "/metadata/resourceVersion"), "uid": text(&made, "/metadata/uid"),
        });
        let mut active = items(&self.cron, "/status/active").to_vec();
        active.push(reference);
        set(&mut self.cron, "status", "active", Value::Array(active));
        set(&mut self.cron, "status", "lastScheduleTime", json!(seconds_text(at)));
        Ok(())
    }

    /// Deletes a job with its pods and strikes it from the active ones.
    async fn delete(&mut self, name: &str, uid: &str) -> Result<(), Status> {
        let options = DeleteOptions {
            propagation: Some(Propagation::Background),
            preconditions: Preconditions { uid: Some(uid.to_owned()), resource_version: None },
            ..DeleteOptions::default()
        };
        let namespace = text(&self.cron, "/metadata/namespace").to_owned();
        if let Err(status) = or_gone(self.cx.client.delete(&self.jobs, &namespace, name, &options).await) {
            self.tell("Warning", "FailedDelete", &format!("Deleted job: {}", status.message)).await;
            return Err(status);
        }
        self.drop_active(uid);
        self.tell("Normal", "SuccessfulDelete", &format!("Deleted job {name}")).await;
        Ok(())
    }

    /// Deletes the oldest finished jobs beyond the limits.
    async fn clean_up(&mut self) {
        for (name, uid) in history::surplus(&self.cron, &self.children) {
            if self.delete(&name, &uid).await.is_err() {
                return;
            }
        }
    }
}

/// The job of a time.
fn job(crons: &Arc<Resource>, cron: &Value, name: &str, at: Timestamp) -> Value {
    let template = cron.pointer("/spec/jobTemplate").cloned().unwrap_or_default();
    let zone = zone(cron).flatten().unwrap_or(TimeZone::UTC);
    let shown = at.to_zoned(zone.clone());
    let when = match zone == TimeZone::UTC {
        true => seconds_text(at),
        false => shown.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
    };
    let mut metadata = json!({"name": name, "ownerReferences": [controller_reference(crons, cron)]});
    for part in ["labels", "annotations"] {
        if let Some(value) = template.pointer(&format!("/metadata/{part}")).filter(|value| value.is_object())
            && let Some(map) = metadata.as_object_mut()
        {
            map.insert(part.to_owned(), value.clone());
        }
    }
    set(&mut metadata, "annotations", SCHEDULED_AT, json!(when));
    json!({"metadata": metadata, "spec": template.get("spec").cloned().unwrap_or_default()})
}

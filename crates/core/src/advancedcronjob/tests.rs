mod recorded;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::{Timestamp, tz::TimeZone};
use kruise_api::{advancedcronjob::v1beta1::AdvancedCronJob, cron};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    effect::{Effect, Patch},
    patch_model,
    waiting::Reason,
};

/// An object and its jobs as JSON: plans are carried out on them.
struct World {
    cron: Value,
    jobs: BTreeMap<String, Value>,
    now: Timestamp,
    zone: TimeZone,
    events: Vec<String>,
    told: BTreeSet<String>,
    /// Names of all jobs that were ever made, in order.
    made: Vec<String>,
    /// The process dies before it writes the status.
    dies: bool,
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

impl World {
    fn new(schedule: &str, spec: Value) -> Self {
        let mut cron = json!({
            "metadata": {"name": "tick", "namespace": "ns", "uid": "cron-uid", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "schedule": schedule,
                "concurrencyPolicy": "Allow",
                "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 1,
                "template": {"jobTemplate": {"spec": {"backoffLimit": 0}}},
            },
        });
        patch_model::merge(&mut cron["spec"], &spec);
        Self {
            cron,
            jobs: BTreeMap::new(),
            now: at("2026-01-01T00:00:00Z"),
            zone: TimeZone::UTC,
            events: Vec::new(),
            told: BTreeSet::new(),
            made: Vec::new(),
            dies: false,
        }
    }

    fn seen(&self) -> Observed {
        let cron: AdvancedCronJob = serde_json::from_value(self.cron.clone()).unwrap();
        let children = self.jobs.values().map(|job| {
            let read: Job = serde_json::from_value(job.clone()).unwrap();
            match job["kind"].as_str().unwrap() {
                "Job" => Child::of_job(&read),
                "BroadcastJob" => Child::of_broadcast_job(
                    &read.metadata,
                    Some(&serde_json::from_value(job.clone()).unwrap()),
                ),
                _ => Child::of_list(&read.metadata, Some(&serde_json::from_value(job.clone()).unwrap())),
            }
        });
        Observed {
            cron: Arc::new(cron),
            children: children.rev().collect(),
            now: self.now,
            zone: self.zone.clone(),
        }
    }

    fn plan(&self) -> Plan {
        plan(&self.seen())
    }

    fn pass(&mut self) {
        let (plan, seen) = (self.plan(), self.seen());
        let own = reference(&seen.cron);
        let kind = children_of(&seen.cron).map_or("", |resource| resource.kind);
        for (effect, purpose) in plan.effects.iter().zip(&plan.purposes) {
            match effect {
                Effect::Create { object, .. } => self.make(object.clone()),
                Effect::Delete { target, .. } => drop(self.jobs.remove(target.key.name.as_str()).unwrap()),
                other => panic!("unexpected {other:?}"),
            }
            let event = purpose.done(&own, kind);
            self.events.push(format!("{}: {}", event.reason, event.message));
        }
        let line = |event: &crate::effect::Event| format!("{}: {}", event.reason, event.message);
        if plan.run.is_some() {
            self.events.extend(plan.told.iter().map(line));
        }
        let notices: BTreeSet<String> = plan.notices.iter().map(line).collect();
        self.events.extend(notices.difference(&self.told).cloned());
        self.told = notices;
        if self.dies {
            return;
        }
        let status = plan.status_after(true).unwrap();
        if let Some(Effect::Patch { patch: Patch::Merge(change), .. }) = status_write(&seen.cron, &status) {
            patch_model::merge(&mut self.cron, &change);
        }
    }

    fn make(&mut self, mut object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        object["metadata"]["uid"] = json!(format!("uid-{name}"));
        object["metadata"]["resourceVersion"] = json!("1");
        object["metadata"]["creationTimestamp"] = json!(self.now.to_string());
        self.made.push(name.clone());
        // The server refuses a name that is taken; the run counts as started.
        self.jobs.entry(name).or_insert(object);
    }

    /// Time passes; a pass happens whenever a timer asks for one.
    fn live(&mut self, seconds: i64) {
        let end = self.now + jiff::SignedDuration::from_secs(seconds);
        loop {
            self.pass();
            // Deletions and new jobs wake it.
            self.pass();
            let Some(wake) = self.plan().wake_after else { break };
            let next = self.now + jiff::SignedDuration::try_from(wake).unwrap();
            if next > end {
                break;
            }
            self.now = next;
        }
        self.now = end;
    }

    fn end(&mut self, name: &str, kind: &str) {
        let job = self.jobs.get_mut(name).unwrap();
        job["status"] = json!({"startTime": job["metadata"]["creationTimestamp"], "conditions": [{"type": kind, "status": "True"}]});
    }

    fn names(&self) -> Vec<&str> {
        self.jobs.keys().map(String::as_str).collect()
    }

    fn active(&self) -> Vec<&str> {
        let active = self.cron["status"]["active"].as_array();
        active.into_iter().flatten().map(|one| one["name"].as_str().unwrap()).collect()
    }

    fn change(&mut self, change: Value) {
        patch_model::merge(&mut self.cron, &change);
    }

    fn count(&self, reason: &str) -> usize {
        self.events.iter().filter(|event| event.starts_with(&format!("{reason}: "))).count()
    }
}

/// The name of the run of a minute of the first hours of 2026.
fn run(minute: i64) -> String {
    format!("tick-{}", at("2026-01-01T00:00:00Z").as_second() + 60 * minute)
}

/// JOBS-33, JOBS-55
#[test]
fn a_job_is_made_at_each_time_of_the_schedule() {
    let template = json!({"template": {"jobTemplate": {
        "metadata": {"name": "x", "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["f.io/x"]},
        "spec": {"backoffLimit": 0, "newer": true}}}});
    let mut world = World::new("*/1 * * * *", template);
    world.pass();
    assert_eq!(world.cron["status"], json!({"type": "Job"}));
    assert_eq!(world.plan().wake_after, Some(Duration::from_secs(60)));
    world.live(121);
    assert_eq!(world.names(), [run(1), run(2)]);
    let job = &world.jobs[&run(1)];
    assert_eq!(
        job["metadata"]["annotations"],
        json!({"c": "d", "apps.kruise.io/scheduled-at": "2026-01-01T00:01:00Z"})
    );
    assert_eq!(job["metadata"]["labels"], json!({"a": "b"}));
    assert!(job["metadata"].get("finalizers").is_none());
    assert_eq!(
        (&job["apiVersion"], &job["spec"]),
        (&json!("batch/v1"), &json!({"backoffLimit": 0, "newer": true}))
    );
    let owner = &job["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["controller"]), (&json!("AdvancedCronJob"), &json!(true)));
    assert_eq!(world.cron["status"]["lastScheduleTime"], "2026-01-01T00:02:00Z");
    assert_eq!(
        world.cron["status"]["active"][0],
        json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": "ns", "name": run(1), "uid": format!("uid-{}", run(1)), "resourceVersion": "1"})
    );
    assert_eq!(world.events[0], format!("SuccessfulCreate: Created Job {}", run(1)));
}

/// JOBS-34, JOBS-35, JOBS-57
#[test]
fn each_kind_of_job_is_made_and_followed() {
    for (template, kind) in [
        (json!({"broadcastJobTemplate": {"spec": {"template": {"spec": {}}}}}), "BroadcastJob"),
        (
            json!({"imageListPullJobTemplate": {"spec": {"images": ["a:1"], "completionPolicy": {"type": "Always"}}}}),
            "ImageListPullJob",
        ),
    ] {
        let mut world = World::new("* * * * *", json!({}));
        world.cron["spec"]["template"] = template;
        world.live(61);
        assert_eq!(world.cron["status"]["type"], kind);
        assert_eq!(
            (world.jobs[&run(1)]["kind"].as_str(), world.active()),
            (Some(kind), vec![run(1).as_str()])
        );
        assert_eq!(world.jobs[&run(1)]["apiVersion"], "apps.kruise.io/v1beta1");
        if kind == "BroadcastJob" {
            world.end(&run(1), "Complete");
        } else {
            let ended = json!({"desired": 2, "succeeded": 1, "completionTime": "2026-01-01T00:01:10Z"});
            world.jobs.get_mut(&run(1)).unwrap()["status"] = ended;
            world.change(json!({"spec": {"failedJobsHistoryLimit": 0}}));
        }
        world.pass();
        world.pass();
        assert_eq!(world.active(), Vec::<&str>::new());
        // A list of which one image failed is a failed one.
        assert_eq!(world.jobs.len(), usize::from(kind == "BroadcastJob"));
    }
}

/// JOBS-36, JOBS-37
#[test]
fn a_paused_schedule_catches_up_with_the_latest_run_only() {
    let mut world = World::new("* * * * *", json!({"paused": true}));
    world.live(150);
    assert_eq!((world.names().len(), world.plan().wake_after), (0, None));
    world.change(json!({"spec": {"paused": false}}));
    world.live(60);
    assert_eq!(world.names(), [run(2), run(3)]);
    let mut world = World::new("* * * * *", json!({"paused": true, "startingDeadlineSeconds": 20}));
    world.live(160);
    world.change(json!({"spec": {"paused": false}}));
    world.pass();
    assert_eq!(world.names().len(), 0);
    assert_eq!(
        world.events,
        ["MissSchedule: Missed scheduled time to start a job: Thu, 01 Jan 2026 00:02:00 UTC"]
    );
    world.live(25);
    assert_eq!(world.names(), [run(3)]);
}

/// JOBS-38, JOBS-39, JOBS-40
#[test]
fn runs_that_overlap_run_together_or_wait_or_replace_each_other() {
    let mut world = World::new("* * * * *", json!({}));
    world.live(190);
    assert_eq!((world.active().len(), world.names().len()), (3, 3));

    let mut world = World::new("* * * * *", json!({"concurrencyPolicy": "Forbid"}));
    world.live(190);
    assert_eq!((world.active(), world.count("JobAlreadyActive")), (vec![run(1).as_str()], 1));
    world.end(&run(1), "Complete");
    world.pass();
    assert_eq!(world.names(), [run(1), run(3)], "the latest one that is due");
    world.pass();
    assert_eq!((world.made.len(), world.active()), (2, vec![run(3).as_str()]));

    let mut world = World::new("* * * * *", json!({"concurrencyPolicy": "Replace"}));
    world.live(190);
    assert_eq!((world.names(), world.made.len()), (vec![run(3).as_str()], 3));
    assert_eq!(world.count("SuccessfulDelete"), 2);
}

/// WAITING-20
#[test]
fn a_schedule_says_why_no_run_is_started() {
    let said = |world: &World| {
        let waits = world.plan().waits;
        waits.main().map(|main| format!("{}: {}", main.as_str(), waits.message())).unwrap_or_default()
    };
    let mut world = World::new("* * * * *", json!({"concurrencyPolicy": "Forbid", "paused": true}));
    assert_eq!(
        said(&world),
        "ScheduleSuspended: spec.paused is true and no run was started yet; set it to false to continue"
    );
    world.change(json!({"spec": {"paused": false}}));
    world.live(90);
    assert_eq!(said(&world), "");
    world.live(60);
    assert_eq!(
        said(&world),
        format!(
            "ConcurrencyForbids: Job {} still runs (concurrencyPolicy: Forbid); the run of 2026-01-01T00:02:00Z starts when it ends",
            run(1)
        )
    );
    world.change(json!({"spec": {"paused": true}}));
    let expected = "ScheduleSuspended: spec.paused is true since the run of 2026-01-01T00:01:00Z; set it to false to continue";
    assert_eq!(said(&world), expected);
    world.change(json!({"spec": {"paused": false}}));
    world.end(&run(1), "Complete");
    world.pass();
    assert_eq!(said(&world), "");
}

/// JOBS-41, JOBS-56
#[test]
fn old_jobs_are_deleted_beyond_what_is_kept() {
    let mut world =
        World::new("* * * * *", json!({"successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 0}));
    for minute in 1..=7 {
        world.live(60);
        world.end(&run(minute), if minute % 3 == 0 { "Failed" } else { "Complete" });
    }
    world.pass();
    assert_eq!(world.names(), [run(5), run(7)]);
    assert_eq!(world.active(), Vec::<&str>::new());
    assert_eq!(world.made.len(), 7);
}

/// JOBS-42, JOBS-43 (ACJ-D1, ACJ-D2): nothing runs twice and nothing stops, also when no job is left that remembers.
#[test]
fn a_schedule_goes_on_without_any_job_left() {
    let mut world =
        World::new("* * * * *", json!({"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0}));
    for minute in 1..=150 {
        world.live(60);
        world.end(&run(minute), "Complete");
        world.pass();
        world.change(json!({"metadata": {"labels": {"edit": minute.to_string()}}}));
        world.pass();
        assert_eq!(world.names().len(), 0);
    }
    assert_eq!(world.made, (1..=150).map(run).collect::<Vec<_>>());
    assert_eq!(world.count("TooManyMissedTimes"), 0);
}

/// JOBS-44
#[test]
fn after_a_long_stop_one_run_is_started() {
    let mut world = World::new("* * * * *", json!({}));
    world.live(61);
    world.now = at("2026-01-01T03:01:30Z");
    world.live(40);
    assert_eq!(world.made, [run(1), run(181), run(182)]);
    assert_eq!(world.count("TooManyMissedTimes"), 1);
    // A hundred are few, and a deadline makes them fewer.
    for (minutes, deadline, expected) in [(100, None, 0), (101, None, 1), (500, Some(600), 0)] {
        let mut world = World::new("* * * * *", json!({"startingDeadlineSeconds": deadline}));
        world.live(61);
        world.now += jiff::SignedDuration::from_secs(60 * minutes);
        world.pass();
        assert_eq!((world.made.len(), world.count("TooManyMissedTimes")), (2, expected), "{minutes} minutes");
    }
}

/// JOBS-45
#[test]
fn a_process_that_dies_after_it_made_a_job_makes_no_second_one() {
    let mut world = World::new("* * * * *", json!({}));
    world.pass();
    world.dies = true;
    world.now = at("2026-01-01T00:01:00Z");
    world.pass();
    world.dies = false;
    world.live(30);
    assert_eq!(world.made, [run(1)]);
    assert_eq!(world.cron["status"]["lastScheduleTime"], "2026-01-01T00:01:00Z");
}

/// JOBS-46, JOBS-47
#[test]
fn the_zone_is_that_of_the_schedule_or_of_the_object_or_of_the_process() {
    let next = |schedule: &str, zone: Option<&str>, process: &str| {
        let mut world = World::new(schedule, json!({"timeZone": zone}));
        world.zone = cron::time_zone(process).unwrap();
        world.plan().next.unwrap().to_string()
    };
    let nine_in_shanghai = "2026-01-01T01:00:00Z";
    assert_eq!(next("0 9 * * *", Some("Asia/Shanghai"), "UTC"), nine_in_shanghai);
    assert_eq!(next("TZ=Asia/Shanghai 0 9 * * *", None, "UTC"), nine_in_shanghai);
    assert_eq!(next("CRON_TZ=Asia/Shanghai 0 9 * * *", None, "America/New_York"), nine_in_shanghai);
    assert_eq!(next("0 9 * * *", None, "Asia/Shanghai"), nine_in_shanghai);
    assert_eq!(next("0 9 * * *", Some("Etc/UTC"), "Asia/Shanghai"), "2026-01-01T09:00:00Z");
}

#[test]
fn what_was_stored_before_its_rules_is_reported_and_nothing_is_started() {
    for (schedule, zone, event) in [
        (
            "* * * *",
            None,
            "UnparseableSchedule: unparsable schedule \"* * * *\": expected exactly 5 fields, found 4: [* * * *]",
        ),
        ("* * * * *", Some("Mars/Base"), "UnknownTimeZone: unknown time zone Mars/Base"),
        ("* * * * *", Some(""), "UnknownTimeZone: unknown time zone "),
    ] {
        let mut world = World::new(schedule, json!({"timeZone": zone}));
        world.live(120);
        world.pass();
        assert_eq!((world.events.as_slice(), world.names().len()), ([event.to_owned()].as_slice(), 0));
        let path = if zone.is_some() { "spec.timeZone" } else { "spec.schedule" };
        let begin = format!("the spec cannot be carried out: {path}: ");
        let waits = world.plan().waits;
        assert!(
            waits.main() == Some(Reason::SpecInvalid) && waits.message().starts_with(&begin),
            "{waits:?}"
        );
    }
}

/// JOBS-48
#[test]
fn a_time_that_never_comes_is_not_waited_for() {
    let world = World::new("0 0 31 2 *", json!({}));
    assert_eq!((world.plan().next, world.plan().wake_after), (None, None));
}

/// JOBS-48: a year of nights. Where clocks are set forward a run is left out, where they are set back it comes twice.
#[test]
fn a_year_has_a_run_each_night_but_where_clocks_are_set() {
    for (schedule, expected) in [("30 2 * * *", 364), ("30 1 * * *", 366), ("30 3 * * *", 365)] {
        let limits = json!({"successfulJobsHistoryLimit": 1, "timeZone": "America/New_York"});
        let mut world = World::new(schedule, limits);
        let end = at("2027-01-01T00:00:00Z");
        while let Some(next) = world.plan().next.filter(|next| *next < end) {
            world.now = next;
            world.pass();
            let made = world.made.last().unwrap().clone();
            world.end(&made, "Complete");
            (0..2).for_each(|_| world.pass());
            assert!(world.names().len() <= 1);
        }
        let names: BTreeSet<&String> = world.made.iter().collect();
        assert_eq!((world.made.len(), names.len()), (expected, expected), "{schedule}");
    }
}

/// JOBS-60, JOBS-61 (ACJ-D4, ACJ-D5)
#[test]
fn jobs_belong_to_the_object_by_its_uid() {
    let mut world = World::new("* * * * *", json!({}));
    world.live(61);
    let mut old = world.jobs[&run(1)].clone();
    old["metadata"]["name"] = json!("tick-1");
    old["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    world.jobs.insert("tick-1".to_owned(), old);
    world.jobs.get_mut(&run(1)).unwrap()["metadata"]["ownerReferences"][0]["apiVersion"] =
        json!("apps.kruise.io/v1alpha1");
    world.cron["status"] = Value::Null;
    world.pass();
    assert_eq!(world.active(), [run(1)]);
    assert_eq!(world.cron["status"]["lastScheduleTime"], "2026-01-01T00:01:00Z");
    assert_eq!(world.made.len(), 1, "the run of the predecessor is known");
}

/// JOBS-64
#[test]
fn a_schedule_that_changes_runs_what_the_new_one_missed_last() {
    let mut world = World::new("0 * * * *", json!({}));
    world.live(30 * 60 + 20);
    world.change(json!({"spec": {"schedule": "*/1 * * * *"}}));
    world.live(50);
    assert_eq!(world.made, [run(30), run(31)]);
}

/// The clock of the manager was ahead when the last run was started: nothing is started before that time, and that is said.
#[test]
fn a_last_run_in_the_future_is_reported() {
    let mut world = World::new("* * * * *", json!({}));
    world.change(json!({"status": {"lastScheduleTime": "2026-01-01T01:00:00Z"}}));
    assert_eq!(world.plan().next, Some(at("2026-01-01T01:01:00Z")));
    world.live(120);
    assert_eq!((world.made.len(), world.count("ClockSkew")), (0, 1), "{:?}", world.events);
    world.live(59 * 60);
    assert_eq!(world.made, [run(61)]);
}

/// A deadline shorter than an interval would move the times of the interval with it.
#[test]
fn an_interval_counts_from_the_last_run() {
    let mut world = World::new("@every 90s", json!({"startingDeadlineSeconds": 0}));
    world.live(280);
    let start = at("2026-01-01T00:00:00Z").as_second();
    assert_eq!(world.made, [90, 180, 270].map(|seconds| format!("tick-{}", start + seconds)));
}

#[test]
fn a_job_that_counts_its_pods_has_no_news() {
    let child = |count: i64, condition: &str| {
        let job = json!({"metadata": {"name": "a", "resourceVersion": count.to_string()},
            "status": {"active": count, "conditions": [{"type": condition, "status": "True"}]}});
        Child::of_job(&serde_json::from_value(job).unwrap())
    };
    let (one, two) = (child(1, "Suspended"), child(2, "Suspended"));
    assert!(!Child::differs(Some(&one), Some(&two)));
    assert!(Child::differs(Some(&one), Some(&child(2, "Complete"))) && Child::differs(Some(&one), None));
    assert_eq!(child(1, "Failed").outcome, Outcome::Failed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens, no run is started twice; with Forbid and Replace no two run at once; clocks may be set.
    #[test]
    fn no_run_is_started_twice(
        steps in prop::collection::vec((0..7u8, 1..400i64), 1..40), policy in prop::sample::select(vec!["Allow", "Forbid", "Replace"]),
        schedule in prop::sample::select(vec!["* * * * *", "*/5 * * * *", "@every 70s", "0 * * * *"]), limit in 0..3,
    ) {
        let spec = json!({"concurrencyPolicy": policy, "successfulJobsHistoryLimit": limit, "failedJobsHistoryLimit": limit});
        let mut world = World::new(schedule, spec);
        for (step, number) in steps {
            let running: Vec<String> = world.active().iter().map(|name| (*name).to_owned()).collect();
            match step {
                0 | 1 => world.live(number),
                2 => running.iter().filter(|name| world.jobs.contains_key(*name)).cloned().collect::<Vec<_>>().iter()
                    .for_each(|name| world.end(name, if number % 2 == 0 { "Complete" } else { "Failed" })),
                3 => {
                    world.dies = true;
                    world.pass();
                    world.dies = false;
                }
                4 => world.change(json!({"spec": {"paused": number % 2 == 0}})),
                // The clock is set back or forward by an hour.
                5 => world.now += jiff::SignedDuration::from_hours(if number % 2 == 0 { 1 } else { -1 }),
                _ => world.pass(),
            }
            let names: BTreeSet<&String> = world.made.iter().collect();
            prop_assert_eq!(names.len(), world.made.len(), "{:?}", world.made);
            let is_active = |job: &&Value| job["status"].get("conditions").is_none();
            prop_assert!(policy == "Allow" || world.jobs.values().filter(is_active).count() <= 1);
        }
    }
}

//! What the original left behind and what it answered, as recorded.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use super::super::{Child, Job, Observed, Policy, Purpose, desired::Desired, plan};
use crate::admission::kinds::tests_support::recorded;

fn seen(case: &Value, now: Timestamp) -> Observed {
    let children = case["objects"].as_array().unwrap().iter().map(|child| {
        let read: Job = serde_json::from_value(child.clone()).unwrap();
        match child["kind"].as_str().unwrap() {
            "Job" => Child::of_job(&read),
            "BroadcastJob" => {
                Child::of_broadcast_job(&read.metadata, Some(&serde_json::from_value(child.clone()).unwrap()))
            }
            _ => Child::of_list(&read.metadata, Some(&serde_json::from_value(child.clone()).unwrap())),
        }
    });
    Observed {
        cron: Arc::new(serde_json::from_value(case["job"].clone()).unwrap()),
        children: children.collect(),
        now,
        zone: TimeZone::UTC,
    }
}

/// JOBS-61 and the take-over of schedules of each kind and policy: no run is repeated, none is skipped, and no child that runs is
/// written to. The time of the last run is that of the newest child, also where the original had not stored it yet.
#[test]
fn no_run_of_the_original_is_repeated_or_skipped_at_the_switch() {
    let mut count = 0;
    for line in include_str!("../../../tests/recorded/jobs-resting.jsonl").lines() {
        let mut case: Value = serde_json::from_str(line).unwrap();
        if case["job"]["kind"] != "AdvancedCronJob" {
            continue;
        }
        count += 1;
        let name = case["case"].as_str().unwrap().to_owned();
        let times = case["objects"].as_array().unwrap().iter().map(|child| {
            let at = child["metadata"]["annotations"]["apps.kruise.io/scheduled-at"].as_str().unwrap();
            at.parse::<Timestamp>().unwrap()
        });
        let stored = case["job"]["status"]["lastScheduleTime"].as_str().map(|time| time.parse().unwrap());
        let newest = times.max().max(stored);
        let created: Timestamp =
            case["job"]["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
        let begin = newest.unwrap_or(created) + SignedDuration::from_secs(5);
        let first = plan(&seen(&case, begin));
        let is_clean_up = |purpose: &Purpose| matches!(purpose, Purpose::CleanUp(_));
        assert!(first.purposes.iter().all(is_clean_up), "{name}: {:?}", first.purposes);
        let status = first.status_after(false).unwrap();
        assert_eq!(status.last_schedule_time.map(|time| time.0), newest, "{name}");
        let active = case["objects"].as_array().unwrap().iter().filter(|child| {
            let status = &child["status"];
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            let is_end = |one: &Value| one["type"] == "Complete" || one["type"] == "Failed";
            !conditions.iter().any(is_end) && status["completionTime"].is_null()
        });
        assert_eq!(status.active.len(), active.count(), "{name}");
        case["job"]["status"] = json!(status);
        let next = plan(&seen(&case, begin)).next.unwrap();
        let later = plan(&seen(&case, next + SignedDuration::from_secs(1)));
        let desired =
            Desired::of(&serde_json::from_value(case["job"].clone()).unwrap(), &TimeZone::UTC).unwrap();
        let starts: Vec<&Purpose> =
            later.purposes.iter().filter(|purpose| matches!(purpose, Purpose::Start(_))).collect();
        let wanted = format!("{}-{}", case["job"]["metadata"]["name"].as_str().unwrap(), next.as_second());
        match desired.policy {
            Policy::Allow => assert_eq!(starts, [&Purpose::Start(wanted.as_str().into())], "{name}"),
            _ if status.active.is_empty() => {
                assert_eq!(starts, [&Purpose::Start(wanted.as_str().into())], "{name}");
            }
            Policy::Forbid => assert!(later.purposes.iter().all(is_clean_up), "{name}"),
            Policy::Replace => {
                assert!(
                    later.purposes.iter().any(|purpose| matches!(purpose, Purpose::Replace(_))),
                    "{name}"
                );
            }
        }
    }
    assert_eq!(count, 12);
}

/// What the original lets pass although it cannot work, what it names otherwise, and where it fails itself.
const DIFFERENT: &[(&str, &str)] = &[
    (
        "acj schedule ''",
        "spec.schedule|Invalid value|schedule cannot be empty, please provide valid cron schedule.",
    ),
    ("acj schedule 'TZ=UTC'", "spec.schedule|Invalid value|time zone without a schedule: TZ=UTC"),
    ("acj schedule 'CRON_TZ='", "spec.schedule|Invalid value|time zone without a schedule: CRON_TZ="),
    (
        "acj broadcast template without image",
        "spec.template.broadcastJobTemplate.spec.template.spec.containers[0].image|Required value|",
    ),
    (
        "acj job template no containers",
        "spec.template.jobTemplate.spec.template.spec.containers|Required value|",
    ),
    (
        "acj broadcast template restartPolicy omitted",
        "spec.template.broadcastJobTemplate.spec.template.spec.restartPolicy|Invalid value|pod restartPolicy can only be Never or OnFailure",
    ),
    (
        "acj job template restartPolicy Always",
        "spec.template.jobTemplate.spec.template.spec.restartPolicy|Unsupported value|supported values: \"OnFailure\", \"Never\"",
    ),
    (
        "acj image list concurrencyPolicy Allow",
        "spec.concurrencyPolicy|Invalid value|concurrencyPolicy should be Replace or Forbid, but current value is: Allow",
    ),
    (
        "update: acj other template added",
        "spec.template|Forbidden|spec can have only one template, either JobTemplate or BroadcastJobTemplate or ImageListPullJobTemplate should be provided",
    ),
    (
        "acj image list duplicate names",
        "spec.template.imageListPullJobTemplate.spec.selector|Invalid value|duplicated name in selector names",
    ),
    (
        "acj image list selector and podSelector",
        "spec.template.imageListPullJobTemplate.spec.selector|Invalid value|can not set both selector and podSelector",
    ),
    (
        "acj image list bad selector",
        "spec.template.imageListPullJobTemplate.spec.selector|Invalid value|invalid selector: values: Invalid value: []string(nil): for 'in', 'notin' operators, values set can't be empty",
    ),
    (
        "acj image list deadline 100 typed",
        "spec.template.imageListPullJobTemplate.spec.completionPolicy.activeDeadlineSeconds|Invalid value|completionPolicy.activeDeadlineSeconds must be greater than pullPolicy.timeoutSeconds(600)",
    ),
];

/// JOBS-49, JOBS-50, JOBS-51, JOBS-52, JOBS-53, JOBS-54, JOBS-63: fields, kinds of mistakes and details, recorded from the
/// original.
#[test]
fn answers_are_those_of_the_original() {
    let pod = json!({"metadata": {"labels": {"a": "b"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:v1"}]}});
    let of = |template: Value| {
        json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob",
            "metadata": {"name": "acj", "namespace": "default"}, "spec": {"schedule": "*/5 * * * *", "template": template}})
    };
    let rows = include_str!("../../../tests/recorded/jobs-validation.tsv");
    let broadcast = of(json!({"broadcastJobTemplate": {"spec": {"template": pod}}}));
    let job = of(json!({"jobTemplate": {"spec": {"backoffLimit": 0, "template": pod}}}));
    let list =
        of(json!({"imageListPullJobTemplate": {"spec": {"images": ["a:1", "b:1"], "completionPolicy": {}}}}));
    let bases = [("acj", &broadcast), ("list", &list), ("job-update", &job), ("list-update", &list)];
    let counts = bases.map(|(name, base)| recorded(rows, name, base, DIFFERENT));
    assert_eq!(counts, [42, 17, 5, 3]);
}

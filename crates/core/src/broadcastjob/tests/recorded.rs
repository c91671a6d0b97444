//! What the original left behind and what it answered, as recorded.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::super::{Observed, plan, status_write};
use crate::{
    admission::kinds::tests_support::recorded,
    effect::{Effect, Patch},
    node::Node,
    pod::Pod,
};

fn node(name: &str) -> Arc<Node> {
    let (kind, _) = name.split_once('-').unwrap();
    let cpu = if kind == "real" { "2" } else { "1" };
    let labels = json!({"node-kind": kind, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "role": "worker"});
    let node = json!({"metadata": {"name": name, "labels": labels}, "spec": {},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-15T00:00:00Z"}]}});
    Arc::new(serde_json::from_value(node).unwrap())
}

fn seen(case: &Value) -> Observed {
    let pods = case["objects"].as_array().unwrap().iter();
    Observed {
        job: Arc::new(serde_json::from_value(case["job"].clone()).unwrap()),
        pods: pods.map(|pod| Arc::new(serde_json::from_value::<Pod>(pod.clone()).unwrap())).collect(),
        nodes: ["real-0", "hollow-1", "hollow-2", "hollow-3", "hollow-4"].map(node).into(),
        now: "2026-11-15T20:00:00Z".parse().unwrap(),
        assign_by_scheduler: true,
        room: usize::MAX,
        seed: 0,
    }
}

/// JOBS-31 and the take-over of jobs that run, wait, are paused or have ended: no pod is written, and nothing at all where the
/// original did what it should.
#[test]
fn what_the_original_left_behind_is_taken_over_without_a_write_to_pods() {
    let mut written = BTreeMap::new();
    let mut count = 0;
    for line in include_str!("../../../tests/recorded/jobs-resting.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        if case["job"]["kind"] != "BroadcastJob" {
            continue;
        }
        count += 1;
        let name = case["case"].as_str().unwrap();
        let seen = seen(&case);
        let plan = plan(&seen);
        for effect in &plan.effects {
            let Effect::Patch { patch: Patch::Merge(change), .. } = effect else {
                panic!("{name}: {effect:?}")
            };
            written.insert(name.to_owned(), change["spec"].to_string());
        }
        let write = plan.report.and_then(|report| status_write(&seen.job, &report.status));
        if let Some(Effect::Patch { patch: Patch::Merge(change), .. }) = write {
            written.insert(name.to_owned(), change["status"]["phase"].to_string());
        }
    }
    assert_eq!(count, 11);
    // One pod restarts for ever, which ends here (BJ-D3), and a pause becomes one that can be ended (BJ-D1).
    let expected =
        [("bcj-onfailure-restartlimit", "\"completed\""), ("bcj-pause-on-failure", "{\"paused\":true}")];
    assert_eq!(written, expected.map(|(case, change)| (case.to_owned(), change.to_owned())).into());
}

/// What the original lets pass although it cannot work.
const DIFFERENT: &[(&str, &str)] = &[
    (
        "bcj parallelism \"abc\"",
        "spec.parallelism|Invalid value|a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    ),
    ("bcj parallelism -1", "spec.parallelism|Invalid value|must be greater than or equal to 0"),
    // Refused by the schema before any webhook is asked.
    ("bcj no template", "400 missing field `template`"),
    (
        "bcj completionPolicy type bogus",
        "spec.completionPolicy.type|Unsupported value|supported values: \"Always\", \"Never\"",
    ),
    (
        "bcj failurePolicy type bogus",
        "spec.failurePolicy.type|Unsupported value|supported values: \"FailFast\", \"Continue\", \"Pause\"",
    ),
    (
        "bcj activeDeadlineSeconds -1",
        "spec.completionPolicy.activeDeadlineSeconds|Invalid value|must be greater than 0",
    ),
    (
        "bcj ttl -1",
        "spec.completionPolicy.ttlSecondsAfterFinished|Invalid value|must be greater than or equal to 0",
    ),
];

/// JOBS-5, JOBS-29: fields, kinds of mistakes and details, recorded from the original.
#[test]
fn answers_are_those_of_the_original() {
    let pod = json!({"metadata": {"labels": {"a": "b"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:v1"}]}});
    let base = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "BroadcastJob",
        "metadata": {"name": "bj", "namespace": "default"}, "spec": {"template": pod}});
    let rows = include_str!("../../../tests/recorded/jobs-validation.tsv");
    assert_eq!(recorded(rows, "bcj", &base, DIFFERENT), 24);
}

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::{gates::Gates, statefulset::v1beta1::StatefulSet};
use serde_json::Value;

use crate::{
    object::{CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD},
    plan::WriteBudget,
    revision::Revision,
    statefulset::{Failures, Observed, decide, status_write},
    waiting::Waits,
};

/// What the original left: each line a set with its objects.
const RECORDED: &str = include_str!("../../../tests/recorded/statefulset-resting.jsonl");

/// Cases in which the original stands still where it should not, or had not finished, or which were recorded while their
/// objects came or went.
const STUCK: &[&str] = &[
    "claim-deleted-while-pending",
    "claim-template-added",
    "failed-pod-scale-strategy-1",
    "gate-image-predownload",
    "gate-ordinals-start",
    "lifecycle-ordered-update-hook",
    "lifecycle-predelete-cancel",
    "on-delete-specified-delete",
    "ordered-broken-revert-real",
    "parallel-broken-low-ordinal-real",
    "parallel-maxunavailable",
    "parallel-unordered-broken-low-ordinal-real",
    "predelete-then-template-change",
    "scale-strategy",
    "status-values-ordered",
];

fn seen(case: &Value) -> Observed {
    fn of<T: serde::de::DeserializeOwned>(case: &Value, kind: &str) -> Vec<Arc<T>> {
        let objects = case["objects"].as_array().unwrap().iter().filter(|one| one["kind"] == kind);
        objects.map(|one| Arc::new(serde_json::from_value(one.clone()).unwrap())).collect()
    }
    let now: Timestamp = "2026-11-17T12:00:00Z".parse().unwrap();
    Observed {
        set: Arc::new(serde_json::from_value(case["set"].clone()).unwrap()),
        pods: of(case, "Pod"),
        taken: Default::default(),
        claims: of(case, "PersistentVolumeClaim"),
        storage_classes: Default::default(),
        revisions: of::<Revision>(case, "ControllerRevision"),
        jobs: Vec::new(),
        now,
        gates: Arc::new(Gates::default()),
        resize_subresource: true,
        refusals: Default::default(),
        budget: WriteBudget::default(),
    }
}

/// STATEFULSET-50: what the original left at rest is left alone: no pod, no claim and no revision is written, and the status
/// stays. Names of revisions equal the original's.
#[test]
fn a_set_that_the_original_left_at_rest_is_not_written_to() {
    let mut problems = Vec::new();
    for line in RECORDED.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["case"].as_str().unwrap();
        let seen = seen(&case);
        let (plan, standing) = decide(&seen);
        let kinds = [POD, PERSISTENT_VOLUME_CLAIM, CONTROLLER_REVISION];
        let is_write = |step: &&crate::plan::Step<_>| {
            step.effect.endpoint().is_some_and(|(resource, _)| kinds.contains(&resource))
        };
        let writes: Vec<_> = plan.steps.iter().filter(is_write).collect();
        if !writes.is_empty() && !STUCK.contains(&name) {
            problems.push(format!("{name}: {writes:?}"));
        }
        // The manager leaves a wait that the user wants to the next other write.
        let status = standing.status(&seen, &Failures::default(), &Waits::default());
        let set: &StatefulSet = &seen.set;
        let write = status_write(set, &status);
        if let Some(write) = write.filter(|_| !STUCK.contains(&name)) {
            problems.push(format!("{name}: {write:?} over {:?}", set.status));
        }
    }
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}

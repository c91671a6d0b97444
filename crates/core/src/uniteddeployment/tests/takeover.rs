//! Objects that the original left at rest: nothing is written to workloads and pods.

use serde_json::Value;

use super::kit::observed;
use crate::{
    effect::Effect,
    object::CONTROLLER_REVISION,
    uniteddeployment::{Kind, decide},
};

fn recorded() -> impl Iterator<Item = Value> {
    let text = include_str!("../../../tests/recorded/uniteddeployment-resting.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

fn kind_of(object: &Value) -> Kind {
    let template = &object["spec"]["template"];
    Kind::ALL.into_iter().find(|kind| template.get(kind.field()).is_some()).unwrap()
}

/// UNITED-31: in both versions in which they may be stored.
#[test]
fn taking_over_writes_to_no_workload_and_no_pod() {
    let mut count = 0;
    for line in recorded() {
        let list = |field: &str| line[field].as_array().unwrap().clone();
        let now = "2026-11-15T19:44:05Z".parse().unwrap();
        let older = Some(&line["older"])
            .filter(|older| older.is_object())
            .map(|older| kruise_api::convert::convert(older.clone(), "apps.kruise.io/v1beta1").unwrap());
        for object in [Some(line["object"].clone()), older].into_iter().flatten() {
            let kind = kind_of(&object);
            let seen = observed(&object, kind, &list("children"), &list("pods"), &list("revisions"), now);
            let (plan, standing) = decide(&seen);
            let written: Vec<&Effect> = plan
                .effects()
                .into_iter()
                .filter(|effect| {
                    effect.endpoint().is_none_or(|(resource, _)| resource != CONTROLLER_REVISION)
                })
                .collect();
            assert!(written.is_empty(), "{}: {written:?}", line["case"]);
            let created = plan.effects().into_iter().any(|effect| matches!(effect, Effect::Create { .. }));
            assert!(!created, "{}: {:?}", line["case"], plan.effects());
            let failures = crate::plan::Failures::of(&plan);
            let status = standing.status(&seen, &failures, &plan, &plan.waits).unwrap();
            let before = seen.object.status.clone().unwrap();
            assert_eq!(status.updated_revision, before.updated_revision, "{}", line["case"]);
            assert_eq!(status.subset_statuses, before.subset_statuses, "{}", line["case"]);
            count += 1;
            // One recording has no pods.
            if list("pods").is_empty() {
                continue;
            }
            assert_eq!(
                (status.replicas, status.updated_replicas, &status.label_selector, &status.current_revision),
                (before.replicas, before.updated_replicas, &before.label_selector, &before.current_revision),
                "{}",
                line["case"]
            );
        }
    }
    assert!(count >= 16, "{count}");
}

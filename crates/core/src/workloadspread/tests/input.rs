//! What people write.

use std::{collections::BTreeMap, sync::Arc};

use kruise_api::{kubernetes::validation::Kind, workloadspread::v1beta1::WorkloadSpread};
use serde_json::{Value, json};

use super::super::validate::*;
use crate::{
    admission::{Request, aggregate, kinds::Change},
    configuration::Data,
};

fn base(name: &str, target: &str) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread", "metadata": {"name": name, "namespace": "cap-b-val"},
        "spec": {"targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": target},
            "subsets": [{"name": "a", "maxReplicas": 1}, {"name": "b"}]}})
}

fn changed(base: &Value, change: &Value) -> Value {
    let mut object = base.clone();
    json_patch::merge(&mut object, change);
    object
}

struct World {
    others: Vec<Arc<WorkloadSpread>>,
    configuration: Data,
    workload: Option<Value>,
}

impl World {
    fn empty() -> Self {
        Self { others: Vec::new(), configuration: Data::new(), workload: None }
    }

    fn found(&self, new: &Value, old: Option<&Value>) -> Vec<kruise_api::kubernetes::validation::Violation> {
        let request = Request::default();
        let change = Change { request: &request, new, old };
        let known = Known {
            others: &self.others,
            configuration: Some(&self.configuration),
            workload: self.workload.as_ref(),
        };
        let mut found = Vec::new();
        validate(&change, &known, &mut found);
        found
    }

    #[track_caller]
    fn check(&self, new: Value, expected: &str) {
        assert_eq!(aggregate(&self.found(&new, None)).unwrap_or_default(), expected);
    }
}

fn words(kind: Kind) -> &'static str {
    match kind {
        Kind::Required => "Required value",
        Kind::Invalid => "Invalid value",
        Kind::NotSupported => "Unsupported value",
        Kind::Duplicate => "Duplicate value",
        Kind::Forbidden => "Forbidden",
        Kind::NotFound => "Not found",
        Kind::Internal => "Internal error",
    }
}

const BAD_LIMIT: &str = "spec.subsets[0].maxReplicas|Invalid value|maxReplicas is not valid for subset";

/// Where the original lets pass what cannot work, or goes on after what makes the rest meaningless.
const DIFFERENT: &[(&str, &str)] = &[
    ("\"5\"", BAD_LIMIT),
    ("maxReplicas \"5\" with open last", BAD_LIMIT),
    (
        "existing target: patch is a string",
        "spec.subsets[0].patch|Invalid value|failed to merge patch: invalid JSON document",
    ),
    (
        "existing target: containers a string",
        "spec.subsets[0].patch|Invalid value|failed to unmarshal: json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container",
    ),
    (
        "bad filter",
        "spec.targetFilter|Invalid value|key \"a\": for 'in', 'notin' operators, values set can't be empty",
    ),
];

/// SPREAD-5, SPREAD-24, SPREAD-30, and all else that was recorded from the original: fields, kinds of mistakes and details.
/// Values are printed by Go there and as JSON here. Rows that a server's schema answers are left to it.
#[test]
fn answers_are_those_of_the_original() {
    let different: BTreeMap<&str, &str> = DIFFERENT.iter().copied().collect();
    let container = json!({"name": "main", "image": "app:v1"});
    let template = json!({"metadata": {"labels": {"app": "c1"}}, "spec": {"containers": [container]}});
    let mut count = 0;
    for line in include_str!("../../../tests/recorded/workloadspread-validation.tsv").lines() {
        let mut columns = line.split('\t');
        let (case, change) = (columns.next().unwrap(), columns.next().unwrap());
        let recorded = columns.collect::<Vec<_>>().join("\t");
        if recorded == "schema" {
            continue;
        }
        let expected = different.get(case).copied().unwrap_or(&recorded);
        let change: Value = serde_json::from_str(change).unwrap();
        let stored = base("w1", "c1");
        let (name, target, old, workload) = match case {
            case if case.starts_with("update: ") => ("w1", "c1", Some(&stored), None),
            case if case.starts_with("existing target") => {
                ("ws", "c0", None, Some(json!({"spec": {"template": template}})))
            }
            case if case.contains("same target") => ("w2", "c1", None, None),
            _ => ("ws", "c", None, None),
        };
        let other = serde_json::from_value(stored.clone()).unwrap();
        let world = World { others: vec![Arc::new(other)], configuration: Data::new(), workload };
        let found = world.found(&changed(&base(name, target), &change), old);
        let told: Vec<String> =
            found.iter().map(|one| format!("{}|{}|{}", one.path, words(one.kind), one.detail)).collect();
        let told = if told.is_empty() { "accepted".to_owned() } else { told.join("\t") };
        assert_eq!(told, expected, "{case}");
        count += 1;
    }
    assert_eq!(count, 53);
}

/// SPREAD-13: only kinds of the white list may be spread; one that cannot be read says why.
#[test]
fn other_kinds_need_the_white_list() {
    let target = json!({"spec": {"targetRef": {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "r"}}});
    let rollout = changed(&base("ws", "c"), &target);
    let mut world = World::empty();
    let refused = |detail: &str| {
        let value = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "r"});
        format!("spec.targetRef: Invalid value: {value}: {detail}")
    };
    world.check(rollout.clone(), &refused("TargetReference's GroupKind is not permitted."));
    let key = "WorkloadSpread_Watch_Custom_Workload_WhiteList";
    let list = r#"{"workloads":[{"Group":"argoproj.io","Version":"v1alpha1","Kind":"Rollout","subResources":[{"Group":"x.io","Kind":"Part"}]}]}"#;
    world.configuration = Data::from([(key.to_owned(), list.to_owned())]);
    world.check(rollout.clone(), "");
    let part = json!({"spec": {"targetRef": {"apiVersion": "x.io/v1", "kind": "Part", "name": "r"}}});
    assert_eq!(
        world.found(&changed(&base("ws", "c"), &part), None).len(),
        1,
        "what stands between is no target"
    );
    world.configuration = Data::from([(key.to_owned(), "{".to_owned())]);
    world.check(
        rollout,
        "spec.targetRef: Internal error: key WorkloadSpread_Watch_Custom_Workload_WhiteList of ConfigMap kruise-configuration \
         is not readable: EOF while parsing an object at line 1 column 1",
    );
    world.check(base("ws", "c"), "");
}

/// SPREAD-24: the more subsets, the sooner a pod has to move on.
#[test]
fn all_moves_are_over_before_the_first_subset_is_tried_again() {
    let with = |seconds: i64| {
        changed(
            &base("ws", "c"),
            &json!({"spec": {"subsets": [{"name": "a", "maxReplicas": 1}, {"name": "b", "maxReplicas": 1}, {"name": "c"}],
                "scheduleStrategy": {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": seconds}}}}),
        )
    };
    World::empty().check(with(147), "");
    World::empty().check(
        with(148),
        "spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds: Invalid value: 148: rescheduleCriticalSeconds < 0 or \
         rescheduleCriticalSeconds > 147 is not permitted",
    );
}

/// What an older version accepted and stored can still be worked with, as long as nobody touches it.
#[test]
fn a_stored_limit_without_percent_sign_may_stay() {
    let old = changed(
        &base("w", "c"),
        &json!({"spec": {"subsets": [{"name": "a", "maxReplicas": "5"}, {"name": "b"}]}}),
    );
    let new = changed(&old, &json!({"metadata": {"labels": {"x": "y"}}}));
    assert!(World::empty().found(&new, Some(&old)).is_empty());
    let touched =
        changed(&old, &json!({"spec": {"subsets": [{"name": "a", "maxReplicas": "6"}, {"name": "b"}]}}));
    assert_eq!(World::empty().found(&touched, Some(&old)).len(), 1);
}

/// Claims of the workload are volumes of its pods.
#[test]
fn claims_of_the_workload_are_volumes() {
    let mounts = json!([{"name": "data", "mountPath": "/data"}]);
    let patch = json!({"spec": {"containers": [{"name": "main", "volumeMounts": mounts}]}});
    let object = changed(&base("ws", "c"), &json!({"spec": {"subsets": [{"name": "a", "patch": patch}]}}));
    let template = json!({"spec": {"containers": [{"name": "main", "image": "app:v1"}]}});
    let mut world = World::empty();
    world.workload = Some(
        json!({"spec": {"template": template, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}}),
    );
    world.check(object.clone(), "");
    world.workload = Some(json!({"spec": {"template": template}}));
    assert_eq!(world.found(&object, None).len(), 1);
    assert_eq!(tried_on(&object), Some(["apps.kruise.io", "v1beta1", "CloneSet", "c"]));
    assert_eq!(tried_on(&base("ws", "c")), None);
}

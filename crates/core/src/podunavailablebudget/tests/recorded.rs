//! What the original answered and counted, as recorded.

use std::{collections::BTreeMap, sync::Arc};

use kruise_api::{gates::Gates, podunavailablebudget::v1beta1::PodUnavailableBudget};
use serde_json::{Value, json};

use super::{super::*, kit::*};
use crate::{
    admission::{
        self, Answer, Request,
        kinds::{Cluster, Context, validate},
    },
    patch_model::merge,
};

#[derive(Default)]
struct World(Vec<Arc<PodUnavailableBudget>>);

impl Cluster for World {
    fn budgets(&self, _: &str) -> Vec<Arc<PodUnavailableBudget>> {
        self.0.clone()
    }
}

impl World {
    fn with(object: &Value) -> Self {
        Self(vec![Arc::new(serde_json::from_value(object.clone()).unwrap())])
    }

    fn answer(&self, object: &Value, old: Option<&Value>) -> String {
        let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
        let kind = admission::Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: "PodUnavailableBudget".to_owned(),
        };
        let request = Request {
            kind,
            operation: if old.is_some() {
                admission::Operation::Update
            } else {
                admission::Operation::Create
            },
            namespace: "shop".to_owned(),
            object: object.clone(),
            old_object: old.cloned().unwrap_or_default(),
            ..Request::default()
        };
        let gates = Gates::default();
        let context = Context { gates: &gates, allow_privileged: true, now: start(), seed: 7, cluster: self };
        match validate(&request, &context) {
            Answer::Allowed { .. } => "ACCEPTED".to_owned(),
            Answer::Denied { code: 422, message } => message,
            other => panic!("{other:?}"),
        }
    }
}

fn changed(mut object: Value, change: &Value) -> Value {
    merge(&mut object, change);
    object
}

fn object_of(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
        "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
}

/// A refusal without the name of the webhook, and without the value, which Go prints in its own way.
fn essence(text: &str) -> String {
    let text = text
        .strip_prefix("admission webhook \"vpodunavailablebudget.kb.io\" denied the request: ")
        .unwrap_or(text);
    let Some((path, rest)) = text.split_once(": Invalid value: ") else { return text.to_owned() };
    let detail = rest.rsplit_once("}: ").or_else(|| rest.split_once(": ")).map_or("", |(_, detail)| detail);
    format!("{path}: Invalid value: {detail}")
}

/// PROTECTION-23, PROTECTION-27, PROTECTION-28, PROTECTION-29: every recorded answer of the webhook.
#[test]
fn answers_equal_those_of_the_original() {
    // The original names a syntax error of a selector twice, and says that it cannot convert.
    let different = BTreeMap::from([
        (
            "selector bad",
            "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            "v1alpha1 operations FOO",
            "metadata.annotations[kruise.io/pub-protect-operations]: Unsupported value: \"FOO\": supported values: \"DELETE\", \"UPDATE\", \"EVICT\", \"RESIZE\"",
        ),
        (
            "v1alpha1 replicas x",
            "metadata.annotations[pub.kruise.io/protect-total-replicas]: Invalid value: must be a valid int32",
        ),
    ]);
    let base = object_of("pub", json!({"selector": {"matchLabels": {"a": "b"}}, "maxUnavailable": 1}));
    let labels = object_of("s", json!({"selector": {"matchLabels": {"app": "s"}}, "maxUnavailable": 1}));
    let reference = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "a"});
    let target = object_of("a", json!({"targetRef": reference, "maxUnavailable": 1}));
    let second = |object: &Value| changed(object.clone(), &json!({"metadata": {"name": "second"}}));
    let beside = [
        "second with same selector",
        "overlapping In",
        "Exists overlaps",
        "NotIn the value",
        "DoesNotExist",
        "other key",
        "more keys",
    ];
    let mut count = 0;
    for line in include_str!("../../../tests/recorded/podunavailablebudget-validation.tsv").lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let (case, recorded) = (cells[0], cells[3]);
        if recorded.starts_with("PodUnavailableBudget.policy.kruise.io") {
            // The schema refuses it before anybody is asked; a scenario tries that.
            continue;
        }
        let change: Value = serde_json::from_str(cells[1]).unwrap_or_default();
        let answer = if case.starts_with("update: ") {
            World::with(&target).answer(&changed(target.clone(), &change), Some(&target))
        } else if beside.contains(&case) {
            World::with(&labels).answer(&changed(second(&labels), &change), None)
        } else if case == "second with same targetRef" || case == "same target, other version" {
            World::with(&target).answer(&changed(second(&target), &change), None)
        } else if let Some(what) = case.strip_prefix("v1alpha1 ") {
            let (what, value) = what.split_once(' ').unwrap();
            let key = match what {
                "operations" => "kruise.io/pub-protect-operations",
                _ => "pub.kruise.io/protect-total-replicas",
            };
            let version = "policy.kruise.io/v1alpha1";
            let change =
                json!({"apiVersion": version, "metadata": {"annotations": {key: value.trim_matches('"')}}});
            World::default().answer(&changed(base.clone(), &change), None)
        } else {
            World::default().answer(&changed(base.clone(), &change), None)
        };
        let expected = different.get(case).map_or_else(|| essence(recorded), ToString::to_string);
        assert_eq!(essence(&answer), expected, "{case}");
        count += 1;
    }
    assert_eq!(count, 42);
}

/// PROTECTION-1 to PROTECTION-5: recorded numbers of budgets of a workload with three ready pods. Nothing is written for a
/// status that the original left.
#[test]
fn numbers_equal_those_of_the_original_and_its_status_is_taken_over() {
    let mut count = 0;
    for line in include_str!("../../../tests/recorded/podunavailablebudget-arithmetic.tsv").lines() {
        let (spec, status) = line.split_once('\t').unwrap();
        let (spec, status): (Value, Value) =
            (serde_json::from_str(spec).unwrap(), serde_json::from_str(status).unwrap());
        let budget = budget(spec, status);
        let expected = budget.total.unwrap_or(3);
        let plan = decide(&observed(&budget, &pods(3), expected, after(100)));
        assert_eq!((plan.status, plan.counted), (None, budget.status()), "{line}");
        count += 1;
    }
    assert_eq!(count, 9);
}

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::gates::Gates;
use serde_json::{Value, json};

use crate::{
    admission::{
        Answer, Kind, Operation, Request,
        kinds::{Context, Empty, mutate, tests_support::check, validate},
    },
    patch_model::merge,
};

fn workload() -> Value {
    json!({"metadata": {"labels": {"app": "base"}}, "spec": {
        "selector": {"matchLabels": {"app": "base"}},
        "template": {"metadata": {"labels": {"app": "base"}}, "spec": {
            "containers": [{"name": "main", "image": "app:v1", "imagePullPolicy": "IfNotPresent"}],
            "terminationGracePeriodSeconds": 3}}}})
}

/// The object that recorded answers are about, with a template of this kind.
fn base(version: &str, field: &str) -> Value {
    let mut template = workload();
    if field.contains("tatefulSet") {
        merge(&mut template, &json!({"spec": {"serviceName": "svc", "podManagementPolicy": "Parallel"}}));
    }
    json!({"apiVersion": format!("apps.kruise.io/{version}"), "kind": "UnitedDeployment",
        "metadata": {"name": "fresh", "namespace": "default"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "base"}}, "template": {field: template},
            "topology": {"subsets": [{"name": "a"}, {"name": "b"}]}}})
}

/// What a change of the base is answered, and what the writer is warned of.
fn answer(operation: &str, base: Value, change: &Value) -> (String, Vec<String>) {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let gates = Gates::default();
    let context = Context { gates: &gates, allow_privileged: true, now, seed: 7, cluster: &Empty };
    let send = |operation: Operation, object: Value, old_object: Value| {
        let api_version = object["apiVersion"].as_str().unwrap();
        let (group, version) = api_version.split_once('/').unwrap();
        let kind = Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: "UnitedDeployment".to_owned(),
        };
        let mut request = Request { kind, operation, object, old_object, ..Request::default() };
        if let Answer::Allowed { patch: Some(operations), .. } = mutate(&request, &context) {
            json_patch::patch(&mut request.object, &operations).unwrap();
        }
        let answer = match validate(&request, &context) {
            Answer::Allowed { warnings, .. } => ("accepted".to_owned(), warnings),
            Answer::Denied { message, .. } | Answer::Held { message, .. } => (message, Vec::new()),
        };
        (request.object, answer)
    };
    if operation == "create" {
        let mut object = base;
        merge(&mut object, change);
        return send(Operation::Create, object, Value::Null).1;
    }
    let (old, accepted) = send(Operation::Create, base, Value::Null);
    assert_eq!(accepted.0, "accepted");
    let mut object = old.clone();
    merge(&mut object, change);
    send(Operation::Update, object, old).1
}

/// Fields and details; the value between them is printed by Go there and as JSON here.
fn essence(answer: &str) -> Vec<String> {
    let text = answer.split_once("denied the request: ").map_or(answer, |(_, text)| text);
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let mut parts: Vec<String> = inner
        .split(", spec.")
        .map(|part| {
            let part = part.trim_start_matches("spec.");
            let Some((path, rest)) = part.split_once(": Invalid value: ") else { return part.to_owned() };
            let detail = match rest.rsplit_once("}: ") {
                Some((_, detail)) => detail,
                None => match rest.rsplit_once("]: ") {
                    Some((_, detail)) => detail,
                    None => rest.split_once(": ").map_or("", |(_, detail)| detail),
                },
            };
            format!("{path}: {detail}")
        })
        .collect();
    parts.sort();
    parts
}

/// Where we differ on purpose.
fn deviations() -> BTreeMap<u32, &'static str> {
    BTreeMap::from([
        // The template of a StatefulSet has the selector of the object: it is named once.
        (3, "spec.selector: Invalid value: {}: empty selector is invalid for statefulset"),
        // Numbers are printed, not their addresses.
        (
            28,
            "[spec.topology.subsets: Invalid value: 6: sum of indicated subset replicas 6 should not be greater than \
             UnitedDeployment replicas 5, spec.topology.subsets: Invalid value: 6: if replicas of all subsets are provided, \
             the sum of indicated subset replicas 6 should equal UnitedDeployment replicas 5]",
        ),
        (
            29,
            "spec.topology.subsets: Invalid value: 6: if replicas of all subsets are provided, the sum of indicated subset \
             replicas 6 should equal UnitedDeployment replicas 10",
        ),
        (
            30,
            "spec.topology.subsets: Invalid value: 5: sum of indicated subset replicas 5 should not be greater than \
             UnitedDeployment replicas 4",
        ),
        (
            57,
            "[spec.topology.subsets: Invalid value: 6: sum of indicated subset replicas 6 should not be greater than \
             UnitedDeployment replicas 5, spec.topology.subsets: Invalid value: 6: if replicas of all subsets are provided, \
             the sum of indicated subset replicas 6 should equal UnitedDeployment replicas 5]",
        ),
        // What cannot work is refused.
        (
            35,
            "spec.topology.scheduleStrategy.adaptive.rescheduleCriticalSeconds: Invalid value: -5: must be greater than or \
             equal to 0",
        ),
        (
            38,
            "spec.updateStrategy.manualUpdate.partitions[a]: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            40,
            "spec.topology.subsets[0].patch: Invalid value: \"text\": cannot be applied to the pod template: invalid JSON \
             document",
        ),
        (60, "spec.selector: Forbidden: may not be changed in an update"),
        // The path of an Advanced StatefulSet is its own.
        (
            52,
            "spec.template.advancedStatefulSetTemplate.metadata.labels: Invalid value: {\"app\":\"zz\"}: `selector` does not \
             match template `labels`",
        ),
    ])
}

/// UNITED-5, UNITED-8, UNITED-10, UNITED-19, UNITED-23, UNITED-26: 64 answers recorded from the original, with the few where
/// we differ on purpose.
#[test]
fn answers_equal_those_of_the_original() {
    let deviations = deviations();
    let mut problems = Vec::new();
    let mut count = 0;
    for line in include_str!("../../../tests/recorded/uniteddeployment-validation.tsv").lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let number: u32 = cells[0].parse().unwrap();
        // The API server answers these from the schema, before anybody else is asked.
        if [1, 2, 33, 36, 43, 48, 56].contains(&number) {
            continue;
        }
        count += 1;
        let change: Value = serde_json::from_str(cells[3]).unwrap();
        let template = change["spec"]["template"].as_object();
        let only = |field: &str| template.is_some_and(|template| template.contains_key(field));
        let field = if (44..=47).contains(&number) || number == 55 {
            "cloneSetTemplate"
        } else if only("deploymentTemplate") && number < 58 {
            "deploymentTemplate"
        } else if only("advancedStatefulSetTemplate") {
            "advancedStatefulSetTemplate"
        } else {
            "statefulSetTemplate"
        };
        let mut from = base(cells[2], field);
        if cells[1] == "update" {
            let subsets = json!([{"name": "a", "nodeSelectorTerm": {"matchExpressions": [{"key": "k", "operator": "In",
                "values": ["v"]}]}, "tolerations": [{"key": "t", "operator": "Exists"}]}, {"name": "b"}]);
            from["spec"]["topology"]["subsets"] = subsets;
        }
        let (ours, _) = answer(cells[1], from, &change);
        let expected = deviations.get(&number).copied().unwrap_or(cells[4]);
        if essence(&ours) != essence(expected) {
            problems.push(format!("{number} {}\n  {ours}\n  {expected}", cells[3]));
        } else if deviations.contains_key(&number) && essence(cells[4]) == essence(expected) {
            problems.push(format!("{number} is no deviation"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(count, 57);
}

/// UNITED-10: a patch must fit the pods of the template.
#[test]
fn patches_that_do_not_apply_are_refused() {
    let patch = |patch: Value| json!({"spec": {"topology": {"subsets": [{"name": "a", "patch": patch}, {"name": "b"}]}}});
    let base = base("v1beta1", "cloneSetTemplate");
    let path = "spec.topology.subsets[0].patch: Invalid value:";
    check(
        Operation::Create,
        &base,
        patch(json!({"spec": {"containers": "oops"}})),
        &format!(
            "{path} {{\"spec\":{{\"containers\":\"oops\"}}}}: cannot be applied to the pod template: json: cannot unmarshal \
             string into Go struct field PodSpec.spec.containers of type []v1.Container"
        ),
    );
    check(
        Operation::Create,
        &base,
        patch(json!({"spec": {"containers": [{"name": "main", "env": []}]}})),
        "",
    );
    check(Operation::Update, &base, patch(json!({"spec": {"nosuch": 1}})), "");
}

/// UNITED-19
#[test]
fn a_selector_stays() {
    let labels = json!({"x": "y"});
    let pods =
        json!({"metadata": {"labels": labels}, "spec": {"template": {"metadata": {"labels": labels}}}});
    check(
        Operation::Update,
        &base("v1beta1", "deploymentTemplate"),
        json!({"spec": {"selector": {"matchLabels": labels}, "template": {"deploymentTemplate": pods}}}),
        "spec.selector: Forbidden: may not be changed in an update",
    );
}

/// The original accepts it without a word.
#[test]
fn what_a_clone_set_template_says_in_vain_is_a_warning() {
    let change = json!({"spec": {"template": {"cloneSetTemplate": {"metadata": {"labels": {"app": "zz"}}, "spec": {"replicas": 3}}}}});
    let (said, warnings) = answer("create", base("v1beta1", "cloneSetTemplate"), &change);
    assert_eq!(said, "accepted");
    assert_eq!(
        warnings,
        [
            "spec.template.cloneSetTemplate.metadata.labels: spec.selector does not match these labels, no pods will be found",
            "spec.template.cloneSetTemplate.spec.replicas: replicas in cloneSetTemplate will not be used",
        ]
    );
}

//! Pods that are older than the spread.

use std::sync::Arc;

use kruise_api::annotations::{MATCHED_WORKLOADSPREAD, WORKLOADSPREAD_IGNORE_PATCH_METADATA};
use serde_json::{Value, json};

use super::{super::*, kit::*};
use crate::effect::{Effect, Patch};

fn nodes(observed: &mut Observed) {
    for (name, zone) in [("node-1", "a"), ("node-2", "b"), ("node-3", "c")] {
        observed.nodes.extend([node(name, json!({"zone": zone}), json!([]))]);
    }
}

fn on(name: &str, node: &str) -> Arc<crate::pod::Pod> {
    pod(name, "-", 0, json!({"spec": {"nodeName": node}}))
}

/// What is written into the metadata of each pod.
fn adopted(plan: &Plan) -> Vec<(String, Value)> {
    let one = |write: &Write| {
        let Effect::Patch { target, patch: Patch::Merge(change), .. } = &write.effect else { return None };
        Some((target.key.name.to_string(), change["metadata"].clone()))
    };
    plan.pods.iter().filter_map(one).collect()
}

fn places(plan: &Plan) -> String {
    let one = |(name, metadata): (String, Value)| {
        let mark = metadata["annotations"][MATCHED_WORKLOADSPREAD].as_str()?.to_owned();
        let mark: Mark = serde_json::from_str(&mark).unwrap();
        Some(format!("{name}={}", mark.subset))
    };
    adopted(plan).into_iter().filter_map(one).collect::<Vec<_>>().join(" ")
}

/// SPREAD-19: pods get the mark of the subset that their node is in, and the labels of its patch.
#[test]
fn running_pods_are_adopted_by_the_subset_of_their_node() {
    let mut object = object("Job", "a=1 b=1");
    object["spec"]["subsets"][0]["patch"] =
        json!({"metadata": {"labels": {"subset": "a"}, "annotations": {"p": "1"}}, "spec": {"x": 1}});
    let pods =
        vec![on("p1", "node-1"), on("p2", "node-2"), on("p3", "node-3"), on("p4", "gone"), on("p5", "")];
    let mut observed = seen(&object, pods, 60);
    nodes(&mut observed);
    let plan = decide(&observed);
    let mark = |subset: &str| json!(format!(r#"{{"name":"w","subset":"{subset}"}}"#));
    assert_eq!(
        adopted(&plan),
        [
            (
                "p1".to_owned(),
                json!({"labels": {"subset": "a"}, "annotations": {"p": "1", MATCHED_WORKLOADSPREAD: mark("a")}})
            ),
            ("p2".to_owned(), json!({"annotations": {MATCHED_WORKLOADSPREAD: mark("b")}})),
        ]
    );
    assert_eq!(told(&plan.counted.subset_statuses), "a 1/0, b 1/0");
    object["metadata"]["annotations"] = json!({WORKLOADSPREAD_IGNORE_PATCH_METADATA: "True"});
    observed.spread = read(&object);
    assert_eq!(adopted(&decide(&observed))[0].1, json!({"annotations": {MATCHED_WORKLOADSPREAD: mark("a")}}));
}

fn preferring(object: &mut Value) {
    for (index, (zone, weight)) in [("a", 5), ("b", 7), ("b", 2)].into_iter().enumerate() {
        let term = json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]});
        object["spec"]["subsets"][index]["requiredNodeSelector"] = Value::Null;
        object["spec"]["subsets"][index]["preferredNodeSelector"] =
            json!([{"weight": weight, "preference": term}]);
    }
}

/// SPREAD-20: the higher weight wins, then room, then the first subset.
#[test]
fn preferred_terms_choose_by_weight() {
    let mut object = object("Job", "x=9 y=9 z=9");
    preferring(&mut object);
    let mut observed = seen(&object, vec![on("p1", "node-1"), on("p2", "node-2"), on("p3", "node-3")], 60);
    nodes(&mut observed);
    assert_eq!(places(&decide(&observed)), "p1=x p2=y p3=x");
    object["spec"]["subsets"][0]["maxReplicas"] = json!(1);
    observed.spread = read(&object);
    assert_eq!(places(&decide(&observed)), "p1=x p2=y p3=y", "the first subset has no room left");
}

/// A pod that looks as if it had been made with a patch belongs to it.
#[test]
fn a_pod_with_the_patch_of_a_subset_belongs_to_it() {
    let mut object = object("Job", "x y");
    for (index, value) in ["x", "y"].into_iter().enumerate() {
        object["spec"]["subsets"][index]["requiredNodeSelector"] = Value::Null;
        let env = json!([{"name": "S", "value": value}]);
        object["spec"]["subsets"][index]["patch"] = json!({"metadata": {"annotations": {"s": value}},
            "spec": {"containers": [{"name": "main", "env": env}]}});
    }
    let mut observed = seen(&object, vec![on("p1", "node-1")], 60);
    nodes(&mut observed);
    assert_eq!(places(&decide(&observed)), "p1=x");
    let whole = json!({"metadata": {"name": "p1"}, "spec": {"containers": [{"name": "main", "env": [{"name": "S", "value": "y"}]}]}});
    observed.whole = [("p1".into(), Arc::new(whole))].into();
    assert_eq!(places(&decide(&observed)), "p1=y");
}

/// Taints that keep pods away count, those that only ask politely do not; the own terms of a pod count with a required one.
#[test]
fn taints_and_own_terms_count() {
    let check = |taints: Value, own: Value, expected: &str| {
        let mut object = object("Job", "a");
        object["spec"]["subsets"][0]["tolerations"] = json!([{"key": "t", "operator": "Exists"}]);
        let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": own}});
        let change = json!({"spec": {"nodeName": "n", "affinity": {"nodeAffinity": if own.is_null() { json!(null) } else { required }}}});
        let mut observed = seen(&object, vec![pod("p", "-", 0, change)], 60);
        observed.nodes.extend([node("n", json!({"zone": "a", "os": "l"}), taints)]);
        assert_eq!(places(&decide(&observed)), expected);
    };
    let taint = |key: &str, effect: &str| json!([{"key": key, "value": "", "effect": effect}]);
    check(taint("t", "NoSchedule"), json!(null), "p=a");
    check(taint("u", "NoSchedule"), json!(null), "");
    check(taint("u", "NoExecute"), json!(null), "");
    check(taint("u", "PreferNoSchedule"), json!(null), "p=a");
    let os =
        |value: &str| json!([{"matchExpressions": [{"key": "os", "operator": "In", "values": [value]}]}]);
    check(json!([]), os("l"), "p=a");
    check(json!([]), os("w"), "");
}

/// A pod with the mark of a spread that is gone is adopted; one whose subset is gone is not.
#[test]
fn marks_of_other_spreads_do_not_count() {
    let foreign = json!({"metadata": {"annotations": {MATCHED_WORKLOADSPREAD: r#"{"name":"old","subset":"b"}"#}}, "spec": {"nodeName": "node-1"}});
    let orphan = json!({"metadata": {"annotations": {MATCHED_WORKLOADSPREAD: r#"{"name":"w","subset":"gone"}"#}}, "spec": {"nodeName": "node-1"}});
    let mut observed =
        seen(&object("Job", "a b"), vec![pod("p1", "-", 0, foreign), pod("p2", "-", 0, orphan)], 60);
    nodes(&mut observed);
    assert_eq!(places(&decide(&observed)), "p1=a");
    assert_eq!(strays(&observed.spread, &observed.pods).count(), 1);
}

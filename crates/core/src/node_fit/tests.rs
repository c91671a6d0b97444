use proptest::prelude::*;
use serde_json::json;

use super::*;

fn node(labels: Value, spec: Value, allocatable: Value) -> Node {
    let mut amounts = json!({"cpu": "4", "memory": "8Gi", "ephemeral-storage": "50Gi", "pods": "110"});
    crate::patch_model::merge(&mut amounts, &allocatable);
    serde_json::from_value(json!({
        "metadata": {"name": "n1", "labels": labels},
        "spec": spec,
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "False"}]},
    }))
    .unwrap()
}

#[track_caller]
fn check(spec: Value, node: &Node, expected: Option<Misfit>) {
    let template = json!({"spec": spec});
    assert_eq!(Needs::of_template(&template).misfit(node), expected, "template {template}");
    // A pod that exists is looked at in the same way, but for resources other than cpu and memory.
    if expected != Some(Misfit::Size) {
        let pod: Pod = serde_json::from_value(template).unwrap();
        assert_eq!(Needs::of_pod(&pod).misfit(node), expected, "pod {spec}");
    }
}

fn required(terms: Value) -> Value {
    let required = json!({"nodeSelectorTerms": terms});
    json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})
}

/// JOBS-6, JOBS-28
#[test]
fn names_and_labels_choose_nodes() {
    let node = node(json!({"disk": "ssd", "cpus": "8"}), json!({}), json!({}));
    let misfit = Some(Misfit::Labels);
    check(json!({}), &node, None);
    check(json!({"nodeName": "n1"}), &node, None);
    check(json!({"nodeName": "n2"}), &node, Some(Misfit::OtherNode));
    check(json!({"nodeSelector": {"disk": "ssd"}}), &node, None);
    check(json!({"nodeSelector": {"disk": "hdd"}}), &node, misfit);
    check(json!({"nodeSelector": {"disk": "ssd", "gone": ""}}), &node, misfit);
    for (key, operator, values, expected) in [
        ("disk", "In", json!(["ssd", "nvme"]), None),
        ("disk", "In", json!([]), misfit),
        ("disk", "NotIn", json!(["ssd"]), misfit),
        ("gone", "NotIn", json!(["ssd"]), None),
        ("disk", "Exists", json!([]), None),
        ("gone", "Exists", json!([]), misfit),
        ("disk", "DoesNotExist", json!([]), misfit),
        ("gone", "DoesNotExist", json!([]), None),
        ("cpus", "Gt", json!(["4"]), None),
        ("cpus", "Gt", json!(["8"]), misfit),
        ("cpus", "Lt", json!(["9"]), None),
        ("disk", "Gt", json!(["4"]), misfit),
        ("disk", "Like", json!(["ssd"]), misfit),
    ] {
        let expression = json!({"key": key, "operator": operator, "values": values});
        check(required(json!([{"matchExpressions": [expression]}])), &node, expected);
    }
    let named = |name: &str| json!({"key": "metadata.name", "operator": "In", "values": [name]});
    check(required(json!([{"matchFields": [named("n1")]}])), &node, None);
    // One of several terms is enough, all of one term must hold.
    let zone = json!({"key": "zone", "operator": "Exists"});
    check(required(json!([{"matchFields": [named("n2")]}, {"matchFields": [named("n1")]}])), &node, None);
    check(required(json!([{"matchExpressions": [zone], "matchFields": [named("n1")]}])), &node, misfit);
    check(required(json!([{"matchFields": [{"key": "metadata.uid", "operator": "Exists"}]}])), &node, misfit);
    check(required(json!([{}])), &node, misfit);
    check(required(json!([])), &node, misfit);
}

/// JOBS-8, JOBS-9, JOBS-10
#[test]
fn taints_and_cordons_keep_pods_away_unless_they_are_tolerated() {
    let tainted = |effect: &str| {
        node(json!({}), json!({"taints": [{"key": "x", "value": "y", "effect": effect}]}), json!({}))
    };
    let tolerating = |toleration: Value| json!({"tolerations": [toleration]});
    let taint = Some(Misfit::Taint);
    check(json!({}), &tainted("NoSchedule"), taint);
    check(json!({}), &tainted("NoExecute"), taint);
    check(json!({}), &tainted("PreferNoSchedule"), None);
    for (toleration, expected) in [
        (json!({"key": "x", "value": "y"}), None),
        (json!({"key": "x", "operator": "Equal", "value": "y", "effect": "NoSchedule"}), None),
        (json!({"key": "x", "operator": "Exists"}), None),
        (json!({"operator": "Exists"}), None),
        (json!({"key": "x", "value": "z"}), taint),
        (json!({"key": "x"}), taint),
        (json!({"key": "z", "operator": "Exists"}), taint),
        (json!({"key": "x", "operator": "Exists", "effect": "NoExecute"}), taint),
        (json!({"key": "x", "operator": "Like", "value": "y"}), taint),
    ] {
        check(tolerating(toleration), &tainted("NoSchedule"), expected);
    }
    let cordoned = node(json!({}), json!({"unschedulable": true}), json!({}));
    check(json!({}), &cordoned, taint);
    check(tolerating(json!({"key": UNSCHEDULABLE, "operator": "Exists"})), &cordoned, None);
    let needs = Needs::of_template(&json!({}));
    assert!(needs.may_stay(&tainted("NoSchedule")) && !needs.may_stay(&tainted("NoExecute")));
    let more = Toleration { operator: Some("Exists".into()), ..Toleration::default() };
    assert!(needs.tolerating([more]).fits(&tainted("NoExecute")));
}

/// JOBS-11
#[test]
fn a_node_must_be_large_enough_for_the_pod_alone() {
    let node_of = |allocatable: Value| node(json!({}), json!({}), allocatable);
    let asks = |requests: Value| json!({"resources": {"requests": requests}});
    let size = Some(Misfit::Size);
    let one = |requests: Value| json!({"containers": [asks(requests)]});
    check(one(json!({"cpu": "4", "memory": "8Gi"})), &node_of(json!({})), None);
    check(one(json!({"cpu": "4001m"})), &node_of(json!({})), size);
    check(one(json!({"memory": "9Gi"})), &node_of(json!({})), size);
    check(one(json!({"ephemeral-storage": "51Gi"})), &node_of(json!({})), size);
    check(one(json!({"example.com/gpu": 1})), &node_of(json!({})), size);
    check(one(json!({"example.com/gpu": 1})), &node_of(json!({"example.com/gpu": "1"})), None);
    check(
        json!({"containers": [asks(json!({"cpu": 3})), asks(json!({"cpu": 2}))]}),
        &node_of(json!({})),
        size,
    );
    check(json!({"containers": [{"resources": {"limits": {"cpu": "5"}}}]}), &node_of(json!({})), size);
    check(json!({}), &node_of(json!({"pods": "0"})), size);
    // Init containers run one after the other, those that stay run beside the others.
    let init = |stays: bool, cpu: i64| {
        let mut container = asks(json!({"cpu": cpu}));
        if stays {
            container["restartPolicy"] = json!("Always");
        }
        container
    };
    let with = |inits: Value| json!({"containers": [asks(json!({"cpu": 1}))], "initContainers": inits});
    check(with(json!([init(false, 3), init(false, 4)])), &node_of(json!({})), None);
    check(with(json!([init(false, 5)])), &node_of(json!({})), size);
    check(with(json!([init(true, 2), init(true, 2)])), &node_of(json!({})), size);
    check(with(json!([init(true, 2), init(false, 3)])), &node_of(json!({})), size);
    check(with(json!([init(false, 3), init(true, 2)])), &node_of(json!({})), None);
    let overhead = json!({"containers": [asks(json!({"cpu": 4}))], "overhead": {"cpu": "1m"}});
    check(overhead, &node_of(json!({})), size);
    let pod_level = json!({"containers": [{}], "resources": {"requests": {"cpu": "5"}}});
    check(pod_level, &node_of(json!({})), size);
}

#[test]
fn a_pod_that_exists_asks_for_its_cpu_and_memory() {
    let needs = |cpu: &str| {
        let containers = json!([{"resources": {"requests": {"cpu": cpu}}}]);
        let pod = json!({"spec": {"nodeName": "n1", "containers": containers}});
        Needs::of_pod(&serde_json::from_value::<Pod>(pod).unwrap())
    };
    let node = node(json!({}), json!({}), json!({}));
    assert_eq!((needs("4").misfit(&node), needs("5").misfit(&node)), (None, Some(Misfit::Size)));
}

proptest! {
    /// A pod that is bound to a node by affinity, as one per node is, fits that node wherever its template fits it.
    #[test]
    fn a_pod_that_was_made_for_a_node_fits_it(
        selector in prop::option::of("[ab]"), taint in prop::option::of("[ab]"), tolerated in prop::option::of("[ab]"),
        unschedulable in any::<bool>(), cpu in 1..8u32,
    ) {
        let taints: Vec<Value> = taint.iter().map(|key| json!({"key": key, "effect": "NoSchedule"})).collect();
        let node = node(json!({"disk": "a"}), json!({"taints": taints, "unschedulable": unschedulable}), json!({}));
        let mut spec = json!({"containers": [{"resources": {"requests": {"cpu": cpu}}}]});
        if let Some(disk) = selector {
            spec["nodeSelector"] = json!({"disk": disk});
        }
        if let Some(key) = tolerated {
            spec["tolerations"] = json!([{"key": key, "operator": "Exists"}]);
        }
        let template = Needs::of_template(&json!({"spec": spec})).misfit(&node);
        let named = json!({"key": "metadata.name", "operator": "In", "values": ["n1"]});
        spec["affinity"] = required(json!([{"matchFields": [named]}]))["affinity"].clone();
        let pod: Pod = serde_json::from_value(json!({"spec": spec})).unwrap();
        prop_assert_eq!(pod.node().as_str(), "n1");
        prop_assert_eq!(Needs::of_pod(&pod).misfit(&node), template);
    }
}

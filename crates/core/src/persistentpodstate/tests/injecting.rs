//! Where new pods are sent.

use serde_json::{Value, json};

use super::kit::{records, state};
use crate::persistentpodstate::inject;

/// The pod `web-0` after an object with this spec and these records was asked.
fn injected(pod: Value, spec: Value, known: &str) -> Value {
    let mut object = json!({"metadata": {"name": "web-0"}, "spec": {}});
    json_patch::merge(&mut object, &pod);
    let change = json!({"spec": spec, "status": {"observedGeneration": 1, "podStates": records(known)}});
    inject(&mut object, &state(change));
    object
}

const MARK: &str = "kruise.io/injected-persistent-pod-state";

fn wish(weight: i32, key: &str, value: &str) -> Value {
    json!({"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}})
}

fn wishes(pod: &Value) -> &Value {
    &pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
}

/// PPS-2, PPS-4
#[test]
fn a_pod_returns_to_what_is_required_and_should_return_to_what_is_preferred() {
    let known = "web-0:n1:zone=a,host=n1";
    let pod = injected(json!({"spec": {"nodeSelector": {"os": "linux", "zone": "b"}}}), json!({}), known);
    assert_eq!(pod["spec"]["nodeSelector"], json!({"os": "linux", "zone": "a"}));
    assert_eq!(*wishes(&pod), json!([wish(100, "host", "n1")]));
    assert_eq!(pod["metadata"]["annotations"], json!({MARK: "web"}));

    let own = wish(1, "disk", "ssd");
    let affinity = json!({"podAffinity": {}, "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []},
        "preferredDuringSchedulingIgnoredDuringExecution": [own]}});
    let pod = injected(json!({"spec": {"affinity": affinity}}), json!({}), known);
    assert_eq!(*wishes(&pod), json!([own, wish(100, "host", "n1")]));
    assert!(pod["spec"]["affinity"]["podAffinity"].is_object());
}

/// PPS-3
#[test]
fn a_pod_without_a_record_stays_as_it_is() {
    let untouched = json!({"metadata": {"name": "web-0"}, "spec": {}});
    for known in ["", "web-1:n1:zone=a,host=n1", "web-0:n1", "web-0:n1:rack=r"] {
        assert_eq!(injected(json!({}), json!({}), known), untouched, "{known}");
    }
    assert!(injected(json!({"metadata": {"name": null}}), json!({}), "web-0:n1:zone=a")["spec"] == json!({}));
}

/// PPS-14
#[test]
fn only_known_labels_are_used() {
    let spec = json!({"preferredPersistentTopology": [
        {"weight": 5, "preference": {"keys": ["rack", "missing"]}},
        {"weight": 6, "preference": {"keys": ["host", "missing", "host"]}},
    ]});
    let pod = injected(json!({}), spec, "web-0:n1:host=n1");
    assert_eq!(pod["spec"].get("nodeSelector"), None);
    assert_eq!(*wishes(&pod), json!([wish(6, "host", "n1")]));
    let spec =
        json!({"requiredPersistentTopology": {"keys": ["missing"]}, "preferredPersistentTopology": null});
    assert_eq!(injected(json!({}), spec, "web-0:n1:zone=a")["metadata"].get("annotations"), None);
}

/// The original makes a pod that the API server refuses.
#[test]
fn a_weight_that_no_pod_may_have_never_reaches_a_pod() {
    let spec = |weight: i32| {
        json!({"requiredPersistentTopology": null,
            "preferredPersistentTopology": [{"weight": weight, "preference": {"keys": ["host"]}}]})
    };
    for (weight, expected) in [(0, None), (-1, None), (1, Some(1)), (100, Some(100)), (101, Some(100))] {
        let pod = injected(json!({}), spec(weight), "web-0:n1:host=n1");
        let expected = expected.map_or(Value::Null, |weight| json!([wish(weight, "host", "n1")]));
        assert_eq!(*wishes(&pod), expected, "{weight}");
        assert_eq!(pod["metadata"].get("annotations").is_some(), !expected.is_null());
    }
}

#[test]
fn what_is_no_label_never_reaches_a_pod() {
    let status = json!({"observedGeneration": 1, "podStates": {"web-0": {"nodeTopologyLabels": {
        "zone": "not a value!", "host": "n1", "not a key!": "x"}}}});
    let spec = json!({"requiredPersistentTopology": {"keys": ["zone", "not a key!"]}});
    let mut pod = json!({"metadata": {"name": "web-0"}});
    inject(&mut pod, &state(json!({"spec": spec, "status": status})));
    assert_eq!(pod["spec"].get("nodeSelector"), None);
    assert_eq!(*wishes(&pod), json!([wish(100, "host", "n1")]));
}

#[test]
fn fields_of_another_type_are_left_to_the_api_server() {
    let odd = json!({"spec": {"nodeSelector": "x", "affinity": []}});
    let pod = injected(odd.clone(), json!({}), "web-0:n1:zone=a,host=n1");
    assert_eq!(pod["spec"], odd["spec"]);
    let nulls = json!({"metadata": {"annotations": {}}, "spec": {"affinity": {"nodeAffinity": {}}}});
    let pod = injected(nulls, json!({}), "web-0:n1:zone=a,host=n1");
    assert_eq!(*wishes(&pod), json!([wish(100, "host", "n1")]));
}

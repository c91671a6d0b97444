use serde_json::json;

use super::*;

fn recorded() -> Vec<Value> {
    let lines = include_str!("../../../tests/recorded/sidecarset-sets.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// SIDECARSET-5: 43 sets, recorded from the original.
#[test]
fn hashes_equal_those_of_the_original() {
    let recorded = recorded();
    assert_eq!(recorded.len(), 43);
    for line in recorded {
        let hashes = of_spec(&line["stored"]);
        assert_eq!(line["hash"], hashes.full, "{}: {}", line["case"], hashed(&line["stored"], Images::Kept));
        assert_eq!(line["withoutImage"], hashes.without_image, "{}", line["case"]);
        // Reading the set into its type loses nothing that is hashed.
        let spec: kruise_api::sidecarset::v1beta1::Spec =
            serde_json::from_value(line["stored"].clone()).unwrap();
        let set = SidecarSet { spec, ..SidecarSet::default() };
        assert_eq!(of_set(&set), hashes, "{}", line["case"]);
    }
}

fn spec(native: bool) -> Value {
    let container = json!({"name": "container1", "image": "test-image"});
    let mut init = container.clone();
    init["restartPolicy"] = "Always".into();
    let init = if native { json!([init]) } else { json!([{"name": "plain", "image": "x"}]) };
    json!({"containers": [container], "initContainers": init})
}

/// SIDECARSET-4, SIDECARSET-13
#[test]
fn the_vectors_of_the_original_come_out() {
    let last = json!({"containers": [{"name": "sidecar1", "image": "busybox:1.36", "command": ["sleep", "999d"],
        "resources": {}, "volumeMounts": [{"name": "log-volume", "mountPath": "/var/log"}],
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent", "podInjectPolicy": "BeforeAppContainer",
        "upgradeStrategy": {"upgradeType": "ColdUpgrade"}, "shareVolumePolicy": {"type": "disabled"}}]});
    let full = of_spec(&last).full;
    assert_eq!(full, "54fdxz4f7wx8z48w7z979b6ccfc66bw982bxcw7dv642dwz7z7z9ffx4xc9752c9");
    let plain = of_spec(&spec(false));
    assert_eq!(plain.full, "w26c4x8fz245642fdv499b464248f974xddx4x55z5dw55bc6x66464fxz77dc78");
    assert_eq!(plain.without_image, "8wzddb4dvv9c6x8zdc77z4z75987424f457dfv6724ddw6zbdx467wz5x24fc759");
    let native = of_spec(&spec(true));
    assert_eq!(native.full, "4xwx4d4844vd4v9x79wb4xbxf4xb29475cc4446v8cz2c2f2f5c5bw448vd42z8w");
    assert_eq!(native.without_image, "5725fw8bwbx249bw57v5892c847dzf48bww9zb7c86xb95264fdz26654847b2c8");
}

#[track_caller]
fn check(container: Value, expected: &str) {
    let text = hashed(&json!({"containers": [container]}), Images::Kept);
    let inner = text.strip_prefix(r#"{"containers":[{"name":"a","#).and_then(|text| text.strip_suffix("}]}"));
    assert_eq!(inner, Some(expected));
}

#[test]
fn what_is_empty_is_left_out_unless_it_is_behind_a_pointer() {
    let usual = r#""resources":{},"upgradeStrategy":{},"shareVolumePolicy":{}"#;
    check(json!({"name": "a", "env": [], "tty": false, "stdin": null, "image": ""}), usual);
    check(
        json!({"name": "a", "lifecycle": {}, "securityContext": {"runAsUser": 0, "privileged": false}}),
        r#""resources":{},"lifecycle":{},"securityContext":{"privileged":false,"runAsUser":0},"upgradeStrategy":{},"shareVolumePolicy":{}"#,
    );
    check(
        json!({"name": "a", "resourcesPolicy": {"targetContainersMode": "sum", "resourcesExpr": {"limits": {}}}}),
        &format!(
            r#"{usual},"resourcesPolicy":{{"targetContainersMode":"sum","resourcesExpr":{{"limits":{{}}}}}}"#
        ),
    );
    assert_eq!(hashed(&json!({"containers": []}), Images::Kept), r#"{"containers":null}"#);
}

/// The original drops such members; they count here, behind those that it knows.
#[test]
fn members_newer_than_this_build_come_last_and_sorted() {
    check(
        json!({"name": "a", "zeta": {"b": 1, "a": "<"}, "restartPolicyRules": [{"action": "Restart"}],
            "lifecycle": {"stopSignal": "SIGUSR1"}}),
        concat!(
            r#""resources":{},"lifecycle":{"stopSignal":"SIGUSR1"},"upgradeStrategy":{},"shareVolumePolicy":{},"#,
            r#""restartPolicyRules":[{"action":"Restart"}],"zeta":{"a":"\u003c","b":1}"#
        ),
    );
}

#[test]
fn spelling_does_not_matter_and_meaning_does() {
    let cpu = |amount: &str| json!({"containers": [{"name": "a", "env": [], "resources": {"limits": {"cpu": amount}}}]});
    assert!(is_same(&cpu("1000m"), &cpu("1")));
    assert!(!is_same(&cpu("1000m"), &cpu("2")));
    assert!(is_same(&spec(true), &spec(true)));
}

#[test]
fn a_set_is_known_by_the_hashes_that_it_carries() {
    let set = |annotations: Value| -> SidecarSet {
        serde_json::from_value(json!({"metadata": {"annotations": annotations}, "spec": spec(false)}))
            .unwrap()
    };
    let computed = of_spec(&spec(false));
    assert_eq!(of_set(&set(json!({}))), computed);
    let carried = of_set(&set(json!({SIDECARSET_HASH: "old", SIDECARSET_HASH_WITHOUT_IMAGE: ""})));
    assert_eq!(carried, Hashes { full: "old".into(), without_image: computed.without_image });
}

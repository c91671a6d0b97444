use serde_json::json;

use super::*;

fn set(version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("apps.kruise.io/{version}"), "kind": "SidecarSet", "metadata": {"name": "s"},
        "spec": spec})
}

/// SIDECARSET-4, SIDECARSET-5: what was sent to the original becomes what it stored, up to how quantities are spelled.
#[test]
fn a_set_gets_what_the_original_gives_it() {
    let lines = include_str!("../../../tests/recorded/sidecarset-sets.jsonl").lines();
    let mut count = 0;
    for line in lines.map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let Some(sent) = line.get("sent") else { continue };
        count += 1;
        for version in ["v1alpha1", "v1beta1"] {
            let mut object = set(version, sent.clone());
            apply(&mut object, None);
            assert_eq!(object["metadata"]["annotations"][SIDECARSET_HASH], line["hash"], "{}", line["case"]);
            let held = |spec| crate::sidecarset::revision::data(spec);
            assert_eq!(held(&object["spec"]), held(&line["stored"]), "{}", line["case"]);
            let strategies = ["updateStrategy", "injectionStrategy", "revisionHistoryLimit"];
            for member in strategies {
                assert_eq!(object["spec"][member], line["stored"][member], "{}", line["case"]);
            }
        }
    }
    assert!(count > 15, "{count}");
}

#[test]
fn giving_defaults_twice_changes_nothing_more() {
    let mut object = set("v1beta1", json!({"containers": [{"name": "a", "image": "a"}]}));
    apply(&mut object, None);
    let mut again = object.clone();
    apply(&mut again, Some(&object));
    assert_eq!(again, object);
}

#[test]
fn hashes_that_a_writer_made_up_are_replaced() {
    let mut object = set("v1beta1", json!({"containers": [{"name": "a", "image": "a"}]}));
    object["metadata"]["annotations"] = json!({SIDECARSET_HASH: "made-up"});
    apply(&mut object, None);
    assert_eq!(object["metadata"]["annotations"][SIDECARSET_HASH].as_str().map(str::len), Some(64));
}

/// SIDECARSET-5: pods follow the hash that is there, whoever made it.
#[test]
fn a_set_whose_containers_stay_keeps_its_hashes() {
    let mut stored = set("v1beta1", json!({"containers": [{"name": "a", "image": "a"}]}));
    apply(&mut stored, None);
    stored["metadata"]["annotations"][SIDECARSET_HASH] = "of-another-program".into();
    let mut paused = stored.clone();
    paused["spec"]["updateStrategy"]["paused"] = true.into();
    paused["metadata"]["annotations"] = json!({});
    apply(&mut paused, Some(&stored));
    assert_eq!(paused["metadata"]["annotations"], stored["metadata"]["annotations"]);
    let mut changed = stored.clone();
    changed["spec"]["containers"][0]["image"] = "b".into();
    apply(&mut changed, Some(&stored));
    assert_ne!(changed["metadata"]["annotations"][SIDECARSET_HASH], "of-another-program");
}

#[test]
fn members_newer_than_this_build_survive() {
    let container = json!({"name": "a", "image": "a:1", "novelty": {"x": [1]}, "startupProbe": {"exec": {"command": ["x"]}}});
    let mut object =
        set("v1beta1", json!({"containers": [container], "volumes": [{"name": "v", "novel": {"y": 1}}]}));
    apply(&mut object, None);
    assert_eq!(object["spec"]["containers"][0]["novelty"], json!({"x": [1]}));
    assert_eq!(object["spec"]["containers"][0]["startupProbe"], json!({"exec": {"command": ["x"]}}));
    assert_eq!(object["spec"]["volumes"][0], json!({"name": "v", "novel": {"y": 1}}));
}

#[test]
fn values_of_another_type_are_told_as_a_server_tells_them() {
    let broken =
        set("v1beta1", json!({"containers": [{"name": "a", "resources": {"limits": {"cpu": "abc"}}}]}));
    let text = readable(&broken).unwrap_err().to_string();
    assert_eq!(
        text,
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
    assert_eq!(readable(&set("v1beta1", json!({"containers": [{"name": "a"}]}))), Ok(()));
}

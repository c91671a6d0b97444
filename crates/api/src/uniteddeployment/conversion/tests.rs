use super::*;
use crate::convert::convert;

fn with_clone_set(version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("apps.kruise.io/{version}"), "kind": "UnitedDeployment", "metadata": {"name": "a"},
        "spec": {"template": {"cloneSetTemplate": {"spec": spec}}}})
}

fn clone_set(object: &Value) -> &Value {
    &object["spec"]["template"]["cloneSetTemplate"]["spec"]
}

#[track_caller]
fn check_up(old: Value, new: Value) {
    let up = convert(with_clone_set("v1alpha1", old), "apps.kruise.io/v1beta1").unwrap();
    assert_eq!(clone_set(&up), &new);
}

#[test]
fn a_clone_set_in_the_older_shape_is_brought_into_the_newer_one() {
    check_up(
        json!({"updateStrategy": {"type": "InPlaceIfPossible", "maxUnavailable": "20%", "paused": true},
            "scaleStrategy": {"disablePVCReuse": true, "maxUnavailable": 2}}),
        json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                "podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "20%", "paused": true}},
            "scaleStrategy": {"enablePVCReuse": false, "maxUnavailable": 2}}),
    );
}

#[test]
fn the_older_shape_reuses_claims_although_the_api_server_fills_in_that_it_does_not() {
    check_up(
        json!({"updateStrategy": {"maxSurge": 1}, "scaleStrategy": {"enablePVCReuse": false}}),
        json!({"updateStrategy": {"type": "RollingUpdate",
                "rollingUpdate": {"podUpdatePolicy": "ReCreate", "maxSurge": 1}},
            "scaleStrategy": {"enablePVCReuse": true}}),
    );
}

#[test]
fn a_clone_set_in_the_newer_shape_stays_as_it_is() {
    for spec in [
        json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "scaleStrategy": {"enablePVCReuse": false}}),
        json!({"updateStrategy": {}, "scaleStrategy": {"enablePVCReuse": false}}),
        json!({"updateStrategy": {"type": "OnDelete"}}),
        json!({}),
    ] {
        check_up(spec.clone(), spec);
    }
}

#[test]
fn of_two_shapes_at_once_the_newer_one_wins() {
    check_up(
        json!({"updateStrategy": {"type": "RollingUpdate", "maxUnavailable": 1, "partition": 5,
            "rollingUpdate": {"maxUnavailable": 2, "podUpdatePolicy": "InPlaceOnly"}}}),
        json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                "maxUnavailable": 2, "podUpdatePolicy": "InPlaceOnly", "partition": 5}},
            "scaleStrategy": {"enablePVCReuse": true}}),
    );
}

#[test]
fn v1alpha1_shows_the_older_shape_without_further_annotations() {
    let hub = with_clone_set(
        "v1beta1",
        json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                "podUpdatePolicy": "InPlaceOnly", "maxUnavailable": 1}},
            "scaleStrategy": {"enablePVCReuse": false}}),
    );
    let down = convert(hub.clone(), "apps.kruise.io/v1alpha1").unwrap();
    assert_eq!(
        clone_set(&down),
        &json!({"updateStrategy": {"type": "InPlaceOnly", "maxUnavailable": 1},
            "scaleStrategy": {"disablePVCReuse": true, "enablePVCReuse": false}})
    );
    assert_eq!(down["metadata"], json!({"name": "a"}));
    assert_eq!(convert(down, "apps.kruise.io/v1beta1").unwrap(), hub);
}

/// The API server fills in the schema's default of `enablePVCReuse` whenever a v1alpha1 client writes.
#[test]
fn reuse_of_claims_survives_a_write_in_the_older_version() {
    for reuse in [true, false] {
        let hub = with_clone_set(
            "v1beta1",
            json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "ReCreate"}},
                "scaleStrategy": {"enablePVCReuse": reuse}}),
        );
        let mut down = convert(hub.clone(), "apps.kruise.io/v1alpha1").unwrap();
        crate::json::default_at(
            &mut down,
            &["spec", "template", "cloneSetTemplate", "spec", "scaleStrategy", "enablePVCReuse"],
            false,
        );
        assert_eq!(convert(down, "apps.kruise.io/v1beta1").unwrap(), hub);
    }
}

#[test]
fn numbers_of_the_subsets_move_into_their_entries_and_back() {
    let old = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "UnitedDeployment", "metadata": {"name": "a"},
    "spec": {}, "status": {
        "replicas": 3, "updatedReplicas": 3, "currentRevision": "a-1",
        "subsetReplicas": {"x": 2, "y": 1, "z": 0},
        "subsetStatuses": [
            {"name": "x", "readyReplicas": 2, "replicas": 2}, {"name": "y", "replicas": 1, "partition": 1},
            {"name": "z"},
        ],
        "updateStatus": {"updatedRevision": "a-2", "currentPartitions": {"x": 0, "y": 1, "z": 0}},
    }});
    let up = convert(old.clone(), "apps.kruise.io/v1beta1").unwrap();
    assert_eq!(
        up["status"],
        json!({
            "replicas": 3, "updatedReplicas": 3, "currentRevision": "a-1", "updatedRevision": "a-2",
            "subsetStatuses": [
                {"name": "x", "readyReplicas": 2, "replicas": 2}, {"name": "y", "replicas": 1, "partition": 1},
                {"name": "z"},
            ],
        })
    );
    assert_eq!(convert(up, "apps.kruise.io/v1alpha1").unwrap(), old);
}

#[test]
fn subsets_known_only_by_their_numbers_get_an_entry() {
    let mut object = json!({"status": {"subsetReplicas": {"x": 2, "y": 0},
        "updateStatus": {"currentPartitions": {"x": 1}}}});
    up(&mut object).unwrap();
    assert_eq!(
        object["status"],
        json!({"subsetStatuses": [{"name": "x", "replicas": 2, "partition": 1}, {"name": "y"}]})
    );
}

#[test]
fn a_status_without_subsets_and_revision_has_no_update_status() {
    let mut object = json!({"status": {"replicas": 0}});
    down(&mut object).unwrap();
    assert_eq!(object, json!({"status": {"replicas": 0}}));
}

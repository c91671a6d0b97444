//! Objects that annotations ask for.

use kruise_api::persistentpodstate::v1beta1::PersistentPodState;
use serde_json::{Value, json};

use super::kit::{set, state};
use crate::{
    effect::{Effect, Patch},
    object::Resource,
    persistentpodstate::{Generated, PERSISTENT_POD_STATE, Set, generate},
    waiting::Reason,
};

const AUTO: &str = "kruise.io/auto-generate-persistent-pod-state";
const REQUIRED: &str = "kruise.io/required-persistent-topology";
const PREFERRED: &str = "kruise.io/preferred-persistent-topology";
const NOTED: &str = "kruise.io/persistent-pod-annotations";

fn asking() -> Set {
    set("set-uid", json!({AUTO: "true", REQUIRED: "zone", PREFERRED: " host ,, rack", NOTED: "ip"}))
}

/// An object that the set controls, as it would be generated now.
fn own(change: Value) -> PersistentPodState {
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "set-uid", "controller": true});
    let mut object = json!({"metadata": {"ownerReferences": [owner]}, "spec": {
        "persistentPodAnnotations": [{"key": "ip"}],
        "preferredPersistentTopology": [{"weight": 100, "preference": {"keys": ["host", "rack"]}}]}});
    json_patch::merge(&mut object, &change);
    state(object)
}

/// PPS-1, PPS-10: keys in order, blanks and empty items left out.
#[test]
fn annotations_make_an_object() {
    let Generated { effect: Some(Effect::Create { resource, namespace, object }), .. } =
        generate(None, &[asking()])
    else {
        panic!("nothing is created")
    };
    assert_eq!((resource, namespace.as_str()), (PERSISTENT_POD_STATE, "shop"));
    assert_eq!(
        object["metadata"],
        json!({"name": "web", "namespace": "shop", "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "set-uid", "controller": true}]})
    );
    assert_eq!(
        object["spec"],
        json!({
            "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"},
            "persistentPodAnnotations": [{"key": "ip"}],
            "requiredPersistentTopology": {"keys": ["zone"]},
            "preferredPersistentTopology": [{"weight": 100, "preference": {"keys": ["host", "rack"]}}],
        })
    );
}

#[test]
fn an_object_as_it_should_be_is_left_alone() {
    assert_eq!(generate(Some(&own(json!({}))), &[asking()]), Generated::default());
    // The reference may have the version of an older release, and nobody may change it.
    let older = own(json!({"spec": {"targetRef": {"apiVersion": "apps/v1beta2"}}}));
    assert_eq!(generate(Some(&older), &[asking()]), Generated::default());
    let ends = own(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert_eq!(generate(Some(&ends), &[asking()]), Generated::default());
}

/// PPS-10: a change of the list of annotations alone counts too.
#[test]
fn a_changed_annotation_changes_the_object() {
    let changed = set("set-uid", json!({AUTO: "true", REQUIRED: "zone, rack", NOTED: "other"}));
    let Generated {
        effect: Some(Effect::Patch { target, patch: Patch::Merge(patch), subresource: None }),
        ..
    } = generate(Some(&own(json!({}))), &[changed])
    else {
        panic!("nothing is changed")
    };
    assert_eq!((target.uid.as_deref(), target.resource_version.as_deref()), (Some("pps-uid"), Some("7")));
    let spec = json!({"persistentPodAnnotations": [{"key": "other"}], "preferredPersistentTopology": null,
        "requiredPersistentTopology": {"keys": ["zone", "rack"]}});
    assert_eq!(patch, json!({"spec": spec}));
}

/// PPS-9
#[test]
fn only_what_the_workload_controls_is_deleted() {
    let deletes = |found: &Generated| matches!(found.effect, Some(Effect::Delete { .. }));
    for annotations in [json!({}), json!({AUTO: "yes", REQUIRED: "zone"}), json!({REQUIRED: "zone"})] {
        let off = set("set-uid", annotations);
        assert!(deletes(&generate(Some(&own(json!({}))), std::slice::from_ref(&off))));
        assert_eq!(generate(Some(&state(json!({}))), std::slice::from_ref(&off)), Generated::default());
        assert_eq!(generate(None, &[off]), Generated::default());
    }
    assert_eq!(generate(Some(&own(json!({}))), &[]), Generated::default());
}

/// PPS-9: one event for each state of both.
#[test]
fn an_object_of_somebody_else_is_left_alone_and_reported() {
    let found = generate(Some(&state(json!({}))), &[asking()]);
    assert_eq!((found.effect, found.conflicts.len()), (None, 1));
    let conflict = &found.conflicts[0];
    assert_eq!(
        conflict.event.message,
        "PersistentPodState shop/web exists and is not controlled by this StatefulSet; it is left alone. Delete or \
         rename it, or remove the annotation kruise.io/auto-generate-persistent-pod-state"
    );
    assert_eq!(conflict.event.reason.as_str(), "PersistentPodStateConflict");
    assert_eq!(conflict.event.regarding.uid.as_str(), "set-uid");
    let nobody = "persistentpodstates web exists and belongs to nobody; delete or rename it";
    assert_eq!(conflict.wait, (Reason::NameTaken, nobody.to_owned()));
    let mark = |change: Value, set: Set| generate(Some(&state(change)), &[set]).conflicts[0].mark.clone();
    assert_eq!(mark(json!({"status": {"observedGeneration": 1}}), asking()), conflict.mark);
    assert_ne!(mark(json!({"metadata": {"generation": 4}}), asking()), conflict.mark);
    assert_ne!(mark(json!({}), set("set-uid", json!({AUTO: "true", REQUIRED: "x"}))), conflict.mark);
    let other = json!([{"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web", "uid": "x", "controller": true}]);
    let found = generate(Some(&state(json!({"metadata": {"ownerReferences": other}}))), &[asking()]);
    let owned = "persistentpodstates web exists and belongs to StatefulSet web of apps.kruise.io; delete or rename it";
    assert_eq!(found.conflicts[0].wait.1, owned);
}

/// A workload that was created again soon after its deletion still finds the object of the one before, until the garbage collector
/// has deleted it.
#[test]
fn an_object_that_a_namesake_left_behind_is_no_conflict() {
    let again = set("another-uid", json!({AUTO: "true", REQUIRED: "zone"}));
    assert_eq!(generate(Some(&own(json!({}))), &[again]), Generated::default());
}

#[test]
fn a_workload_without_topology_changes_nothing() {
    let hollow = set("set-uid", json!({AUTO: "true", REQUIRED: " , ", NOTED: "ip"}));
    for known in [None, Some(own(json!({}))), Some(state(json!({})))] {
        let found = generate(known.as_ref(), std::slice::from_ref(&hollow));
        assert_eq!((&found.effect, found.conflicts.len(), found.incomplete.len()), (&None, 0, 1));
    }
}

/// Two workloads of one name: the first gets the object, the other one hears of it.
#[test]
fn of_two_namesakes_one_gets_the_object() {
    let resource = Resource { group: "apps.kruise.io", ..asking().resource };
    let other = Set { resource, ..set("other-uid", json!({AUTO: "true", REQUIRED: "zone"})) };
    let found = generate(None, &[asking(), other.clone()]);
    assert!(matches!(found.effect, Some(Effect::Create { .. })) && found.conflicts.is_empty());
    let found = generate(Some(&own(json!({}))), &[other.clone(), asking()]);
    assert_eq!((found.effect, found.conflicts.len()), (None, 1));
    let off = set("set-uid", json!({}));
    let found = generate(Some(&own(json!({}))), &[other, off]);
    assert!(matches!(found.effect, Some(Effect::Delete { .. })) && found.conflicts.is_empty());
}

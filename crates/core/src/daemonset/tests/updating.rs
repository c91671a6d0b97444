//! Which nodes are updated, in which order, and how.

use serde_json::{Value, json};

use super::kit::World;
use crate::daemonset::Purpose;

fn rolling(rolling: Value) -> Value {
    json!({"updateStrategy": {"rollingUpdate": rolling}})
}

/// DAEMONSET-13, DAEMONSET-14
#[test]
fn no_more_nodes_are_down_than_allowed() {
    for (max_unavailable, nodes, most) in [(json!(1), 4, 1), (json!("30%"), 4, 2), (json!("100%"), 4, 4)] {
        let mut world = World::resting(nodes, rolling(json!({"maxUnavailable": max_unavailable})));
        world.image("app:v2");
        let mut peak = 0;
        world.rest_while(&mut |world| peak = peak.max(world.down()));
        assert_eq!(peak, most, "{max_unavailable}");
        assert_eq!(world.number("updatedNumberScheduled"), 4);
    }
}

/// DAEMONSET-15
#[test]
fn a_pod_that_serves_nobody_is_replaced_beyond_the_limit() {
    let mut world = World::resting(4, json!({}));
    world.image("app:v2");
    world.broken.insert("app:v2".to_owned());
    world.passes(4);
    assert_eq!(world.images(), "n1=v1 n2=v1 n3=v1 n4=v2");
    world.bad_nodes.insert("n2".to_owned());
    world.passes(4);
    assert_eq!(world.images(), "n1=v1 n2=v2 n3=v1 n4=v2");
}

/// A policy that refuses one deletion, or one new pod, costs one node its update, not all of them.
#[test]
fn a_pod_that_cannot_be_replaced_does_not_hold_up_the_others() {
    let mut world = World::resting(4, json!({}));
    world.no_delete.insert("n4".to_owned());
    world.image("app:v2");
    world.passes(20);
    assert_eq!(world.images(), "n1=v2 n2=v2 n3=v2 n4=v1");
    world.no_delete.clear();
    world.rest();
    assert_eq!(world.images(), "n1=v2 n2=v2 n3=v2 n4=v2");

    let mut world = World::resting(4, rolling(json!({"maxUnavailable": 0, "maxSurge": 1})));
    world.no_create.insert("n4".to_owned());
    world.image("app:v2");
    world.passes(20);
    assert_eq!(world.images(), "n1=v2 n2=v2 n3=v2 n4=v1");
    world.bad_nodes.insert("n4".to_owned());
    world.image("app:v3");
    world.passes(20);
    assert_eq!(world.images(), "n1=v3 n2=v3 n3=v3 n4=v1", "also where the old pod serves nobody");

    let mut world = World::resting(3, json!({"burstReplicas": 1}));
    world.no_delete.insert("n1".to_owned());
    world.taint("n1", "k", "NoExecute");
    world.taint("n2", "k", "NoExecute");
    world.passes(4);
    assert_eq!(world.images(), "n1=v1 n3=v1");
}

/// A budget that protects some pods of a set costs these their update, not all pods.
#[test]
fn a_pod_that_a_budget_does_not_let_go_does_not_hold_up_the_others() {
    let mut world = World::resting(4, rolling(json!({"rollingUpdateType": "InPlaceIfPossible"})));
    world.protected.insert("n4".to_owned());
    world.image("app:v2");
    world.passes(20);
    assert_eq!((world.images().as_str(), world.down()), ("n1=v2 n2=v2 n3=v2 n4=v1", 0));
    world.protected.clear();
    world.rest();
    assert_eq!(world.images(), "n1=v2 n2=v2 n3=v2 n4=v2");
}

/// DAEMONSET-16
#[test]
fn the_next_node_waits_for_min_ready_seconds() {
    let mut world = World::resting(2, json!({"minReadySeconds": 20}));
    world.image("app:v2");
    let mut changed = Vec::new();
    for second in 0..60 {
        let plan = world.pass();
        if plan.steps.iter().any(|step| matches!(step.purpose, Purpose::DeletePod(_))) {
            changed.push(second);
        }
        world.tick();
    }
    assert_eq!(changed.len(), 2);
    assert!(changed[1] - changed[0] >= 20, "{changed:?}");
}

/// DAEMONSET-17
#[test]
fn a_partition_keeps_the_lowest_names() {
    let mut world = World::resting(4, rolling(json!({"partition": 3})));
    world.image("app:v2");
    world.rest();
    assert_eq!(world.images(), "n1=v1 n2=v1 n3=v1 n4=v2");
    world.rolling(json!({"partition": 1}));
    world.rest();
    assert_eq!(world.images(), "n1=v1 n2=v2 n3=v2 n4=v2");
    world.rolling(json!({"partition": 4}));
    world.rest();
    assert_eq!(world.images(), "n1=v1 n2=v2 n3=v2 n4=v2");
    let mut world = World::resting(5, rolling(json!({"partition": "50%"})));
    world.image("app:v2");
    world.rest();
    assert_eq!(world.images(), "n1=v1 n2=v1 n3=v2 n4=v2 n5=v2");
}

/// DAEMONSET-18
#[test]
fn a_new_node_gets_the_newest_revision_whatever_the_partition_is() {
    let mut world = World::resting(2, rolling(json!({"partition": 9})));
    world.image("app:v2");
    world.rest();
    world.add_node("n3");
    world.rest();
    assert_eq!(world.images(), "n1=v1 n2=v1 n3=v2");
}

/// DAEMONSET-19
#[test]
fn a_node_selector_limits_the_update() {
    let selector = json!({"matchLabels": {"canary": "true"}});
    let mut world = World::resting(3, rolling(json!({"selector": selector})));
    world.label_node("n2", "canary", "true");
    world.image("app:v2");
    world.rest();
    assert_eq!(world.images(), "n1=v1 n2=v2 n3=v1");
    world.label_node("n1", "canary", "true");
    world.label_node("n2", "canary", "no");
    world.rest();
    assert_eq!(world.images(), "n1=v2 n2=v2 n3=v1");
    world.rolling(json!({"selector": {"matchLabels": null}}));
    world.rest();
    assert_eq!(world.images(), "n1=v2 n2=v2 n3=v2", "an empty selector matches every node");
}

/// DAEMONSET-19: the table of the specification.
#[test]
fn partition_and_selector_together_choose_nodes() {
    let check = |nodes: &str, partition: i64, selected: &str, expected: &str| {
        let count = nodes.split_whitespace().count();
        let mut world = World::resting(count, rolling(json!({"maxUnavailable": 9, "partition": 9})));
        let new: Vec<&str> = nodes.split_whitespace().filter_map(|node| node.strip_suffix(":new")).collect();
        let ending: Vec<&str> =
            nodes.split_whitespace().filter_map(|node| node.strip_suffix(":ending")).collect();
        world.image("app:v2");
        world.pass();
        for node in &new {
            world.delete_pod(node);
        }
        world.rest();
        for node in &ending {
            let name = world.pod_on(node);
            let now = world.now.to_string();
            world.pods.get_mut(&name).unwrap()["metadata"]["deletionTimestamp"] = now.into();
        }
        for node in selected.split_whitespace() {
            world.label_node(node, "canary", "true");
        }
        let selector = json!({"matchLabels": {"canary": "true"}});
        let selector = if selected.is_empty() { Value::Null } else { selector };
        world.rolling(json!({"maxUnavailable": 9, "partition": partition, "selector": selector}));
        let seen = world.seen();
        let desired = super::super::Desired::of(&seen.set, &seen.gates, true).unwrap();
        let view = super::super::view::View::new(&seen, &desired);
        let rolling = desired.rolling.as_ref().unwrap();
        let chosen = super::super::rollout::choose(&view, rolling, &Default::default());
        let names: Vec<&str> = chosen.iter().map(|place| place.name).collect();
        assert_eq!(names.join(" "), expected, "{nodes} {partition} {selected}");
    };
    check("n1:old n2:new n3:old", 0, "", "n2 n3 n1");
    check("n1:new n2:old n3:old", 1, "", "n1 n3");
    check("n1:old n2:new n3:old n4:old", 1, "n3", "n2 n3");
    check("n1:old n2:new n3:old n4:old", 2, "n1 n3 n4", "n2 n4");
    check("n1:old n2:new n3:ending n4:old", 0, "n1 n3", "n2 n3 n1");
}

/// DAEMONSET-20
#[test]
fn a_paused_update_waits_and_new_nodes_get_pods() {
    let mut world = World::resting(3, json!({}));
    world.image("app:v2");
    world.passes(3);
    world.rolling(json!({"paused": true}));
    world.rest();
    let images = world.images();
    assert!(images.contains("v1") && images.contains("v2"), "{images}");
    world.add_node("n4");
    world.rest();
    assert_eq!(world.images(), format!("{images} n4=v2"));
    world.rolling(json!({"paused": false}));
    world.rest();
    assert_eq!(world.images(), "n1=v2 n2=v2 n3=v2 n4=v2");
}

/// DAEMONSET-21
#[test]
fn on_delete_waits_for_somebody_to_delete_pods() {
    let mut world = World::resting(2, json!({"updateStrategy": {"type": "OnDelete"}}));
    world.image("app:v2");
    world.rest();
    assert_eq!(world.images(), "n1=v1 n2=v1");
    world.delete_pod("n1");
    world.rest();
    assert_eq!(world.images(), "n1=v2 n2=v1");
}

/// DAEMONSET-22, DAEMONSET-24
#[test]
fn a_template_that_comes_back_uses_its_old_revision() {
    let mut world = World::resting(4, json!({}));
    let first = world.set["status"]["updateRevision"].clone();
    world.image("app:v2");
    world.passes(3);
    world.image("app:v1");
    world.rest();
    assert_eq!(world.images(), "n1=v1 n2=v1 n3=v1 n4=v1");
    assert_eq!((world.revisions.len(), &world.set["status"]["updateRevision"]), (2, &first));
    let newest = world.revisions.values().max_by_key(|one| one["revision"].as_i64()).unwrap();
    assert_eq!(
        (&newest["metadata"]["labels"]["controller-revision-hash"], &newest["revision"]),
        (&first, &json!(3))
    );
}

/// DAEMONSET-23
#[test]
fn a_manager_that_dies_half_way_replaces_no_pod_twice() {
    let mut world = World::resting(4, rolling(json!({"maxUnavailable": 2})));
    world.image("app:v2");
    for crash in 0..12 {
        world.crash = Some(crash);
        world.passes(1);
        assert!(world.down() <= 2, "{}", world.images());
    }
    world.crash = None;
    world.rest_while(&mut |world| assert!(world.down() <= 2));
    assert_eq!((world.images().as_str(), world.count("SuccessfulDelete")), ("n1=v2 n2=v2 n3=v2 n4=v2", 4));
}

/// DAEMONSET-25
#[test]
fn old_revisions_beyond_the_limit_are_deleted() {
    let mut world = World::resting(2, json!({"revisionHistoryLimit": 1}));
    for image in ["app:v2", "app:v3", "app:v4"] {
        world.image(image);
        world.rest();
    }
    assert_eq!(world.revisions.len(), 2);
}

/// DAEMONSET-26
#[test]
fn with_a_surge_the_old_pod_stays_until_the_new_one_is_available() {
    let surge = rolling(json!({"maxUnavailable": 0, "maxSurge": 1}));
    let mut spec = surge;
    spec["minReadySeconds"] = json!(10);
    let mut world = World::resting(3, spec);
    world.image("app:v2");
    let mut peak = 0;
    world.rest_while(&mut |world| {
        assert_eq!(world.down(), 0);
        let doubled = world.nodes.keys().filter(|node| world.on(node).len() > 1).count();
        peak = peak.max(doubled);
    });
    assert_eq!((peak, world.images().as_str()), (1, "n1=v2 n2=v2 n3=v2"));
}

/// The hook of a new pod has to be answered before its node gets another one.
#[test]
fn a_surge_waits_for_a_new_pod_that_waits_for_its_deletion() {
    let mut spec = rolling(json!({"maxUnavailable": 0, "maxSurge": 1}));
    spec["lifecycle"] = json!({"preDelete": {"labelsHandler": {"hold": "yes"}}});
    let mut world = World::resting(1, spec);
    world.broken.insert("app:v2".to_owned());
    world.image("app:v2");
    world.passes(3);
    assert_eq!(world.images(), "n1=v1+v2");
    let new = world.on("n1").into_iter().last().unwrap();
    let labels = json!({"hold": "yes", "lifecycle.apps.kruise.io/state": "PreparingDelete"});
    crate::patch_model::strategic(
        world.pods.get_mut(&new).unwrap(),
        &json!({"metadata": {"labels": labels}}),
    );
    world.passes(5);
    assert_eq!(world.images(), "n1=v1+v2");
    world.broken.clear();
    crate::patch_model::strategic(
        world.pods.get_mut(&new).unwrap(),
        &json!({"metadata": {"labels": {"hold": "no"}}}),
    );
    world.rest();
    assert_eq!(world.images(), "n1=v2");
}

/// DAEMONSET-28
#[test]
fn a_surge_with_a_broken_image_keeps_the_old_pods_and_can_be_reverted() {
    let mut world = World::resting(3, rolling(json!({"maxUnavailable": 0, "maxSurge": 1})));
    world.broken.insert("app:v2".to_owned());
    world.image("app:v2");
    world.passes(10);
    assert_eq!((world.down(), world.images().as_str()), (0, "n1=v1 n2=v1 n3=v1+v2"));
    world.image("app:v1");
    world.rest();
    assert_eq!(world.images(), "n1=v1 n2=v1 n3=v1");
}

/// DAEMONSET-30, DAEMONSET-31
#[test]
fn images_change_in_place_and_other_changes_make_new_pods() {
    let mut world = World::resting(3, rolling(json!({"rollingUpdateType": "InPlaceIfPossible"})));
    let uids: Vec<String> = world.uids().into_iter().map(str::to_owned).collect();
    world.image("app:v2");
    let mut peak = 0;
    world.rest_while(&mut |world| peak = peak.max(world.down()));
    assert_eq!((peak, world.images().as_str()), (1, "n1=v2 n2=v2 n3=v2"));
    assert_eq!(world.uids(), uids);
    assert_eq!(world.count("SuccessfulUpdatePodInPlace successfully update pod agent-"), 3);
    let pod = &world.pods[&world.pod_on("n1")];
    assert_eq!(pod["metadata"]["labels"]["controller-revision-hash"], world.set["status"]["updateRevision"]);
    assert_eq!(pod["metadata"]["labels"].as_object().unwrap().len(), 2, "no other label is written");
    let state = pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"].as_str().unwrap();
    let state: Value = serde_json::from_str(state).unwrap();
    assert_eq!(state["revision"], world.set["status"]["updateRevision"]);
    let env = json!([{"name": "main", "image": "app:v2", "env": [{"name": "A", "value": "b"}]}]);
    world.edit(json!({"template": {"spec": {"containers": env}}}));
    world.rest();
    assert!(world.uids().iter().all(|uid| !uids.iter().any(|old| old == uid)));
}

/// DAEMONSET-32
#[test]
fn pods_without_the_gate_are_made_anew_once() {
    let mut world = World::resting(2, json!({}));
    let before: Vec<String> = world.uids().into_iter().map(str::to_owned).collect();
    world.rolling(json!({"rollingUpdateType": "InPlaceIfPossible"}));
    world.rest();
    assert_eq!(world.uids(), before);
    world.image("app:v2");
    world.rest();
    let anew: Vec<String> = world.uids().into_iter().map(str::to_owned).collect();
    assert!(anew.iter().all(|uid| !before.contains(uid)));
    world.image("app:v3");
    world.rest();
    assert_eq!(
        (world.uids(), world.images().as_str()),
        (anew.iter().map(String::as_str).collect(), "n1=v3 n2=v3")
    );
}

/// A state that is none of ours keeps a pod from being updated in place, not from being replaced.
#[test]
fn a_pod_in_a_state_that_nobody_knows_is_replaced() {
    let mut world = World::resting(2, rolling(json!({"rollingUpdateType": "InPlaceIfPossible"})));
    world.label("n2", "lifecycle.apps.kruise.io/state", "Strange");
    let before = world.pod_on("n2");
    world.image("app:v2");
    world.rest();
    assert_eq!(world.images(), "n1=v2 n2=v2");
    assert_ne!(world.pod_on("n2"), before);
}

/// DAEMONSET-33
#[test]
fn a_hook_holds_one_pod_after_the_other() {
    let hook = json!({"labelsHandler": {"hold": "yes"}, "markPodNotReady": true});
    let gates = json!([{"conditionType": "KruisePodReady"}]);
    let mut world = World::new(
        3,
        json!({"lifecycle": {"preDelete": hook},
            "template": {"metadata": {"labels": {"hold": "yes"}}, "spec": {"readinessGates": gates}}}),
    );
    world.rest();
    // The pod is not ready for its deletion, and the state comes with the next write: what was begun goes on, whatever the
    // set wants then.
    for change in [
        json!({"template": {"spec": {"containers": [{"name": "main", "image": "app:v1"}]}}}),
        json!({"updateStrategy": {"rollingUpdate": {"paused": true}}}),
        json!({"updateStrategy": {"rollingUpdate": {"partition": 3}}}),
        json!({"updateStrategy": {"type": "OnDelete"}}),
    ] {
        let mut world = world.clone();
        world.image("app:v2");
        world.pass();
        world.pass();
        world.tick();
        assert_eq!((world.down(), world.state("n3").as_str()), (1, "-"));
        world.edit(change.clone());
        world.passes(3);
        assert_eq!(world.state("n3"), "PreparingDelete", "{change}");
        world.label("n3", "hold", "no");
        world.passes(5);
        assert_eq!(world.down(), 0, "{change}");
    }
    world.image("app:v2");
    world.passes(6);
    let held = |world: &World| -> Vec<String> {
        world.nodes.keys().filter(|node| world.state(node) == "PreparingDelete").cloned().collect()
    };
    assert_eq!((held(&world), world.images().as_str()), (vec!["n3".to_owned()], "n1=v1 n2=v1 n3=v1"));
    assert_eq!(world.down(), 1, "the pod is not ready while its containers run");
    world.label("n3", "hold", "no");
    world.passes(9);
    assert_eq!((held(&world), world.images().as_str()), (vec!["n2".to_owned()], "n1=v1 n2=v1 n3=v2"));
    // It is deleted when the hook lets it go, even if the template is the old one again.
    world.image("app:v1");
    world.passes(3);
    world.label("n2", "hold", "no");
    let before = world.pod_on("n2");
    world.passes(3);
    assert_ne!(world.pod_on("n2"), before);
}

/// DAEMONSET-40
#[test]
fn an_exported_native_manifest_rolls_out() {
    let mut world = World::new(2, json!({}));
    world.set["metadata"]["annotations"] = json!({"deprecated.daemonset.template.generation": "1"});
    world.rest();
    let labels = world.pods[&world.pod_on("n1")]["metadata"]["labels"].clone();
    assert_eq!(labels["pod-template-generation"], "1");
    world.image("app:v2");
    world.rest();
    assert_eq!(world.images(), "n1=v2 n2=v2");
}

#[test]
fn two_revisions_with_one_content_become_one() {
    let mut world = World::resting(2, json!({}));
    let (_, known) = world.revisions.iter().next().map(|(name, one)| (name.clone(), one.clone())).unwrap();
    let mut twin = known.clone();
    twin["metadata"]["name"] = "agent-twin".into();
    twin["metadata"]["uid"] = "uid-twin".into();
    twin["metadata"]["labels"]["controller-revision-hash"] = "twin".into();
    twin["revision"] = 0.into();
    world.revisions.insert("agent-twin".to_owned(), twin);
    world.label("n1", "controller-revision-hash", "twin");
    let uids: Vec<String> = world.uids().into_iter().map(str::to_owned).collect();
    world.rest();
    assert_eq!((world.revisions.len(), world.uids()), (1, uids.iter().map(String::as_str).collect()));
    assert_eq!(world.number("updatedNumberScheduled"), 2);
}

#[test]
fn a_name_that_is_taken_is_counted_and_another_one_is_used() {
    let first = World::resting(1, json!({}));
    let (name, stored) = first.revisions.iter().next().unwrap();
    let mut foreign = stored.clone();
    foreign["metadata"]["ownerReferences"][0]["uid"] = "somebody".into();
    let mut world = World::new(1, json!({}));
    world.revisions.insert(name.clone(), foreign);
    world.rest();
    assert_eq!((world.number("collisionCount"), world.images().as_str()), (1, "n1=v1"));
    assert_eq!(world.revisions.len(), 2);
}

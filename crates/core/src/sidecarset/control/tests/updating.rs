use serde_json::{Value, json};

use super::kit::{World, cold, container_of, hot, read, time};
use crate::{
    object::ObjectKey,
    sidecarset::control::{Held, plan},
};

const UPGRADABLE: &str = "SidecarSetUpgradable";

/// SIDECARSET-25
#[test]
fn a_new_image_reaches_pods_one_by_one_and_nothing_else_of_them_changes() {
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({}), 2);
    assert_eq!(world.counts(), [2, 2, 2, 2]);
    let uids: Vec<Value> = world.pods.values().map(|pod| pod["metadata"]["uid"].clone()).collect();
    world.image("sidecar:v2");
    world.rest_while(&mut |world| {
        assert!(world.pods.keys().filter(|pod| !world.is_ready(pod)).count() <= 1);
        assert_eq!(world.images("app"), ["app:v1", "app:v1"]);
    });
    assert_eq!(world.images("sc"), ["sidecar:v2", "sidecar:v2"]);
    assert_eq!(world.counts(), [2, 2, 2, 2]);
    assert_eq!(uids, world.pods.values().map(|pod| pod["metadata"]["uid"].clone()).collect::<Vec<_>>());
    let condition = world.condition("p-0", UPGRADABLE);
    assert_eq!(
        (&condition["status"], &condition["reason"], &condition["message"]),
        (&json!("True"), &json!("AllSidecarsetUpgradable"), &json!(r#"{"s":true}"#))
    );
    assert_eq!(world.pod_writes, 4, "one for the image and one for the condition of each pod");
    world.image("sidecar:v3");
    world.rest();
    assert_eq!(world.pod_writes, 6, "the condition says it already");
}

/// The exact texts that nodes, budgets and the original read.
#[test]
fn what_a_pod_records_has_the_bytes_of_the_original() {
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({}), 1);
    let before = world.annotation("p-0", "kruise.io/sidecarset-hash-without-image").to_owned();
    world.image("sidecar:v2");
    world.pass();
    world.pass();
    let hash = world.set["metadata"]["annotations"]["kruise.io/sidecarset-hash"].as_str().unwrap();
    let now = world.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let revision = world.set["status"]["latestRevision"].as_str().unwrap();
    assert_eq!(
        world.annotation("p-0", "kruise.io/sidecarset-hash"),
        format!(
            r#"{{"s":{{"updateTimestamp":"{now}","hash":"{hash}","sidecarSetName":"s","sidecarList":["sc"],"controllerRevision":"{revision}"}}}}"#
        )
    );
    assert_eq!(
        world.annotation("p-0", "kruise.io/sidecarset-inplace-update-state"),
        format!(
            r#"{{"s":{{"revision":"{hash}","updateTimestamp":"{now}","lastContainerStatuses":{{"sc":{{"imageID":"sha256:sidecar:v1"}}}}}}}}"#
        )
    );
    assert_eq!(world.annotation("p-0", "kruise.io/sidecarset-hash-without-image"), before);
}

/// D13 of the specification.
#[test]
fn the_state_of_a_pod_tells_of_its_last_update() {
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({}), 1);
    for image in ["sidecar:v2", "sidecar:v3"] {
        world.image(image);
        world.rest();
    }
    let state: Value =
        serde_json::from_str(world.annotation("p-0", "kruise.io/sidecarset-inplace-update-state")).unwrap();
    assert_eq!(state["s"]["revision"], world.set["metadata"]["annotations"]["kruise.io/sidecarset-hash"]);
    assert_eq!(state["s"]["lastContainerStatuses"]["sc"]["imageID"], "sha256:sidecar:v2");
}

/// A node that has begun with an image starts it although another one is wanted by now. The original takes that for the end
/// of the update, and takes the next pod down.
#[test]
fn a_pod_that_starts_the_image_before_last_is_still_on_its_way() {
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({}), 2);
    world.image("sidecar:v2");
    world.passes(2);
    assert_eq!(world.images("sc"), ["sidecar:v1", "sidecar:v2"]);
    assert!(!world.is_ready("p-1"));
    world.image("sidecar:v3");
    // A revision, an update, and the node ends what it has begun.
    world.pass();
    world.pass();
    world.tick();
    assert_eq!(world.images("sc"), ["sidecar:v1", "sidecar:v3"]);
    let state: Value =
        serde_json::from_str(world.annotation("p-1", "kruise.io/sidecarset-inplace-update-state")).unwrap();
    let last = json!({"imageID": "sha256:sidecar:v1", "pendingImages": ["sidecar:v2"]});
    assert_eq!(state["s"]["lastContainerStatuses"]["sc"], last);
    assert_eq!(container_of(&world.pods["p-1"], "sc")["image"], "docker.io/library/sidecar:v2");
    assert!(world.is_ready("p-1"));
    world.pass();
    assert_eq!((world.images("sc"), world.counts()), (vec!["sidecar:v1", "sidecar:v3"], [2, 1, 1, 0]));
    world.rest_while(&mut |world| {
        assert!(world.pods.keys().filter(|pod| !world.is_ready(pod)).count() <= 1);
    });
    assert_eq!(world.counts(), [2, 2, 2, 2]);
}

/// SIDECARSET-26
#[test]
fn an_image_that_cannot_run_stops_at_the_budget_and_a_good_one_goes_on() {
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({}), 2);
    world.broken.push("nosuch:v9".to_owned());
    world.image("nosuch:v9");
    world.rest();
    assert_eq!(world.counts(), [2, 1, 1, 0]);
    let expected = "1 of at most 1 pod is unavailable (maxUnavailable: 1); next to update: default/p-0";
    assert_eq!(plan(&world.seen()).waits.message(), expected);
    world.image("sidecar:v2");
    world.rest_while(&mut |world| {
        assert!(world.pods.keys().filter(|pod| !world.is_ready(pod)).count() <= 1);
    });
    assert_eq!(world.counts(), [2, 2, 2, 2]);
}

/// SIDECARSET-27
#[test]
fn the_partition_leaves_pods_as_they_are() {
    for (partition, updated) in [(json!("99%"), 1), (json!("1%"), 4), (json!(2), 3), (json!("100%"), 0)] {
        let strategy = json!({"updateStrategy": {"maxUnavailable": 5, "partition": partition}});
        let mut world = World::resting(cold("sc", "sidecar:v1"), strategy, 5);
        world.image("sidecar:v2");
        world.rest();
        assert_eq!(world.counts(), [5, updated, 5, updated], "{partition}");
        let message = plan(&world.seen()).waits.message();
        let spelled = partition.as_str().map_or_else(|| partition.to_string(), str::to_owned);
        assert!(message.contains(&format!(" updated; partition {spelled} keeps ")), "{message}");
        world.strategy(json!({"partition": 0}));
        world.rest();
        assert_eq!(world.counts(), [5, 5, 5, 5]);
    }
}

/// SIDECARSET-28
#[test]
fn no_more_pods_than_the_budget_are_down_whenever_the_manager_dies() {
    for crash in 0..6 {
        let strategy = json!({"updateStrategy": {"maxUnavailable": "20%"}});
        let mut world = World::resting(cold("sc", "sidecar:v1"), strategy, 10);
        world.lag = crash % 3;
        world.image("sidecar:v2");
        world.crash = Some(crash);
        let mut most = 0;
        for pass in 0..40 {
            // The image changes again while pods are on their way.
            if pass == 7 {
                world.image("sidecar:v3");
            }
            world.pass();
            world.tick();
            most = most.max(world.pods.keys().filter(|pod| !world.is_ready(pod)).count());
        }
        world.crash = None;
        world.rest_while(&mut |world| {
            assert!(world.pods.keys().filter(|pod| !world.is_ready(pod)).count() <= 2);
        });
        assert!(most <= 2, "{most}");
        assert_eq!(world.counts(), [10, 10, 10, 10]);
    }
}

/// SIDECARSET-29
#[test]
fn only_chosen_pods_are_updated_and_labelling_one_chooses_it() {
    let strategy =
        json!({"updateStrategy": {"maxUnavailable": 5, "selector": {"matchLabels": {"ring": "canary"}}}});
    let mut world = World::resting(cold("sc", "sidecar:v1"), strategy, 3);
    world.label("p-1", "ring", "canary");
    world.image("sidecar:v2");
    world.rest();
    assert_eq!(world.images("sc"), ["sidecar:v1", "sidecar:v2", "sidecar:v1"]);
    assert_eq!(plan(&world.seen()).reasons, ["2 pods are not chosen by the selector of the update"]);
    world.label("p-2", "ring", "canary");
    world.rest();
    assert_eq!(world.images("sc"), ["sidecar:v1", "sidecar:v2", "sidecar:v2"]);
    assert_eq!(world.counts(), [3, 2, 3, 2]);
}

/// SIDECARSET-30
#[test]
fn pods_that_differ_in_more_than_images_are_told_once_and_left_alone() {
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({}), 2);
    let mut container = cold("sc", "sidecar:v2");
    container["env"] = json!([{"name": "A", "value": "b"}]);
    world.edit(json!({"containers": [container]}));
    world.rest();
    assert_eq!(world.images("sc"), ["sidecar:v1", "sidecar:v1"]);
    assert_eq!(world.counts(), [2, 0, 2, 0]);
    assert_eq!(
        world.events,
        [
            "NotUpgradablePods SidecarSet in-place update detected 2 not upgradable pod(s) in this round, will skip them."
        ]
    );
    let condition = world.condition("p-1", UPGRADABLE);
    assert_eq!(
        (&condition["status"], &condition["reason"], &condition["message"]),
        (&json!("False"), &json!("UpdateImmutableField"), &json!(r#"{"s":false}"#))
    );
    let expected = "2 of 2 pods cannot be updated in place (default/p-0, default/p-1): more than images changed; they get it \
                    when they are re-created";
    assert_eq!(plan(&world.seen()).waits.message(), expected, "WAITING-24");
    world.inject("p-2", json!({"app": "x"}));
    world.rest();
    assert_eq!(world.counts(), [3, 1, 3, 1]);
    assert!(world.condition("p-2", UPGRADABLE).is_null());
    // Back to what the pods have: they can be updated again, and that is told.
    world.edit(json!({"containers": [cold("sc", "sidecar:v1")]}));
    world.pods.remove("p-2");
    world.rest();
    assert_eq!(world.counts(), [2, 2, 2, 2]);
    assert_eq!(world.condition("p-1", UPGRADABLE)["message"], r#"{"s":true}"#);
}

/// SIDECARSET-31, and D12 of the specification.
#[test]
fn the_condition_has_a_word_of_every_set_and_foreign_words_are_replaced() {
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({}), 2);
    let other = json!([{"type": UPGRADABLE, "status": "False", "reason": "UpdateImmutableField", "message": r#"{"t":false}"#}]);
    let foreign = json!([{"type": UPGRADABLE, "status": "True", "reason": "x", "message": "so it is"}]);
    for (pod, conditions) in [("p-0", other), ("p-1", foreign)] {
        super::kit::strategic(
            world.pods.get_mut(pod).unwrap(),
            &json!({"status": {"conditions": conditions}}),
        );
    }
    world.image("sidecar:v2");
    world.rest();
    let told = |pod: &str| {
        let condition = world.condition(pod, UPGRADABLE);
        format!("{} {} {}", condition["status"], condition["reason"], condition["message"])
    };
    assert_eq!(told("p-0"), r#""False" "UpdateImmutableField" "{\"s\":true,\"t\":false}""#);
    assert_eq!(told("p-1"), r#""True" "AllSidecarsetUpgradable" "{\"s\":true}""#);
}

/// Updates with maxUnavailable 1, as the order of the pods whose image changes.
fn order(strategy: Value, labels: &[&str]) -> Vec<String> {
    let mut world = World::new(cold("sc", "sidecar:v1"), json!({"updateStrategy": strategy}));
    world.rest();
    for (index, label) in labels.iter().enumerate() {
        world.inject(&format!("p-{index}"), json!({"app": "x", "p": label}));
        world.tick();
        world.tick();
    }
    world.rest();
    // Readiness decides before age: it is the same for all here.
    for pod in world.pods.values_mut() {
        pod["status"]["conditions"][0]["lastTransitionTime"] = time().to_string().into();
    }
    world.image("sidecar:v2");
    let mut order: Vec<String> = Vec::new();
    world.rest_while(&mut |world| {
        for pod in world.pods.keys() {
            if world.image_of(pod, "sc") == "sidecar:v2" && !order.contains(pod) {
                order.push(pod.clone());
            }
        }
    });
    order
}

/// SIDECARSET-32: the orders that were seen running.
#[test]
fn weights_and_spreading_decide_who_is_next() {
    let weights = json!({"priorityStrategy": {"weightPriority": [
        {"weight": 50, "matchSelector": {"matchLabels": {"p": "foo"}}},
        {"weight": 30, "matchSelector": {"matchLabels": {"p": "bar"}}},
    ]}});
    let labels = ["none", "bar", "foo", "none", "bar", "foo"];
    assert_eq!(order(weights, &labels), ["p-5", "p-2", "p-4", "p-1", "p-3", "p-0"]);
    for value in ["foo", "*"] {
        let scatter = json!({"scatterStrategy": [{"key": "p", "value": value}]});
        let labels = ["n", "n", "foo", "n", "n", "foo", "n", "n", "foo", "n"];
        let order = order(scatter, &labels);
        if value == "foo" {
            let expected = ["p-8", "p-9", "p-7", "p-6", "p-5", "p-4", "p-3", "p-2", "p-1", "p-0"];
            assert_eq!(order, expected);
        }
        assert_eq!(order.len(), 10);
    }
}

/// SIDECARSET-33
#[test]
fn a_pause_stops_the_update_where_it_is() {
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({}), 3);
    world.image("sidecar:v2");
    world.passes(4);
    let images: Vec<String> = world.images("sc").into_iter().map(str::to_owned).collect();
    assert!(images.contains(&"sidecar:v1".to_owned()) && images.contains(&"sidecar:v2".to_owned()));
    world.strategy(json!({"paused": true}));
    world.rest();
    assert_eq!(world.images("sc"), images);
    let updated = images.iter().filter(|image| *image == "sidecar:v2").count();
    let message = plan(&world.seen()).waits.message();
    let expected = format!(
        "the update is paused (spec.updateStrategy.paused: true) with {updated} of 3 pods at revision s-"
    );
    assert!(message.starts_with(&expected), "{message}");
    world.strategy(json!({"paused": false}));
    world.rest();
    assert_eq!(world.counts(), [3, 3, 3, 3]);
}

/// SIDECARSET-12, SIDECARSET-20, SIDECARSET-21
#[test]
fn strategies_of_injection_do_not_hold_updates_and_notupdate_does() {
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({"customVersion": "1"}), 2);
    world.edit(json!({"injectionStrategy": {"paused": true, "revision": {"customVersion": "1"}}, "customVersion": "2"}));
    world.image("sidecar:v2");
    world.rest();
    assert_eq!(world.counts(), [2, 2, 2, 2]);
    world.strategy(json!({"type": "NotUpdate", "partition": "what"}));
    world.image("sidecar:v3");
    world.rest();
    assert_eq!(world.images("sc"), ["sidecar:v2", "sidecar:v2"]);
    assert_eq!(world.counts(), [2, 0, 2, 0]);
    // What is ready is counted all the same, where the original leaves the count as it was.
    let pod = world.pods.get_mut("p-0").unwrap();
    pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    world.pass();
    assert_eq!(world.counts(), [2, 0, 1, 0]);
}

/// SIDECARSET-16
#[test]
fn annotations_ride_along_with_the_next_image() {
    let patches = |value: &str| {
        json!({"patchPodMetadata": [
            {"annotations": {"k1": "mine", "k9": "new"}, "patchPolicy": "Retain"},
            {"annotations": {"k2": "mine"}, "patchPolicy": "Overwrite"},
            {"annotations": {"k3": value}, "patchPolicy": "MergePatchJson"},
        ]})
    };
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({}), 2);
    for pod in world.pods.values_mut() {
        let annotations = &mut pod["metadata"]["annotations"];
        (annotations["k1"], annotations["k2"], annotations["k3"]) =
            ("x".into(), "y".into(), r#"{"a":1}"#.into());
    }
    world.edit(patches(r#"{"b":2}"#));
    world.rest();
    assert_eq!((world.counts(), world.pod_writes), ([2, 2, 2, 2], 0));
    world.image("sidecar:v2");
    world.rest();
    let values = ["k1", "k9", "k2", "k3"].map(|key| world.annotation("p-1", key));
    assert_eq!(values, ["x", "new", "mine", r#"{"a":1,"b":2}"#]);
    // One pod that cannot be merged stays, and the others go on.
    world.pods.get_mut("p-1").unwrap()["metadata"]["annotations"]["k3"] = "not json".into();
    world.image("sidecar:v3");
    world.rest();
    assert_eq!(world.images("sc"), ["sidecar:v3", "sidecar:v2"]);
    assert_eq!(
        plan(&world.seen()).failures[0].message,
        "pod default/p-1 cannot be updated: Invalid JSON Document"
    );
}

/// SIDECARSET-40, and D10 of the specification.
#[test]
fn a_pod_that_a_budget_protects_does_not_hold_the_others() {
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({}), 3);
    world.held.insert(
        ObjectKey::new("default", "p-2"),
        Held {
            why: "budget web allows 0 of 1".into(),
            left: std::time::Duration::from_secs(1),
            by_budget: false,
        },
    );
    world.image("sidecar:v2");
    world.rest();
    assert_eq!(world.images("sc"), ["sidecar:v2", "sidecar:v2", "sidecar:v1"]);
    let waiting = plan(&world.seen());
    assert_eq!(waiting.reasons, ["pod default/p-2 cannot be updated now: budget web allows 0 of 1"]);
    assert_eq!(waiting.wake_after, Some(std::time::Duration::from_secs(1)));
    world.held.clear();
    world.rest();
    assert_eq!(world.counts(), [3, 3, 3, 3]);
}

/// SIDECARSET-41: a workload changes its own image in the same moment. The set takes what it sees as it is.
#[test]
fn a_write_that_met_another_is_tried_again_with_what_the_other_wrote() {
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({}), 1);
    world.image("sidecar:v2");
    world.pass();
    let stale = plan(&world.seen());
    world.label("p-0", "touched", "yes");
    let pod = read(&world.pods["p-0"]);
    assert_eq!(stale.steps.len(), 1);
    let crate::effect::Effect::Patch { target, .. } = &stale.steps[0].effect else { panic!("a patch") };
    assert_ne!(target.resource_version.as_deref(), Some(pod.metadata.resource_version.as_str()));
    world.rest();
    assert_eq!((world.counts(), world.images("app")), ([1, 1, 1, 1], vec!["app:v1"]));
}

/// A pod with hashes from before 1.0 is updated, and has the form of today afterwards.
#[test]
fn old_hashes_are_read_and_written_anew_with_the_next_update() {
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({}), 1);
    let annotations = &mut world.pods.get_mut("p-0").unwrap()["metadata"]["annotations"];
    for key in ["kruise.io/sidecarset-hash", "kruise.io/sidecarset-hash-without-image"] {
        let entry: Value = serde_json::from_str(annotations[key].as_str().unwrap()).unwrap();
        annotations[key] = json!({"s": entry["s"]["hash"]}).to_string().into();
    }
    world.rest();
    assert_eq!((world.counts(), world.pod_writes), ([1, 1, 1, 1], 0), "nothing is written for that alone");
    world.image("sidecar:v2");
    world.rest();
    assert_eq!(world.counts(), [1, 1, 1, 1]);
    for key in ["kruise.io/sidecarset-hash", "kruise.io/sidecarset-hash-without-image"] {
        let entries: Value = serde_json::from_str(world.annotation("p-0", key)).unwrap();
        assert!(entries["s"].is_object(), "{entries}");
    }
}

/// D11 of the specification.
#[test]
fn images_by_digest_are_compared_with_everything_that_is_usually_left_out() {
    let digest = format!("nginx@sha256:{}", "a".repeat(64));
    let mut world = World::resting(cold("sc", &digest), json!({}), 1);
    let status = &mut world.pods.get_mut("p-0").unwrap()["status"]["containerStatuses"][0];
    status["imageID"] = format!("docker-pullable://docker.io/library/{digest}").into();
    world.pass();
    assert_eq!(world.counts(), [1, 1, 1, 1]);
    world.pods.get_mut("p-0").unwrap()["status"]["containerStatuses"][0]["imageID"] =
        "nginx@sha256:bb".into();
    world.pass();
    assert_eq!(world.counts(), [1, 1, 0, 0]);
}

/// Several sidecars of both kinds are changed in one write.
#[test]
fn sidecars_of_both_kinds_go_together() {
    let spec = json!({"containers": [cold("sc", "sidecar:v1"), hot("mesh", "mesh:v1")]});
    let mut world = World::resting(cold("sc", "sidecar:v1"), spec, 2);
    world.edit(json!({"containers": [cold("sc", "sidecar:v2"), hot("mesh", "mesh:v2")]}));
    world.rest();
    assert_eq!(world.counts(), [2, 2, 2, 2]);
    assert_eq!(world.images("sc"), ["sidecar:v2", "sidecar:v2"]);
    assert_eq!(world.images("mesh-2"), ["mesh:v2", "mesh:v2"]);
    assert_eq!(world.images("mesh-1"), ["empty:v1", "empty:v1"]);
}

use jiff::SignedDuration;
use serde_json::json;

use super::kit::{World, render};
use crate::{availability::is_available, pod::Pod, statefulset::decide};

/// STATEFULSET-19 and STATEFULSET-21
#[test]
fn pods_are_updated_from_the_highest_ordinal_down_within_the_limit() {
    let mut world = World::resting(json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}}));
    world.image("app:v2");
    world.pass();
    assert_eq!(render(&world.pass()), "delete web-3, delete web-4");
    world.rest();
    assert_eq!(world.shown(), "0:v2 1:v2 2:v2 3:v2 4:v2");

    let ready = |world: &mut World| world.pod(0)["status"]["conditions"][0]["status"] = "False".into();
    let mut world = World::resting(json!({}));
    world.image("app:v2");
    world.pass();
    ready(&mut world);
    let (plan, _) = decide(&world.seen());
    assert_eq!(render(&plan), "", "pod 0 is down, and its turn comes last");
    assert_eq!(
        plan.waits.message(),
        "1 of at most 1 pod is unavailable (maxUnavailable: 1); next to update: web-4"
    );
    world.rolling(json!({"unorderedUpdate": {}}));
    assert_eq!(render(&world.pass()), "delete web-0");
}

/// New pods that a quota refuses come again in every reconcile. They must not take the place of all other writes.
#[test]
fn pods_that_cannot_be_created_do_not_hold_up_an_update_in_place() {
    let rolling = json!({"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"});
    let mut world = World::resting(json!({"replicas": 3, "updateStrategy": {"rollingUpdate": rolling}}));
    world.room.pods = 2;
    world.quota = 3;
    world.edit(json!({"replicas": 9}));
    world.image("app:v2");
    for _ in 0..20 {
        world.pass();
        world.tick();
    }
    assert_eq!(world.shown(), "0:v2 1:v2 2:v2");
    let conditions = |ordinal| world.clone().pod(ordinal)["status"]["conditions"].clone();
    assert!((0..3).all(|ordinal| conditions(ordinal)[0]["status"] == "True"), "{}", conditions(0));
}

/// STATEFULSET-22 and STATEFULSET-23
#[test]
fn the_partition_keeps_the_lowest_pods() {
    let mut world = World::resting(json!({"updateStrategy": {"rollingUpdate": {"partition": 3}}}));
    world.image("app:v2");
    world.rest();
    assert_eq!(world.shown(), "0:v1 1:v1 2:v1 3:v2 4:v2");
    let status = &world.set["status"];
    assert_eq!((&status["updatedReplicas"], &status["currentReplicas"]), (&json!(2), &json!(3)));
    assert_ne!(status["currentRevision"], status["updateRevision"]);
    for ordinal in [1, 4] {
        world.pod(ordinal)["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        world.rest();
        assert_eq!(world.shown(), "0:v1 1:v1 2:v1 3:v2 4:v2");
    }
    world.rolling(json!({"partition": 0}));
    world.rest();
    assert_eq!(world.shown(), "0:v2 1:v2 2:v2 3:v2 4:v2");
    let status = &world.set["status"];
    assert_eq!(status["currentRevision"], status["updateRevision"]);

    let rolling = json!({"rollingUpdate": {"partition": 2}});
    let mut world = World::resting(json!({"replicas": 4, "reserveOrdinals": [1], "updateStrategy": rolling}));
    world.image("app:v2");
    world.rest();
    assert_eq!(world.shown(), "0:v1 2:v1 3:v2 4:v2");
}

/// STATEFULSET-24: no pod is left for a moment, and the canary goes on.
#[test]
fn a_canary_survives_the_loss_of_all_pods() {
    let spec =
        json!({"podManagementPolicy": "OrderedReady", "updateStrategy": {"rollingUpdate": {"partition": 3}}});
    let mut world = World::resting(spec);
    world.image("app:v2");
    world.rest();
    let current = world.set["status"]["currentRevision"].clone();
    world.pods.clear();
    world.pass();
    assert_eq!(world.set["status"]["currentRevision"], current);
    world.rest();
    assert_eq!(world.shown(), "0:v1 1:v1 2:v1 3:v2 4:v2");
    assert_eq!(world.set["status"]["currentRevision"], current);
}

/// STATEFULSET-26 and STATEFULSET-27
#[test]
fn an_unordered_update_follows_weights_and_numbers() {
    let weights = json!({"weightPriority": [
        {"weight": 50, "matchSelector": {"matchLabels": {"a": "1"}}},
        {"weight": 30, "matchSelector": {"matchLabels": {"b": "1"}}}]});
    let rolling = json!({"partition": 2, "unorderedUpdate": {"priorityStrategy": weights}});
    let mut world = World::resting(json!({"updateStrategy": {"rollingUpdate": rolling}}));
    world.pod(0)["metadata"]["labels"]["a"] = "1".into();
    world.pod(1)["metadata"]["labels"]["b"] = "1".into();
    world.pod(1)["metadata"]["labels"]["a"] = "1".into();
    world.image("app:v2");
    world.rest();
    assert_eq!(world.shown(), "0:v2 1:v2 2:v1 3:v1 4:v2");

    let keys = json!({"orderPriority": [{"orderedKey": "prio"}]});
    let rolling = json!({"unorderedUpdate": {"priorityStrategy": keys}});
    let mut world = World::resting(json!({"replicas": 3, "updateStrategy": {"rollingUpdate": rolling}}));
    for (ordinal, value) in [(0, "p-3"), (1, "p-10"), (2, "p-1")] {
        world.pod(ordinal)["metadata"]["labels"]["prio"] = value.into();
    }
    world.image("app:v2");
    world.pass();
    assert_eq!(render(&world.pass()), "delete web-1");
}

/// STATEFULSET-28
#[test]
fn a_rollback_uses_the_old_revision_again() {
    let mut world = World::resting(json!({"updateStrategy": {"rollingUpdate": {"partition": 3}}}));
    let old = world.revisions.keys().next().unwrap().clone();
    world.image("app:v2");
    world.rest();
    world.image("app:v1");
    world.rest();
    assert_eq!(world.shown(), "0:v1 1:v1 2:v1 3:v1 4:v1");
    assert_eq!((world.revisions.len(), &world.revisions[&old]["revision"]), (2, &json!(3)));
}

/// STATEFULSET-29, and <https://github.com/kubernetes/kubernetes/issues/67250>: a broken revision does not block its own
/// repair. With OrderedReady the pod that waits has to be deleted, or labelled, as with the native kind.
#[test]
fn a_broken_revision_is_repaired_kubernetes_67250() {
    let mut world = World::resting(json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}}));
    world.broken.push("app:v2".to_owned());
    world.image("app:v2");
    world.rest();
    assert_eq!(world.shown(), "0:v1 1:v1 2:v1 3:v2 4:v2");
    world.image("app:v1");
    world.rest();
    assert_eq!(world.shown(), "0:v1 1:v1 2:v1 3:v1 4:v1");

    for by_label in [false, true] {
        let mut world = World::resting(json!({"podManagementPolicy": "OrderedReady"}));
        world.broken.push("app:v2".to_owned());
        world.image("app:v2");
        world.rest();
        world.image("app:v1");
        world.rest();
        assert_eq!(world.shown(), "0:v1 1:v1 2:v1 3:v1 4:v2", "it waits");
        if by_label {
            world.pod(4)["metadata"]["labels"]["apps.kruise.io/specified-delete"] = "true".into();
        } else {
            world.pod(4)["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        world.rest();
        assert_eq!(world.shown(), "0:v1 1:v1 2:v1 3:v1 4:v1");
    }
}

/// STATEFULSET-29, and <https://github.com/kubernetes/kubernetes/issues/67250>: the revision that breaks only one pod, behind a
/// higher one on which it works. Broken pods of an abandoned revision do not wait for healthy ones.
#[test]
fn a_pod_that_an_abandoned_revision_broke_is_repaired_first_kubernetes_67250() {
    for fixed in ["app:v1", "app:v3"] {
        let mut world = World::resting(json!({}));
        world.image("app:v2");
        while !world.shown().ends_with("3:v2 4:v2") {
            world.pass();
            world.tick();
        }
        // The data of pod 3 does not fit the new version.
        world.broken.push("app:v2 on web-3".to_owned());
        world.rest();
        assert_eq!(world.shown(), "0:v1 1:v1 2:v1 3:v2 4:v2");
        world.image(fixed);
        world.pass();
        assert_eq!(render(&world.pass()), "delete web-3", "pod 4 is healthy, and stays until pod 3 is back");
        world.rest();
        let version = fixed.trim_start_matches("app:");
        let all: Vec<String> = (0..5).map(|ordinal| format!("{ordinal}:{version}")).collect();
        assert_eq!(world.shown(), all.join(" "));
    }
}

/// <https://github.com/kubernetes/kubernetes/issues/137409>: no pod of the first revision was ever available, and more of them
/// are unavailable than may be. The next revision reaches them all the same.
#[test]
fn a_broken_first_revision_is_replaced_kubernetes_137409() {
    for most in [json!(1), json!(2), json!("40%")] {
        let mut world = World::new(json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": most}}}));
        world.broken.push("app:v1".to_owned());
        world.rest();
        assert_eq!(world.shown(), "0:v1 1:v1 2:v1 3:v1 4:v1");
        world.image("app:v2");
        world.rest();
        assert_eq!(world.shown(), "0:v2 1:v2 2:v2 3:v2 4:v2");
    }
}

/// STATEFULSET-51 and STATEFULSET-52
#[test]
fn ordered_sets_may_update_several_pods_at_once() {
    let spec = json!({"podManagementPolicy": "OrderedReady",
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": 2, "minReadySeconds": 5}}});
    let mut world = World::resting(spec);
    world.image("app:v2");
    world.pass();
    assert_eq!(render(&world.pass()), "delete web-3, delete web-4");
    world.tick();
    assert_eq!(render(&world.pass()), "create web-3");
    for _ in 0..5 {
        world.tick();
        assert_eq!(render(&world.pass()), "", "pod 3 is not available yet");
    }
    world.rest();
    assert_eq!(world.shown(), "0:v2 1:v2 2:v2 3:v2 4:v2");

    world.broken.push("app:v3".to_owned());
    world.image("app:v3");
    world.rest();
    assert_eq!(world.shown(), "0:v2 1:v2 2:v2 3:v3");
    let (plan, _) = decide(&world.seen());
    assert_eq!(plan.waits.message(), "pod web-3 must be available before web-4 is created");
    world.image("app:v2");
    world.pod(3)["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    world.rest();
    assert_eq!(world.shown(), "0:v2 1:v2 2:v2 3:v2 4:v2");
}

/// STATEFULSET-32 and STATEFULSET-51: pods change in place, and keep their identity.
#[test]
fn pods_are_updated_in_place() {
    for policy in ["Parallel", "OrderedReady"] {
        let rolling = json!({"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2});
        let mut world = World::resting(
            json!({"podManagementPolicy": policy, "updateStrategy": {"rollingUpdate": rolling}}),
        );
        let uids = |world: &World| -> Vec<_> {
            world.pods.values().map(|pod| pod["metadata"]["uid"].clone()).collect()
        };
        let before = uids(&world);
        world.image("app:v2");
        world.rest();
        assert_eq!((world.shown().as_str(), uids(&world)), ("0:v2 1:v2 2:v2 3:v2 4:v2", before), "{policy}");
    }
}

/// STATEFULSET-36: a hook of the deletion holds an update and releases it, also with OrderedReady.
#[test]
fn a_pre_delete_hook_holds_the_update() {
    for policy in ["Parallel", "OrderedReady"] {
        let template = json!({"metadata": {"labels": {"app": "web", "hold": "yes"}}});
        let mut world =
            World::resting(json!({"podManagementPolicy": policy, "replicas": 2, "template": template,
            "lifecycle": {"preDelete": {"labelsHandler": {"hold": "yes"}}}}));
        world.image("app:v2");
        world.rest();
        assert_eq!(world.pod(1)["metadata"]["labels"]["lifecycle.apps.kruise.io/state"], "PreparingDelete");
        for ordinal in [1, 0] {
            world.pod(ordinal)["metadata"]["labels"].as_object_mut().unwrap().remove("hold");
            world.rest();
        }
        assert_eq!(world.shown(), "0:v2 1:v2", "{policy}");
    }
}

/// STATEFULSET-37: the same for the hook of updates in place.
#[test]
fn an_in_place_hook_holds_the_update() {
    for policy in ["Parallel", "OrderedReady"] {
        let template = json!({"metadata": {"labels": {"app": "web", "hold": "yes"}}});
        let mut world =
            World::resting(json!({"podManagementPolicy": policy, "replicas": 2, "template": template,
            "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}},
            "lifecycle": {"inPlaceUpdate": {"labelsHandler": {"hold": "yes"}}}}));
        let state = |world: &mut World, ordinal| {
            world.pod(ordinal)["metadata"]["labels"]["lifecycle.apps.kruise.io/state"].clone()
        };
        world.image("app:v2");
        for ordinal in [1, 0] {
            world.rest();
            assert_eq!(state(&mut world, ordinal), "PreparingUpdate", "{policy}");
            world.pod(ordinal)["metadata"]["labels"].as_object_mut().unwrap().remove("hold");
            world.rest();
            assert_eq!(state(&mut world, ordinal), "Updated", "{policy}");
            world.pod(ordinal)["metadata"]["labels"]["hold"] = "yes".into();
            world.rest();
            assert_eq!(state(&mut world, ordinal), "Normal", "{policy}");
        }
        assert_eq!(world.shown(), "0:v2 1:v2");
    }
}

/// STATEFULSET-36 and STATEFULSET-37: a pod that a hook holds goes on when the hook lets it go, also where the template has
/// changed since and a healthy pod comes before it.
#[test]
fn a_pod_that_waits_for_its_hook_is_not_stranded_by_the_next_revision() {
    let template = json!({"metadata": {"labels": {"app": "web", "hold": "yes"}}});
    for (policy, hook) in [("ReCreate", "preDelete"), ("InPlaceIfPossible", "inPlaceUpdate")] {
        let mut world = World::resting(json!({"template": template,
            "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": policy}},
            "lifecycle": {hook: {"labelsHandler": {"hold": "yes"}}}}));
        let release = |world: &mut World, ordinal| {
            drop(world.pod(ordinal)["metadata"]["labels"].as_object_mut().unwrap().remove("hold"));
        };
        let state = |world: &mut World, ordinal| {
            world.pod(ordinal)["metadata"]["labels"]["lifecycle.apps.kruise.io/state"].clone()
        };
        world.image("app:v2");
        world.rest();
        release(&mut world, 4);
        world.rest();
        if hook == "inPlaceUpdate" {
            world.pod(4)["metadata"]["labels"]["hold"] = "yes".into();
            world.rest();
        }
        assert_eq!(world.shown(), "0:v1 1:v1 2:v1 3:v1 4:v2");
        assert_ne!(state(&mut world, 3), "Normal");
        world.image("app:v3");
        world.rest();
        assert_eq!(world.shown(), "0:v1 1:v1 2:v1 3:v1 4:v2", "{hook}: the hook holds pod 3");
        release(&mut world, 3);
        world.rest();
        if hook == "inPlaceUpdate" {
            world.pod(3)["metadata"]["labels"]["hold"] = "yes".into();
            world.rest();
        }
        assert_eq!(
            world.shown(),
            "0:v1 1:v1 2:v1 3:v3 4:v2",
            "{hook}: pod 3 went on, pod 4 waits for its hook"
        );
    }
}

/// STATEFULSET-37: an update that is not wanted any more gives the pod back, whether its hook has let it go or not.
#[test]
fn a_pod_that_is_not_to_be_updated_any_more_returns_to_service() {
    let template = json!({"metadata": {"labels": {"app": "web", "hold": "yes"}}});
    let changes =
        [json!({"rollingUpdate": {"partition": 5}}), json!({"type": "OnDelete", "rollingUpdate": null})];
    for policy in ["Parallel", "OrderedReady"] {
        for (change, releases) in changes.iter().zip([true, false]) {
            let gates = json!([{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}]);
            let mut world = World::resting(json!({"podManagementPolicy": policy,
                "template": {"metadata": template["metadata"], "spec": {"readinessGates": gates}},
                "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}},
                "lifecycle": {"inPlaceUpdate": {"labelsHandler": {"hold": "yes"}, "markPodNotReady": true}}}));
            world.image("app:v2");
            world.rest();
            let label = "lifecycle.apps.kruise.io/state";
            assert_eq!(world.pod(4)["metadata"]["labels"][label], "PreparingUpdate");
            world.edit(json!({"updateStrategy": change}));
            if releases {
                world.pod(4)["metadata"]["labels"].as_object_mut().unwrap().remove("hold");
                world.rest();
                assert_eq!(world.pod(4)["metadata"]["labels"][label], "Updated", "its hook may come back");
                world.pod(4)["metadata"]["labels"]["hold"] = "yes".into();
            }
            world.rest();
            assert_eq!(world.pod(4)["metadata"]["labels"][label], "Normal", "{policy} {change}");
            assert_eq!(
                (world.shown().as_str(), &world.set["status"]["availableReplicas"]),
                ("0:v1 1:v1 2:v1 3:v1 4:v1", &json!(5))
            );
        }
    }
}

/// STATEFULSET-38
#[test]
fn a_deletion_that_is_not_wanted_any_more_is_taken_back() {
    let template = json!({"metadata": {"labels": {"app": "web", "hold": "yes"}}});
    let mut world = World::resting(
        json!({"template": template, "lifecycle": {"preDelete": {"labelsHandler": {"hold": "yes"}}}}),
    );
    world.edit(json!({"replicas": 4}));
    world.rest();
    assert_eq!(world.pod(4)["metadata"]["labels"]["lifecycle.apps.kruise.io/state"], "PreparingDelete");
    world.edit(json!({"replicas": 5}));
    world.rest();
    assert_eq!(world.pod(4)["metadata"]["labels"]["lifecycle.apps.kruise.io/state"], "Normal");
    assert_eq!(world.set["status"]["availableReplicas"], 5);
}

/// STATEFULSET-39, and with OnDelete one pod at a time.
#[test]
fn pods_are_deleted_on_request_within_the_limit() {
    let strategies =
        [json!({"rollingUpdate": {"partition": 5}}), json!({"type": "OnDelete", "rollingUpdate": null})];
    for (strategy, after) in strategies.into_iter().zip(["v1", "v2"]) {
        let mut world = World::resting(json!({"updateStrategy": strategy}));
        world.image("app:v2");
        world.pass();
        for ordinal in [0, 3] {
            world.pod(ordinal)["metadata"]["labels"]["apps.kruise.io/specified-delete"] = "x".into();
        }
        assert_eq!(render(&world.pass()), "delete web-3");
        world.tick();
        assert_eq!(render(&world.pass()), "create web-3");
        assert_eq!(render(&world.pass()), "", "the new one is not available yet");
        world.rest();
        assert_eq!(world.shown(), format!("0:{after} 1:v1 2:v1 3:{after} 4:v1"));
    }
}

/// A pod that somebody asked to delete counts as unavailable until the new one is available: no pod is updated meanwhile.
#[test]
fn a_deletion_on_request_uses_up_the_limit_of_updates() {
    for policy in ["ReCreate", "InPlaceOnly"] {
        let rolling = json!({"maxUnavailable": 1, "minReadySeconds": 2, "podUpdatePolicy": policy});
        let mut world = World::resting(json!({"updateStrategy": {"rollingUpdate": rolling}}));
        world.image("app:v2");
        world.pod(2)["metadata"]["labels"]["apps.kruise.io/specified-delete"] = "true".into();
        world.pass();
        assert_eq!(render(&world.pass()), "delete web-2", "{policy}");
        assert_eq!(render(&world.pass()), "", "{policy}: it is being deleted");
        world.tick();
        assert_eq!(render(&world.pass()), "create web-2", "{policy}");
        loop {
            let pod: Pod = serde_json::from_value(world.pod(2).clone()).unwrap();
            let is_back = is_available(&pod, SignedDuration::from_secs(2), world.now);
            let next = render(&world.pass());
            assert_eq!(next.ends_with("web-4"), is_back, "{policy}: {next}");
            if is_back {
                break;
            }
            assert_eq!(next, "", "{policy}");
            world.tick();
        }
    }
}

/// A pod counts as unavailable until it has been ready for `minReadySeconds`, so its update costs nothing, however many there
/// are.
#[test]
fn pods_that_are_not_available_yet_are_updated_whatever_the_limit() {
    let rolling = json!({"maxUnavailable": 1, "minReadySeconds": 5});
    let mut world = World::new(json!({"replicas": 3, "updateStrategy": {"rollingUpdate": rolling}}));
    for _ in 0..4 {
        world.pass();
        world.tick();
    }
    assert_eq!(world.set["status"]["readyReplicas"], 3);
    world.image("app:v2");
    world.pass();
    assert_eq!(render(&world.pass()), "delete web-0, delete web-1, delete web-2");
}

/// STATEFULSET-25
#[test]
fn a_pause_stops_updates_and_not_scaling() {
    let mut world = World::resting(json!({"updateStrategy": {"rollingUpdate": {"partition": 4}}}));
    world.image("app:v2");
    world.rest();
    world.rolling(json!({"partition": 0, "paused": true}));
    world.rest();
    assert_eq!(world.shown(), "0:v1 1:v1 2:v1 3:v1 4:v2");
    world.edit(json!({"replicas": 6}));
    world.rest();
    assert_eq!(world.shown(), "0:v1 1:v1 2:v1 3:v1 4:v2 5:v2");
    let (plan, _) = decide(&world.seen());
    assert!(plan.waits.message().starts_with(
        "the update is paused (spec.updateStrategy.rollingUpdate.paused: true) with 2 of 6 pods at revision web-"
    ));
    world.rolling(json!({"paused": false}));
    world.rest();
    assert_eq!(world.shown(), "0:v2 1:v2 2:v2 3:v2 4:v2 5:v2");
}

/// STATEFULSET-30
#[test]
fn old_revisions_are_kept_as_far_as_the_limit_says() {
    let mut world = World::resting(json!({"replicas": 1, "revisionHistoryLimit": 2}));
    for number in 2..8 {
        world.image(&format!("app:v{number}"));
        world.rest();
    }
    assert_eq!(world.revisions.len(), 3);
}

/// STATEFULSET-38: the hook goes with the same edit that takes the deletion back. Nothing keeps the pod not ready.
#[test]
fn a_deletion_that_is_taken_back_without_its_hook_leaves_no_mark() {
    let template = json!({"metadata": {"labels": {"app": "web", "hold": "yes"}}, "spec": {
        "readinessGates": [{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}]}});
    let hook = json!({"labelsHandler": {"hold": "yes"}, "markPodNotReady": true});
    let mut world = World::resting(json!({"template": template, "lifecycle": {"preDelete": hook}}));
    world.edit(json!({"replicas": 4}));
    world.rest();
    assert!(crate::lifecycle::is_held(&world.seen().pods[4]));
    world.edit(json!({"replicas": 5, "lifecycle": null}));
    world.rest();
    assert!(!crate::lifecycle::is_held(&world.seen().pods[4]));
    assert_eq!(world.set["status"]["availableReplicas"], 5);
}

/// STATEFULSET-10, STATEFULSET-22, STATEFULSET-23 and STATEFULSET-26: recorded changes of replicas, reserveOrdinals and
/// partition come to rest as with the original.
#[test]
fn replicas_reserved_ordinals_and_partition_come_to_rest_where_the_original_does() {
    fn shown(world: &World) -> String {
        world.shown().replace(":v1", "o").replace(":v2", "n")
    }
    let mut sets: std::collections::BTreeMap<&str, World> = Default::default();
    let mut compared = 0;
    for line in include_str!("../../../tests/recorded/statefulset-scale.tsv").lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let world = sets.entry(cells[0]).or_insert_with(|| {
            let unordered = if cells[1] == "unordered" { json!({}) } else { serde_json::Value::Null };
            let rolling = json!({"partition": 9, "unorderedUpdate": unordered});
            let pods = cells[2].split(' ').count();
            let mut world =
                World::resting(json!({"replicas": pods, "updateStrategy": {"rollingUpdate": rolling}}));
            world.image("app:v2");
            world.rest();
            world
        });
        assert_eq!(shown(world), cells[2], "before {line}");
        let number = |index: usize| cells[index].parse::<u32>().unwrap();
        let reserved: serde_json::Value = serde_json::from_str(cells[4]).unwrap();
        world.edit(json!({"replicas": number(3), "reserveOrdinals": reserved}));
        world.rolling(json!({"partition": number(5)}));
        world.rest();
        assert_eq!(shown(world), cells[6], "{line}");
        compared += 1;
    }
    assert_eq!(compared, 47);
}

/// STATEFULSET-29 and STATEFULSET-52: with OrderedReady the set names the pod that its own update broke.
#[test]
fn an_ordered_set_names_the_pod_that_its_update_broke() {
    let mut world = World::resting(json!({"podManagementPolicy": "OrderedReady"}));
    world.broken.push("app:v2".to_owned());
    world.image("app:v2");
    world.rest();
    let (plan, _) = decide(&world.seen());
    assert_eq!(plan.waits.message(), "pod web-4 must be available before web-3 is updated");
    world.rolling(json!({"partition": 4}));
    let (plan, _) = decide(&world.seen());
    assert_eq!(
        plan.waits.sentence(crate::waiting::Reason::PredecessorNotReady),
        None,
        "no other pod is to follow"
    );
}

/// <https://github.com/kubernetes/kubernetes/issues/137409> with OrderedReady: the pod that waits has to be deleted by hand,
/// as with the native kind, and the set names it.
#[test]
fn a_broken_first_revision_of_an_ordered_set_is_named_kubernetes_137409() {
    let rolling = json!({"maxUnavailable": 2});
    let spec = json!({"podManagementPolicy": "OrderedReady", "updateStrategy": {"rollingUpdate": rolling}});
    let mut world = World::new(spec);
    world.broken.push("app:v1".to_owned());
    world.rest();
    world.image("app:v2");
    world.rest();
    assert_eq!(world.shown(), "0:v1");
    let (plan, _) = decide(&world.seen());
    assert_eq!(plan.waits.message(), "pod web-0 must be available before web-1 is created");
    world.pod(0)["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    world.rest();
    assert_eq!(world.shown(), "0:v2 1:v2 2:v2 3:v2 4:v2");
}

/// STATEFULSET-17: all pods are broken, and more than may be unavailable while pods are added. The repair reaches them.
#[test]
fn broken_pods_are_repaired_whatever_the_pace_of_scaling() {
    let rolling = json!({"rollingUpdate": {"maxUnavailable": 1}});
    let mut world =
        World::new(json!({"scaleStrategy": {"maxUnavailable": "100%"}, "updateStrategy": rolling}));
    world.broken.push("app:v1".to_owned());
    world.rest();
    assert_eq!(world.shown(), "0:v1 1:v1 2:v1 3:v1 4:v1");
    world.image("app:v2");
    world.rest();
    assert_eq!(world.shown(), "0:v2 1:v2 2:v2 3:v2 4:v2");
}

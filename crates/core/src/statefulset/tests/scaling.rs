use kruise_api::gates::Gate;
use serde_json::json;

use super::kit::{World, render};
use crate::statefulset::decide;

/// STATEFULSET-1: with OrderedReady a pod is created when the one before it is available.
#[test]
fn pods_are_created_one_after_the_other() {
    let mut world = World::new(json!({"podManagementPolicy": "OrderedReady", "replicas": 3}));
    world.pass();
    assert_eq!(render(&world.pass()), "create web-0");
    let pod = &world.pods["web-0"];
    assert_eq!(
        (&pod["spec"]["hostname"], &pod["spec"]["subdomain"], &pod["metadata"]["generateName"]),
        (&json!("web-0"), &json!("svc"), &json!("web-"))
    );
    let labels = &pod["metadata"]["labels"];
    assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "web-0");
    assert_eq!(labels["apps.kubernetes.io/pod-index"], "0");
    assert_eq!(labels["controller-revision-hash"], *world.revisions.keys().next().unwrap());
    assert_eq!(labels["lifecycle.apps.kruise.io/state"], "Normal");
    assert_eq!(render(&world.pass()), "", "it is not available yet");
    world.rest();
    assert_eq!(world.shown(), "0:v1 1:v1 2:v1");
}

/// STATEFULSET-1: the subdomain is the service, whatever the template says.
#[test]
fn the_service_names_the_subdomain() {
    for (service, expected) in [("svc", json!("svc")), ("", json!(""))] {
        let template = json!({"spec": {"subdomain": "other"}});
        let world = World::resting(json!({"replicas": 1, "serviceName": service, "template": template}));
        assert_eq!(world.pods["web-0"]["spec"]["subdomain"], expected);
    }
}

/// STATEFULSET-3 and STATEFULSET-18
#[test]
fn pods_are_removed_from_the_highest_ordinal_down() {
    let mut world = World::resting(json!({"podManagementPolicy": "OrderedReady", "replicas": 4}));
    world.edit(json!({"replicas": 1}));
    for expected in ["delete web-3", "", "delete web-2", "", "delete web-1", ""] {
        assert_eq!(render(&world.pass()), expected);
        if expected.is_empty() {
            world.tick();
        }
    }
    let mut world = World::resting(json!({"replicas": 3, "scaleStrategy": {"maxUnavailable": 1}}));
    world.edit(json!({"replicas": 0}));
    assert_eq!(render(&world.pass()), "delete web-0, delete web-1, delete web-2");
}

/// STATEFULSET-7: an ended pod is replaced, also where one pod may be unavailable.
#[test]
fn a_pod_that_has_ended_is_replaced() {
    for policy in ["Parallel", "OrderedReady"] {
        let mut world = World::resting(
            json!({"podManagementPolicy": policy, "replicas": 2, "scaleStrategy": {"maxUnavailable": 1}}),
        );
        world.pod(1)["status"]["phase"] = "Failed".into();
        assert_eq!(render(&world.pass()), "delete web-1", "{policy}");
        world.rest();
        assert_eq!(world.shown(), "0:v1 1:v1");
    }
}

/// STATEFULSET-10, STATEFULSET-12 and STATEFULSET-13
#[test]
fn reserved_ordinals_move_pods() {
    let mut world = World::resting(json!({"replicas": 4, "reserveOrdinals": [1]}));
    assert_eq!(world.shown(), "0:v1 2:v1 3:v1 4:v1");
    world.edit(json!({"reserveOrdinals": [1, 3]}));
    world.rest();
    assert_eq!(world.shown(), "0:v1 2:v1 4:v1 5:v1");
    world.edit(json!({"replicas": 3}));
    world.rest();
    assert_eq!(world.shown(), "0:v1 2:v1 4:v1");

    let mut world = World::resting(json!({"podManagementPolicy": "OrderedReady", "replicas": 3}));
    world.edit(json!({"reserveOrdinals": [1]}));
    assert_eq!(render(&world.pass()), "create web-3");
    assert_eq!(render(&world.pass()), "", "the substitute comes first");
    world.rest();
    assert_eq!(world.shown(), "0:v1 2:v1 3:v1");

    let spec = json!({"replicas": 3, "ordinals": {"start": 2}});
    let mut world = World::new(spec.clone()).with_gate(Gate::StatefulSetStartOrdinal);
    world.rest();
    assert_eq!(world.shown(), "2:v1 3:v1 4:v1");
    world.edit(json!({"ordinals": {"start": 4}}));
    world.rest();
    assert_eq!(world.shown(), "4:v1 5:v1 6:v1");
    world.edit(json!({"ordinals": null}));
    world.rest();
    assert_eq!(world.shown(), "0:v1 1:v1 2:v1");
    assert_eq!(World::resting(spec).shown(), "0:v1 1:v1 2:v1", "without the gate the field has no effect");
}

/// STATEFULSET-15 and STATEFULSET-16
#[test]
fn pods_are_added_as_far_as_others_are_available() {
    let mut world = World::resting(json!({"replicas": 3, "scaleStrategy": {"maxUnavailable": 2}}));
    world.broken.push("app:v1".to_owned());
    world.edit(json!({"replicas": 10}));
    assert_eq!(render(&world.pass()), "create web-3, create web-4");
    let (plan, _) = decide(&world.seen());
    assert_eq!(render(&plan), "");
    assert_eq!(
        plan.waits.message(),
        "2 of at most 2 pods are unavailable (scaleStrategy.maxUnavailable: 2); 5 pods are still missing"
    );
    let world = World::new(json!({"replicas": 5, "scaleStrategy": {"maxUnavailable": "10%"}}));
    let mut world = world;
    world.pass();
    assert_eq!(render(&world.pass()), "create web-0");
}

/// STATEFULSET-5
#[test]
fn a_name_that_another_pod_has_is_not_used() {
    let mut world = World::resting(json!({"replicas": 2}));
    world.pod(1)["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(render(&world.pass()), "adopt web-1");
    world.pod(1)["metadata"]["labels"]["app"] = "other".into();
    world.pass();
    assert_eq!(world.pods["web-1"]["metadata"]["ownerReferences"], json!([]), "it was released");
    let (plan, _) = decide(&world.seen());
    assert_eq!((render(&plan), plan.waits.main().unwrap().as_str()), (String::new(), "NameTaken"));
}

/// STATEFULSET-4: a pod is created when the one before it has been ready for long enough, without any other event.
#[test]
fn min_ready_seconds_are_waited_for() {
    let spec = json!({"podManagementPolicy": "OrderedReady", "replicas": 2,
        "updateStrategy": {"rollingUpdate": {"minReadySeconds": 20}}});
    let mut world = World::new(spec);
    for _ in 0..5 {
        world.pass();
        world.tick();
    }
    let plan = world.pass();
    assert_eq!(render(&plan), "");
    assert!(plan.wake_after.is_some_and(|after| after.as_secs() <= 20), "{:?}", plan.wake_after);
    world.rest();
    let ready =
        |world: &World, pod: &str| world.pods[pod]["status"]["conditions"][0]["lastTransitionTime"].clone();
    assert!(ready(&world, "web-1").as_str() > ready(&world, "web-0").as_str());
}

/// STATEFULSET-5: a pod that has failed is adopted too, and then replaced; one that was relabelled is let go as it is.
#[test]
fn a_failed_pod_of_nobody_is_adopted_and_replaced() {
    for policy in ["Parallel", "OrderedReady"] {
        let mut world = World::resting(json!({"podManagementPolicy": policy, "replicas": 3}));
        world.pod(1)["status"]["phase"] = "Failed".into();
        world.pod(1)["metadata"]["ownerReferences"] = json!([]);
        assert_eq!(render(&world.pass()), "adopt web-1", "{policy}");
        assert_eq!(render(&world.pass()), "delete web-1", "{policy}");
        world.rest();
        assert_eq!(world.shown(), "0:v1 1:v1 2:v1", "{policy}");

        world.pod(2)["status"]["phase"] = "Failed".into();
        world.pod(2)["metadata"]["labels"]["app"] = "look".into();
        assert_eq!(render(&world.pass()), "", "{policy}");
        assert_eq!(
            world.pods["web-2"]["metadata"]["ownerReferences"],
            json!([]),
            "{policy}: it was released"
        );
    }
}

/// STATEFULSET-36: a pod whose deletion was begun is deleted when its hook lets it go, whatever became of lower ones.
#[test]
fn a_deletion_that_was_begun_does_not_wait_for_lower_pods() {
    let template = json!({"metadata": {"labels": {"app": "web", "hold": "yes"}}});
    let mut world =
        World::resting(json!({"podManagementPolicy": "OrderedReady", "replicas": 4, "template": template,
        "lifecycle": {"preDelete": {"labelsHandler": {"hold": "yes"}}}}));
    world.edit(json!({"replicas": 2}));
    world.rest();
    world.broken.push("app:v1 on web-2".to_owned());
    world.rest();
    for ordinal in [3, 2] {
        world.pod(ordinal)["metadata"]["labels"].as_object_mut().unwrap().remove("hold");
        assert_eq!(render(&world.pass()), format!("delete web-{ordinal}"));
        world.rest();
    }
    assert_eq!(world.shown(), "0:v1 1:v1");
}

/// STATEFULSET-7: a pod that has ended costs nothing, so it is replaced although as many others are unavailable as may be.
#[test]
fn an_ended_pod_is_replaced_beyond_the_limit() {
    let mut world = World::resting(json!({"replicas": 4, "scaleStrategy": {"maxUnavailable": 1}}));
    world.broken.push("app:v1 on web-0".to_owned());
    world.rest();
    world.pod(3)["status"]["phase"] = "Failed".into();
    assert_eq!(render(&world.pass()), "delete web-3");
}

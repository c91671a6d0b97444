//! The status.

use kruise_api::gates::Gate;
use serde_json::json;

use super::kit::World;
use crate::{
    daemonset::{decide, status_write},
    waiting::Waits,
};

#[test]
fn the_numbers_follow_the_pod_that_stands_for_a_node() {
    let mut world = World::resting(4, json!({"minReadySeconds": 5}));
    world.bad_nodes.insert("n1".to_owned());
    world.tick();
    world.taint("n2", "k", "NoSchedule");
    world.delete_pod("n3");
    let (_, standing) = decide(&world.seen());
    let status = standing.status(&world.seen(), true, &Waits::default());
    assert_eq!(status.desired_number_scheduled, 3);
    assert_eq!(status.current_number_scheduled, 2);
    assert_eq!(status.number_misscheduled, 1);
    assert_eq!(status.number_ready, 1);
    assert_eq!((status.number_available, status.number_unavailable), (Some(1), Some(2)));
    assert_eq!(status.updated_number_scheduled, 2);
}

#[test]
fn a_reconcile_that_failed_does_not_claim_the_generation() {
    let mut world = World::resting(1, json!({}));
    world.edit(json!({"minReadySeconds": 1}));
    let seen = world.seen();
    let (_, standing) = decide(&seen);
    assert_eq!(standing.status(&seen, false, &Waits::default()).observed_generation, Some(1));
    assert_eq!(standing.status(&seen, true, &Waits::default()).observed_generation, Some(2));
}

#[test]
fn an_equal_status_is_not_written() {
    let world = World::resting(2, json!({}));
    let seen = world.seen();
    let (plan, standing) = decide(&seen);
    assert_eq!(
        (plan.steps.len(), status_write(&seen.set, &standing.status(&seen, true, &Waits::default()))),
        (0, None)
    );
}

#[test]
fn a_spec_that_cannot_be_carried_out_leaves_the_status_alone() {
    let mut world = World::resting(2, json!({}));
    world.edit(json!({"burstReplicas": "abc"}));
    let before = world.number("numberAvailable");
    let plan = world.pass();
    assert_eq!((world.number("numberAvailable"), world.number("observedGeneration")), (before, 1));
    check(&world, "SpecInvalid", "spec.burstReplicas is invalid");
    assert!(plan.failures[0].message.contains("spec.burstReplicas is invalid"), "{:?}", plan.failures);
    world.edit(json!({"burstReplicas": 1, "selector": {"matchLabels": null}}));
    world.pass();
    assert_eq!(
        world.count("SelectingAll This DaemonSet is selecting all pods. A non-empty selector is required."),
        1
    );
}

/// The condition `Waiting`: status, reason and message.
fn waiting(world: &World) -> (String, String, String) {
    let conditions = world.set["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|one| one["type"] == "Waiting").unwrap_or_default();
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

#[track_caller]
fn check(world: &World, reason: &str, message: &str) {
    let (status, found, text) = waiting(world);
    assert_eq!((status.as_str(), found.as_str()), ("True", reason), "{text}");
    assert!(text.contains(message), "{text}");
}

/// WAITING-18, WAITING-4, WAITING-3
#[test]
fn a_set_that_waits_says_why_with_numbers_and_names() {
    let mut world = World::resting(4, json!({}));
    assert_eq!(waiting(&world).0, "");
    world.rolling(json!({"partition": 3}));
    world.image("app:v2");
    world.rest();
    check(
        &world,
        "PartitionReached",
        "1 of 4 pods is updated; partition 3 keeps 3 pods at the old revision; lower it to continue",
    );
    world.rolling(json!({"partition": 0, "paused": true}));
    world.rest();
    check(&world, "Paused", "with 1 of 4 pods at revision");
    world.rolling(json!({"paused": false}));
    world.pass();
    world.tick();
    world.pass();
    check(
        &world,
        "MaxUnavailableReached",
        "1 of at most 1 pod is unavailable (maxUnavailable: 1); next to update: agent-",
    );
    world.rest();
    assert_eq!(waiting(&world), ("False".to_owned(), "NotWaiting".to_owned(), String::new()));
    world.edit(json!({"template": {"spec": {"nodeSelector": {"color": "blue"}}}}));
    world.passes(12);
    check(
        &world,
        "NodeNotEligible",
        "no node fits: of 4 nodes 4 do not match nodeSelector or affinity, 0 have taints that are not tolerated",
    );
}

/// WAITING-4: a partition that holds back new pods says so.
#[test]
fn nodes_without_a_pod_because_of_the_partition_are_reported() {
    let spec = json!({"updateStrategy": {"rollingUpdate": {"partition": "100%"}},
        "scaleStrategy": {"partitionedScaling": true}});
    let mut world = World::new(4, spec);
    world.rest();
    let sentence = "4 of 4 nodes get no pod: partition 100% holds new pods back";
    check(&world, "PartitionReached", sentence);
    world.rolling(json!({"partition": 1}));
    world.rest();
    check(&world, "PartitionReached", "1 of 4 nodes gets no pod: partition 1 holds new pods back");
    world.rolling(json!({"partition": 0}));
    world.rest();
    assert_eq!(waiting(&world).0, "False");
}

/// WAITING-13: an update in place that does not end is reported, also where the pod stays ready.
#[test]
fn an_update_in_place_that_does_not_end_is_reported() {
    let gates = |world: World| world.with_gate(Gate::InPlaceWorkloadVerticalScaling);
    let rolling = json!({"updateStrategy": {"rollingUpdate": {"rollingUpdateType": "InPlaceIfPossible"}}});
    let mut world = gates(World::new(2, rolling.clone()));
    world.rest();
    world.stuck.extend(["n1".to_owned(), "n2".to_owned()]);
    world.image("app:v2");
    world.passes(5);
    assert_ne!(waiting(&world).1, "InPlaceUpdateRunning", "a wait of seconds is normal");
    world.passes(12);
    check(&world, "InPlaceUpdateRunning", "1 pod is being updated in place (agent-");

    let amounts = |cpu: &str| {
        json!({"template": {"spec": {"containers": [
        {"name": "main", "image": "app:v1", "resources": {"requests": {"cpu": cpu}}}]}}})
    };
    let mut spec = rolling;
    crate::patch_model::merge(&mut spec, &amounts("1"));
    let mut world = gates(World::new(2, spec));
    world.rest();
    world.stuck.insert("n2".to_owned());
    world.edit(amounts("2"));
    world.passes(3);
    let name = world.pod_on("n2");
    let infeasible =
        json!({"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "too much"});
    let pod = world.pods.get_mut(&name).unwrap();
    crate::patch_model::strategic(pod, &json!({"status": {"conditions": [infeasible]}}));
    world.passes(14);
    check(&world, "InPlaceUpdateRunning", "1 pod is being updated in place (agent-");
    check(&world, "InPlaceUpdateRunning", ": too much");
}

/// WAITING-2
#[test]
fn images_that_are_not_pulled_ahead_because_of_a_closed_gate_are_reported() {
    let mut world = World::resting(2, json!({"updateStrategy": {"rollingUpdate": {"paused": true}}}));
    world.set["metadata"]["annotations"] = json!({"apps.kruise.io/image-predownload-parallelism": "2"});
    world.rest();
    assert_eq!(waiting(&world).0, "", "there is nothing to pull");
    world.image("app:v2");
    world.rest();
    let sentence = "metadata.annotations[apps.kruise.io/image-predownload-parallelism] has no effect: feature gate \
                    PreDownloadImageForDaemonSetUpdate is off";
    check(&world, "Paused", sentence);
}

/// A surge that still runs is not over, whatever the partition keeps.
#[test]
fn the_partition_is_reported_when_the_last_node_is_done() {
    let rolling = json!({"maxUnavailable": 0, "maxSurge": 2, "partition": 2});
    let mut world = World::resting(4, json!({"updateStrategy": {"rollingUpdate": rolling}}));
    world.image("app:v2");
    world.pass();
    while world.images() != "n1=v1 n2=v1 n3=v2 n4=v2" {
        world.pass();
        assert_ne!(waiting(&world).1, "PartitionReached", "{}", world.images());
        world.tick();
    }
    world.rest();
    check(&world, "PartitionReached", "2 of 4 pods are updated");
}

/// 500 nodes that flap are no reason to write 500 messages.
#[test]
fn a_node_that_has_just_gone_down_is_reported_after_ten_seconds() {
    let mut world = World::resting(2, json!({}));
    world.passes(20);
    let now = world.now.to_string();
    let down = json!({"type": "Ready", "status": "Unknown", "lastTransitionTime": now});
    world.nodes.get_mut("n2").unwrap()["status"]["conditions"] = json!([down]);
    world.passes(9);
    assert_eq!(waiting(&world).0, "");
    world.passes(2);
    check(&world, "NodeNotReady", "1 pod is on nodes that are not ready (n2)");
}

#[test]
fn trouble_that_stays_is_reported_with_the_names_of_nodes() {
    let mut world = World::resting(3, json!({}));
    world.bad_nodes.insert("n2".to_owned());
    world.image("app:v2");
    world.passes(30);
    check(&world, "PodNotReady", "1 of 3 pods is not ready (agent-");
    let status = &mut world.nodes.get_mut("n2").unwrap()["status"]["conditions"][0]["status"];
    *status = json!("Unknown");
    world.passes(2);
    check(&world, "NodeNotReady", "1 pod is on nodes that are not ready (n2)");
}

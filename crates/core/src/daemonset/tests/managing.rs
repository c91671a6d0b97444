//! Which nodes get a pod, and which pods are deleted.

use kruise_api::gates::Gate;
use serde_json::{Value, json};

use super::kit::World;
use crate::plan::WriteBudget;

fn rolling(rolling: Value) -> Value {
    json!({"updateStrategy": {"rollingUpdate": rolling}})
}

/// DAEMONSET-1
#[test]
fn every_node_gets_one_pod() {
    let world = World::resting(3, json!({}));
    assert_eq!(world.images(), "n1=v1 n2=v1 n3=v1");
    let status = &world.set["status"];
    for field in [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "numberAvailable",
        "updatedNumberScheduled",
    ] {
        assert_eq!(status[field], 3, "{field}");
    }
    assert_eq!((&status["numberMisscheduled"], &status["numberUnavailable"]), (&json!(0), &Value::Null));
    assert_eq!((&status["observedGeneration"], &status["collisionCount"]), (&json!(1), &Value::Null));
    let pod = &world.pods[&world.pod_on("n1")];
    assert_eq!(status["updateRevision"], pod["metadata"]["labels"]["controller-revision-hash"]);
    let revision = world.revisions.values().next().unwrap();
    let labels = json!({"app": "agent", "controller-revision-hash": status["updateRevision"]});
    assert_eq!(revision["metadata"]["labels"], labels);
}

/// DAEMONSET-2
#[test]
fn pods_follow_the_labels_of_nodes() {
    let blue = json!({"template": {"spec": {"nodeSelector": {"color": "blue"}}}});
    let mut world = World::resting(2, blue);
    assert_eq!((world.images().as_str(), world.number("desiredNumberScheduled")), ("", 0));
    world.label_node("n1", "color", "blue");
    world.rest();
    assert_eq!(world.images(), "n1=v1");
    world.label_node("n1", "color", "green");
    world.rest();
    assert_eq!(world.images(), "");
}

/// DAEMONSET-5
#[test]
fn a_taint_keeps_pods_away_and_no_execute_sends_them_away() {
    let mut world = World::resting(2, json!({}));
    world.taint("n2", "k", "NoSchedule");
    world.rest();
    assert_eq!(world.images(), "n1=v1 n2=v1");
    assert_eq!((world.number("desiredNumberScheduled"), world.number("numberMisscheduled")), (1, 1));
    world.delete_pod("n2");
    world.rest();
    assert_eq!((world.images().as_str(), world.number("numberMisscheduled")), ("n1=v1", 0));
    world.untaint("n2");
    world.rest();
    assert_eq!(world.images(), "n1=v1 n2=v1");
    world.taint("n2", "k", "NoExecute");
    world.rest();
    assert_eq!(world.images(), "n1=v1");
}

/// DAEMONSET-7
#[test]
fn pods_that_wait_for_a_node_that_is_gone_are_deleted() {
    let mut world = World::new(2, json!({}));
    world.passes(1);
    world.pass();
    assert_eq!(world.pods.len(), 2);
    world.remove_node("n2");
    world.rest();
    assert_eq!(world.images(), "n1=v1");
    world.add_node("n3");
    world.rest();
    assert_eq!(world.images(), "n1=v1 n3=v1");
}

/// DAEMONSET-9
#[test]
fn a_node_that_rejects_its_pods_gets_them_at_growing_intervals() {
    let mut world = World::resting(2, json!({}));
    world.rejecting.insert("n1".to_owned());
    world.tick();
    // The running pod fails only when somebody says so.
    world.phase("n1", "Failed");
    let mut deletions = Vec::new();
    for second in 0..40 {
        let before = world.count("FailedDaemonPod");
        world.pass();
        if world.count("FailedDaemonPod") > before {
            deletions.push(second);
        }
        world.tick();
    }
    let pauses: Vec<i32> = deletions.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.len() >= 4 && pauses.windows(2).all(|pair| pair[1] >= pair[0]), "{deletions:?}");
    assert!(pauses.last().is_some_and(|last| *last >= 8), "{deletions:?}");
    assert_eq!(world.images(), "n1=v1 n2=v1");
    let event = "FailedDaemonPod Found failed daemon pod default/agent-";
    assert!(
        world.count(event) > 0
            && world.events.iter().any(|one| one.ends_with(" on node n1, will try to kill it"))
    );
    world.edit(json!({"minReadySeconds": 1}));
    let before = world.count("FailedDaemonPod");
    world.pass();
    assert_eq!(world.count("FailedDaemonPod"), before + 1, "a change of the spec begins anew");
}

/// DAEMONSET-9, DAEMONSET-33: a hook that makes the pod not ready takes two writes, and the pod failed once.
#[test]
fn a_failed_pod_that_a_hook_holds_counts_once() {
    let hook = json!({"labelsHandler": {"hold": "yes"}, "markPodNotReady": true});
    let gates = json!([{"conditionType": "KruisePodReady"}]);
    let spec = json!({"lifecycle": {"preDelete": hook},
        "template": {"metadata": {"labels": {"hold": "yes"}}, "spec": {"readinessGates": gates}}});
    let mut world = World::new(1, spec);
    world.passes(3);
    world.phase("n1", "Failed");
    world.passes(6);
    assert_eq!((world.state("n1").as_str(), world.count("FailedDaemonPod")), ("PreparingDelete", 1));
    let failed = world.pod_on("n1");
    world.label("n1", "hold", "no");
    world.passes(2);
    assert_ne!(world.pod_on("n1"), failed);
}

/// DAEMONSET-10
#[test]
fn a_pod_that_ended_is_replaced() {
    let mut world = World::resting(2, json!({}));
    let before = world.pod_on("n2");
    world.phase("n2", "Succeeded");
    world.rest();
    assert!(world.images() == "n1=v1 n2=v1" && world.pod_on("n2") != before);
    assert_eq!(world.count("SucceededDaemonPod Found succeeded daemon pod default/"), 1);
}

/// DAEMONSET-11
#[test]
fn burst_replicas_limits_each_pass() {
    let mut world = World::new(4, json!({"burstReplicas": 1}));
    world.pass();
    let mut counts = Vec::new();
    for _ in 0..4 {
        world.pass();
        counts.push(world.pods.len());
    }
    assert_eq!(counts, [1, 2, 3, 4]);
    assert_eq!(World::resting(4, json!({"burstReplicas": "1%"})).pods.len(), 4);
    assert_eq!(World::resting(4, json!({"burstReplicas": 0})).pods.len(), 0);
}

/// DAEMONSET-11: also where a pod is made for one reason and another one for another.
#[test]
fn burst_replicas_limits_all_creations_and_all_deletions_of_a_pass() {
    let mut spec = rolling(json!({"maxUnavailable": 0, "maxSurge": 3}));
    spec["burstReplicas"] = json!(1);
    let mut world = World::resting(3, spec);
    world.image("app:v2");
    world.pass();
    world.add_node("n4");
    world.delete_pod("n1");
    for _ in 0..12 {
        let before = (world.count("SuccessfulCreate"), world.count("SuccessfulDelete"));
        world.pass();
        assert!(world.count("SuccessfulCreate") <= before.0 + 1, "{:?}", world.events);
        assert!(world.count("SuccessfulDelete") <= before.1 + 1, "{:?}", world.events);
        world.tick();
    }
    assert_eq!(world.images(), "n1=v2 n2=v2 n3=v2 n4=v2");
    let mut world = World::resting(3, json!({"burstReplicas": 1}));
    world.image("app:v2");
    world.pass();
    world.taint("n1", "k", "NoExecute");
    world.pass();
    assert_eq!(world.count("SuccessfulDelete"), 1, "{:?}", world.events);
}

/// DAEMONSET-12
#[test]
fn a_quota_is_reported_and_the_rest_comes_when_it_is_raised() {
    let mut world = World::new(4, json!({}));
    world.quota = 2;
    world.passes(6);
    assert_eq!((world.pods.len(), world.number("currentNumberScheduled")), (2, 2));
    assert_eq!((world.number("numberReady"), world.number("observedGeneration")), (2, 0));
    assert!(world.count("FailedCreate Error creating: exceeded quota") > 0);
    world.quota = 4;
    world.rest();
    assert_eq!((world.pods.len(), world.number("observedGeneration")), (4, 1));
}

/// New pods that a quota refuses come again in every reconcile. They must not take the place of all other writes.
#[test]
fn pods_that_cannot_be_created_hold_up_neither_deletions_nor_updates() {
    let in_place = json!({"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 7});
    let mut world = World::new(8, rolling(in_place));
    world.room = WriteBudget { pods: 3, ..WriteBudget::default() };
    world.quota = 4;
    world.passes(10);
    let pods = world.pods.len();
    world.image("app:v2");
    world.passes(20);
    assert_eq!((pods, world.images().matches("v2").count(), world.down()), (4, 4, 4), "{}", world.images());
    let node = world.nodes.keys().find(|node| !world.on(node).is_empty()).unwrap().clone();
    world.quota = 3;
    world.taint(&node, "k", "NoExecute");
    world.passes(5);
    assert_eq!((world.on(&node).len(), world.pods.len()), (0, 3));
    world.no_delete = world.nodes.keys().cloned().collect();
    let nodes: Vec<String> = world.nodes.keys().cloned().collect();
    nodes.iter().for_each(|node| world.taint(node, "k", "NoExecute"));
    world.add_node("n9");
    world.quota = 9;
    world.room.pods = 2;
    world.passes(5);
    assert_eq!(world.on("n9").len(), 1, "deletions that are refused do not hold up new pods");
}

/// A policy that refuses the pods of some nodes keeps no other node waiting for long.
#[test]
fn nodes_that_cannot_get_a_pod_do_not_keep_others_waiting() {
    let mut world = World::new(20, json!({}));
    let refused: Vec<String> = world.nodes.keys().take(12).cloned().collect();
    world.no_create.extend(refused);
    world.passes(12);
    assert!(world.pods.len() >= 7, "{}", world.images());
    world.passes(3);
    assert_eq!(world.pods.len(), 8, "{}", world.images());
    world.no_create.clear();
    world.passes(3);
    assert_eq!(world.pods.len(), 20);
    let partition = json!({"updateStrategy": {"rollingUpdate": {"partition": 3}}, "scaleStrategy": {"partitionedScaling": true}});
    let mut world = World::new(4, partition);
    world.no_create.insert("n1".to_owned());
    world.passes(4);
    assert_eq!(world.images(), "n2=v1", "another node takes the one place");
}

/// DAEMONSET-33
#[test]
fn a_hook_holds_a_pod_that_is_not_wanted() {
    let hook = json!({"labelsHandler": {"hold": "yes"}});
    let spec =
        json!({"lifecycle": {"preDelete": hook}, "template": {"metadata": {"labels": {"hold": "yes"}}}});
    let mut world = World::resting(2, spec);
    world.taint("n1", "k", "NoExecute");
    world.rest();
    assert_eq!(world.state("n1"), "PreparingDelete");
    world.label("n1", "hold", "no");
    world.rest();
    assert_eq!(world.images(), "n2=v1");
}

/// DAEMONSET-35
#[test]
fn a_partition_holds_back_new_pods_if_asked_to() {
    let partitioned = |partition: Value| {
        let mut spec = rolling(json!({"partition": partition}));
        spec["scaleStrategy"] = json!({"partitionedScaling": true});
        spec
    };
    assert_eq!(World::resting(4, partitioned(json!(4))).images(), "");
    let mut world = World::resting(4, partitioned(json!(3)));
    assert_eq!(world.images(), "n1=v1");
    world.rolling(json!({"partition": 0}));
    world.rest();
    assert_eq!(world.images(), "n1=v1 n2=v1 n3=v1 n4=v1");
    let mut world = World::new(4, partitioned(json!("50%")));
    world.passes(2);
    assert_eq!(world.images(), "n1=v1 n2=v1", "the very first reconcile keeps to it");
}

/// DAEMONSET-42
#[test]
fn an_orphan_is_adopted_and_the_older_pod_of_a_node_stays() {
    let mut world = World::resting(1, json!({}));
    let kept = world.pod_on("n1");
    world.passes(3);
    let stray = json!({
        "metadata": {"name": "stray", "namespace": "default", "uid": "uid-stray", "resourceVersion": "1",
            "labels": {"app": "agent"}, "creationTimestamp": world.now.to_string()},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "app:v1"}]}, "status": {"phase": "Running"},
    });
    world.pods.insert("stray".to_owned(), stray);
    world.pass();
    assert_eq!(world.pods["stray"]["metadata"]["ownerReferences"][0]["uid"], "set-uid");
    world.rest();
    assert_eq!(world.on("n1"), [kept]);
}

#[test]
fn no_pod_is_made_on_the_node_of_an_orphan() {
    let mut world = World::new(1, json!({}));
    let stray = json!({
        "metadata": {"name": "stray", "namespace": "default", "uid": "uid-stray", "resourceVersion": "1",
            "labels": {"app": "agent"}, "creationTimestamp": world.now.to_string()},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "app:v1"}]}, "status": {"phase": "Running"},
    });
    world.pods.insert("stray".to_owned(), stray);
    world.rest_while(&mut |world| assert!(world.pods.len() <= 1));
    assert_eq!(world.images(), "n1=v1");
}

#[test]
fn a_pod_whose_labels_were_changed_is_let_go() {
    let mut world = World::resting(1, json!({}));
    let former = world.pod_on("n1");
    world.label("n1", "app", "other");
    world.rest();
    let owners = &world.pods[&former]["metadata"]["ownerReferences"];
    assert!(owners.as_array().unwrap().is_empty(), "{owners}");
    assert_eq!(world.pods.len(), 2);
}

#[test]
fn a_pod_that_cannot_be_read_keeps_its_node_and_is_not_touched() {
    let mut world = World::resting(2, json!({}));
    world.image("app:v2");
    world.pass();
    let mut seen = world.seen();
    for pod in &mut seen.pods {
        std::sync::Arc::make_mut(pod).metadata.unreadable = true;
    }
    assert_eq!(crate::daemonset::plan(&seen).steps, []);
    // Also where the node does not fit any more.
    world.taint("n1", "k", "NoExecute");
    let nodes = world.seen().nodes;
    seen.nodes = nodes;
    assert_eq!(crate::daemonset::plan(&seen).steps, []);
}

#[test]
fn a_set_that_is_deleted_does_nothing() {
    let mut world = World::new(2, json!({}));
    world.set["metadata"]["deletionTimestamp"] = world.now.to_string().into();
    assert_eq!(world.pass().steps, []);
}

/// DAEMONSET-8
#[test]
fn pods_are_bound_by_name_where_the_scheduler_is_not_asked() {
    let mut world = World::new(1, json!({}));
    world.by_scheduler = false;
    world.rest();
    let spec = &world.pods[&world.pod_on("n1")]["spec"];
    assert_eq!(
        (&spec["nodeName"], &spec["schedulerName"]),
        (&json!("n1"), &json!("kubernetes.io/daemonset-controller"))
    );
    assert_eq!(spec["affinity"], Value::Null);
}

/// DAEMONSET-39
#[test]
fn nodes_that_do_not_fit_use_up_the_limit_unless_they_are_pruned() {
    let play = |prunes: bool| {
        let mut world = World::new(4, rolling(json!({"maxUnavailable": 2})));
        if prunes {
            world = world.with_gate(Gate::DaemonSetPruneIneligibleNodes);
        }
        world.rest();
        world.bad_nodes = ["n1".to_owned(), "n2".to_owned()].into();
        world.tick();
        world.taint("n1", "down", "NoSchedule");
        world.taint("n2", "down", "NoSchedule");
        world.image("app:v2");
        world.slow_end = true;
        // Pods of nodes that are down do not end.
        for _ in 0..30 {
            world.pass();
            let stuck: Vec<_> = ["n1", "n2"].map(|node| world.pod_on(node)).to_vec();
            let kept: Vec<_> =
                stuck.iter().filter_map(|pod| Some((pod.clone(), world.pods.get(pod)?.clone()))).collect();
            world.tick();
            world.pods.extend(kept);
        }
        world.images()
    };
    assert_eq!(play(true), "n1=v1 n2=v1 n3=v2 n4=v2");
    assert_eq!(play(false), "n1=v1 n2=v1 n3=v1 n4=v1");
}

#[test]
fn names_of_pods_are_no_longer_than_the_server_would_make_them() {
    let mut world = World::new(2, json!({}));
    world.set["metadata"]["name"] = "a".repeat(200).into();
    world.rest();
    let mut names = world.pods.keys().map(String::len).collect::<Vec<_>>();
    names.dedup();
    assert_eq!(names, [63]);
}

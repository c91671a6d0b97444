//! Updates without a surge: limits, partition, node selector, pause, in place.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    agent::{Agent, all, is_settled, node_of, rolling},
    film::Film,
    kit::is_ready,
    stage::{Stage, embedded_only, managed},
};

/// The most nodes at once that had no ready pod.
fn most_down(film: &Film, nodes: usize) -> usize {
    let up = |frame: &crate::film::Frame| {
        let ready: std::collections::BTreeSet<String> =
            frame.active().filter(|pod| is_ready(pod)).map(node_of).collect();
        ready.len()
    };
    film.frames().iter().map(|frame| nodes - up(frame)).max().unwrap_or(0)
}

/// The last nodes by name have the image `app:v2`, the others `app:v1`.
fn updated(nodes: &[String], count: usize) -> BTreeMap<String, String> {
    let mut images = all(nodes, "app:v1");
    images.extend(all(&nodes[nodes.len() - count..], "app:v2"));
    images
}

/// DAEMONSET-13: one node after the other.
async fn an_update_takes_one_node_at_a_time(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "one-node", json!({})).await;
    let nodes = agent.nodes().await;
    let film = agent.film().await;
    agent.set_image("app:v2").await;
    agent.rolled_out().await;
    assert_eq!(agent.images().await, all(&nodes, "app:v2"));
    assert_eq!(most_down(&film, nodes.len()), 1);
    Ok(())
}
managed!(an_update_takes_one_node_at_a_time, []);

/// DAEMONSET-14: a percentage is rounded up, and all nodes at once are allowed.
async fn percentages_of_nodes_are_rounded_up(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "percent", rolling(json!({"maxUnavailable": "30%"}))).await;
    let nodes = agent.nodes().await;
    let film = agent.film().await;
    agent.set_image("app:v2").await;
    agent.rolled_out().await;
    assert_eq!(most_down(&film, nodes.len()), (nodes.len() * 3).div_ceil(10));
    Ok(())
}
managed!(percentages_of_nodes_are_rounded_up, []);

/// DAEMONSET-15: a pod that is not ready is replaced although the limit is used up.
async fn a_pod_that_serves_nobody_is_replaced_at_once(stage: &mut Stage) -> Outcome {
    let gates = json!([{"conditionType": "example.com/ready"}]);
    let agent = Agent::prepare(stage, "serves-nobody").await;
    agent.create(json!({"spec": {"template": {"spec": {"readinessGates": gates}}}})).await;
    let nodes = agent.nodes().await;
    agent.until("all pods run", |_, pods| pods.len() == nodes.len()).await;
    let answer = async |pod: &str, status: &str| {
        let condition = json!({"type": "example.com/ready", "status": status});
        let api: kube::Api<Pod> = agent.sandbox().api();
        let patch = kube::api::Patch::Strategic(json!({"status": {"conditions": [condition]}}));
        api.patch_status(pod, &Default::default(), &patch).await.unwrap();
    };
    for node in &nodes {
        answer(&agent.pod_on(node).await, "True").await;
    }
    agent.settled().await;
    // The first new pod never becomes ready: the limit is used up.
    let last = nodes.last().unwrap();
    agent.set_image("app:v2").await;
    agent
        .until("the last node is updated", |_, pods| {
            pods.iter()
                .any(|pod| node_of(pod) == *last && crate::kit::image_of(pod, "main").ends_with("app:v2"))
        })
        .await;
    let node = &nodes[1];
    answer(&agent.pod_on(node).await, "False").await;
    agent
        .until("the node with trouble is updated", |_, pods| {
            pods.iter()
                .any(|pod| node_of(pod) == *node && crate::kit::image_of(pod, "main").ends_with("app:v2"))
        })
        .await;
    let images = agent.images().await;
    assert_eq!(images.values().filter(|image| *image == "app:v2").count(), 2, "{images:?}");
    Ok(())
}
managed!(a_pod_that_serves_nobody_is_replaced_at_once, []);

/// DAEMONSET-16: the next node waits until the last new pod has been ready for long enough.
async fn the_next_node_waits_for_min_ready_seconds(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "min-ready", json!({"spec": {"minReadySeconds": 20}})).await;
    let film = agent.film().await;
    agent.set_image("app:v2").await;
    agent.rolled_out().await;
    let ends: Vec<_> = film
        .frames()
        .windows(2)
        .filter(|pair| pair[1].active().count() < pair[0].active().count())
        .map(|pair| pair[1].at)
        .collect();
    assert_eq!(ends.len(), agent.nodes().await.len());
    // Kubelets report in whole seconds since when a pod is ready.
    assert!(ends.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_secs(19)), "{ends:?}");
    Ok(())
}
managed!(the_next_node_waits_for_min_ready_seconds, []);

/// DAEMONSET-17: the lowest names keep the old revision.
async fn a_partition_keeps_the_lowest_names(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "partition", json!({})).await;
    let nodes = agent.nodes().await;
    let partition = |kept: Value| rolling(json!({"partition": kept}));
    agent.change(partition(json!(nodes.len() - 1))).await;
    agent.set_image("app:v2").await;
    agent.at_rest(&updated(&nodes, 1)).await;
    agent.change(partition(json!(1))).await;
    agent.at_rest(&updated(&nodes, nodes.len() - 1)).await;
    agent.change(partition(json!(nodes.len() - 1))).await;
    let expected = updated(&nodes, nodes.len() - 1);
    agent.until("the change is seen", is_settled).await;
    agent.always("nothing is reverted", Duration::from_secs(5), is_settled).await;
    assert_eq!(agent.images().await, expected);
    agent.change(partition(json!("50%"))).await;
    agent.until("the change is seen", is_settled).await;
    agent.always("nothing is reverted", Duration::from_secs(5), is_settled).await;
    assert_eq!(agent.images().await, expected);
    Ok(())
}
managed!(a_partition_keeps_the_lowest_names, []);

/// DAEMONSET-18: a new node gets the newest revision, whatever the partition is. Only simulated nodes come and go.
async fn a_new_node_gets_the_newest_revision(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "new-node", rolling(json!({"partition": 99}))).await;
    let nodes = agent.nodes().await;
    agent.set_image("app:v2").await;
    agent.until("the change is seen", is_settled).await;
    agent.always("nothing is updated", Duration::from_secs(10), is_settled).await;
    stage.sim().add_node(kruise_sim::Node::named("new-0"));
    let mut expected = all(&nodes, "app:v1");
    expected.insert("new-0".to_owned(), "app:v2".to_owned());
    agent.at_rest(&expected).await;
    Ok(())
}
embedded_only!(a_new_node_gets_the_newest_revision, []);

/// DAEMONSET-19: only nodes with the label are updated, and a label that is added is enough.
async fn a_node_selector_limits_the_update(stage: &mut Stage) -> Outcome {
    let agent = Agent::prepare(stage, "selector").await;
    let key = format!("{}-canary", agent.sandbox().namespace());
    let nodes = agent.nodes().await;
    agent.create(rolling(json!({"selector": {"matchLabels": {&key: "true"}}}))).await;
    agent.settled().await;
    agent.label_node(&nodes[1], &key, Some("true")).await;
    agent.set_image("app:v2").await;
    let mut expected = all(&nodes, "app:v1");
    expected.insert(nodes[1].clone(), "app:v2".to_owned());
    agent.at_rest(&expected).await;
    agent.label_node(&nodes[0], &key, Some("true")).await;
    expected.insert(nodes[0].clone(), "app:v2".to_owned());
    agent.at_rest(&expected).await;
    agent.label_node(&nodes[1], &key, None).await;
    agent.always("nothing is reverted", Duration::from_secs(5), is_settled).await;
    assert_eq!(agent.images().await, expected);
    agent.label_node(&nodes[0], &key, None).await;
    Ok(())
}
managed!(a_node_selector_limits_the_update, []);

/// DAEMONSET-20: a pause in the middle stops the update, and it goes on afterwards.
async fn a_pause_stops_the_update(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "pause", rolling(json!({"partition": 3}))).await;
    let nodes = agent.nodes().await;
    agent.set_image("app:v2").await;
    agent.at_rest(&updated(&nodes, nodes.len() - 3)).await;
    agent.change(rolling(json!({"paused": true, "partition": 0}))).await;
    agent
        .always("nothing is updated", Duration::from_secs(10), |set, pods| {
            is_settled(set, pods)
                || set
                    .status
                    .as_ref()
                    .is_some_and(|status| status.observed_generation != set.metadata.generation)
        })
        .await;
    // A pod that is deleted comes back with the newest revision.
    agent.sandbox().delete::<Pod>(&agent.pod_on(&nodes[0]).await).await;
    let mut expected = updated(&nodes, nodes.len() - 3);
    expected.insert(nodes[0].clone(), "app:v2".to_owned());
    agent.at_rest(&expected).await;
    agent.change(rolling(json!({"paused": false}))).await;
    agent.rolled_out().await;
    Ok(())
}
managed!(a_pause_stops_the_update, []);

/// DAEMONSET-21: only a pod that somebody deletes changes.
async fn on_delete_waits_for_people(stage: &mut Stage) -> Outcome {
    let agent =
        Agent::start(stage, "on-delete", json!({"spec": {"updateStrategy": {"type": "OnDelete"}}})).await;
    let nodes = agent.nodes().await;
    agent.set_image("app:v2").await;
    agent
        .until("the new revision is known", |set, _| {
            set.status.as_ref().is_some_and(|status| status.observed_generation == set.metadata.generation)
        })
        .await;
    assert_eq!(agent.images().await, all(&nodes, "app:v1"));
    agent.sandbox().delete::<Pod>(&agent.pod_on(&nodes[1]).await).await;
    let mut expected = all(&nodes, "app:v1");
    expected.insert(nodes[1].clone(), "app:v2".to_owned());
    agent.at_rest(&expected).await;
    Ok(())
}
managed!(on_delete_waits_for_people, []);

/// DAEMONSET-22: going back uses the old revision, with the highest number.
async fn going_back_uses_the_old_revision(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "back", rolling(json!({"partition": 2}))).await;
    let nodes = agent.nodes().await;
    let first = agent.set().await.status.unwrap().update_revision;
    agent.set_image("app:v2").await;
    agent.at_rest(&updated(&nodes, nodes.len() - 2)).await;
    agent.set_image("app:v1").await;
    agent.change(rolling(json!({"partition": 0}))).await;
    agent.rolled_out().await;
    assert_eq!(agent.images().await, all(&nodes, "app:v1"));
    assert_eq!(agent.set().await.status.unwrap().update_revision, first);
    let revisions: Vec<k8s_openapi::api::apps::v1::ControllerRevision> = agent.sandbox().list().await;
    let newest = revisions.iter().max_by_key(|one| one.revision).unwrap();
    let hash = newest.metadata.labels.as_ref().and_then(|labels| labels.get("controller-revision-hash"));
    assert_eq!((revisions.len(), hash, newest.revision), (2, first.as_ref(), 3));
    Ok(())
}
managed!(going_back_uses_the_old_revision, []);

/// DAEMONSET-23: a manager that dies in the middle changes nothing about the update.
async fn an_update_survives_the_manager(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "manager", json!({})).await;
    let nodes = agent.nodes().await;
    let film = agent.film().await;
    agent.set_image("app:v2").await;
    agent
        .until("the update has begun", |_, pods| {
            pods.iter().any(|pod| crate::kit::image_of(pod, "main").ends_with("app:v2"))
        })
        .await;
    stage.kill_manager();
    stage.start_manager().await;
    agent.rolled_out().await;
    assert_eq!(most_down(&film, nodes.len()), 1);
    let pods: std::collections::BTreeSet<String> =
        film.frames().iter().flat_map(|frame| frame.pods.keys().cloned().collect::<Vec<_>>()).collect();
    assert_eq!(pods.len(), 2 * nodes.len(), "no pod is replaced twice");
    Ok(())
}
managed!(an_update_survives_the_manager, [], alone);

/// DAEMONSET-24, DAEMONSET-25: templates in a row end at the last one, and old revisions are deleted.
async fn templates_in_a_row_end_at_the_last_one(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "in-a-row", json!({"spec": {"revisionHistoryLimit": 1}})).await;
    for image in ["app:v2", "app:v3", "app:v1"] {
        agent.set_image(image).await;
    }
    agent.set_image("app:v3").await;
    agent.rolled_out().await;
    assert_eq!(agent.images().await, all(&agent.nodes().await, "app:v3"));
    let look = async || {
        let revisions: Vec<k8s_openapi::api::apps::v1::ControllerRevision> = agent.sandbox().list().await;
        kruise_testkit::wait::seen(revisions.len() == 2, format!("{} revisions", revisions.len()))
    };
    agent.sandbox().eventually("one old revision is left", look).await;
    Ok(())
}
managed!(templates_in_a_row_end_at_the_last_one, []);

/// DAEMONSET-30: images change in place: the pods stay.
async fn images_change_in_place(stage: &mut Stage) -> Outcome {
    let in_place = rolling(json!({"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 1}));
    let agent = Agent::start(stage, "in-place", in_place).await;
    let nodes = agent.nodes().await;
    let before = agent.demo.uids().await;
    let film = agent.film().await;
    agent.set_image("app:v2").await;
    agent.rolled_out().await;
    assert_eq!(agent.demo.uids().await, before);
    assert_eq!(agent.images().await, all(&nodes, "app:v2"));
    assert_eq!(most_down(&film, nodes.len()), 1);
    assert_eq!(agent.demo.events("SuccessfulUpdatePodInPlace").await.len(), nodes.len());
    let hash = agent.set().await.status.unwrap().update_revision.unwrap();
    for pod in agent.demo.pods().await {
        let gates = pod.spec.clone().unwrap().readiness_gates.unwrap_or_default();
        let ours = gates.iter().filter(|gate| gate.condition_type == "InPlaceUpdateReady");
        assert_eq!(ours.count(), 1);
        assert_eq!(crate::kit::revision(&pod), hash);
        assert_eq!(crate::kit::label(&pod, "lifecycle.apps.kruise.io/state"), "");
    }
    Ok(())
}
managed!(images_change_in_place, []);

/// DAEMONSET-31: another change makes new pods.
async fn other_changes_make_new_pods(stage: &mut Stage) -> Outcome {
    let in_place = rolling(json!({"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 2}));
    let agent = Agent::start(stage, "other-change", in_place).await;
    let before = agent.demo.uids().await;
    let containers =
        json!([{"name": "main", "image": agent.demo.image("app:v1"), "env": [{"name": "A", "value": "b"}]}]);
    agent.change(json!({"spec": {"template": {"spec": {"containers": containers}}}})).await;
    agent.rolled_out().await;
    let after = agent.demo.uids().await;
    assert!(before.values().all(|uid| !after.values().any(|other| other == uid)));
    Ok(())
}
managed!(other_changes_make_new_pods, []);

/// DAEMONSET-32: pods without the gate are made anew once, and changed in place from then on.
async fn pods_without_the_gate_are_made_anew_once(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "gate", rolling(json!({"maxUnavailable": 2}))).await;
    let before = agent.demo.uids().await;
    agent.change(rolling(json!({"rollingUpdateType": "InPlaceIfPossible"}))).await;
    agent.rolled_out().await;
    assert_eq!(agent.demo.uids().await, before);
    agent.set_image("app:v2").await;
    agent.rolled_out().await;
    let anew = agent.demo.uids().await;
    assert!(before.values().all(|uid| !anew.values().any(|other| other == uid)));
    agent.set_image("app:v3").await;
    agent.rolled_out().await;
    assert_eq!(agent.demo.uids().await, anew);
    Ok(())
}
managed!(pods_without_the_gate_are_made_anew_once, []);

/// DAEMONSET-39: with the gate a node that is down does not use up the limit.
async fn a_node_that_is_down_is_left_out(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "prune", json!({})).await;
    let mut nodes = agent.nodes().await;
    let down = nodes.remove(1);
    stage.sim().stop_node(&down);
    let count = i32::try_from(nodes.len()).unwrap();
    agent
        .until("the node is not wanted any more", |set, _| {
            set.status.as_ref().is_some_and(|status| status.desired_number_scheduled == count)
        })
        .await;
    agent.set_image("app:v2").await;
    agent
        .until("the others are updated", |_, pods| {
            let is_new = |pod: &&Pod| crate::kit::image_of(pod, "main").ends_with("app:v2") && is_ready(pod);
            pods.iter().filter(is_new).count() == nodes.len()
        })
        .await;
    let left = agent.by_node().await.remove(&down).unwrap_or_default();
    assert!(left.iter().all(|pod| crate::kit::image_of(pod, "main").ends_with("app:v1")), "{left:?}");
    stage.sim().return_node(&down);
    agent.rolled_out().await;
    assert_eq!(agent.images().await, all(&agent.nodes().await, "app:v2"));
    Ok(())
}
// A real node cannot be stopped by a test.
embedded_only!(a_node_that_is_down_is_left_out, ["--feature-gates=DaemonSetPruneIneligibleNodes=true"]);

/// DAEMONSET-43: many edits while nodes stop and return end with one pod of the last template on each node.
async fn many_edits_end_at_the_last_template(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "edits", rolling(json!({"maxUnavailable": 2}))).await;
    for edit in 0..100 {
        agent.set_image(["app:v1", "app:v2", "app:v3"][edit % 3]).await;
        match edit % 20 {
            5 => stage.sim().stop_node("hollow-1"),
            8 => stage.sim().stop_node("hollow-2"),
            12 => stage.sim().return_node("hollow-2"),
            15 => stage.sim().return_node("hollow-1"),
            _ => {}
        }
        agent.always("a moment passes", Duration::from_millis(700), |_, _| true).await;
    }
    stage.sim().return_node("hollow-1");
    agent.set_image("app:v2").await;
    agent.rolled_out().await;
    assert_eq!(agent.images().await, all(&agent.nodes().await, "app:v2"));
    Ok(())
}
embedded_only!(many_edits_end_at_the_last_template, []);

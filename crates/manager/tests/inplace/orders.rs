//! Which pod is updated next, and which goes first.

use std::cmp::Reverse;

use k8s_openapi::api::core::v1::Pod;
use kruise_api::annotations::POD_DELETION_COST;
use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    kit::{Demo, image_of, label, name, updated},
    stage::{Stage, managed},
    words::{condition, in_place_on_hollow_nodes, revision},
};

/// Pods that are updated in place, one at a time.
async fn one_at_a_time(stage: &Stage, purpose: &str, replicas: u32, strategy: Value) -> Demo {
    let rolling = crate::kit::merged(json!({"maxUnavailable": 1}), &strategy);
    let change = json!({"spec": {"updateStrategy": {"rollingUpdate": rolling}}});
    Demo::start(stage, purpose, in_place_on_hollow_nodes(replicas, &change)).await
}

async fn mark(demo: &Demo, pod: &Pod, key: &str, value: &str) {
    demo.change_pod(&name(pod), json!({"metadata": {"labels": {key: value}}})).await;
}

/// Updates all pods and returns their names in the order in which they got the new image.
async fn update(demo: &Demo) -> Vec<String> {
    let film = demo.film().await;
    demo.set_image("app:v2").await;
    demo.rolled_out().await;
    let image = demo.image("app:v2");
    for frame in film.frames() {
        let busy = frame.active().filter(|pod| crate::words::lifecycle(pod) == "Updating").count();
        assert!(busy <= 1, "{busy} pods are updated at once");
    }
    film.order(|pod| image_of(pod, "main") == image)
}

/// All pods ready, none restarted: ready for the shorter time first, then the newer, then by name.
fn default_order(mut pods: Vec<Pod>) -> Vec<String> {
    pods.sort_by_key(|pod| {
        let ready = condition(pod, "Ready").and_then(|ready| ready.last_transition_time.clone());
        let created = pod.metadata.creation_timestamp.clone();
        (Reverse(ready.map(|at| at.0)), Reverse(created.map(|at| at.0)), name(pod))
    });
    pods.iter().map(name).collect()
}

/// INPLACE-36: heavier pods first, the rest as usual.
async fn pods_are_updated_by_weight(stage: &mut Stage) -> Outcome {
    let term =
        |weight: i32, value: &str| json!({"weight": weight, "matchSelector": {"matchLabels": {"w": value}}});
    let strategy = json!({"priorityStrategy": {"weightPriority": [term(100, "hi"), term(50, "lo")]}});
    let demo = one_at_a_time(stage, "weights", 4, strategy).await;
    let pods = demo.pods().await;
    // The heaviest ones are those that would come last.
    let usual = default_order(pods.clone());
    let of = |name_of: &str| pods.iter().find(|pod| name(pod) == *name_of).unwrap();
    mark(&demo, of(&usual[3]), "w", "hi").await;
    mark(&demo, of(&usual[2]), "w", "lo").await;
    let expected = [&usual[3], &usual[2], &usual[0], &usual[1]];
    assert_eq!(update(&demo).await.iter().collect::<Vec<_>>(), expected);
    Ok(())
}
managed!(pods_are_updated_by_weight, []);

/// INPLACE-37: pods without the key first, then by the number at the end of its value, larger first.
async fn pods_are_updated_by_the_number_in_a_label(stage: &mut Stage) -> Outcome {
    let strategy = json!({"priorityStrategy": {"orderPriority": [{"orderedKey": "o"}]}});
    let demo = one_at_a_time(stage, "ordered", 4, strategy).await;
    let pods = demo.pods().await;
    for (pod, value) in pods.iter().zip(["a-1", "a-10", "a-2"]) {
        mark(&demo, pod, "o", value).await;
    }
    let expected: Vec<String> = [3, 1, 2, 0].into_iter().map(|index: usize| name(&pods[index])).collect();
    assert_eq!(update(&demo).await, expected);
    Ok(())
}
managed!(pods_are_updated_by_the_number_in_a_label, []);

/// INPLACE-38: pods with a label are scattered over the update.
async fn pods_with_a_label_are_scattered(stage: &mut Stage) -> Outcome {
    let demo =
        one_at_a_time(stage, "scatter", 10, json!({"scatterStrategy": [{"key": "s", "value": "1"}]})).await;
    let pods = demo.pods().await;
    // Those that would come last: what is scattered are the places that the usual order leaves to them.
    let chosen = default_order(pods.clone()).split_off(7);
    for pod in pods.iter().filter(|pod| chosen.contains(&name(pod))) {
        mark(&demo, pod, "s", "1").await;
    }
    let order = update(&demo).await;
    assert_eq!(order.len(), 10);
    let places: Vec<usize> =
        order.iter().enumerate().filter(|(_, name)| chosen.contains(name)).map(|(at, _)| at + 1).collect();
    assert_eq!(places, [1, 5, 10]);
    Ok(())
}
managed!(pods_with_a_label_are_scattered, []);

/// INPLACE-39: cheaper pods go first.
async fn pods_go_by_their_cost(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "costs", json!({"spec": {"replicas": 3}})).await;
    let pods = demo.pods().await;
    for (pod, cost) in pods.iter().zip(["10", "-5"]) {
        let cost = json!({POD_DELETION_COST: cost});
        demo.change_pod(&name(pod), json!({"metadata": {"annotations": cost}})).await;
    }
    for left in [[&pods[0], &pods[2]].as_slice(), &[&pods[0]]] {
        demo.change(json!({"spec": {"replicas": left.len()}})).await;
        demo.settled().await;
        let names: Vec<String> = demo.pods().await.iter().map(name).collect();
        assert_eq!(names, left.iter().map(|pod| name(pod)).collect::<Vec<_>>());
    }
    Ok(())
}
managed!(pods_go_by_their_cost, []);

/// INPLACE-40: pods go where most of them are.
async fn pods_go_from_the_fullest_zone(stage: &mut Stage) -> Outcome {
    let zone = |zone: &str| {
        let spread = json!({
            "topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "demo"}},
        });
        let selector = json!({"topology.kubernetes.io/zone": zone});
        json!({"template": {"spec": {"nodeSelector": selector, "topologySpreadConstraints": [spread]}}})
    };
    let first = crate::kit::merged(json!({"replicas": 3}), &zone("zone-a"));
    let demo = Demo::start(stage, "spread", json!({"spec": first})).await;
    let crowded = demo.uids().await;
    // A fourth pod, in another zone.
    let strategy = json!({"updateStrategy": {"rollingUpdate": {"partition": 3}}});
    let second = crate::kit::merged(json!({"replicas": 4}), &zone("zone-b"));
    demo.change(json!({"spec": crate::kit::merged(second, &strategy)})).await;
    demo.settled().await;
    demo.until("one pod is new", |set, pods| updated(pods, set) == 1).await;
    // All of one revision, as if nodes alone had decided where they are.
    let status = demo.set().await.status.unwrap();
    let newest = status.update_revision.unwrap();
    let alone = demo.pods().await.into_iter().find(|pod| revision(pod) == newest).unwrap();
    for pod in demo.pods().await {
        let hash = label(&alone, kruise_api::labels::POD_TEMPLATE_HASH);
        let marks = json!({
            kruise_api::labels::CONTROLLER_REVISION_HASH: newest, kruise_api::labels::POD_TEMPLATE_HASH: hash,
        });
        demo.change_pod(&name(&pod), json!({"metadata": {"labels": marks}})).await;
    }
    demo.change(json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})).await;
    demo.rolled_out().await;
    demo.change(json!({"spec": {"replicas": 2}})).await;
    demo.settled().await;
    let left = demo.uids().await;
    assert!(left.contains_key(&name(&alone)), "{left:?}");
    assert_eq!(left.keys().filter(|pod| crowded.contains_key(*pod)).count(), 1);
    Ok(())
}
managed!(pods_go_from_the_fullest_zone, []);

//! Which pods are updated first.

use std::time::Duration;

use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    kit::{image_of, is_ready, label, merged, name},
    scene::{Scene, strategy},
    stage::{Stage, managed},
};

/// Pods with a label each, one after the other, so that each is younger than the one before.
async fn one_by_one(scene: &Scene, pods: &[(&str, Value)]) {
    for (pod, labels) in pods {
        scene.create_pod(pod, json!({"metadata": {"labels": labels}})).await;
        scene
            .until("the pod is ready", "s", |_, pods| {
                pods.iter().any(|found| name(found) == *pod && is_ready(found))
            })
            .await;
        // Times of objects have no fractions of seconds.
        tokio::time::sleep(Duration::from_millis(1500)).await;
    }
    let all = i64::try_from(pods.len()).unwrap();
    scene.until_counts("s", [all; 4]).await;
}

/// SIDECARSET-32, weights
async fn heavy_pods_are_first_and_young_ones_before_old_ones(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "weights").await;
    let weight =
        |weight: u32, value: &str| json!({"weight": weight, "matchSelector": {"matchLabels": {"w": value}}});
    let priority = json!({"weightPriority": [weight(50, "foo"), weight(30, "bar")]});
    scene.create_set("s", strategy(json!({"priorityStrategy": priority, "maxUnavailable": 1}))).await;
    let pods = [
        ("bar-old", json!({"w": "bar"})),
        ("foo-old", json!({"w": "foo"})),
        ("none", json!({})),
        ("bar-young", json!({"w": "bar"})),
        ("foo-young", json!({"w": "foo"})),
    ];
    one_by_one(&scene, &pods).await;
    let film = scene.film().await;
    scene.set_image("s", "app:v2").await;
    scene.until_counts("s", [5; 4]).await;
    let new = scene.image("app:v2");
    let order = film.order(|pod| image_of(pod, "sc") == new);
    assert_eq!(order, ["foo-young", "foo-old", "bar-young", "bar-old", "none"]);
    Ok(())
}
managed!(heavy_pods_are_first_and_young_ones_before_old_ones, []);

/// Ten pods, three of which are to be spread.
const TEN: [(&str, &str); 10] = [
    ("pod-0", "none"),
    ("pod-1", "none"),
    ("pod-2", "bar"),
    ("pod-3", "none"),
    ("pod-4", "none"),
    ("pod-5", "bar"),
    ("pod-6", "none"),
    ("pod-7", "none"),
    ("pod-8", "bar"),
    ("pod-9", "none"),
];

/// A set that spreads them.
async fn scattered(stage: &Stage, purpose: &str, max_unavailable: u32) -> Scene {
    let scene = Scene::prepare(stage, purpose).await;
    let scatter = json!([{"key": "foo", "value": "bar"}]);
    let change = strategy(json!({"scatterStrategy": scatter, "maxUnavailable": max_unavailable}));
    scene.create_set("s", change).await;
    scene
}

/// SIDECARSET-32, spread over an update of one pod after the other: the order is thought over before each.
async fn pods_are_spread_over_the_whole_update(stage: &mut Stage) -> Outcome {
    let scene = scattered(stage, "scatter", 1).await;
    one_by_one(&scene, &TEN.map(|(pod, value)| (pod, json!({"foo": value})))).await;
    let film = scene.film().await;
    scene.set_image("s", "app:v2").await;
    scene.until_counts("s", [10; 4]).await;
    let new = scene.image("app:v2");
    // This is what the original did with such pods.
    let expected = [8, 9, 7, 6, 5, 4, 3, 2, 1, 0].map(|index| format!("pod-{index}"));
    assert_eq!(film.order(|pod| image_of(pod, "sc") == new), expected);
    Ok(())
}
managed!(pods_are_spread_over_the_whole_update, []);

/// SIDECARSET-32, spread over one round: positions 1, 6 and 10, as the pods that a partition leaves show.
async fn pods_are_spread_over_a_round(stage: &mut Stage) -> Outcome {
    let scene = scattered(stage, "round", 10).await;
    for (pod, value) in TEN {
        scene.create_pod(pod, json!({"metadata": {"labels": {"foo": value}}})).await;
    }
    scene.until_counts("s", [10; 4]).await;
    for (round, (taken, spread)) in [(1, 1), (5, 1), (6, 2), (9, 2)].into_iter().enumerate() {
        let image = format!("app:v{}", round + 2);
        let partition = strategy(json!({"partition": 10 - taken}));
        scene.change_set("s", merged(scene.with_image("s", &image).await, &partition)).await;
        scene.until_counts("s", [10, taken, 10, taken]).await;
        let new = scene.image(&image);
        let pods = scene.pods().await;
        let updated =
            pods.iter().filter(|pod| image_of(pod, "sc") == new && label(pod, "foo") == "bar").count();
        assert_eq!(updated, spread, "of {taken}");
        scene.change_set("s", strategy(json!({"partition": 0}))).await;
        scene.until_counts("s", [10; 4]).await;
    }
    Ok(())
}
managed!(pods_are_spread_over_a_round, []);

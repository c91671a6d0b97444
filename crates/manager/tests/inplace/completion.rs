//! When an update counts as over.

use std::time::Duration;

use kruise_testkit::Outcome;
use serde_json::json;

use crate::{
    kit::{image_of, is_ready},
    stage::{Stage, embedded_only, managed},
    words::{lifecycle, start, status_of},
};

/// Templates that follow each other faster than nodes: a container that came up with the image in between is not taken
/// for updated, so no more pods are down than may be. The specification calls it DEV-19.
async fn an_image_in_between_is_not_taken_for_the_last_one(stage: &mut Stage) -> Outcome {
    let demo = start(stage, "in-a-row", 3, json!({})).await?;
    let before = demo.uids().await;
    let film = demo.film().await;
    for version in ["app:v2", "app:v3"] {
        let image = demo.image(version);
        demo.set_image(version).await;
        demo.until("the first pod is asked to change", |_, pods| {
            pods.iter().any(|pod| image_of(pod, "main") == image)
        })
        .await;
    }
    demo.rolled_out().await;
    assert_eq!(demo.uids().await, before);
    assert!(film.fewest_ready() >= 2, "{} were ready", film.fewest_ready());
    for frame in film.frames() {
        let away = frame.active().filter(|pod| lifecycle(pod) != "Normal" || !is_ready(pod)).count();
        assert!(away <= 1, "{away} pods were out of service");
        for pod in frame.active().filter(|pod| lifecycle(pod) == "Normal") {
            let runs = status_of(pod, "main").map(|main| main.image.clone()).unwrap_or_default();
            assert_eq!(runs, image_of(pod, "main"), "a pod counts as updated and runs something else");
        }
    }
    Ok(())
}
managed!(an_image_in_between_is_not_taken_for_the_last_one, []);

/// An image that takes long: the pod is out of service until it runs, and the next one waits.
///
/// Not on a real node, whose registry is quick.
async fn the_next_pod_waits_for_a_slow_image(stage: &mut Stage) -> Outcome {
    let demo = start(stage, "slow", 2, json!({})).await?;
    demo.set_image("app:v2-slow30").await;
    let image = demo.image("app:v2-slow30");
    demo.until("a pod is asked to change", |_, pods| pods.iter().any(|pod| image_of(pod, "main") == image))
        .await;
    demo.always("one pod waits for its image", Duration::from_secs(28), |set, pods| {
        let asked = pods.iter().filter(|pod| image_of(pod, "main") == image).count();
        let updating = pods.iter().filter(|pod| lifecycle(pod) == "Updating").count();
        let available = set.status.as_ref().map_or(0, |status| status.available_replicas);
        [asked, updating] == [1, 1] && available >= 1
    })
    .await;
    demo.rolled_out().await;
    Ok(())
}
embedded_only!(the_next_pod_waits_for_a_slow_image, []);

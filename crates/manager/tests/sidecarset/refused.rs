//! An update that the server refuses for one pod.

use std::time::Duration;

use kruise_testkit::{Backend, Outcome};
use serde_json::json;

use crate::{
    kit::{image_of, is_ready, name},
    policy::{Policy, WORDS},
    scene::{Scene, strategy},
    stage::{Stage, managed},
};

/// The pod serves on, people are told of it, the others are updated, and it goes on by itself.
async fn a_refused_pod_is_reported_and_does_not_hold_the_others(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "refused").await;
    scene.create_set("s", strategy(json!({"maxUnavailable": 1}))).await;
    scene.create_pods(3).await;
    scene.until_counts("s", [3; 4]).await;
    let pods = scene.pods().await;
    let refused = name(&pods[1]);
    let namespace = pods[1].metadata.namespace.clone().unwrap();
    let expression = format!(
        "object.metadata.name != '{refused}' || object.spec.containers.all(c, !c.image.endsWith('v2'))"
    );
    let policy = Policy::begins(stage, &namespace, "pods", &expression).await;
    scene.set_image("s", "app:v2").await;
    scene.until_counts("s", [3, 2, 3, 2]).await;
    let old = scene.image("app:v1");
    let seconds = if stage.cluster.backend() == Backend::Embedded { 120 } else { 15 };
    scene
        .always("the pod serves on as it was", "s", Duration::from_secs(seconds), |_, pods| {
            pods.iter().all(|pod| name(pod) != refused || (is_ready(pod) && image_of(pod, "sc") == old))
        })
        .await;
    let events = scene.events("FailedUpdatePodInPlace").await;
    // At 0, 10, 30, 70 seconds.
    assert!((1..=4).contains(&events.len()), "{events:?}");
    for event in events {
        assert_eq!(event.about, format!("Pod/{refused}"));
        assert!(event.kind == "Warning" && event.message.contains(WORDS), "{event}");
    }
    policy.ends().await;
    scene.until_counts("s", [3; 4]).await;
    Ok(())
}
managed!(a_refused_pod_is_reported_and_does_not_hold_the_others, []);

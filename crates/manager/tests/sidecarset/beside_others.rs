//! Sets and workloads on the same pods, and pods whose set is gone.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kruise_api::cloneset::v1beta1::CloneSet;
use kruise_testkit::{Outcome, wait::seen};
use serde_json::{Value, json};

use crate::{
    kit::{image_of, name},
    scene::{Scene, strategy},
    stage::{Stage, managed},
    words::{containers, essence, restarts},
};

fn uids(pods: &[Pod]) -> BTreeMap<String, Option<String>> {
    pods.iter().map(|pod| (name(pod), pod.metadata.uid.clone())).collect()
}

/// SIDECARSET-41: each changes its own images, and none gets in the other's way.
async fn a_workload_and_a_set_update_the_same_pods(stage: &mut Stage) -> Outcome {
    let scene = Scene::with_real_containers(stage, "both").await?;
    scene.create_set("s", strategy(json!({"maxUnavailable": 2}))).await;
    let labels = json!({"app": scene.app()});
    let template = |image: &str| {
        let mut spec = scene.pod_spec();
        spec["containers"][0]["image"] = scene.image(image).into();
        json!({"metadata": {"labels": labels}, "spec": spec})
    };
    let rolling = json!({"podUpdatePolicy": "InPlaceOnly", "maxUnavailable": 2});
    let _: CloneSet = scene
        .sandbox
        .create(json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": labels},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
                "template": template("app:v1"),
            },
        }))
        .await;
    scene.until_counts("s", [3; 4]).await;
    let before = uids(&scene.pods().await);
    let change: Value = json!({"spec": {"template": template("app:v2")}});
    let both = futures::join!(scene.sandbox.merge::<CloneSet>("web", change), scene.set_image("s", "app:v3"));
    drop(both);
    let look = async || {
        let set: CloneSet = scene.sandbox.get("web").await;
        let status = set.status.clone().unwrap_or_default();
        let is_full = status.observed_generation == set.metadata.generation
            && [status.updated_replicas, status.ready_replicas, status.available_replicas] == [3; 3]
            && status.current_revision == status.update_revision;
        seen(is_full, format!("{status:?}"))
    };
    scene.sandbox.eventually("the workload is updated", look).await;
    scene.rests_at("s", [3; 4]).await;
    let pods = scene.pods().await;
    assert_eq!(uids(&pods), before);
    for pod in &pods {
        assert_eq!(image_of(pod, "main"), scene.image("app:v2"));
        assert_eq!(image_of(pod, "sc"), scene.image("app:v3"));
        assert_eq!((restarts(pod, "main"), restarts(pod, "sc")), (1, 1));
    }
    Ok(())
}
managed!(a_workload_and_a_set_update_the_same_pods, []);

/// SIDECARSET-42
async fn pods_outlive_their_set(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "outlive").await;
    scene.create_set("s", json!({})).await;
    scene.create_pods(2).await;
    scene.until_counts("s", [2; 4]).await;
    let before = essence(&scene.pods().await);
    scene.delete_set("s").await;
    let look = async || {
        let left = scene.revisions("s").await.len();
        seen(left == 0, format!("{left} revisions"))
    };
    scene.sandbox.eventually("the revisions are gone", look).await;
    let pods = scene.pods().await;
    assert_eq!(essence(&pods), before);
    assert!(pods.iter().all(|pod| containers(pod) == ["sc", "main"]));
    let plain = scene.create_pod("plain", json!({})).await;
    assert_eq!(containers(&plain), ["main"]);

    scene.create_set("s", json!({})).await;
    scene.rests_at("s", [2; 4]).await;
    scene.set_image("s", "app:v2").await;
    scene.rests_at("s", [2; 4]).await;
    assert_eq!(crate::words::with_image(&scene.pods().await, "sc", &scene.image("app:v2")), 2);
    Ok(())
}
managed!(pods_outlive_their_set, []);

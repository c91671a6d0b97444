//! Changes that cannot be made in pods that exist.

use kruise_testkit::{Outcome, wait::seen};
use serde_json::{Value, json};

use crate::{
    kit::name,
    scene::{MOMENT, Scene, counts},
    stage::{Stage, managed},
    words::{container, essence, upgradable, variable},
};

fn with_variable(scene: &Scene, sidecar: &str, value: &str) -> Value {
    let variable = json!({"env": [{"name": "MODE", "value": value}]});
    json!({"spec": {"containers": [scene.sidecar(sidecar, "app:v1", variable)]}})
}

/// SIDECARSET-30: pods keep what they have and say why; new pods get the change.
async fn a_variable_does_not_reach_pods_that_exist(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "variable").await;
    scene.create_set("s", with_variable(&scene, "sc", "old")).await;
    scene.create_pods(2).await;
    scene.until_counts("s", [2; 4]).await;
    let pods = essence(&scene.pods().await);
    scene.change_set("s", with_variable(&scene, "sc", "new")).await;
    scene.until_counts("s", [2, 0, 2, 0]).await;
    let refused = ("False".to_owned(), "UpdateImmutableField".to_owned(), json!({scene.named("s"): false}));
    scene
        .until("pods say why", "s", |_, pods| {
            pods.iter().all(|pod| upgradable(pod).as_ref() == Some(&refused))
        })
        .await;
    let look = async || {
        let events = scene.events_of_set("s").await;
        let told = events.iter().any(|event| {
            event.reason == "NotUpgradablePods"
                && event.kind == "Normal"
                && event.component == "sidecarset-controller"
                && event.message
                    == "SidecarSet in-place update detected 2 not upgradable pod(s) in this round, will skip them."
        });
        seen(told, format!("{events:?}"))
    };
    scene.sandbox.eventually("an event tells", look).await;
    scene
        .always("no pod changes", "s", MOMENT, |set, now| essence(now) == pods && counts(set) == [2, 0, 2, 0])
        .await;
    let pod = scene.create_pod("new", json!({})).await;
    assert_eq!(variable(&container(&pod, "sc"), "MODE")["value"], "new");
    scene.rests_at("s", [3, 1, 3, 1]).await;
    Ok(())
}
managed!(a_variable_does_not_reach_pods_that_exist, []);

/// SIDECARSET-31
async fn the_condition_tells_of_each_set(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "condition").await;
    scene.create_set("s1", with_variable(&scene, "one", "old")).await;
    scene.create_set("s2", with_variable(&scene, "two", "old")).await;
    scene.create_pod("pod", json!({})).await;
    for set in ["s1", "s2"] {
        scene.until_counts(set, [1; 4]).await;
    }
    assert_eq!(upgradable(&scene.pod("pod").await), None);
    scene.set_image("s1", "app:v2").await;
    scene.until_counts("s1", [1; 4]).await;
    scene.change_set("s2", with_variable(&scene, "two", "new")).await;
    let told = json!({scene.named("s1"): true, scene.named("s2"): false});
    let expected = ("False".to_owned(), "UpdateImmutableField".to_owned(), told);
    scene
        .until("the pod tells of both", "s2", |_, pods| {
            pods.iter().all(|pod| name(pod) == "pod" && upgradable(pod).as_ref() == Some(&expected))
        })
        .await;

    scene.delete_pod("pod").await;
    scene.create_pod("pod", json!({})).await;
    for set in ["s1", "s2"] {
        scene.rests_at(set, [1; 4]).await;
    }
    assert_eq!(upgradable(&scene.pod("pod").await), None);
    Ok(())
}
managed!(the_condition_tells_of_each_set, []);

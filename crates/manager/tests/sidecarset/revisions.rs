//! The history of a set.

use kruise_testkit::{Outcome, wait::seen};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::{
    kit::merged,
    scene::{Scene, strategy},
    stage::{Stage, managed},
    words::record,
};

fn content(scene: &Scene, index: usize) -> Value {
    json!({"spec": {"containers": [scene.sidecar("sc", &format!("app:c{index}"), json!({}))]}})
}

async fn until_numbers(scene: &Scene, wanted: &[i64]) {
    let look = async || {
        let numbers: Vec<i64> = scene.revisions("s").await.iter().map(|one| one.revision).collect();
        seen(numbers == wanted, format!("{numbers:?}"))
    };
    scene.sandbox.eventually(&format!("the revisions are {wanted:?}"), look).await;
}

/// SIDECARSET-39: ten revisions are kept, and going back gives an old one a new number.
async fn old_revisions_go(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "history").await;
    scene.create_set("s", content(&scene, 1)).await;
    for index in 2..=15 {
        scene.publish("s", content(&scene, index)).await;
    }
    until_numbers(&scene, &(6..=15).collect::<Vec<_>>()).await;
    let revisions = scene.revisions("s").await;
    let twelfth = revisions.iter().find(|one| one.revision == 12).unwrap().name_any();
    scene.publish("s", content(&scene, 12)).await;
    until_numbers(&scene, &[6, 7, 8, 9, 10, 11, 13, 14, 15, 16]).await;
    assert_eq!(scene.revisions("s").await.last().unwrap().name_any(), twelfth);
    assert_eq!(scene.set("s").await["status"]["latestRevision"], twelfth);
    Ok(())
}
managed!(old_revisions_go, []);

/// SIDECARSET-39, revisions of pods
async fn a_revision_of_a_pod_stays(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "used").await;
    let paused = merged(content(&scene, 1), &strategy(json!({"paused": true})));
    let first = scene.create_set("s", paused).await["status"]["latestRevision"].clone();
    scene.create_pod("pod", json!({})).await;
    scene.until_counts("s", [1; 4]).await;
    for index in 2..=15 {
        scene.publish("s", content(&scene, index)).await;
    }
    until_numbers(&scene, &[1, 7, 8, 9, 10, 11, 12, 13, 14, 15]).await;
    assert_eq!(record(&scene.pod("pod").await, &scene.named("s"))["controllerRevision"], first);
    assert_eq!(first, scene.revisions("s").await[0].name_any());
    scene.change_set("s", strategy(json!({"paused": false}))).await;
    scene.until_counts("s", [1; 4]).await;
    scene.publish("s", content(&scene, 16)).await;
    until_numbers(&scene, &(7..=16).collect::<Vec<_>>()).await;
    Ok(())
}
managed!(a_revision_of_a_pod_stays, []);

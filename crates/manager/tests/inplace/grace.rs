//! The pause between "not ready" and the change of the containers.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_api::annotations::IN_PLACE_UPDATE_GRACE;
use kruise_testkit::{Outcome, Skip};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    film::Film,
    kit::{Demo, annotation, image_of, is_ready},
    stage::{Stage, managed},
    words::{only_pod, restarts, revision, start, state},
};

fn is_in_grace(pod: &Pod) -> bool {
    !annotation(pod, IN_PLACE_UPDATE_GRACE).is_empty()
}

/// One pod whose update has a pause of 20 seconds, and a film of it.
async fn with_grace(stage: &Stage, purpose: &str) -> Result<(Demo, Film), Skip> {
    let strategy = json!({"rollingUpdate": {"inPlaceUpdateStrategy": {"gracePeriodSeconds": 20}}});
    let demo = start(stage, purpose, 1, json!({"spec": {"updateStrategy": strategy}})).await?;
    let film = demo.film().await;
    Ok((demo, film))
}

/// Changes the image and waits until the pause has begun.
async fn begin(demo: &Demo) {
    let before = only_pod(demo).await;
    demo.set_image("app:v2").await;
    demo.until("the pause has begun", |_, pods| pods.iter().all(is_in_grace)).await;
    let pod = only_pod(demo).await;
    assert_ne!(revision(&pod), revision(&before));
    assert_eq!(image_of(&pod, "main"), demo.image("app:v1"));
    assert!(!is_ready(&pod));
    assert_eq!(state(&pod)["containerBatchesRecord"], json!(null));
    let told: serde_json::Value = serde_json::from_str(annotation(&pod, IN_PLACE_UPDATE_GRACE)).unwrap();
    assert_eq!(told["graceSeconds"], 20);
    assert_eq!(told["containerImages"], json!({"main": demo.image("app:v2")}));
    assert_eq!(told["revision"], revision(&pod));
}

/// How long after the beginning of the pause the image changed.
fn pause(film: &Film, image: &str) -> Duration {
    let when = |shows: &dyn Fn(&Pod) -> bool| -> Instant {
        film.frames().iter().find(|frame| frame.pods.values().any(shows)).unwrap().at
    };
    when(&|pod| image_of(pod, "main") == image) - when(&is_in_grace)
}

/// INPLACE-14: first not ready, with the new revision; the image follows when the pause is over.
async fn the_image_changes_after_the_pause(stage: &mut Stage) -> Outcome {
    let (demo, film) = with_grace(stage, "grace").await?;
    begin(&demo).await;
    demo.rolled_out().await;
    let pause = pause(&film, &demo.image("app:v2"));
    assert!((Duration::from_secs(20)..Duration::from_secs(25)).contains(&pause), "{pause:?}");
    let pod = only_pod(&demo).await;
    assert!(!is_in_grace(&pod));
    assert_eq!(restarts(&pod, "main"), 1);
    for frame in film.frames() {
        assert!(
            !frame.pods.values().any(|pod| is_in_grace(pod) && image_of(pod, "main") != demo.image("app:v1"))
        );
    }
    Ok(())
}
managed!(the_image_changes_after_the_pause, []);

/// INPLACE-15: a manager that dies during the pause changes nothing about its length.
async fn the_pause_outlives_the_manager(stage: &mut Stage) -> Outcome {
    let (demo, film) = with_grace(stage, "restart").await?;
    begin(&demo).await;
    sleep(Duration::from_secs(5)).await;
    stage.kill_manager();
    sleep(Duration::from_secs(3)).await;
    stage.start_manager().await;
    demo.rolled_out().await;
    let pause = pause(&film, &demo.image("app:v2"));
    assert!((Duration::from_secs(20)..Duration::from_secs(30)).contains(&pause), "{pause:?}");
    assert_eq!(restarts(&only_pod(&demo).await, "main"), 1);
    Ok(())
}
managed!(the_pause_outlives_the_manager, [], alone);

/// INPLACE-16: whoever takes the template back during the pause gets the old image and the old revision.
async fn a_template_taken_back_during_the_pause_wins(stage: &mut Stage) -> Outcome {
    let (demo, film) = with_grace(stage, "back").await?;
    let before = only_pod(&demo).await;
    begin(&demo).await;
    sleep(Duration::from_secs(5)).await;
    demo.set_image("app:v1").await;
    demo.until("the pod is back", |set, pods| {
        let status = set.status.clone().unwrap_or_default();
        let is_back = |pod: &Pod| {
            is_ready(pod)
                && !is_in_grace(pod)
                && revision(pod) == revision(&before)
                && image_of(pod, "main") == demo.image("app:v1")
        };
        status.available_replicas == 1 && pods.len() == 1 && pods.iter().all(is_back)
    })
    .await;
    assert_eq!(only_pod(&demo).await.metadata.uid, before.metadata.uid);
    let told = demo.set().await.status.unwrap();
    assert_eq!(told.current_revision, told.update_revision);
    assert_eq!(told.update_revision.as_deref(), Some(revision(&before)));
    drop(film);
    Ok(())
}
managed!(a_template_taken_back_during_the_pause_wins, []);

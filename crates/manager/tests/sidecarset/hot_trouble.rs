//! Sidecars that are replaced while they serve, when something goes wrong.

use kruise_testkit::{Backend, Outcome, Skip};
use serde_json::json;

use crate::{
    film::Film,
    hot::{IDLE, somebody_always_serves, start, twins},
    kit::image_of,
    scene::Scene,
    stage::{Stage, managed},
    words::{is_container_ready, restarts},
};

/// Two pods, one of which has been given an image that does not come.
async fn with_a_bad_image(stage: &Stage, purpose: &str) -> Result<(Scene, Film), Skip> {
    let scene = start(stage, purpose, 2, json!({})).await?;
    let film = scene.film().await;
    scene.set_image("s", "app:v2-fail").await;
    scene.rests_at("s", [2, 1, 1, 0]).await;
    let pods = scene.pods().await;
    assert!(pods.iter().all(|pod| is_container_ready(pod, "sc-1")));
    let bad = scene.image("app:v2-fail");
    assert_eq!(pods.iter().filter(|pod| image_of(pod, "sc-2") == bad).count(), 1);
    assert!(pods.iter().all(|pod| image_of(pod, "sc-1") == scene.image("app:v1")));
    Ok((scene, film))
}

/// At no moment of the film a pod was without a sidecar that serves, whether or not it counts as ready.
fn nobody_went_without(scene: &Scene, film: &Film) {
    if scene.cluster.backend() == Backend::Embedded {
        somebody_always_serves(scene, film);
        return;
    }
    let idle = scene.image(IDLE);
    for frame in film.frames() {
        let serves = |pod, twin| image_of(pod, twin) != idle && is_container_ready(pod, twin);
        assert!(frame.active().all(|pod| serves(pod, "sc-1") || serves(pod, "sc-2")));
    }
}

/// SIDECARSET-35, forward
async fn the_old_container_serves_until_a_good_image_comes(stage: &mut Stage) -> Outcome {
    let (scene, film) = with_a_bad_image(stage, "forward").await?;
    scene.set_image("s", "app:v2").await;
    scene.rests_at("s", [2; 4]).await;
    let wanted = [scene.image(IDLE), scene.image("app:v2")];
    for pod in scene.pods().await {
        let now = twins(&pod);
        assert_eq!((&now.images, now.working.as_str()), (&wanted, "sc-2"));
        assert_eq!((now.versions[0].as_str(), now.versions[3].as_str()), ("0", "0"));
    }
    nobody_went_without(&scene, &film);
    Ok(())
}
managed!(the_old_container_serves_until_a_good_image_comes, []);

/// SIDECARSET-35, back
async fn going_back_to_the_image_that_serves_ends_well(stage: &mut Stage) -> Outcome {
    let (scene, film) = with_a_bad_image(stage, "back").await?;
    scene.set_image("s", "app:v1").await;
    scene.rests_at("s", [2; 4]).await;
    let wanted = [scene.image("app:v1"), scene.image(IDLE)];
    for pod in scene.pods().await {
        let now = twins(&pod);
        assert_eq!((&now.images, now.working.as_str()), (&wanted, "sc-1"));
        assert_eq!((now.versions[1].as_str(), now.versions[2].as_str()), ("0", "0"));
        assert_eq!(restarts(&pod, "sc-1"), 0, "it has served all the time");
    }
    nobody_went_without(&scene, &film);
    Ok(())
}
managed!(going_back_to_the_image_that_serves_ends_well, []);

/// SIDECARSET-36
async fn a_manager_that_dies_before_the_reset_is_replaced(stage: &mut Stage) -> Outcome {
    let scene = start(stage, "crash", 1, json!({})).await?;
    let film = scene.film().await;
    // Where nodes are simulated, the image takes a while: then the manager surely dies before the reset.
    let is_real = stage.cluster.backend() == Backend::Real;
    let image = if is_real { "app:v2" } else { "app:v2-slow10" };
    scene.set_image("s", image).await;
    let new = scene.image(image);
    scene
        .until("the upgrade begins", "s", |_, pods| pods.iter().all(|pod| image_of(pod, "sc-2") == new))
        .await;
    stage.kill_manager();
    let pod = scene.pod("pod-0").await;
    assert_eq!(image_of(&pod, "sc-1"), scene.image("app:v1"), "not yet reset");
    tokio::time::sleep(std::time::Duration::from_secs(20)).await;
    assert_eq!(image_of(&scene.pod("pod-0").await, "sc-1"), scene.image("app:v1"), "nobody resets it");
    stage.start_manager().await;
    scene.rests_at("s", [1; 4]).await;
    let pod = scene.pod("pod-0").await;
    assert_eq!(twins(&pod).images, [scene.image(IDLE), new]);
    assert_eq!((restarts(&pod, "sc-1"), restarts(&pod, "sc-2")), (1, 1));
    let mut images: Vec<String> =
        film.frames().iter().filter_map(|frame| Some(image_of(frame.pods.get("pod-0")?, "sc-1"))).collect();
    images.dedup();
    assert_eq!(images, [scene.image("app:v1"), scene.image(IDLE)]);
    assert_eq!(scene.events("ResetContainerSucceed").await.len(), 1);
    nobody_went_without(&scene, &film);
    Ok(())
}
managed!(a_manager_that_dies_before_the_reset_is_replaced, [], alone);

//! How many pods an update takes down at once.

use std::time::Duration;

use kruise_testkit::{Backend, Outcome};
use serde_json::json;

use crate::{
    film::{Film, Frame},
    kit::{image_of, is_ready},
    scene::{Scene, strategy},
    stage::{Stage, managed},
    words::with_image,
};

/// The most pods of any moment that are to have an image and are not ready.
fn most_down(film: &Film, image: &str) -> usize {
    let down =
        |frame: &Frame| frame.active().filter(|pod| image_of(pod, "sc") == image && !is_ready(pod)).count();
    film.frames().iter().map(down).max().unwrap_or(0)
}

/// SIDECARSET-28: never more than the limit, whenever the manager dies.
async fn an_update_takes_down_no_more_pods_than_it_may(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "budget").await;
    scene.create_set("s", strategy(json!({"maxUnavailable": "20%"}))).await;
    scene.create_pods(10).await;
    scene.until_counts("s", [10; 4]).await;
    let is_real = stage.cluster.backend() == Backend::Real;
    // A real manager needs a while to be sure that another one is gone.
    let moments: &[u64] =
        if is_real { &[700, 2500] } else { &[0, 130, 340, 700, 1100, 1500, 2300, 3700, 5100, 8000] };
    for (round, moment) in moments.iter().enumerate() {
        let image = format!("app:v{}", round + 2);
        let film = scene.film().await;
        scene.set_image("s", &image).await;
        tokio::time::sleep(Duration::from_millis(*moment)).await;
        stage.kill_manager();
        tokio::time::sleep(Duration::from_millis(500)).await;
        stage.start_manager().await;
        scene.until_counts("s", [10; 4]).await;
        let new = scene.image(&image);
        assert_eq!(with_image(&scene.pods().await, "sc", &new), 10);
        let fewest = film.fewest_ready();
        assert!(fewest >= 8, "{fewest} pods were ready, the manager died after {moment} ms");
        assert!(most_down(&film, &new) <= 2);
        assert!(is_real || fewest == 8, "two pods at a time, not fewer: {fewest}");
    }
    Ok(())
}
managed!(an_update_takes_down_no_more_pods_than_it_may, [], alone);

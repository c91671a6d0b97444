//! A new image reaches the pods that have the sidecar.

use kruise_testkit::Outcome;
use serde_json::json;

use crate::{
    kit::{image_of, merged, name},
    scene::{MOMENT, Scene, strategy},
    stage::{Stage, managed},
    words::{essence, record, restarts, upgradable, with_image},
};

/// SIDECARSET-25: only the sidecar is restarted, and the pod stays.
async fn an_image_changes_in_place(stage: &mut Stage) -> Outcome {
    let scene = Scene::with_real_containers(stage, "inplace").await?;
    scene.create_set("s", json!({})).await;
    scene.create_pods(2).await;
    scene.until_counts("s", [2; 4]).await;
    let before = scene.pods().await;
    scene.set_image("s", "app:v2").await;
    scene.rests_at("s", [2; 4]).await;
    let after = scene.pods().await;
    let set = scene.named("s");
    for (old, new) in before.iter().zip(&after) {
        assert_eq!((name(old), &old.metadata.uid), (name(new), &new.metadata.uid));
        assert_eq!(image_of(new, "sc"), scene.image("app:v2"));
        assert_eq!((restarts(new, "sc"), restarts(new, "main")), (1, 0));
        let all = json!({set.as_str(): true});
        assert_eq!(upgradable(new), Some(("True".into(), "AllSidecarsetUpgradable".into(), all)));
        assert_eq!(
            record(new, &set)["hash"],
            scene.set("s").await["metadata"]["annotations"]["kruise.io/sidecarset-hash"]
        );
        let status = kruise_testkit::pod::container(new, "sc").unwrap();
        assert!(status.image.ends_with("app:v2"), "{}", status.image);
    }
    Ok(())
}
managed!(an_image_changes_in_place, []);

/// SIDECARSET-26: an image that does not come stops the update, and a good one mends it.
async fn a_bad_image_stops_at_the_limit(stage: &mut Stage) -> Outcome {
    let scene = Scene::with_real_containers(stage, "bad").await?;
    scene.create_set("s", strategy(json!({"maxUnavailable": 1}))).await;
    scene.create_pods(2).await;
    scene.until_counts("s", [2; 4]).await;
    let before = scene.pods().await;
    scene.set_image("s", "app:v2-fail").await;
    scene.rests_at("s", [2, 1, 1, 0]).await;
    scene.set_image("s", "app:v2").await;
    scene.rests_at("s", [2; 4]).await;
    let after = scene.pods().await;
    assert_eq!(with_image(&after, "sc", &scene.image("app:v2")), 2);
    assert!(before.iter().zip(&after).all(|(old, new)| old.metadata.uid == new.metadata.uid));
    Ok(())
}
managed!(a_bad_image_stops_at_the_limit, []);

/// SIDECARSET-27
async fn a_partition_keeps_pods_on_the_old_image(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "partition").await;
    scene.create_set("s", strategy(json!({"maxUnavailable": 5}))).await;
    scene.create_pods(5).await;
    scene.until_counts("s", [5; 4]).await;
    let cases = [(json!("99%"), 1), (json!("1%"), 4), (json!(2), 3), (json!("100%"), 0)];
    for (round, (partition, updated)) in cases.into_iter().enumerate() {
        let image = format!("app:v{}", round + 2);
        let change = merged(scene.with_image("s", &image).await, &strategy(json!({"partition": partition})));
        scene.change_set("s", change).await;
        scene.rests_at("s", [5, updated, 5, updated]).await;
        let now = with_image(&scene.pods().await, "sc", &scene.image(&image));
        assert_eq!(i64::try_from(now).unwrap(), updated, "{partition}");
        scene.change_set("s", strategy(json!({"partition": 0}))).await;
        scene.until_counts("s", [5; 4]).await;
        assert_eq!(with_image(&scene.pods().await, "sc", &scene.image(&image)), 5);
    }
    Ok(())
}
managed!(a_partition_keeps_pods_on_the_old_image, []);

/// SIDECARSET-29: a label on a pod is enough to update it.
async fn only_chosen_pods_are_updated(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "selector").await;
    let selector = json!({"matchLabels": {"version": "canary"}});
    scene.create_set("s", strategy(json!({"selector": selector, "maxUnavailable": 5}))).await;
    let labelled = json!({"metadata": {"labels": {"version": "canary"}}});
    scene.create_pod("chosen", labelled.clone()).await;
    scene.create_pod("later", json!({})).await;
    scene.create_pod("never", json!({})).await;
    scene.until_counts("s", [3; 4]).await;
    scene.set_image("s", "app:v2").await;
    scene.rests_at("s", [3, 1, 3, 1]).await;
    let new = scene.image("app:v2");
    assert_eq!(image_of(&scene.pod("chosen").await, "sc"), new);

    let generation = scene.set("s").await["metadata"]["generation"].clone();
    scene.change_pod("later", labelled).await;
    scene.rests_at("s", [3, 2, 3, 2]).await;
    assert_eq!(image_of(&scene.pod("later").await, "sc"), new);
    assert_eq!(image_of(&scene.pod("never").await, "sc"), scene.image("app:v1"));
    assert_eq!(scene.set("s").await["metadata"]["generation"], generation);

    let refused = scene.try_change_set("s", strategy(json!({"partition": "10%"}))).await.unwrap_err();
    assert!(
        refused.starts_with("422 ") && refused.contains("Partition and Selector cannot be used together"),
        "{refused}"
    );
    Ok(())
}
managed!(only_chosen_pods_are_updated, []);

/// SIDECARSET-33: a pause stops the update where it is; new pods get the new image all the same.
async fn an_update_can_be_paused(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "pause").await;
    scene.create_set("s", json!({})).await;
    scene.create_pods(5).await;
    scene.until_counts("s", [5; 4]).await;
    let new = scene.image("app:v2");
    scene.set_image("s", "app:v2").await;
    scene.until("the update has begun", "s", |_, pods| with_image(pods, "sc", &new) > 0).await;
    scene.publish("s", strategy(json!({"paused": true}))).await;
    // What was decided before the manager heard of the pause may still arrive.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let paused = scene.pods().await;
    let updated = with_image(&paused, "sc", &new);
    assert!((1..5).contains(&updated), "{updated}");
    let pods = essence(&paused);
    scene.always("no pod changes", "s", MOMENT, |_, now| essence(now) == pods).await;
    let pod = scene.create_pod("new", json!({})).await;
    assert_eq!(image_of(&pod, "sc"), new);
    let updated = i64::try_from(updated + 1).unwrap();
    scene.until_counts("s", [6, updated, 6, updated]).await;

    scene.change_set("s", strategy(json!({"paused": false}))).await;
    scene.until_counts("s", [6; 4]).await;
    assert_eq!(with_image(&scene.pods().await, "sc", &new), 6);
    Ok(())
}
managed!(an_update_can_be_paused, []);

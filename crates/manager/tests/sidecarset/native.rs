//! Init containers.

use kruise_api::annotations::{SIDECARSET_HASH, SIDECARSET_HASH_WITHOUT_IMAGE};
use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    scene::{MOMENT, Scene, mark, strategy},
    stage::{Stage, managed},
    words::{container, essence, init_containers, require_native_sidecars},
};

fn native(scene: &Scene, image: &str) -> Value {
    let sidecar = scene.sidecar("native", image, json!({"restartPolicy": "Always"}));
    json!({"spec": {"containers": null, "initContainers": [sidecar]}})
}

/// SIDECARSET-12: an init container that goes on is injected, and never updated.
async fn init_containers_that_go_on_are_not_updated(stage: &mut Stage) -> Outcome {
    let scene = Scene::with_real_containers(stage, "native").await?;
    let refused = scene.try_create_set("s", native(&scene, "app:v1")).await.unwrap_err();
    assert_eq!(
        refused,
        "422 admission webhook \"vsidecarset.kb.io\" denied the request: spec.updateStrategy: Required value: The \
         initContainer in-place upgrade is not currently supported."
    );
    let change = crate::kit::merged(native(&scene, "app:v1"), &strategy(json!({"type": "NotUpdate"})));
    let before = scene.create_set("s", change).await;
    require_native_sidecars(&scene).await?;
    scene.create_pod("pod", json!({})).await;
    scene.until_counts("s", [1; 4]).await;
    let pods = scene.pods().await;
    assert_eq!(init_containers(&pods[0]), ["native"]);
    assert_eq!(container(&pods[0], "native")["restartPolicy"], "Always");

    let spec = json!({"spec": {"initContainers": native(&scene, "app:v2")["spec"]["initContainers"]}});
    let after = scene.publish("s", spec).await;
    assert_ne!(mark(&after, SIDECARSET_HASH), mark(&before, SIDECARSET_HASH));
    assert_eq!(mark(&after, SIDECARSET_HASH_WITHOUT_IMAGE), mark(&before, SIDECARSET_HASH_WITHOUT_IMAGE));
    scene.until_counts("s", [1, 0, 1, 0]).await;
    let pods = essence(&pods);
    scene.always("no pod changes", "s", MOMENT, |_, now| essence(now) == pods).await;
    Ok(())
}
managed!(init_containers_that_go_on_are_not_updated, []);

/// SIDECARSET-13
async fn images_of_plain_init_containers_are_not_part_of_the_hash(stage: &mut Stage) -> Outcome {
    let scene = Scene::with_real_containers(stage, "plain").await?;
    let ends = json!({"command": ["true"]});
    let init =
        |image: &str| json!({"spec": {"initContainers": [scene.sidecar("init", image, ends.clone())]}});
    let before = scene.create_set("s", init("job:v1")).await;
    scene.create_pod("pod", json!({})).await;
    scene.until_counts("s", [1; 4]).await;
    let pods = essence(&scene.pods().await);
    let after = scene.publish("s", init("job:v2")).await;
    assert_eq!(after["spec"]["initContainers"][0]["image"], scene.image("job:v2"));
    for key in [SIDECARSET_HASH, SIDECARSET_HASH_WITHOUT_IMAGE] {
        assert_eq!(mark(&after, key), mark(&before, key), "{key}");
    }
    scene.rests_at("s", [1; 4]).await;
    assert_eq!(essence(&scene.pods().await), pods);
    Ok(())
}
managed!(images_of_plain_init_containers_are_not_part_of_the_hash, []);

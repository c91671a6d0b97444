//! Sets that stand in for others.

use kruise_api::annotations::{SIDECARSET_BASE, SIDECARSET_CANARY};
use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    kit::{image_of, merged},
    scene::{Scene, strategy},
    stage::{Stage, managed},
    words::{containers, injected},
};

/// A set that stands in for another one, with another image for pods with the label `canary`.
fn canary(scene: &Scene, base: &str) -> Value {
    json!({
        "metadata": {"annotations": {SIDECARSET_CANARY: "true", SIDECARSET_BASE: base}},
        "spec": {
            "selector": {"matchLabels": {"app": scene.app(), "canary": "yes"}},
            "containers": [scene.sidecar("sc", "app:v2", json!({}))],
            "updateStrategy": {"type": "NotUpdate"},
        },
    })
}

/// SIDECARSET-24: pods of the canary get nothing of its base, and the base goes on.
async fn a_canary_stands_in_for_its_base(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "canary").await;
    scene.create_set("base", json!({})).await;
    scene.create_set("canary", canary(&scene, &scene.named("base"))).await;
    let labelled = json!({"metadata": {"labels": {"canary": "yes"}}});
    let pod = scene.create_pod("first", labelled).await;
    assert_eq!(containers(&pod), ["sc", "main"]);
    assert_eq!(image_of(&pod, "sc"), scene.image("app:v2"));
    assert_eq!(injected(&pod), scene.named("canary"));
    scene.rests_at("canary", [1; 4]).await;
    scene.rests_at("base", [0; 4]).await;

    let pod = scene.create_pod("second", json!({})).await;
    assert_eq!((injected(&pod), image_of(&pod, "sc")), (scene.named("base").as_str(), scene.image("app:v1")));
    scene.until_counts("base", [1; 4]).await;
    scene.set_image("base", "app:v3").await;
    scene.until_counts("base", [1; 4]).await;
    assert_eq!(image_of(&scene.pod("second").await, "sc"), scene.image("app:v3"));
    assert_eq!(image_of(&scene.pod("first").await, "sc"), scene.image("app:v2"));
    Ok(())
}
managed!(a_canary_stands_in_for_its_base, []);

/// SIDECARSET-24, what is refused
async fn a_canary_that_cannot_be_one_is_refused(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "nocanary").await;
    scene.create_set("base", json!({})).await;
    let base = scene.named("base");
    scene.create_set("canary", canary(&scene, &base)).await;
    let updates = merged(canary(&scene, &base), &strategy(json!({"type": "RollingUpdate"})));
    let missing = scene.named("missing");
    let cases = [
        (updates, "RollingUpdate is not supported for canary sidecarSet".to_owned()),
        (canary(&scene, &scene.named("other")), "base sidecarSet cannot be itself".to_owned()),
        (canary(&scene, &scene.named("canary")), "base sidecarSet cannot be canary".to_owned()),
        (canary(&scene, &missing), format!("fetch base sidecarSet[{missing}] failed: ")),
    ];
    for (change, words) in cases {
        let refused = scene.try_create_set("other", change).await.unwrap_err();
        let denied = "422 admission webhook \"vsidecarset.kb.io\" denied the request: ";
        assert!(refused.starts_with(denied), "{refused}");
        assert!(refused.contains("metadata: Invalid value: ") && refused.contains(&words), "{refused}");
    }
    let other = json!({"metadata": {"annotations": {SIDECARSET_BASE: missing}}});
    let refused = scene.try_change_set("canary", other).await.unwrap_err();
    assert!(refused.contains(&format!("annotations[{SIDECARSET_BASE}] is immutable")), "{refused}");
    Ok(())
}
managed!(a_canary_that_cannot_be_one_is_refused, []);

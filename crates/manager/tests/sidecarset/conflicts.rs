//! Sets that cannot stand beside each other.

use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    kit::merged,
    scene::Scene,
    stage::{Stage, managed},
};

/// A set with a container, a volume and an annotation.
fn content(scene: &Scene, container: &str, volume: Value, key: &str) -> Value {
    let mounts = json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]});
    json!({"spec": {
        "containers": [scene.sidecar(container, "app:v1", mounts)],
        "volumes": [merged(json!({"name": "v"}), &volume)],
        "patchPodMetadata": [{"annotations": {key: "x"}, "patchPolicy": "Overwrite"}],
    }})
}

/// SIDECARSET-38: what two sets give to the same pods must fit together.
async fn sets_that_clash_on_a_pod_are_refused(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "clash").await;
    let empty = json!({"emptyDir": {}});
    let spaces = |team: &str| json!({"spec": {"namespaceSelector": {"matchLabels": {"team": team}}}});
    let labels =
        |value: &str| json!({"spec": {"selector": {"matchLabels": {"app": scene.app(), "a": value}}}});
    let first = |change: &Value| merged(content(&scene, "sc", empty.clone(), "k"), change);
    scene.create_set("s1", first(&merged(spaces("red"), &labels("b")))).await;
    let other = scene.named("s1");
    let same = merged(spaces("red"), &labels("b"));
    let cases = [
        (
            content(&scene, "sc", empty.clone(), "other"),
            format!("spec.containers: Invalid value: \"sc\": container sc already exist in {other}"),
        ),
        (
            content(&scene, "two", json!({"hostPath": {"path": "/x"}}), "other"),
            format!("spec.volumes: Invalid value: \"v\": volume v is in conflict with sidecarset {other}"),
        ),
        (
            content(&scene, "two", empty.clone(), "k"),
            format!(
                "spec.patchPodMetadata: Invalid value: \"k\": annotation k is in conflict with sidecarset {other}"
            ),
        ),
    ];
    for (content, words) in cases {
        let refused = scene.try_create_set("s2", merged(content, &same)).await.unwrap_err();
        let denied = "422 admission webhook \"vsidecarset.kb.io\" denied the request: ";
        assert_eq!(refused, format!("{denied}{words}"));
    }
    let fits = content(&scene, "two", empty.clone(), "other");
    scene.create_set("fits", merged(fits, &same)).await;
    scene.create_set("other-pods", first(&merged(spaces("red"), &labels("c")))).await;
    scene.create_set("other-spaces", first(&merged(spaces("blue"), &labels("b")))).await;
    Ok(())
}
managed!(
    sets_that_clash_on_a_pod_are_refused,
    ["--feature-gates=SidecarSetPatchPodMetadataDefaultsAllowed=true"]
);

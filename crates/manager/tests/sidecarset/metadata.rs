//! Annotations that sets put on pods.

use k8s_openapi::api::core::v1::ConfigMap;
use kruise_api::names;
use kruise_testkit::{Outcome, wait::Look};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    kit::{annotation, merged},
    scene::{MOMENT, Scene},
    stage::{Stage, managed},
    words::with_image,
};

const DENIED: &str =
    "422 admission webhook \"vsidecarset.kb.io\" denied the request: spec.patchPodMetadata: Required value: ";
/// Lets every set patch every annotation.
const ALLOWED: &str = "--feature-gates=SidecarSetPatchPodMetadataDefaultsAllowed=true";

fn patches(patches: Value) -> Value {
    json!({"spec": {"patchPodMetadata": patches}})
}

/// SIDECARSET-14, gate off
async fn annotations_are_patched_only_where_a_list_allows_it(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "whitelist").await;
    let maps: Api<ConfigMap> = Api::namespaced(scene.cluster.client(), names::NAMESPACE);
    let _ = maps.delete(names::CONFIGURATION, &DeleteParams::default()).await;
    let labelled = |key: &str, labels: Value| {
        merged(patches(json!([{"annotations": {key: "1"}}])), &json!({"metadata": {"labels": labels}}))
    };
    let log = json!({"sidecar": "log"});
    let refused = async |change: Value, words: &str| {
        let look = async || match scene.try_create_set("s", change.clone()).await {
            Err(told) if told == format!("{DENIED}{words}") => Look::Yes(()),
            Err(told) => Look::No(told),
            Ok(_) => panic!("accepted instead of: {words}"),
        };
        scene.sandbox.eventually(words, look).await;
    };
    refused(labelled("oom-score", log.clone()), "SidecarSet patch metadata whitelist not found").await;

    let rules = json!({"rules": [{
        "selector": {"matchLabels": {"sidecar": "log"}}, "allowedAnnotationKeyExprs": ["^oom-score$"],
    }]});
    let map = json!({
        "metadata": {"name": names::CONFIGURATION, "ownerReferences": scene.owner()},
        "data": {names::SIDECARSET_PATCH_WHITE_LIST: rules.to_string()},
    });
    maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    let other_team = labelled("oom-score", json!({"sidecar": "mesh"}));
    refused(other_team, "sidecarSet patch metadata annotation is not allowed").await;
    let other_key = labelled("oom-score-2", log.clone());
    refused(other_key, "sidecarSet patch metadata annotation(oom-score-2) is not allowed").await;
    scene.create_set("s", labelled("oom-score", log)).await;
    let pod = scene.create_pod("pod", json!({})).await;
    assert_eq!(annotation(&pod, "oom-score"), "1");
    maps.delete(names::CONFIGURATION, &DeleteParams::default()).await.unwrap();
    Ok(())
}
managed!(annotations_are_patched_only_where_a_list_allows_it, [], alone);

/// SIDECARSET-14, gate on
async fn annotations_are_patched_without_a_list_when_asked_for(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "nolist").await;
    scene.create_set("s", patches(json!([{"annotations": {"any": "1"}}]))).await;
    let pod = scene.create_pod("pod", json!({})).await;
    assert_eq!(annotation(&pod, "any"), "1");
    Ok(())
}
managed!(annotations_are_patched_without_a_list_when_asked_for, [super::ALLOWED]);

/// Patches of three kinds.
fn three(json: &str) -> Value {
    patches(json!([
        {"annotations": {"k1": "of the set"}},
        {"annotations": {"k2": "of the set"}, "patchPolicy": "Overwrite"},
        {"annotations": {"k3": json}, "patchPolicy": "MergePatchJson"},
    ]))
}

fn annotated() -> Value {
    json!({"metadata": {"annotations": {"k1": "x", "k2": "y", "k3": "{\"a\":1}"}}})
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// SIDECARSET-15
async fn annotations_are_kept_replaced_or_merged(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "policies").await;
    scene.create_set("s", three("{\"b\":2}")).await;
    let pod = scene.create_pod("pod", annotated()).await;
    assert_eq!((annotation(&pod, "k1"), annotation(&pod, "k2")), ("x", "of the set"));
    assert_eq!(parsed(annotation(&pod, "k3")), json!({"a": 1, "b": 2}));
    let empty = scene.create_pod("empty", json!({})).await;
    assert_eq!((annotation(&empty, "k1"), annotation(&empty, "k2")), ("of the set", "of the set"));
    assert_eq!(annotation(&empty, "k3"), "{\"b\":2}");
    let broken = json!({"metadata": {"annotations": {"k3": "not json"}}});
    let refused = scene.try_create_pod("broken", broken).await.unwrap_err();
    assert!(
        refused.contains("admission webhook \"mpod.kb.io\" denied the request: Invalid JSON Document"),
        "{refused}"
    );
    assert_eq!(scene.pods().await.len(), 2);
    Ok(())
}
managed!(annotations_are_kept_replaced_or_merged, [super::ALLOWED]);

/// SIDECARSET-16: a change of annotations alone waits for the next image.
async fn annotations_ride_along_with_the_next_image(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "ride").await;
    scene.create_set("s", three("{\"b\":2}")).await;
    scene.create_pod("first", annotated()).await;
    scene.create_pod("second", annotated()).await;
    scene.until_counts("s", [2; 4]).await;

    scene.publish("s", three("{\"b\":null,\"c\":3}")).await;
    scene
        .always("pods keep what they have", "s", MOMENT, |set, pods| {
            crate::scene::counts(set) == [2; 4]
                && pods.iter().all(|pod| parsed(annotation(pod, "k3")) == json!({"a": 1, "b": 2}))
        })
        .await;
    scene.set_image("s", "app:v2").await;
    scene.until_counts("s", [2; 4]).await;
    let pods = scene.pods().await;
    assert_eq!(with_image(&pods, "sc", &scene.image("app:v2")), 2);
    for pod in &pods {
        assert_eq!(parsed(annotation(pod, "k3")), json!({"a": 1, "c": 3}));
        assert_eq!((annotation(pod, "k1"), annotation(pod, "k2")), ("x", "of the set"));
    }
    Ok(())
}
managed!(annotations_ride_along_with_the_next_image, [super::ALLOWED]);

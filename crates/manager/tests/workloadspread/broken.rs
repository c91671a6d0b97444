//! Spreads that cannot be understood keep no pod from being made or deleted.

use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    scene::{NO_FLAGS, Scene, name, subset},
    stage::{Stage, embedded_only},
};

/// An object that is stored in spite of every rule, as an older release may have left it. Only the embedded cluster lets one in.
async fn store(stage: &Stage, scene: &Scene, spec: Value) {
    stage.remove_webhooks().await;
    let mut crd = kruise_api::workloadspread::CRD.object();
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    for version in crd["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"]["openAPIV3Schema"] = open.clone();
    }
    crd["spec"]["conversion"] = json!({"strategy": "None"});
    stage.put(crd).await;
    let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread", "metadata": {"name": "broken"}, "spec": spec});
    scene.sandbox.create_any(object).await.unwrap();
    stage.put_webhooks().await;
    scene.rest(3).await;
}

/// Pods are made and deleted beside spreads that are no spreads.
async fn a_broken_spread_blocks_nobody(stage: &mut Stage) -> Outcome {
    let target = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"});
    for (place, spec) in [
        json!({"targetRef": target, "subsets": "none"}),
        json!({"targetRef": target, "subsets": [subset("a", json!({"x": 1}))]}),
        json!({"targetRef": target, "subsets": [subset("x", json!("abc")), subset("y", json!("5"))]}),
        json!({"targetRef": target, "subsets": []}),
        json!({"targetRef": target, "targetFilter": {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "subsets": [subset("a", 1.into())]}),
        json!({"targetRef": {"apiVersion": "nowhere.example/v9", "kind": "Nothing", "name": "x"}, "subsets": [subset("a", "50%".into())]}),
        json!({}),
    ]
    .into_iter()
    .enumerate()
    {
        let scene = Scene::prepare(stage, &format!("ws-broken-{place}")).await;
        store(stage, &scene, spec).await;
        scene.create_set(2).await;
        scene.until_places("-2").await;
        let pod = name(&scene.pods().await[0]);
        scene.sandbox.delete::<k8s_openapi::api::core::v1::Pod>(&pod).await;
        scene.until_places("-2").await;
        scene.scale_set(0).await;
        scene.until_places("").await;
    }
    Ok(())
}
embedded_only!(a_broken_spread_blocks_nobody, super::NO_FLAGS);

//! What OpenKruise has left behind.

use std::time::Duration;

use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    scene::{HASH, OPEN, Scene, condition, config, named},
    stage::{Stage, embedded_only},
};

/// DISTRIBUTION-21: copies that the original made are ours, and where they are equal nothing is written. Those that it put
/// into the namespaces of the system are removed.
async fn equal_copies_are_adopted_without_a_write(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-takeover").await;
    let one = scene.space(json!({"team": scene.home.namespace()})).await;
    let two = scene.space(json!({})).await;
    let name = scene.name("x");
    let targets = json!({"namespaceSelector": {"matchLabels": {"team": scene.home.namespace()}},
        "includedNamespaces": {"list": named(&[&two])}});
    scene.distribute(config(&name, json!({"a": "1"})), targets).await;
    scene.until(&name, "2/2/0").await;
    stage.kill_manager();
    stage.remove_webhooks().await;
    for namespace in [&one, &two] {
        let copy = scene.copy(namespace, &name).await.unwrap();
        let mut owner = copy["metadata"]["ownerReferences"][0].clone();
        owner["apiVersion"] = json!("apps.kruise.io/v1alpha1");
        // The original copied finalizers too; here one is on each copy.
        let change = json!({"metadata": {"ownerReferences": [owner], "finalizers": ["example.com/keep"]}});
        scene.edit("ConfigMap", namespace, &name, change).await;
    }
    let mut system = scene.copy(&one, &name).await.unwrap();
    system["metadata"] = json!({"name": name, "annotations": system["metadata"]["annotations"],
        "ownerReferences": system["metadata"]["ownerReferences"]});
    scene.put("ConfigMap", "kube-system", system).await;
    let versions = async || -> Vec<Value> {
        let mut versions = vec![scene.get(&name).await["metadata"]["resourceVersion"].clone()];
        for namespace in [&one, &two] {
            versions.push(scene.copy(namespace, &name).await.unwrap()["metadata"]["resourceVersion"].clone());
        }
        versions
    };
    let before = versions().await;
    stage.put_webhooks().await;
    stage.start_manager().await;
    stage.sim().advance(Duration::from_secs(60)).await;
    assert_eq!(versions().await, before);
    assert!(scene.copy("kube-system", &name).await.is_none());
    // Where a copy differs it is written, with the owner of today, and what others put on it stays.
    scene.edit("ConfigMap", &one, &name, json!({"metadata": {"annotations": {HASH: "old"}}})).await;
    stage.sim().advance(Duration::from_secs(5)).await;
    let copy = scene.copy(&one, &name).await.unwrap();
    assert_eq!(copy["metadata"]["ownerReferences"][0]["apiVersion"], "apps.kruise.io/v1beta1");
    assert_eq!(copy["metadata"]["finalizers"], json!(["example.com/keep"]));
    for namespace in [&one, &two] {
        scene.edit("ConfigMap", namespace, &name, json!({"metadata": {"finalizers": null}})).await;
    }
    Ok(())
}
// What another release wrote is put there while no manager runs.
embedded_only!(equal_copies_are_adopted_without_a_write, super::OPEN);

/// Conditions of another order and without some types are completed; their times stay.
async fn a_status_of_the_original_is_completed(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-status").await;
    let (one, two) = (scene.space(json!({})).await, scene.space(json!({})).await);
    let mut missing = [scene.name("b"), scene.name("a")];
    let list = named(&[&one, &two, &missing[0], &missing[1]]);
    let name = scene.name("x");
    stage.kill_manager();
    stage.remove_webhooks().await;
    scene
        .create(&name, config(&name, json!({"a": "1"})), json!({"includedNamespaces": {"list": list}}))
        .await
        .unwrap();
    let time = "2025-01-01T00:00:00Z";
    let status = json!({"status": {"desired": 4, "succeeded": 2, "failed": 2, "observedGeneration": 1, "conditions": [
        {"type": "NamespaceNotExists", "status": "True", "reason": "namespace not found or is terminating",
            "lastTransitionTime": time, "failedNamespaces": missing.clone()},
        {"type": "GetResourceFailed", "status": "False", "reason": "Succeeded", "lastTransitionTime": time},
    ]}});
    let params = kube::api::PatchParams::default();
    scene.all().patch_status(&name, &params, &kube::api::Patch::Merge(status)).await.unwrap();
    stage.put_webhooks().await;
    stage.start_manager().await;
    stage.sim().advance(Duration::from_secs(5)).await;
    let object = scene.until(&name, "4/2/2").await;
    missing.sort();
    let found = condition(&object, "NamespaceNotExists").unwrap();
    assert_eq!((&found["failedNamespaces"], &found["lastTransitionTime"]), (&json!(missing), &json!(time)));
    assert_eq!(condition(&object, "GetResourceFailed").unwrap()["lastTransitionTime"], time);
    assert_eq!(object["status"]["conditions"].as_array().unwrap().len(), 7);
    // It was reported by whoever wrote it.
    assert_eq!(scene.events(&name, "NamespaceNotExists").await, [""; 0]);
    Ok(())
}
embedded_only!(a_status_of_the_original_is_completed, super::OPEN);

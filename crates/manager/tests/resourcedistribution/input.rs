//! What is refused, and both versions.

use kruise_testkit::{Backend, Outcome};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::{
    scene::{OPEN, Scene, condition, config, included, named},
    stage::{Stage, managed},
};

/// DISTRIBUTION-17
async fn what_cannot_be_distributed_is_refused(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-bad").await;
    let good = || config("x", json!({"a": "1"}));
    let with = |change: Value| {
        let mut object = good();
        for (key, value) in change.as_object().unwrap() {
            object[key] = value.clone();
        }
        object
    };
    let secret = |change: Value| {
        let mut object = with(change);
        object["kind"] = json!("Secret");
        object
    };
    let targets = || included(&["default"]);
    let both = json!({"includedNamespaces": {"list": named(&["a", "b", "c"])}, "excludedNamespaces": {"list": named(&["c", "a"])}});
    let selector = json!({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}});
    for (resource, targets, expected) in [
        (
            with(json!({"apiVersion": "apps/v1", "kind": "Deployment"})),
            targets(),
            "spec.resource: Invalid value: \"Deployment.apps\": unknown or unsupported resource GroupKind, only support [Secret ConfigMap]",
        ),
        (
            with(json!({"apiVersion": "example.com/v1", "kind": "Secret"})),
            targets(),
            "only support [Secret ConfigMap]",
        ),
        (
            with(json!({"metadata": {"generateName": "x-"}})),
            targets(),
            "spec.resource.metadata.name: Required value",
        ),
        (
            secret(json!({"data": {"bad key": "AAAA"}})),
            targets(),
            "spec.resource: Invalid value: null: spec.resource is invalid: ",
        ),
        (
            secret(json!({"data": {"a": "!"}})),
            targets(),
            "spec.resource: Invalid value: null: spec.resource is invalid: ",
        ),
        (secret(json!({"data": {}, "type": "kubernetes.io/tls"})), targets(), "data[tls.crt]"),
        (
            good(),
            both,
            "ambiguous targets because namespace [a c] is in both IncludedNamespaces.List and ExcludedNamespaces.List",
        ),
        (
            good(),
            included(&["Bad_Name"]),
            "spec.targets.includedNamespaces: Invalid value: \"Bad_Name\": a lowercase RFC 1123 label",
        ),
        (
            good(),
            json!({"excludedNamespaces": {"list": named(&["-"])}}),
            "spec.targets.excludedNamespaces: Invalid value: \"-\": ",
        ),
        (good(), selector, "labelSelectorAsSelector error: \"Near\" is not a valid label selector operator"),
    ] {
        // The embedded server takes any text for base64, and any Secret for one of its type.
        let is_lax = scene.cluster.backend() == Backend::Embedded;
        if is_lax && (resource["data"]["a"] == "!" || resource["type"] == "kubernetes.io/tls") {
            continue;
        }
        let said = scene.create("bad", resource.clone(), targets).await;
        let said = said.map(|made| made.to_string()).expect_err(&format!("{resource} is refused"));
        assert!(said.starts_with("422 ") && said.contains(expected), "{said}");
    }
    Ok(())
}
managed!(what_cannot_be_distributed_is_refused, super::OPEN);

/// DISTRIBUTION-17: what a resource is never changes. Everything else does, and labels do not ask the server again.
async fn the_identity_of_a_resource_stays(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-same").await;
    let name = scene.distribute(config(&scene.name("x"), json!({"a": "1"})), json!({})).await;
    for change in [json!({"kind": "Secret", "data": null}), json!({"metadata": {"name": "other"}})] {
        let said = scene.change(&name, json!({"spec": {"resource": change}})).await.unwrap_err();
        let expected =
            "spec.resource: Invalid value: null: resource apiVersion, kind, and name are immutable";
        assert!(said.starts_with("422 ") && said.contains(expected), "{said}");
    }
    let said = scene.change(&name, json!({"spec": {"resource": {"data": {"a/b": "1"}}}})).await.unwrap_err();
    assert!(said.contains("spec.resource is invalid: "), "{said}");
    scene.change(&name, json!({"spec": {"resource": {"data": {"a": "2"}}}})).await.unwrap();
    scene.change(&name, json!({"metadata": {"labels": {"a": "b"}}})).await.unwrap();
    // Nothing of all that was stored in the namespace of the manager.
    assert!(scene.copy("kruise-system", &name).await.is_none());
    Ok(())
}
managed!(the_identity_of_a_resource_stays, super::OPEN);

/// DISTRIBUTION-21, DISTRIBUTION-22: both versions show the same.
async fn versions_show_the_same(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-versions").await;
    let labels = json!({"team": scene.home.namespace()});
    let one = scene.space(labels.clone()).await;
    let name = scene.name("x");
    scene.put("ConfigMap", &one, json!({"metadata": {"name": name}})).await;
    let old = scene.any("apps.kruise.io/v1alpha1", "ResourceDistribution", "");
    let object = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution",
        "metadata": {"name": name},
        "spec": {"resource": config(&name, json!({"a": "1"})), "targets": {"namespaceLabelSelector": {"matchLabels": labels}}}});
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    old.create(&PostParams::default(), &object).await.unwrap();
    let new = scene.until(&name, "1/0/1").await;
    assert_eq!(new["spec"]["targets"], json!({"namespaceSelector": {"matchLabels": labels}}));
    assert_eq!(condition(&new, "ConflictOccurred").unwrap()["failedNamespaces"], json!([one]));
    let seen = serde_json::to_value(old.get(&name).await.unwrap()).unwrap();
    let mut conflict = condition(&seen, "ConflictOccurred").unwrap().clone();
    assert_eq!(conflict["failedNamespace"], json!([one]));
    let renamed = conflict["failedNamespace"].take();
    conflict.as_object_mut().unwrap().remove("failedNamespace");
    conflict["failedNamespaces"] = renamed;
    assert_eq!(&conflict, condition(&new, "ConflictOccurred").unwrap());
    let bad = json!({"spec": {"targets": {"includedNamespaces": {"list": [{"name": "A"}]}}}});
    let refused = old.patch(&name, &PatchParams::default(), &Patch::Merge(bad)).await.unwrap_err();
    assert!(crate::scene::refusal(refused).contains("spec.targets.includedNamespaces"));
    old.delete(&name, &kube::api::DeleteParams::default()).await.unwrap();
    Ok(())
}
managed!(versions_show_the_same, super::OPEN);

//! A cluster of OpenKruise v1.9.0 becomes ours, and goes back.

use std::time::Duration;

use kruise_api::catalogue;
use kruise_core::migration::{DEFINITION, Goal};
use kruise_manager::migrate::Migration;
use kruise_runtime::{clock::Clock, random::Random};
use kruise_testkit::{
    Outcome,
    wait::{Look, eventually},
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::stage::{Stage, managed};

const NO_FLAGS: [&str; 0] = [];

fn definitions(stage: &Stage) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(DEFINITION.group, DEFINITION.version, DEFINITION.kind);
    Api::all_with(stage.cluster.client(), &ApiResource::from_gvk_with_plural(&kind, DEFINITION.plural))
}

async fn stored(stage: &Stage, name: &str) -> Value {
    definitions(stage).get(name).await.unwrap().data["status"]["storedVersions"].clone()
}

/// Makes a definition store another version, as that of the original does.
async fn store(stage: &Stage, name: &str, version: &str) {
    let definition = definitions(stage).get(name).await.unwrap();
    let versions = definition.data["spec"]["versions"].as_array().unwrap();
    let operations: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            json!({"op": "replace", "path": format!("/spec/versions/{index}/storage"), "value": entry["name"] == version})
        })
        .collect();
    let patch: Patch<DynamicObject> = Patch::Json(serde_json::from_value(operations.into()).unwrap());
    definitions(stage).patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// What must be the same after every step: everything but what the server keeps about an object. An empty object says as
/// much as none.
fn essence(object: &DynamicObject) -> Value {
    let annotations = object.metadata.annotations.clone().unwrap_or_default();
    let mut essence =
        json!({"labels": object.metadata.labels, "annotations": annotations, "data": object.data});
    drop_empty(&mut essence);
    essence
}

fn drop_empty(value: &mut Value) {
    if let Value::Object(members) = value {
        members.values_mut().for_each(drop_empty);
        members.retain(|_, member| member.as_object().is_none_or(|object| !object.is_empty()));
    }
}

/// PLATFORM-44: objects of the seven kinds, stored as the original stores them, move to our version and back, and are
/// the same in both.
async fn stored_versions_move_to_ours_and_back_without_loss(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("storage").await;
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "app:v1"}]}});
    let mut objects = vec![
        json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
            "metadata": {"name": "web", "annotations": {"apps.kruise.io/image-predownload-parallelism": "2"}},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template,
                "updateStrategy": {"type": "InPlaceIfPossible", "partition": "30%"}, "scaleStrategy": {"disablePVCReuse": true}}}),
        json!({"apiVersion": "policy.kruise.io/v1alpha1", "kind": "PodUnavailableBudget",
            "metadata": {"name": "web", "annotations": {"kruise.io/pub-protect-operations": "DELETE,EVICT"}},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1}}),
        json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "PersistentPodState", "metadata": {"name": "web"},
            "spec": {"targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web"},
                "requiredPersistentTopology": {"nodeTopologyKeys": ["zone"]}}}),
    ];
    for object in &mut objects {
        object["metadata"]["namespace"] = sandbox.namespace().into();
    }
    let seven: Vec<&str> = catalogue::CRDS
        .iter()
        .filter(|crd| Goal::OpenKruise19.version(crd) != Goal::Ours.version(crd))
        .map(|crd| crd.kind)
        .collect();
    for kind in &seven {
        store(stage, &catalogue::by_kind(kind).unwrap().name(), "v1alpha1").await;
    }
    // API servers learn of changed definitions by watching.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut before = Vec::new();
    for object in &objects {
        stage.create(object.clone()).await.unwrap();
        before.push(essence(&stage.api(object).get("web").await.unwrap()));
    }
    stage.cluster.install_crds().await;
    let clock = Clock::wall();
    let migration = Migration::new(stage.cluster.client(), clock, Random::seeded(1));
    let settle = Duration::from_secs(3);

    migration.run(Goal::Ours, settle, false, |line| println!("{line}")).await.unwrap();
    for crd in catalogue::CRDS {
        let newest = crd.storage().unwrap().name;
        assert_eq!(stored(stage, &crd.name()).await, json!([newest]), "{}", crd.name());
    }
    for (object, before) in objects.iter().zip(&before) {
        assert_eq!(essence(&stage.api(object).get("web").await.unwrap()), *before);
    }
    // With nobody to convert, everything that is stored can still be read as it is stored.
    stage.kill_manager();
    for object in &objects {
        let mut new = object.clone();
        new["apiVersion"] = object["apiVersion"].as_str().unwrap().replace("v1alpha1", "v1beta1").into();
        stage.api(&new).get("web").await.unwrap();
    }
    stage.start_manager().await;
    let back = eventually("the way back", Duration::from_secs(60), async || {
        match migration.run(Goal::OpenKruise19, settle, false, |line| println!("{line}")).await {
            Ok(()) => Look::Yes(()),
            Err(error) => Look::No(error.to_string()),
        }
    });
    back.await.unwrap();
    for kind in &seven {
        let name = catalogue::by_kind(kind).unwrap().name();
        assert_eq!(stored(stage, &name).await, json!(["v1alpha1"]), "{name}");
    }
    for (object, before) in objects.iter().zip(&before) {
        assert_eq!(essence(&stage.api(object).get("web").await.unwrap()), *before);
    }
    stage.cluster.install_crds().await;
    migration.run(Goal::Ours, settle, false, |_| {}).await.unwrap();
    Ok(())
}
managed!(stored_versions_move_to_ours_and_back_without_loss, super::NO_FLAGS);

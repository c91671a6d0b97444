//! Both versions of the API, and sets that an older release has left.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kruise_api::{annotations, catalogue, cloneset::v1beta1::CloneSet, labels};
use kruise_testkit::Outcome;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    kit::{Demo, is_available, is_ready, label, name, revision},
    stage::{Stage, managed},
};

fn in_version(demo: &Demo, version: &str, change: Value) -> Value {
    let mut object = demo.object(&change);
    object["apiVersion"] = format!("apps.kruise.io/{version}").into();
    object
}

async fn read(stage: &Stage, demo: &Demo, version: &str) -> Value {
    let object = in_version(demo, version, json!({}));
    serde_json::to_value(stage.api(&object).get("demo").await.unwrap()).unwrap()
}

/// CLONESET-2
async fn reuse_of_claims_has_other_defaults_in_each_version(stage: &mut Stage) -> Outcome {
    let demo = Demo::prepare(stage, "versions").await;
    let change = json!({"spec": {"replicas": null, "scaleStrategy": {}}});
    stage.create(in_version(&demo, "v1alpha1", change.clone())).await.unwrap();
    let new = read(stage, &demo, "v1beta1").await;
    assert_eq!(new["spec"]["scaleStrategy"]["enablePVCReuse"], true);
    assert_eq!(new["spec"]["replicas"], 1);
    let rolling = &new["spec"]["updateStrategy"]["rollingUpdate"];
    let defaults =
        json!({"podUpdatePolicy": "ReCreate", "partition": 0, "maxUnavailable": "20%", "maxSurge": 0});
    assert_eq!(*rolling, defaults);
    demo.settled().await;

    let demo = Demo::prepare(stage, "versions").await;
    stage.create(in_version(&demo, "v1beta1", change)).await.unwrap();
    let old = read(stage, &demo, "v1alpha1").await;
    assert_eq!(old["spec"]["scaleStrategy"]["disablePVCReuse"], true);
    let strategy = &old["spec"]["updateStrategy"];
    assert_eq!((&strategy["type"], &strategy["maxUnavailable"]), (&json!("ReCreate"), &json!("20%")));
    Ok(())
}
managed!(reuse_of_claims_has_other_defaults_in_each_version, []);

/// Makes the definition store the version that older releases stored.
async fn store_as_before(stage: &Stage) {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let api: Api<DynamicObject> = Api::all_with(stage.cluster.client(), &ApiResource::from_gvk(&kind));
    let name = catalogue::by_kind("CloneSet").unwrap().name();
    let definition = api.get(&name).await.unwrap();
    let versions = definition.data["spec"]["versions"].as_array().unwrap();
    let operations: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            let path = format!("/spec/versions/{index}/storage");
            json!({"op": "replace", "path": path, "value": entry["name"] == "v1alpha1"})
        })
        .collect();
    let patch: Patch<DynamicObject> = Patch::Json(serde_json::from_value(operations.into()).unwrap());
    api.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    // API servers learn of changed definitions by watching.
    tokio::time::sleep(Duration::from_secs(5)).await;
}

/// What an older release did not write on its pods.
async fn make_old(demo: &Demo, pod: &str) {
    let patch = json!({"metadata": {
        "labels": {labels::POD_TEMPLATE_HASH: null, labels::LIFECYCLE_STATE: null},
        "annotations": {annotations::LIFECYCLE_TIMESTAMP: null},
    }});
    let mut pod = demo.change_pod(pod, patch).await;
    let owners = pod.metadata.owner_references.as_mut().unwrap();
    owners[0].api_version = "apps.kruise.io/v1alpha1".to_owned();
    let patch =
        json!({"metadata": {"ownerReferences": owners, "resourceVersion": pod.metadata.resource_version}});
    demo.sandbox.merge::<Pod>(&name(&pod), patch).await;
}

/// Everything about pods that tells whether they were restarted or updated.
fn essence(pods: &[Pod]) -> BTreeMap<String, Value> {
    let essence = |pod: &Pod| {
        let statuses = pod.status.clone().unwrap_or_default().container_statuses.unwrap_or_default();
        json!({
            "uid": pod.metadata.uid, "spec": pod.spec, "revision": revision(pod), "owners": pod.metadata.owner_references,
            "restarts": statuses.iter().map(|one| one.restart_count).collect::<Vec<_>>(),
        })
    };
    pods.iter().map(|pod| (name(pod), essence(pod))).collect()
}

/// CLONESET-49
async fn sets_of_an_older_release_go_on_as_they_are(stage: &mut Stage) -> Outcome {
    store_as_before(stage).await;
    let demo = Demo::prepare(stage, "older").await;
    let strategy = json!({"type": "InPlaceIfPossible"});
    let change = json!({"spec": {"replicas": 3, "updateStrategy": strategy}});
    stage.create(in_version(&demo, "v1alpha1", change)).await.unwrap();
    demo.settled().await;
    stage.kill_manager();
    stage.remove_webhooks().await;
    let names: Vec<String> = demo.uids().await.into_keys().collect();
    for pod in names.iter().take(2) {
        make_old(&demo, pod).await;
    }
    let before = essence(&demo.pods().await);
    let hash = {
        let pods = demo.pods().await;
        revision(&pods[0]).rsplit('-').next().unwrap().to_owned()
    };
    let film = demo.film().await;

    stage.cluster.install_crds().await;
    stage.put_webhooks().await;
    stage.start_manager().await;
    let look = async || {
        let pods = demo.pods().await;
        let hashes: Vec<&str> = pods.iter().map(|pod| label(pod, labels::POD_TEMPLATE_HASH)).collect();
        kruise_testkit::wait::seen(hashes.iter().all(|found| *found == hash), format!("{hashes:?}"))
    };
    demo.sandbox.eventually("missing labels are there", look).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let pods = demo.pods().await;
    assert_eq!(essence(&pods), before);
    for frame in film.frames() {
        assert!(frame.active().count() == 3 && frame.active().all(is_ready));
    }
    for pod in pods.iter().filter(|pod| names.iter().take(2).any(|old| *old == name(pod))) {
        assert_eq!(label(pod, labels::LIFECYCLE_STATE), "", "not before the next update");
        assert!(
            !pod.metadata
                .annotations
                .clone()
                .unwrap_or_default()
                .contains_key(annotations::LIFECYCLE_TIMESTAMP)
        );
    }
    let (new, old) = (read(stage, &demo, "v1beta1").await, read(stage, &demo, "v1alpha1").await);
    assert_eq!(new["spec"]["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"], "InPlaceIfPossible");
    assert_eq!(old["spec"]["updateStrategy"]["type"], "InPlaceIfPossible");
    assert_eq!(new["status"], old["status"]);
    assert_eq!(new["status"]["updatedReadyReplicas"], 3);
    assert!(serde_json::from_value::<CloneSet>(new).is_ok());

    demo.set_image("app:v2").await;
    demo.rolled_out().await;
    let after = demo.pods().await;
    assert!(after.iter().all(|pod| before.contains_key(&name(pod)) && is_available(pod)));
    assert!(after.iter().all(|pod| label(pod, labels::LIFECYCLE_STATE) == "Normal"));
    Ok(())
}
managed!(sets_of_an_older_release_go_on_as_they_are, [], alone);

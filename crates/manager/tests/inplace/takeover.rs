//! What the original left behind is taken over without a write.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::{apps::v1::ControllerRevision, core::v1::Pod};
use kruise_api::{cloneset::v1beta1::CloneSet, gates::Gates};
use kruise_core::{features::webhooks, hash};
use kruise_testkit::{Backend, Outcome, Sandbox, wait::seen};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    kit::{is_active, is_ready, merged, name},
    stage::{Stage, managed},
    words::MOMENT,
};

/// Recorded from the original when it was at rest.
const RECORDED: &str = include_str!("../../../core/tests/recorded/resting.jsonl");

/// A template as a user wrote it, and the revision that the original makes of it: amounts and letters are spelled in
/// another way there, and the name is the hash of these very bytes.
fn spelled_differently() -> Value {
    let stored = json!({
        "metadata": {"labels": {"app": "old"}},
        "spec": {
            "containers": [
                {"name": "main", "image": "app:v1", "args": ["--limit<5"], "resources": {"limits": {"cpu": "1000m"}, "requests": {"cpu": "10m"}}},
                {"name": "second", "image": "app:v1", "resources": {}},
            ],
            "terminationGracePeriodSeconds": 3,
        },
    });
    let text = concat!(
        r#"{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"old"}},"#,
        r#""spec":{"containers":[{"args":["--limit\u003c5"],"image":"app:v1","name":"main","#,
        r#""resources":{"limits":{"cpu":"1"},"requests":{"cpu":"10m"}}},{"image":"app:v1","name":"second","resources":{}}],"#,
        r#""terminationGracePeriodSeconds":3}}}}"#,
    );
    let data: Value = serde_json::from_str(text).unwrap();
    let short = hash::safe_encode(&hash::fnv1(text.bytes().chain(*b"0")).to_string());
    let revision = format!("old-{short}");
    let labels = |more: Value| merged(json!({"app": "old"}), &more);
    let owner = json!([{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "old",
        "controller": true, "blockOwnerDeletion": true}]);
    let pod = |id: &str| {
        let marks = labels(json!({
            "apps.kruise.io/cloneset-instance-id": id, "controller-revision-hash": revision,
            "lifecycle.apps.kruise.io/state": "Normal", "pod-template-hash": short,
        }));
        let spec = merged(
            stored["spec"].clone(),
            &json!({"readinessGates": [{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}]}),
        );
        json!({"kind": "Pod", "metadata": {"name": format!("old-{id}"), "labels": marks, "ownerReferences": owner}, "spec": spec})
    };
    json!({
        "set": {
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": "old"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "old"}}, "template": stored},
            "status": {
                "replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "updatedReplicas": 2, "updatedReadyReplicas": 2,
                "updatedAvailableReplicas": 2, "expectedUpdatedReplicas": 2, "collisionCount": 0,
                "currentRevision": revision, "updateRevision": revision, "labelSelector": "app=old",
            },
        },
        "objects": [
            {"kind": "ControllerRevision", "revision": 1, "data": data, "metadata": {
                "name": revision, "labels": labels(json!({"controller.kubernetes.io/hash": short})),
                "annotations": {"kruise.io/cloneset-volumeclaimtemplate-hash": ""}, "ownerReferences": owner,
            }},
            pod("aaaaa"), pod("bbbbb"),
        ],
    })
}

/// Without what only the server of the recording knew.
fn portable(object: &Value, uid: &str) -> Value {
    let nothing = json!({"metadata": {
        "uid": null, "resourceVersion": null, "generation": null, "creationTimestamp": null, "namespace": null,
        "generateName": null,
    }, "status": null});
    let mut object = merged(object.clone(), &nothing);
    if let Some(owners) = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut) {
        owners.iter_mut().for_each(|owner| owner["uid"] = uid.into());
    }
    object
}

/// Puts a recorded workload into a namespace, pods running.
async fn load(sandbox: &Sandbox, case: &Value) {
    let set: CloneSet = sandbox.create(portable(&case["set"], "")).await;
    let uid = set.metadata.uid.clone().unwrap_or_default();
    let told = merged(case["set"]["status"].clone(), &json!({"observedGeneration": set.metadata.generation}));
    let sets: Api<CloneSet> = sandbox.api();
    let patch = Patch::Merge(json!({"status": told}));
    sets.patch_status(&set.name_any(), &PatchParams::default(), &patch).await.unwrap();
    for object in case["objects"].as_array().unwrap() {
        let mut new = portable(object, &uid);
        if object["kind"] == "ControllerRevision" {
            let _: ControllerRevision = sandbox.create(new).await;
            continue;
        }
        new["spec"]["nodeName"] = "hollow-1".into();
        let pod: Pod = sandbox.create(new).await;
        let gate = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let conditions = [gate("KruisePodReady"), gate("InPlaceUpdateReady")];
        let patch = Patch::Strategic(json!({"status": {"conditions": conditions}}));
        let pods: Api<Pod> = sandbox.api();
        pods.patch_status(&name(&pod), &PatchParams::default(), &patch).await.unwrap();
    }
}

/// Versions of everything that must not be touched.
async fn versions(sandbox: &Sandbox) -> BTreeMap<String, String> {
    let pods: Vec<Pod> = sandbox.list().await;
    let revisions: Vec<ControllerRevision> = sandbox.list().await;
    let pods = pods.iter().map(|one| (format!("pod {}", name(one)), one.resource_version()));
    let revisions =
        revisions.iter().map(|one| (format!("revision {}", one.name_any()), one.resource_version()));
    pods.chain(revisions).map(|(name, version)| (name, version.unwrap_or_default())).collect()
}

/// INPLACE-32: no revision is made or changed and no pod is touched, for five minutes.
async fn what_the_original_left_is_taken_over_without_a_write(stage: &mut Stage) -> Outcome {
    let recorded: Vec<Value> = RECORDED.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let chosen =
        ["create-minimal-v1beta1", "inplace-metadata-only-real", "takeover-partition-half-done", "paused"];
    let mut cases: Vec<Value> =
        recorded.into_iter().filter(|case| chosen.iter().any(|chosen| case["case"] == *chosen)).collect();
    assert_eq!(cases.len(), chosen.len());
    cases.push(spelled_differently());

    // As if all of it had been stored before this manager came.
    stage.kill_manager();
    let configurations = webhooks::configurations(&Gates::default(), &webhooks::Options::default());
    for configuration in &configurations {
        let name = configuration["metadata"]["name"].as_str().unwrap();
        stage.api(configuration).delete(name, &DeleteParams::default()).await.unwrap();
    }
    let sandbox = stage.cluster.sandbox("takeover").await;
    for case in &cases {
        load(&sandbox, case).await;
    }
    let look = async || {
        let pods: Vec<Pod> = sandbox.list().await;
        let waiting: Vec<String> =
            pods.iter().filter(|pod| !(is_active(pod) && is_ready(pod))).map(name).collect();
        seen(waiting.is_empty() && !pods.is_empty(), format!("not ready: {waiting:?}"))
    };
    sandbox.eventually("all pods are ready", look).await;
    tokio::time::sleep(MOMENT).await;
    let before = versions(&sandbox).await;
    assert!(before.len() >= 15, "{before:?}");

    for configuration in configurations {
        stage.put(configuration).await;
    }
    stage.start_manager().await;
    // Five minutes cost nothing in virtual time.
    let during = if stage.cluster.backend() == Backend::Embedded { 300 } else { 20 };
    let look = async || {
        let now = versions(&sandbox).await;
        seen(now == before, format!("{now:?}\nbefore {before:?}"))
    };
    sandbox.always("nothing is written", Duration::from_secs(during), look).await;
    // The manager is awake: a change of the user's is followed at once.
    let _: CloneSet = sandbox.merge("old", json!({"spec": {"replicas": 3}})).await;
    let look = async || {
        let set: CloneSet = sandbox.get("old").await;
        let status = set.status.unwrap_or_default();
        let revisions: Vec<ControllerRevision> = sandbox.list().await;
        seen(
            status.replicas == 3
                && status.updated_replicas == 3
                && revisions.len() == before_revisions(&before),
            format!("{status:?}, {} revisions", revisions.len()),
        )
    };
    sandbox.eventually("the third pod is of the same revision", look).await;
    Ok(())
}
managed!(what_the_original_left_is_taken_over_without_a_write, [], alone);

fn before_revisions(before: &BTreeMap<String, String>) -> usize {
    before.keys().filter(|name| name.starts_with("revision ")).count()
}

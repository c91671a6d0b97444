//! What the original left behind is taken over without a write.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kruise_api::{
    annotations::{SIDECARSET_HASH, SIDECARSET_HASH_WITHOUT_IMAGE},
    conditions::SIDECARSET_UPGRADABLE,
};
use kruise_testkit::{Backend, Outcome, wait::seen};
use kube::{
    ResourceExt as _,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    kit::{is_ready, merged, name},
    scene::{MOMENT, Scene, mark},
    stage::{Stage, managed},
};

/// Recorded from the original when it was at rest.
const RECORDED: &str = include_str!("../../../core/tests/recorded/sidecarsets.jsonl");

/// Recordings that do not share the name of a set.
const CHOSEN: [&str; 13] = [
    "basic-volume-pullsecret",
    "canary-and-base-sets",
    "canary-by-selector",
    "container-removed-from-set",
    "hot-upgrade-injected",
    "hot-upgrade-steps",
    "inplace-update",
    "notupdate-image-change",
    "order-and-init",
    "partition-maxunavailable-paused",
    "resources-policy",
    "share-volumes",
    "transfer-env",
];

/// Without what only the server of the recording knew, and with the label of this scene: other sets then have nothing to
/// do with these pods. Selectors and labels are not part of any hash.
fn portable(scene: &Scene, object: &Value) -> Value {
    let app = json!({"app": scene.app()});
    let here = match object["kind"].as_str() {
        Some("SidecarSet") => json!({"spec": {"selector": {"matchLabels": app}}}),
        Some("Pod") => json!({"metadata": {"labels": app}}),
        _ => json!({}),
    };
    let nothing = json!({"metadata": {
        "uid": null, "resourceVersion": null, "generation": null, "creationTimestamp": null, "namespace": null,
        "generateName": null, "ownerReferences": null,
    }, "status": null});
    merged(merged(object.clone(), &nothing), &here)
}

/// Puts a recorded set, its revisions and its pods into the cluster.
async fn load(scene: &Scene, case: &Value) {
    let owned = json!({"metadata": {"ownerReferences": scene.owner()}});
    let set: DynamicObject = serde_json::from_value(merged(portable(scene, &case["set"]), &owned)).unwrap();
    let sets = scene.sets("v1beta1");
    let made = sets.create(&PostParams::default(), &set).await.unwrap();
    let told =
        merged(case["set"]["status"].clone(), &json!({"observedGeneration": made.metadata.generation}));
    let patch = Patch::Merge(json!({"status": told}));
    sets.patch_status(&made.name_any(), &PatchParams::default(), &patch).await.unwrap();
    for object in case["objects"].as_array().unwrap() {
        let mut new = portable(scene, object);
        if object["kind"] == "Pod" {
            new["spec"]["nodeName"] = "hollow-1".into();
            let pod: Pod = scene.sandbox.create(new).await;
            let conditions = object["status"]["conditions"].as_array().unwrap();
            let ours: Vec<&Value> =
                conditions.iter().filter(|one| one["type"] == SIDECARSET_UPGRADABLE).collect();
            let patch = Patch::Strategic(json!({"status": {"conditions": ours}}));
            let pods = scene.sandbox.api::<Pod>();
            pods.patch_status(&name(&pod), &PatchParams::default(), &patch).await.unwrap();
            continue;
        }
        new["metadata"]["ownerReferences"] = object["metadata"]["ownerReferences"].clone();
        new["metadata"]["ownerReferences"][0]["uid"] = made.metadata.uid.clone().into();
        let revision = serde_json::from_value(new).unwrap();
        scene.revision_api().create(&PostParams::default(), &revision).await.unwrap();
    }
}

/// Versions of everything that must not be touched.
async fn versions(scene: &Scene, sets: &[String]) -> BTreeMap<String, Option<String>> {
    let pods: Vec<Pod> = scene.sandbox.list().await;
    let mut found: BTreeMap<String, Option<String>> =
        pods.iter().map(|pod| (format!("pod {}", name(pod)), pod.resource_version())).collect();
    for revision in scene.revision_api().list(&kube::api::ListParams::default()).await.unwrap() {
        let set = revision.labels().get("kruise.io/sidecarset-name");
        if set.is_some_and(|set| sets.contains(set)) {
            found.insert(format!("revision {}", revision.name_any()), revision.resource_version());
        }
    }
    found
}

/// Both hashes and the number of updated pods of a set.
async fn essence(scene: &Scene, set: &str) -> (String, String, Value) {
    let set = serde_json::to_value(scene.sets("v1beta1").get(set).await.unwrap()).unwrap();
    let updated = set["status"]["updatedPods"].clone();
    (mark(&set, SIDECARSET_HASH), mark(&set, SIDECARSET_HASH_WITHOUT_IMAGE), updated)
}

/// SIDECARSET-5: no pod and no revision is touched, also when the same set is applied again.
async fn what_the_original_left_is_taken_over_without_a_write(stage: &mut Stage) -> Outcome {
    let recorded: Vec<Value> = RECORDED.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let cases: Vec<Value> =
        recorded.into_iter().filter(|case| CHOSEN.iter().any(|chosen| case["case"] == *chosen)).collect();
    assert!(cases.len() > CHOSEN.len(), "one of them has two sets");
    let names: Vec<String> =
        cases.iter().map(|case| case["set"]["metadata"]["name"].as_str().unwrap().to_owned()).collect();

    // As if all of it had been stored before this manager came.
    stage.kill_manager();
    stage.remove_webhooks().await;
    let scene = Scene::prepare(stage, "takeover").await;
    scene.label_namespace(json!({"cap-b-env": "test"})).await;
    for case in &cases {
        load(&scene, case).await;
    }
    let look = async || {
        let pods = scene.pods().await;
        let waiting: Vec<String> = pods.iter().filter(|pod| !is_ready(pod)).map(name).collect();
        seen(waiting.is_empty() && pods.len() >= names.len(), format!("not ready: {waiting:?}"))
    };
    scene.sandbox.eventually("all pods are ready", look).await;
    tokio::time::sleep(MOMENT).await;
    let before = versions(&scene, &names).await;
    assert!(before.len() >= 2 * names.len(), "{before:?}");

    stage.put_webhooks().await;
    stage.start_manager().await;
    // Five minutes cost nothing in virtual time.
    let during = Duration::from_secs(if stage.cluster.backend() == Backend::Embedded { 300 } else { 20 });
    let look = async || {
        let now = versions(&scene, &names).await;
        seen(now == before, format!("{now:?}\nbefore {before:?}"))
    };
    scene.sandbox.always("nothing is written", during, look).await;
    for case in &cases {
        let name = case["set"]["metadata"]["name"].as_str().unwrap();
        let recorded = &case["set"];
        let wanted = (
            mark(recorded, SIDECARSET_HASH),
            mark(recorded, SIDECARSET_HASH_WITHOUT_IMAGE),
            recorded["status"]["updatedPods"].clone(),
        );
        assert_eq!(essence(&scene, name).await, wanted, "{name}");
        // The manifest has no hashes.
        let no_hashes = json!({SIDECARSET_HASH: null, SIDECARSET_HASH_WITHOUT_IMAGE: null});
        let mut again = merged(portable(&scene, recorded), &json!({"metadata": {"annotations": no_hashes}}));
        again["metadata"]["ownerReferences"] = scene.owner();
        let stored = scene.sets("v1beta1").get(name).await.unwrap();
        again["metadata"]["resourceVersion"] = stored.resource_version().into();
        let again = serde_json::from_value(again).unwrap();
        scene.sets("v1beta1").replace(name, &PostParams::default(), &again).await.unwrap();
        assert_eq!(essence(&scene, name).await, wanted, "{name} is applied again");
    }
    let look = async || {
        let now = versions(&scene, &names).await;
        seen(now == before, format!("{now:?}\nbefore {before:?}"))
    };
    scene.sandbox.always("still nothing is written", MOMENT, look).await;
    Ok(())
}
managed!(what_the_original_left_is_taken_over_without_a_write, [], alone);

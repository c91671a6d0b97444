//! Updates under a budget: by people, by a CloneSet, by a SidecarSet.

use std::time::Duration;

use kruise_api::{cloneset::v1beta1::CloneSet, sidecarset::v1beta1::SidecarSet};
use kruise_testkit::{Outcome, wait::seen};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    scene::{NO_FLAGS, Scene, UPDATES, image, is_ready, refused},
    stage::{Stage, managed},
};

/// How a set waits: reason and message of its condition.
async fn waiting(scene: &Scene) -> (String, String) {
    let set: CloneSet = scene.sandbox.get("web").await;
    let status = serde_json::to_value(&set.status).unwrap();
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|one| one["type"] == "Waiting").cloned().unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

fn in_place() -> serde_json::Value {
    json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
        "podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 5}}}})
}

/// PROTECTION-19, WAITING-10: a bad image stops at the budget, and a good one goes on by itself.
async fn an_update_in_place_takes_no_more_than_the_budget(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "inplace", 5, json!({"maxUnavailable": 1})).await;
    scene.change_set(in_place()).await;
    scene.until_numbers("web", [1, 5, 4, 5]).await;
    scene.set_image("app:v2-fail").await;
    let bad = scene.cluster.image("app:v2-fail");
    let look = async || {
        let (reason, message) = waiting(&scene).await;
        seen(
            reason == "BudgetRefuses" && message.contains(" for PodUnavailableBudget web ("),
            format!("{reason}: {message}"),
        )
    };
    scene.sandbox.eventually("the set says what it waits for", look).await;
    let one = async || {
        let pods = scene.pods().await;
        let bad = pods.iter().filter(|pod| image(pod) == bad).count();
        seen(bad == 1 && pods.len() == 5, format!("{bad} of {} pods are updated", pods.len()))
    };
    scene.sandbox.always("one pod is updated", Duration::from_secs(60), one).await;
    scene.set_image("app:v3").await;
    let good = scene.cluster.image("app:v3");
    let look = async || {
        let pods = scene.pods().await;
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        let new = pods.iter().filter(|pod| image(pod) == good && is_ready(pod)).count();
        assert!(ready >= 4, "{ready} pods are ready");
        seen(new == 5, format!("{new} pods are updated"))
    };
    scene.sandbox.eventually("the update ends", look).await;
    scene.until_numbers("web", [1, 5, 4, 5]).await;
    Ok(())
}
managed!(an_update_in_place_takes_no_more_than_the_budget, super::UPDATES);

/// A budget that allows nothing: nothing moves, nobody writes in a hurry, and it goes on as soon as the budget allows.
async fn an_update_waits_quietly_and_goes_on_at_once(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "quiet", 3, json!({"maxUnavailable": 0})).await;
    scene.change_set(in_place()).await;
    scene.set_image("app:v2").await;
    let look = async || {
        let (reason, message) = waiting(&scene).await;
        seen(reason == "BudgetRefuses", format!("{reason}: {message}"))
    };
    scene.sandbox.eventually("the set waits", look).await;
    let (_, message) = waiting(&scene).await;
    assert!(
        message.contains("it allows 0 more unavailable pods now, 3 of 3 are available and 3 must be"),
        "{message}"
    );
    let version = |set: CloneSet| set.metadata.resource_version;
    let before = version(scene.sandbox.get("web").await);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(version(scene.sandbox.get("web").await), before, "nothing is written while nothing changes");
    scene.change_budget("web", json!({"spec": {"maxUnavailable": 3}})).await.unwrap();
    let began = Instant::now();
    let new = scene.cluster.image("app:v2");
    let look = async || {
        let started = scene.pods().await.iter().filter(|pod| image(pod) == new).count();
        seen(started > 0, "nothing is updated")
    };
    scene.sandbox.eventually("the update goes on", look).await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    Ok(())
}
managed!(an_update_waits_quietly_and_goes_on_at_once, super::UPDATES);

/// PROTECTION-20
async fn without_its_gate_an_update_is_not_limited(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "gate", 3, json!({"maxUnavailable": 0})).await;
    for pod in scene.serving().await {
        scene.patch_image(&pod, "app:v2").await.unwrap();
    }
    Ok(())
}
managed!(without_its_gate_an_update_is_not_limited, super::NO_FLAGS);

/// Whoever changes the image of a pod takes from the budget like everybody else.
async fn an_image_changed_by_hand_is_limited(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "hand", 3, json!({"maxUnavailable": 1})).await;
    scene.until_numbers("web", [1, 3, 2, 3]).await;
    let pods = scene.serving().await;
    scene.patch_pod(&pods[0], json!({"metadata": {"labels": {"more": "x"}}})).await.unwrap();
    scene.patch_image(&pods[0], "app:v2").await.unwrap();
    refused(scene.patch_image(&pods[1], "app:v2").await, 403);
    Ok(())
}
managed!(an_image_changed_by_hand_is_limited, super::UPDATES);

/// PROTECTION-21: two controllers update the same pods.
async fn a_sidecar_set_and_a_clone_set_share_a_budget(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "both").await;
    let set = format!("s-{}", scene.sandbox.namespace());
    let sidecars = |image: &str| json!([{"name": "sc", "image": scene.cluster.image(image)}]);
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": set},
        "spec": {"namespace": scene.sandbox.namespace(), "selector": {"matchLabels": {"app": "web"}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.sandbox.namespace()}},
            "containers": sidecars("app:v1"), "updateStrategy": {"type": "RollingUpdate", "maxUnavailable": 10}},
    });
    let mut object = object;
    object["spec"].as_object_mut().unwrap().remove("namespace");
    stage.create(object.clone()).await.unwrap();
    scene.create_set(10, in_place()).await;
    scene.ready(10).await;
    scene
        .create_budget("web", crate::scene::merged(crate::scene::target(), &json!({"maxUnavailable": 2})))
        .await;
    scene.until_numbers("web", [2, 10, 8, 10]).await;
    stage.patch(&object, &json!({"spec": {"containers": sidecars("app:v2")}})).await.unwrap();
    scene.set_image("app:v3").await;
    let (sidecar, main) = (scene.cluster.image("app:v2"), scene.cluster.image("app:v3"));
    let look = async || {
        let pods = scene.pods().await;
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        assert!(ready >= 8, "{ready} pods are ready");
        let images = |pod: &k8s_openapi::api::core::v1::Pod| -> Vec<String> {
            let spec = pod.spec.as_ref().unwrap();
            spec.containers.iter().filter_map(|container| container.image.clone()).collect()
        };
        let done = |pod: &&k8s_openapi::api::core::v1::Pod| {
            let images = images(pod);
            images.contains(&sidecar) && images.contains(&main) && is_ready(pod)
        };
        let done = pods.iter().filter(done).count();
        seen(done == 10, format!("{done} of {} pods have both", pods.len()))
    };
    scene.sandbox.eventually("both updates end", look).await;
    let api: kube::Api<SidecarSet> = kube::Api::all(scene.cluster.client());
    api.delete(&set, &kube::api::DeleteParams::default()).await.unwrap();
    Ok(())
}
managed!(a_sidecar_set_and_a_clone_set_share_a_budget, super::UPDATES);

/// WAITING-10: a SidecarSet has no conditions, so an event says which budget it waits for; it goes on when the budget allows.
async fn a_sidecar_set_says_which_budget_it_waits_for(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "event").await;
    let set = format!("e-{}", scene.sandbox.namespace());
    let sidecars = |image: &str| json!([{"name": "sc", "image": scene.cluster.image(image)}]);
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": set},
        "spec": {"selector": {"matchLabels": {"app": "web"}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.sandbox.namespace()}},
            "containers": sidecars("app:v1"), "updateStrategy": {"type": "RollingUpdate", "maxUnavailable": 2}},
    });
    stage.create(object.clone()).await.unwrap();
    scene.create_set(2, json!({})).await;
    scene.ready(2).await;
    let budget = json!({"maxUnavailable": 0});
    scene.create_budget("web", crate::scene::merged(crate::scene::target(), &budget)).await;
    stage.patch(&object, &json!({"spec": {"containers": sidecars("app:v2")}})).await.unwrap();
    let events: kube::Api<k8s_openapi::api::core::v1::Event> = kube::Api::all(scene.cluster.client());
    let look = async || {
        let all = events.list(&kube::api::ListParams::default()).await.unwrap().items;
        let told = all.iter().filter(|event| event.involved_object.name.as_deref() == Some(set.as_str()));
        let told: Vec<String> = told.filter_map(|event| event.message.clone()).collect();
        let wanted = "BudgetRefuses: 1 pod waits for PodUnavailableBudget web (";
        seen(told.iter().any(|message| message.contains(wanted)), format!("{told:?}"))
    };
    scene.sandbox.eventually("an event says so", look).await;
    scene.change_budget("web", json!({"spec": {"maxUnavailable": 2}})).await.unwrap();
    let began = Instant::now();
    let new = scene.cluster.image("app:v2");
    let look = async || {
        let pods = scene.pods().await;
        let has = |pod: &k8s_openapi::api::core::v1::Pod| {
            let containers = &pod.spec.as_ref().unwrap().containers;
            containers.iter().any(|container| container.image.as_deref() == Some(new.as_str()))
        };
        let updated = pods.iter().filter(|pod| has(pod)).count();
        seen(updated == 2, format!("{updated} pods are updated"))
    };
    scene.sandbox.eventually("the update goes on", look).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let api: kube::Api<SidecarSet> = kube::Api::all(scene.cluster.client());
    api.delete(&set, &kube::api::DeleteParams::default()).await.unwrap();
    Ok(())
}
managed!(a_sidecar_set_says_which_budget_it_waits_for, super::UPDATES);

const RESIZES: [&str; 1] =
    ["--feature-gates=PodUnavailableBudgetUpdateGate=true,InPlacePodVerticalScaling=true"];

/// PROTECTION-24, PROTECTION-25, PLATFORM-31
async fn a_resize_counts_as_its_own_operation(stage: &mut Stage) -> Outcome {
    if !stage.cluster.is_at_least(1, 33) {
        return Ok(());
    }
    let scene = Scene::prepare(stage, "resize").await;
    let restart = json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
    let container = json!({"name": "main", "image": scene.cluster.image("app:v1"), "resizePolicy": restart,
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}});
    scene.create_set(2, json!({"spec": {"template": {"spec": {"containers": [container]}}}})).await;
    scene.ready(2).await;
    scene
        .create_budget("web", crate::scene::merged(crate::scene::target(), &json!({"maxUnavailable": 0})))
        .await;
    let resize = async |pod: &str, requests: serde_json::Value| {
        let api: kube::Api<k8s_openapi::api::core::v1::Pod> = scene.sandbox.api();
        let change = json!({"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}});
        let patch = kube::api::Patch::Strategic(change);
        let made = api.patch_subresource("resize", pod, &kube::api::PatchParams::default(), &patch).await;
        made.map(drop).map_err(crate::scene::refusal)
    };
    let pods = scene.serving().await;
    resize(&pods[0], json!({"cpu": "150m"})).await.unwrap();
    refused(resize(&pods[0], json!({"memory": "96Mi"})).await, 403);
    scene.change_budget("web", json!({"spec": {"protectOperations": ["RESIZE"]}})).await.unwrap();
    scene
        .until("web", "it is counted", |budget| {
            budget["status"]["observedGeneration"] == budget["metadata"]["generation"]
        })
        .await;
    refused(resize(&pods[1], json!({"cpu": "150m"})).await, 403);
    scene.change_budget("web", json!({"spec": {"maxUnavailable": 1}})).await.unwrap();
    scene.until_numbers("web", [1, 2, 1, 2]).await;
    resize(&pods[1], json!({"cpu": "200m"})).await.unwrap();
    let status = scene.budget("web").await["status"].clone();
    assert!(
        status["unavailablePods"].get(&pods[1]).is_some() && status.get("disruptedPods").is_none(),
        "{status}"
    );
    scene.until_numbers("web", [1, 2, 1, 2]).await;
    assert_eq!(scene.events(&format!("Pod/{}", pods[1]), "NotDeleted").await, 0);
    Ok(())
}
managed!(a_resize_counts_as_its_own_operation, super::RESIZES);

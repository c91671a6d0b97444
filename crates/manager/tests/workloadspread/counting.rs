//! What was admitted and does not happen.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kruise_testkit::Outcome;
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    scene::{NO_FLAGS, Scene, name, subset, subset_of},
    stage::{Stage, embedded_only, managed},
};

fn two(a: usize) -> Value {
    json!([subset("a", a.into()), subset("b", Value::Null)])
}

/// SPREAD-26: a booking of a pod that somebody else refuses runs out after 30 seconds, and people hear of it.
async fn a_refused_pod_gives_its_place_back(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "ws-quota").await;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}});
    scene.sandbox.create_any(quota).await.unwrap();
    scene.rest(2).await;
    scene.spread("apps.kruise.io/v1beta1", "CloneSet", two(2)).await;
    scene.create_set(2).await;
    let booked = |status: &Value| {
        let account = &status["versionedSubsetStatuses"]["versionIgnored"][0];
        account["replicas"] == 1 && account["creatingPods"].as_object().is_some_and(|keys| !keys.is_empty())
    };
    scene.until_status("a pod is booked that does not come", booked).await;
    let message = scene.until_event("CreatePodFailed").await;
    assert!(message.ends_with(" was expected to be created but it wasn't"), "{message}");
    Ok(())
}
managed!(a_refused_pod_gives_its_place_back, super::NO_FLAGS);

/// SPREAD-27: the deletion of a pod that somebody else keeps is forgotten after 15 seconds.
async fn a_pod_that_stays_is_counted_again(stage: &mut Stage) -> Outcome {
    let scene =
        Scene::start(stage, "ws-kept", 2, json!([subset("a", 1.into()), subset("b", 1.into())])).await;
    scene.until_places("a1 b1").await;
    scene.until_account("a 1/0, b 1/0").await;
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "none"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}});
    scene.sandbox.create_any(budget).await.unwrap();
    scene.rest(5).await;
    let pods = scene.pods().await;
    let pod = name(pods.iter().find(|pod| subset_of(pod) == "a").unwrap());
    scene.evict(&pod).await.unwrap_err();
    let going = |status: &Value| {
        let account = &status["versionedSubsetStatuses"]["versionIgnored"][0];
        account["deletingPods"].get(&pod).is_some() && account["missingReplicas"] == 1
    };
    scene.until_status("the pod counts as one that goes", going).await;
    let message = scene.until_event("DeletePodFailed").await;
    assert_eq!(
        message,
        format!("Pod {}/{pod} was expected to be deleted but it wasn't", scene.sandbox.namespace())
    );
    scene.until_account("a 1/0, b 1/0").await;
    Ok(())
}
managed!(a_pod_that_stays_is_counted_again, super::NO_FLAGS);

/// SPREAD-29: what is only tried out changes nothing.
async fn dry_runs_change_nothing(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "ws-dry", 1, two(2)).await;
    scene.until_places("a1").await;
    scene.until_account("a 1/1, b 0/-1").await;
    let before = scene.status().await;
    let api: Api<Pod> = scene.sandbox.api();
    let mut copy = scene.pods().await.remove(0);
    let kept = name(&copy);
    copy.metadata.name = Some("dry".to_owned());
    copy.metadata.resource_version = None;
    copy.metadata.uid = None;
    copy.metadata.annotations = None;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let made = api.create(&dry, &copy).await.unwrap();
    assert_eq!(subset_of(&made), "-");
    api.delete(&kept, &DeleteParams { dry_run: true, ..DeleteParams::default() }).await.unwrap();
    scene.rest(3).await;
    assert_eq!(scene.status().await, before);
    Ok(())
}
managed!(dry_runs_change_nothing, super::NO_FLAGS);

/// SPREAD-31: a manager that dies after a booking and before its answer costs a place for half a minute, and no more. Which
/// write the process dies after is chosen by the embedded cluster.
async fn a_manager_that_dies_loses_no_place(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "ws-crash").await;
    scene.spread("apps/v1", "Deployment", json!([subset("a", 2.into()), subset("b", 2.into())])).await;
    scene.until_account("a 0/2, b 0/2").await;
    stage.sim().faults().crash_after_write(1);
    scene.create("apps/v1", "Deployment", 4, json!({})).await;
    for _ in 0..100 {
        if stage.sim().faults().is_crashed() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(stage.sim().faults().is_crashed());
    stage.kill_manager();
    stage.sim().faults().revive();
    stage.start_manager().await;
    // The orphan's place is free again after its time; pods that found no room meanwhile are made again.
    scene.rest(60).await;
    let change = json!({"spec": {"template": {"metadata": {"annotations": {"roll": "1"}}}}});
    scene.sandbox.merge::<Deployment>("web", change).await;
    scene.until_places("a2 b2").await;
    scene.until_account("a 2/0, b 2/0").await;
    Ok(())
}
embedded_only!(a_manager_that_dies_loses_no_place, super::NO_FLAGS);

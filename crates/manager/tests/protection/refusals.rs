//! What a budget refuses, and in which words.

use kruise_testkit::Outcome;
use kube::api::DeleteParams;
use serde_json::json;

use crate::{
    scene::{NO_FLAGS, Scene, refused},
    stage::{Stage, managed},
};

/// PROTECTION-6, PROTECTION-7: code, text, causes, event and counter.
async fn a_deletion_is_refused_with_403_and_an_eviction_with_429(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "refused", 1, json!({"maxUnavailable": 0})).await;
    let pod = scene.serving().await.remove(0);
    let force = DeleteParams::default().grace_period(0);
    let text = scene.delete_with(&pod, force).await.unwrap_err();
    assert!(
        text.starts_with("403 admission webhook \"vpod.kb.io\" denied the request: podunavailablebudget.policy.kruise.io \"web\" is forbidden: pub unavailable allowed is negative"),
        "{text}"
    );
    assert!(text.contains("[PodUnavailableBudget web (maxUnavailable: 0) allows 0 more unavailable pods now: 1 of 1 are available and 1 must be]"), "{text}");
    scene.until_event(&format!("Pod/{pod}"), "PubPreventPodDeletion").await;
    assert_eq!(scene.events(&format!("Pod/{pod}"), "PubPreventPodDeletion").await, 1);
    if stage.cluster.backend() == kruise_testkit::Backend::Embedded {
        let metrics = stage.metrics().await;
        let wanted = format!(
            "pod_unavailable_budget{{kind_namespace_name=\"CloneSet_{}_web\"",
            scene.sandbox.namespace()
        );
        let line = metrics.lines().find(|line| line.starts_with(&wanted));
        assert!(line.is_some_and(|line| line.ends_with(" 1")), "{line:?}");
    }
    let text = scene.evict(&pod).await.unwrap_err();
    assert!(text.starts_with("429 admission webhook \"vpodeviction.kb.io\" denied the request: podunavailablebudget.policy.kruise.io \"web\" is forbidden: pub unavailable allowed is negative"), "{text}");
    // As `kubectl drain --timeout=30s` does.
    for _ in 0..6 {
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        refused(scene.evict(&pod).await, 429);
    }
    scene.change_budget("web", json!({"spec": {"maxUnavailable": 1}})).await.unwrap();
    scene.until_numbers("web", [1, 1, 0, 1]).await;
    scene.evict(&pod).await.unwrap();
    Ok(())
}
managed!(a_deletion_is_refused_with_403_and_an_eviction_with_429, super::NO_FLAGS);

/// PROTECTION-8, PROTECTION-9
async fn exempt_pods_pass_and_the_others_stay_protected(stage: &mut Stage) -> Outcome {
    let ignoring = json!({"maxUnavailable": 0, "ignoredPodSelector": {"matchLabels": {"force": "true"}}});
    let scene = Scene::start(stage, "exempt", 3, ignoring).await;
    let pods = scene.serving().await;
    refused(scene.evict(&pods[0]).await, 429);
    scene
        .patch_pod(&pods[0], json!({"metadata": {"annotations": {"pub.kruise.io/no-protect": "true"}}}))
        .await
        .unwrap();
    scene.evict(&pods[0]).await.unwrap();
    scene.patch_pod(&pods[1], json!({"metadata": {"labels": {"force": "true"}}})).await.unwrap();
    scene.evict(&pods[1]).await.unwrap();
    refused(scene.evict(&pods[2]).await, 429);
    Ok(())
}
managed!(exempt_pods_pass_and_the_others_stay_protected, super::NO_FLAGS);

/// PROTECTION-11, PLATFORM-32: a dry run hears what would happen, and takes nothing.
async fn a_dry_run_takes_nothing(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "dry", 3, json!({"maxUnavailable": 1})).await;
    scene.until_numbers("web", [1, 3, 2, 3]).await;
    let before = scene.budget("web").await;
    for pod in scene.serving().await {
        scene.delete_with(&pod, DeleteParams::default().dry_run()).await.unwrap();
        scene.evict_dry(&pod).await.unwrap();
    }
    assert_eq!(
        scene.budget("web").await["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    scene.change_budget("web", json!({"spec": {"maxUnavailable": 0}})).await.unwrap();
    scene.until_numbers("web", [0, 3, 3, 3]).await;
    let before = scene.budget("web").await;
    for pod in scene.serving().await {
        refused(scene.delete_with(&pod, DeleteParams::default().dry_run()).await, 403);
        refused(scene.evict_dry(&pod).await, 429);
        assert_eq!(scene.events(&format!("Pod/{pod}"), "PubPreventPodDeletion").await, 0);
    }
    assert_eq!(scene.budget("web").await["status"], before["status"]);
    Ok(())
}
managed!(a_dry_run_takes_nothing, super::NO_FLAGS);

/// PROTECTION-17
async fn a_pod_that_does_not_serve_may_go(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "down", 2, json!({"maxUnavailable": 0})).await;
    scene.create_pod_of_set_that_waits().await;
    scene.until("web", "the third is missed", |budget| budget["status"]["totalReplicas"] == 3).await;
    let waiting: Vec<String> = {
        let serving = scene.serving().await;
        let pods = scene.pods().await;
        pods.iter().map(crate::scene::name).filter(|name| !serving.contains(name)).collect()
    };
    scene.delete(&waiting[0]).await.unwrap();
    assert_eq!(scene.budget("web").await["status"].get("disruptedPods"), None);
    Ok(())
}
managed!(a_pod_that_does_not_serve_may_go, super::NO_FLAGS);

/// PROTECTION-22
async fn only_protected_operations_are_limited(stage: &mut Stage) -> Outcome {
    let scene =
        Scene::start(stage, "operations", 3, json!({"maxUnavailable": 0, "protectOperations": ["EVICT"]}))
            .await;
    let pods = scene.serving().await;
    refused(scene.evict(&pods[0]).await, 429);
    scene.patch_image(&pods[0], "app:v2").await.unwrap();
    scene.delete(&pods[1]).await.unwrap();
    Ok(())
}
managed!(only_protected_operations_are_limited, ["--feature-gates=PodUnavailableBudgetUpdateGate=true"]);

//! What a budget counts.

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{ConfigMap, Pod},
};
use kruise_api::cloneset::v1beta1::CloneSet;
use kruise_sim::faults::{Answer, Calls, Effect, Rule, When};
use kruise_testkit::{Outcome, wait::Look};
use kube::api::DeleteParams;
use serde_json::json;

use crate::{
    scene::{NO_FLAGS, Scene, UPDATES, merged, refused, target},
    stage::{Stage, embedded_only, managed},
};

/// PROTECTION-1, PROTECTION-2, PROTECTION-3, PROTECTION-4, PROTECTION-5: numbers, and what follows from them.
async fn a_budget_counts_the_pods_of_a_workload(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "numbers", 5, json!({"maxUnavailable": "60%"})).await;
    scene.until_numbers("web", [3, 5, 2, 5]).await;
    for (limit, wanted) in [
        (json!({"maxUnavailable": "10%", "minAvailable": null}), [1, 5, 4, 5]),
        (json!({"maxUnavailable": null, "minAvailable": "80%"}), [1, 5, 4, 5]),
        (json!({"maxUnavailable": null, "minAvailable": 10}), [0, 5, 10, 5]),
    ] {
        scene.change_budget("web", json!({"spec": limit})).await.unwrap();
        scene.until_numbers("web", wanted).await;
    }
    for pod in scene.serving().await {
        refused(scene.delete(&pod).await, 403);
    }
    scene
        .change_budget("web", json!({"spec": {"minAvailable": null, "maxUnavailable": "100%"}}))
        .await
        .unwrap();
    scene.until_numbers("web", [5, 5, 0, 5]).await;
    for pod in scene.serving().await {
        scene.delete(&pod).await.unwrap();
    }
    Ok(())
}
managed!(a_budget_counts_the_pods_of_a_workload, super::NO_FLAGS);

/// PROTECTION-16: scale-in moves the numbers, zero replicas and a deleted workload free all, and a budget that
/// was there before recovers by itself.
async fn scaling_moves_the_budget_before_pods_go(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "scaling").await;
    scene.create_budget("web", merged(target(), &json!({"maxUnavailable": "10%"}))).await;
    scene.until_numbers("web", [0, 0, 0, 0]).await;
    scene.until_event("PodUnavailableBudget/web", "NoPods").await;
    scene.create_set(10, json!({})).await;
    scene.ready(10).await;
    scene.until_numbers("web", [1, 10, 9, 10]).await;
    scene.change_set(json!({"spec": {"replicas": 5}})).await;
    scene.ready(5).await;
    scene.until_numbers("web", [1, 5, 4, 5]).await;
    scene.change_set(json!({"spec": {"replicas": 0}})).await;
    scene.ready(0).await;
    scene.until_numbers("web", [0, 0, 0, 0]).await;
    scene.change_set(json!({"spec": {"replicas": 3}})).await;
    scene.ready(3).await;
    scene.until_numbers("web", [1, 3, 2, 3]).await;
    scene.sandbox.delete::<CloneSet>("web").await;
    scene.ready(0).await;
    scene.until_numbers("web", [0, 0, 0, 0]).await;
    Ok(())
}
managed!(scaling_moves_the_budget_before_pods_go, super::NO_FLAGS);

/// PROTECTION-15: once the new numbers are written, none of the surplus is refused.
async fn the_surplus_of_a_scale_in_goes_without_a_refusal(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "surplus").await;
    // A hook holds the surplus until the numbers are there.
    let hook = json!({"preDelete": {"labelsHandler": {"hold": "yes"}}});
    let change = json!({"spec": {"lifecycle": hook, "template": {"metadata": {"labels": {"hold": "yes"}}}}});
    scene.create_set(20, change).await;
    scene.ready(20).await;
    scene.create_budget("web", merged(target(), &json!({"maxUnavailable": "10%"}))).await;
    scene.until_numbers("web", [2, 20, 18, 20]).await;
    scene.change_set(json!({"spec": {"replicas": 10}})).await;
    scene.until_numbers("web", [11, 20, 9, 10]).await;
    for pod in scene.serving().await {
        scene.patch_pod(&pod, json!({"metadata": {"labels": {"hold": null}}})).await.unwrap();
    }
    scene.ready(10).await;
    scene.until_numbers("web", [1, 10, 9, 10]).await;
    let events = scene.sandbox.events().await;
    let held = events.iter().filter(|event| event.reason == "PubPreventPodDeletion").count();
    assert_eq!(held, 0, "{events:?}");
    Ok(())
}
managed!(the_surplus_of_a_scale_in_goes_without_a_refusal, super::NO_FLAGS);

/// PROTECTION-16 with a number of pods that must stay: it says nothing about a workload that wants none.
async fn a_number_that_must_stay_does_not_keep_pods_that_nobody_wants(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "least", 3, json!({"minAvailable": 2})).await;
    scene.until_numbers("web", [1, 3, 2, 3]).await;
    scene.change_set(json!({"spec": {"replicas": 0}})).await;
    scene.ready(0).await;
    scene.until_numbers("web", [0, 0, 0, 0]).await;
    scene.change_set(json!({"spec": {"replicas": 3}})).await;
    scene.ready(3).await;
    scene.until_numbers("web", [1, 3, 2, 3]).await;
    scene.sandbox.delete::<CloneSet>("web").await;
    scene.ready(0).await;
    scene.until_numbers("web", [0, 0, 0, 0]).await;
    Ok(())
}
managed!(a_number_that_must_stay_does_not_keep_pods_that_nobody_wants, super::NO_FLAGS);

/// Pods of a Deployment belong to its ReplicaSets.
async fn a_deployment_is_counted_through_its_replica_sets(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "deployment").await;
    let reference = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    scene.create_budget("web", json!({"targetRef": reference, "maxUnavailable": 0})).await;
    let object = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2,
        "selector": {"matchLabels": {"app": "web"}}, "template": scene.template()}});
    let _: Deployment = scene.sandbox.create(object).await;
    scene.ready(2).await;
    scene.until_numbers("web", [0, 2, 2, 2]).await;
    let pods = scene.serving().await;
    refused(scene.delete(&pods[0]).await, 403);
    Ok(())
}
managed!(a_deployment_is_counted_through_its_replica_sets, super::NO_FLAGS);

/// A ReplicaSet that nobody controls: its budget follows a new number of replicas at once.
async fn a_replica_set_is_followed_at_once(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "replicaset").await;
    let object = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2,
        "selector": {"matchLabels": {"app": "web"}}, "template": scene.template()}});
    let _: ReplicaSet = scene.sandbox.create(object).await;
    scene.ready(2).await;
    let reference = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"});
    scene.create_budget("web", json!({"targetRef": reference, "minAvailable": "50%"})).await;
    scene.until_numbers("web", [1, 2, 1, 2]).await;
    let _: ReplicaSet = scene.sandbox.merge("web", json!({"spec": {"replicas": 4}})).await;
    scene
        .until("web", "the new number counts before the pods are there", |budget| {
            budget["status"]["totalReplicas"] == 4 && budget["status"]["desiredAvailable"] == 2
        })
        .await;
    scene.until_numbers("web", [2, 4, 2, 4]).await;
    Ok(())
}
managed!(a_replica_set_is_followed_at_once, super::NO_FLAGS);

/// PROTECTION-18
async fn a_label_takes_a_pod_out_of_service(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "label", 3, json!({"maxUnavailable": 1})).await;
    scene.until_numbers("web", [1, 3, 2, 3]).await;
    let pods = scene.serving().await;
    let mark = json!({"metadata": {"labels": {"unavailable-pod.kruise.io/offline": "1"}}});
    scene.patch_pod(&pods[0], mark.clone()).await.unwrap();
    scene.until_numbers("web", [0, 2, 2, 3]).await;
    refused(scene.patch_pod(&pods[1], mark).await, 403);
    let back = json!({"metadata": {"labels": {"unavailable-pod.kruise.io/offline": null}}});
    scene.patch_pod(&pods[0], back).await.unwrap();
    scene.until_numbers("web", [1, 3, 2, 3]).await;
    Ok(())
}
managed!(a_label_takes_a_pod_out_of_service, super::UPDATES);

/// PROTECTION-30: pods of a kind that says nowhere how many it wants.
async fn what_cannot_be_counted_is_not_protected_unless_the_total_is_given(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "unknown").await;
    let owner: ConfigMap = scene.sandbox.create(json!({"metadata": {"name": "web"}})).await;
    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "web",
        "uid": owner.metadata.uid, "controller": true}]);
    for number in 0..5 {
        let pod = json!({"metadata": {"name": format!("web-{number}"), "labels": {"app": "web"}, "ownerReferences": reference},
            "spec": scene.pod_spec()});
        let _: Pod = scene.sandbox.create(pod).await;
    }
    scene.ready(5).await;
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "web"});
    scene.create_budget("web", json!({"targetRef": reference, "minAvailable": 4})).await;
    scene.until_event("PodUnavailableBudget/web", "CalculateExpectedPodCountFailed").await;
    scene.until_numbers("web", [5, 5, 0, 0]).await;
    scene.delete_with("web-0", DeleteParams::default().dry_run()).await.unwrap();
    scene.change_budget("web", json!({"spec": {"protectTotalReplicas": 5}})).await.unwrap();
    scene.until_numbers("web", [1, 5, 4, 5]).await;
    scene.delete("web-0").await.unwrap();
    refused(scene.delete("web-1").await, 403);
    Ok(())
}
managed!(what_cannot_be_counted_is_not_protected_unless_the_total_is_given, super::NO_FLAGS);

/// A pod of a Job has the labels of a budget: nobody says how many of those there should be. It counts as one that is wanted,
/// and the others stay protected.
async fn a_pod_of_a_job_does_not_open_a_budget(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "job").await;
    scene.create_set(3, json!({})).await;
    scene.ready(3).await;
    let labels = json!({"matchLabels": {"app": "web"}});
    scene.create_budget("web", json!({"selector": labels, "maxUnavailable": 1})).await;
    scene.until_numbers("web", [1, 3, 2, 3]).await;
    let owner: ConfigMap = scene.sandbox.create(json!({"metadata": {"name": "migrate"}})).await;
    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "migrate",
        "uid": owner.metadata.uid, "controller": true}]);
    scene.create_pod("migrate-1", json!({"metadata": {"ownerReferences": reference}})).await;
    scene.until_numbers("web", [1, 4, 3, 4]).await;
    scene.until_event("PodUnavailableBudget/web", "CalculateExpectedPodCountFailed").await;
    let pods = scene.serving().await;
    scene.delete(&pods[1]).await.unwrap();
    refused(scene.delete(&pods[2]).await, 403);
    Ok(())
}
managed!(a_pod_of_a_job_does_not_open_a_budget, super::NO_FLAGS);

fn fails(path: &str) -> Rule {
    let calls = Calls { method: Some(http::Method::GET), path: path.to_owned() };
    Rule { calls, when: When::Chance(1.0), effect: Effect::Before, answer: Answer::Internal }
}

/// The kind of the workload cannot be read: people hear of it, and the budget is counted when it can.
async fn a_kind_that_cannot_be_read_is_reported(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "unread").await;
    // A kind that is read only once a budget asks for it.
    stage.sim().faults().rule(fails("/apis/apps/v1/deployments"));
    let reference = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    scene.try_create_budget("web", json!({"targetRef": reference, "maxUnavailable": 1})).await.unwrap();
    scene.until_event("PodUnavailableBudget/web", "CalculateExpectedPodCountFailed").await;
    assert_eq!(scene.budget("web").await["status"].get("observedGeneration"), None);
    stage.sim().faults().heal();
    scene.until_numbers("web", [0, 0, 0, 0]).await;
    Ok(())
}
embedded_only!(a_kind_that_cannot_be_read_is_reported, super::NO_FLAGS);

/// A kind with a scale subresource that nobody watches. (Only the embedded server can be told to fail.)
async fn a_failed_read_of_the_scale_changes_nothing(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "scale").await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "games.test.io"},
        "spec": {"group": "test.io", "scope": "Namespaced", "names": {"plural": "games", "singular": "game", "kind": "Game", "listKind": "GameList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}}]},
    });
    stage.create(definition).await.unwrap();
    let game = json!({"apiVersion": "test.io/v1", "kind": "Game", "metadata": {"name": "web", "namespace": scene.sandbox.namespace()},
        "spec": {"replicas": 3}});
    let look = async || match stage.create(game.clone()).await {
        Ok(made) => Look::Yes(made),
        Err(text) => Look::No(text),
    };
    let made = scene.sandbox.eventually("the kind is served", look).await;
    let reference = json!([{"apiVersion": "test.io/v1", "kind": "Game", "name": "web", "uid": made["metadata"]["uid"], "controller": true}]);
    for number in 0..3 {
        let name = format!("web-{number}");
        scene.create_pod(&name, json!({"metadata": {"ownerReferences": reference}})).await;
    }
    // It cannot be read at first: nothing is counted until it can.
    stage.sim().faults().rule(fails("/games/web/scale"));
    let covers = json!({"targetRef": {"apiVersion": "test.io/v1", "kind": "Game", "name": "web"}, "maxUnavailable": 1});
    scene.try_create_budget("web", covers).await.unwrap();
    scene.until_event("PodUnavailableBudget/web", "CalculateExpectedPodCountFailed").await;
    assert_eq!(scene.budget("web").await["status"].get("observedGeneration"), None);
    stage.sim().faults().heal();
    scene.until_numbers("web", [1, 3, 2, 3]).await;
    // Later the numbers stay as they are while it cannot be read.
    stage.sim().faults().rule(fails("/games/web/scale"));
    scene.delete("web-0").await.unwrap();
    for _ in 0..90 {
        refused(scene.delete("web-1").await, 403);
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    scene.until_numbers("web", [0, 2, 2, 3]).await;
    stage.sim().faults().heal();
    stage.patch(&game, &json!({"spec": {"replicas": 2}})).await.unwrap();
    scene.until_numbers("web", [1, 2, 1, 2]).await;
    Ok(())
}
embedded_only!(a_failed_read_of_the_scale_changes_nothing, super::NO_FLAGS);

/// PROTECTION-31
async fn pods_without_controllers_add_nothing(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "bare").await;
    scene.create_pod("a", json!({})).await;
    let labels = json!({"matchLabels": {"app": "web"}});
    scene.create_budget("web", json!({"selector": labels, "maxUnavailable": 0})).await;
    scene.until_numbers("web", [1, 1, 0, 0]).await;
    let least = json!({"spec": {"maxUnavailable": null, "minAvailable": 1}});
    scene.change_budget("web", least).await.unwrap();
    scene
        .until("web", "it is counted again", |budget| {
            budget["status"]["observedGeneration"] == budget["metadata"]["generation"]
        })
        .await;
    scene.until_numbers("web", [1, 1, 0, 0]).await;
    scene.delete("a").await.unwrap();
    Ok(())
}
managed!(pods_without_controllers_add_nothing, super::NO_FLAGS);

/// A pod is protected by one budget and may be counted by others: these follow it, too. A budget that counted it as down
/// refused for ever.
async fn a_budget_follows_pods_that_another_one_protects(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "shared").await;
    for (name, label, most) in [("a", "app", 2), ("b", "tier", 1)] {
        let labels = json!({"matchLabels": {label: "web"}});
        let spec = json!({"selector": labels, "maxUnavailable": most, "protectTotalReplicas": 2});
        scene.create_budget(name, spec).await;
    }
    let both = json!({"metadata": {"labels": {"tier": "web"}}});
    scene.create_pod("of-both", both.clone()).await;
    let front = json!({"metadata": {"labels": {"app": null, "tier": "web"}}});
    scene.create_pod("of-b", front).await;
    for _ in 0..2 {
        scene.until_numbers("b", [1, 2, 1, 2]).await;
        scene.delete_with("of-both", DeleteParams::default().grace_period(0)).await.unwrap();
        scene.until_numbers("b", [0, 1, 1, 2]).await;
        refused(scene.delete("of-b").await, 403);
        scene.create_pod("of-both", both.clone()).await;
    }
    scene.until_numbers("b", [1, 2, 1, 2]).await;
    Ok(())
}
managed!(a_budget_follows_pods_that_another_one_protects, super::NO_FLAGS);

//! Every kind of workload.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::StatefulSet, batch::v1::Job, core::v1::Pod};
use kruise_api::{annotations::MATCHED_WORKLOADSPREAD, names, statefulset::v1beta1};
use kruise_testkit::{Outcome, wait::seen};
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};

use crate::{
    scene::{NO_FLAGS, Scene, annotation, merged, name, places, subset, subset_of},
    stage::{Stage, embedded_only, managed},
};

fn three() -> Value {
    json!([subset("a", 2.into()), subset("b", 2.into()), subset("c", Value::Null)])
}

async fn ordinals(scene: &Scene) -> String {
    let mut all: Vec<String> =
        scene.pods().await.iter().map(|pod| format!("{}{}", name(pod), subset_of(pod))).collect();
    all.sort();
    all.join(" ")
}

async fn until_ordinals(scene: &Scene, wanted: &str) {
    let look = async || {
        let told = ordinals(scene).await;
        seen(told == wanted, told)
    };
    scene.sandbox.eventually(wanted, look).await;
}

const SIX: &str = "web-0a web-1a web-2b web-3b web-4c web-5c";

/// SPREAD-10: the ordinal says where a pod is, whatever comes and goes.
async fn pods_of_a_statefulset_are_spread_by_ordinal(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "ws-sts").await;
    scene.spread("apps/v1", "StatefulSet", three()).await;
    scene
        .create(
            "apps/v1",
            "StatefulSet",
            6,
            json!({"spec": {"serviceName": "web", "podManagementPolicy": "Parallel"}}),
        )
        .await;
    until_ordinals(&scene, SIX).await;
    scene.until_account("a 2/0, b 2/0, c 2/-1").await;
    scene.sandbox.merge::<StatefulSet>("web", json!({"spec": {"replicas": 1}})).await;
    until_ordinals(&scene, "web-0a").await;
    scene.until_account("a 1/1, b 0/2, c 0/-1").await;
    scene.sandbox.merge::<StatefulSet>("web", json!({"spec": {"replicas": 6}})).await;
    until_ordinals(&scene, SIX).await;
    assert_eq!(scene.costs().await, "a? a? b? b? c? c?");
    Ok(())
}
managed!(pods_of_a_statefulset_are_spread_by_ordinal, super::NO_FLAGS);

/// SPREAD-11: the account of an Advanced StatefulSet follows its replicas.
async fn an_advanced_statefulset_is_counted(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "ws-asts").await;
    scene.spread("apps.kruise.io/v1beta1", "StatefulSet", three()).await;
    let change = json!({"spec": {"serviceName": "web", "podManagementPolicy": "Parallel"}});
    scene.create("apps.kruise.io/v1beta1", "StatefulSet", 2, change).await;
    scene.until_account("a 2/0, b 0/2, c 0/-1").await;
    scene.sandbox.merge::<v1beta1::StatefulSet>("web", json!({"spec": {"replicas": 6}})).await;
    until_ordinals(&scene, SIX).await;
    scene.until_account("a 2/0, b 2/0, c 2/-1").await;
    Ok(())
}
managed!(an_advanced_statefulset_is_counted, super::NO_FLAGS);

/// SPREAD-12: pods of a Job are spread, and those that are done free their place.
async fn pods_of_a_job_are_spread(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "ws-job").await;
    scene.spread("batch/v1", "Job", json!([subset("a", 2.into()), subset("b", Value::Null)])).await;
    let command = json!(["sh", "-c", "sleep 60"]);
    let mut spec = scene.pod_spec();
    spec["restartPolicy"] = json!("Never");
    spec["containers"][0]["command"] = command;
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "web"},
        "spec": {"parallelism": 5, "completions": 5, "template": {"spec": spec}}});
    let _: Job = scene.sandbox.create(job).await;
    scene.until_places("a2 b3").await;
    scene.until_account("a 2/0, b 3/-1").await;
    // These pods have no name when they are admitted.
    for pod in scene.pods().await {
        let mark = annotation(&pod, MATCHED_WORKLOADSPREAD).unwrap();
        assert_eq!(mark.contains("\"uid\""), subset_of(&pod) == "a", "{mark}");
    }
    scene.until_account("a 0/2, b 0/-1").await;
    Ok(())
}
embedded_only!(pods_of_a_job_are_spread, super::NO_FLAGS);

fn definition(group: &str, kind: &str, plural: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

async fn configure(stage: &Stage, list: &str) {
    let data = json!({"WorkloadSpread_Watch_Custom_Workload_WhiteList": list});
    stage
        .put(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": names::CONFIGURATION, "namespace": names::NAMESPACE}}))
        .await;
}

async fn install(stage: &Stage, kind: &str, plural: &str) {
    stage.put(definition("example.com", kind, plural)).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
}

fn owner(object: &Value) -> Value {
    json!([{"apiVersion": object["apiVersion"], "kind": object["kind"], "name": object["metadata"]["name"],
        "uid": object["metadata"]["uid"], "controller": true}])
}

/// SPREAD-13: a kind of the white list is spread through its ReplicaSet; without the list it is refused, and a list that cannot
/// be read keeps no pod from being made. Kinds and settings of the whole cluster are left alone on a real one.
async fn a_listed_kind_is_spread_through_what_is_between(stage: &mut Stage) -> Outcome {
    install(stage, "Rollout", "rollouts").await;
    let scene = Scene::prepare(stage, "ws-rollouts").await;
    let subsets = json!([subset("a", "50%".into()), subset("b", "50%".into())]);
    let spread = scene.spread_object("example.com/v1", "Rollout", subsets);
    let refused = scene.sandbox.create_any(spread.clone()).await.unwrap_err();
    assert!(refused.contains("TargetReference's GroupKind is not permitted."), "{refused}");
    configure(stage, "{").await;
    scene.rest(2).await;
    let refused = scene.sandbox.create_any(spread.clone()).await.unwrap_err();
    assert!(
        refused
            .contains("spec.targetRef: Internal error: key WorkloadSpread_Watch_Custom_Workload_WhiteList"),
        "{refused}"
    );
    let entry = r#"{"workloads":[{"group":"example.com","version":"v1","kind":"Rollout","replicasPath":"spec.size","subResources":[{"Group":"apps","Kind":"ReplicaSet"}]}]}"#;
    configure(stage, entry).await;
    scene.rest(2).await;
    scene.sandbox.create_any(spread).await.unwrap();
    let rollout = json!({"apiVersion": "example.com/v1", "kind": "Rollout", "metadata": {"name": "web"}, "spec": {"size": 4}});
    let rollout = serde_json::to_value(scene.sandbox.create_any(rollout).await.unwrap()).unwrap();
    let above = json!({"metadata": {"ownerReferences": owner(&rollout)}});
    scene.create("apps/v1", "ReplicaSet", 4, above.clone()).await;
    scene.until_places("a2 b2").await;
    scene.until_account("a 2/0, b 2/0").await;
    // The list breaks: pods go on as if there was none, and what is there keeps its account.
    configure(stage, "[").await;
    scene.rest(2).await;
    scene
        .sandbox
        .merge::<k8s_openapi::api::apps::v1::ReplicaSet>("web", json!({"spec": {"replicas": 5}}))
        .await;
    scene.until_places("a2 b2 -1").await;
    Ok(())
}
embedded_only!(a_listed_kind_is_spread_through_what_is_between, super::NO_FLAGS);

fn of_training(scene: &Scene, training: &Value, role: &str, place: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("{role}-{place}"), "labels": {"role": role},
        "ownerReferences": owner(training)}, "spec": scene.pod_spec()})
}

/// SPREAD-14, SPREAD-15: only the workers of a job with several roles are spread, by their own number; a path that leads nowhere
/// is named in the refusal of a pod.
async fn one_role_of_a_workload_is_spread(stage: &mut Stage) -> Outcome {
    install(stage, "TFJob", "tfjobs").await;
    configure(stage, r#"{"workloads":[{"Group":"example.com","Version":"v1","Kind":"TFJob"}]}"#).await;
    let scene = Scene::prepare(stage, "ws-roles").await;
    let subsets = json!([subset("a", "50%".into()), subset("b", "50%".into())]);
    let filter = |path: &str| json!({"spec": {"targetFilter": {"selector": {"matchLabels": {"role": "worker"}}, "replicasPathList": [path]}}});
    let spread = scene.spread_object("example.com/v1", "TFJob", subsets);
    scene.sandbox.create_any(merged(spread, &filter("spec.roles.1.replicas"))).await.unwrap();
    let training = json!({"apiVersion": "example.com/v1", "kind": "TFJob", "metadata": {"name": "web"},
        "spec": {"roles": [{"replicas": 1}, {"replicas": 4}]}});
    let training = serde_json::to_value(scene.sandbox.create_any(training).await.unwrap()).unwrap();
    scene.sandbox.create_any(of_training(&scene, &training, "ps", 0)).await.unwrap();
    for place in 0..4 {
        scene.sandbox.create_any(of_training(&scene, &training, "worker", place)).await.unwrap();
    }
    assert_eq!(places(&scene.pods().await), "a2 b2 -1");
    scene.until_account("a 2/0, b 2/0").await;
    scene.change_spread(filter("spec.roles.7.replicas")).await;
    scene.rest(2).await;
    let refused = scene.sandbox.create_any(of_training(&scene, &training, "worker", 4)).await.unwrap_err();
    assert!(refused.contains("path \"spec.roles.7.replicas\" does not exist in TFJob"), "{refused}");
    scene.sandbox.create_any(of_training(&scene, &training, "ps", 1)).await.unwrap();
    Ok(())
}
embedded_only!(one_role_of_a_workload_is_spread, super::NO_FLAGS);

/// Pods of such kinds come back under their names, while caches are behind: they take the place that they had, or another one,
/// and never one more than there are.
async fn pods_that_return_under_their_names_take_no_place_more(stage: &mut Stage) -> Outcome {
    install(stage, "TFJob", "tfjobs").await;
    configure(stage, r#"{"workloads":[{"Group":"example.com","Version":"v1","Kind":"TFJob"}]}"#).await;
    let scene = Scene::prepare(stage, "ws-names").await;
    let spread = scene.spread_object(
        "example.com/v1",
        "TFJob",
        json!([subset("a", 2.into()), subset("b", Value::Null)]),
    );
    let path = json!({"spec": {"targetFilter": {"replicasPathList": ["spec.size"]}}});
    scene.put_spread(merged(spread, &path)).await;
    let training = json!({"apiVersion": "example.com/v1", "kind": "TFJob", "metadata": {"name": "web"}, "spec": {"size": 3}});
    let training = serde_json::to_value(scene.sandbox.create_any(training).await.unwrap()).unwrap();
    let pods: Api<Pod> = scene.sandbox.api();
    let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    let create = async |place: usize| {
        scene.sandbox.create_any(of_training(&scene, &training, "worker", place)).await.unwrap();
    };
    create(0).await;
    create(1).await;
    scene.until_places("a2").await;
    stage.sim().faults().lag_time(Duration::from_millis(1500));
    for turn in 0..25_u64 {
        for place in [0, 1] {
            pods.delete(&format!("worker-{place}"), &at_once).await.unwrap();
            create(place).await;
            tokio::time::sleep(Duration::from_millis(turn * 130 % 700)).await;
        }
        create(2).await;
        let places = places(&scene.pods().await);
        assert!(["a2 b1", "a1 b2", "b3"].contains(&places.as_str()), "{places} in turn {turn}");
        pods.delete("worker-2", &at_once).await.unwrap();
        tokio::time::sleep(Duration::from_millis(turn * 370 % 2900)).await;
    }
    stage.sim().faults().heal();
    let look = async || seen(scene.has_no_records().await, scene.status().await.to_string());
    scene.sandbox.eventually("all records are settled", look).await;
    Ok(())
}
embedded_only!(pods_that_return_under_their_names_take_no_place_more, super::NO_FLAGS);

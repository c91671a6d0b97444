//! Creation, scaling and deletion.

use std::time::Duration;

use kruise_api::labels;
use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    kit::{Demo, label, name},
    stage::{Stage, managed},
};

/// CLONESET-1: a set without a strategy gets its defaults, and one pod with all of its labels.
async fn a_new_set_has_its_defaults_and_one_pod(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "defaults", json!({"spec": {"replicas": null}})).await;
    let set = serde_json::to_value(demo.set().await).unwrap();
    let at = |path: &str| set.pointer(path).cloned().unwrap_or(Value::Null);
    assert_eq!(at("/spec/replicas"), 1);
    assert_eq!(at("/spec/revisionHistoryLimit"), 10);
    assert_eq!(at("/spec/updateStrategy/type"), "RollingUpdate");
    let rolling = at("/spec/updateStrategy/rollingUpdate");
    assert_eq!(
        rolling,
        json!({"podUpdatePolicy": "ReCreate", "partition": 0, "maxUnavailable": "20%", "maxSurge": 0})
    );
    assert_eq!(at("/spec/template/spec/containers/0/imagePullPolicy"), "Always");
    demo.until("the pod is in its normal state", |_, pods| {
        pods.iter().all(|pod| label(pod, labels::LIFECYCLE_STATE) == "Normal")
    })
    .await;
    let pods = demo.pods().await;
    let [pod] = pods.as_slice() else { panic!("{} pods", pods.len()) };
    let id = label(pod, labels::CLONESET_INSTANCE_ID);
    assert_eq!(name(pod), format!("demo-{id}"));
    let revision = at("/status/updateRevision");
    assert_eq!(label(pod, labels::CONTROLLER_REVISION_HASH), revision);
    let hash = revision.as_str().unwrap().rsplit('-').next().unwrap();
    assert_eq!(label(pod, labels::POD_TEMPLATE_HASH), hash);
    Ok(())
}
managed!(a_new_set_has_its_defaults_and_one_pod, []);

/// CLONESET-3: the number of pods follows, and events tell of each.
async fn pods_follow_the_number_of_replicas(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "scale", json!({})).await;
    let revision = demo.set().await.status.unwrap().current_revision;
    assert_eq!(demo.events("SuccessfulCreate").await.len(), 5);
    demo.change(json!({"spec": {"replicas": 8}})).await;
    demo.settled().await;
    demo.change(json!({"spec": {"replicas": 2}})).await;
    demo.settled().await;
    assert_eq!(demo.events("SuccessfulCreate").await.len(), 8);
    assert_eq!(demo.events("SuccessfulDelete").await.len(), 6);
    assert_eq!(demo.set().await.status.unwrap().current_revision, revision);
    Ok(())
}
managed!(pods_follow_the_number_of_replicas, []);

/// CLONESET-20: pods are replaced, one at a time.
async fn an_update_replaces_pods_within_the_limit(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "recreate", json!({})).await;
    let before = demo.uids().await;
    let film = demo.film().await;
    demo.set_image("app:v2").await;
    demo.rolled_out().await;
    let after = demo.uids().await;
    assert!(before.values().all(|uid| !after.values().any(|other| other == uid)));
    assert!(film.fewest_ready() >= 4, "{}", film.fewest_ready());
    assert!(film.most_active() <= 5);
    Ok(())
}
managed!(an_update_replaces_pods_within_the_limit, []);

/// CLONESET-8: what belongs to a set goes with it.
async fn everything_goes_with_the_set(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "delete", json!({})).await;
    demo.sandbox.delete::<kruise_api::cloneset::v1beta1::CloneSet>("demo").await;
    let look = async || {
        let pods = demo.all_pods().await.len();
        let revisions: Vec<k8s_openapi::api::apps::v1::ControllerRevision> = demo.sandbox.list().await;
        let left = format!("{pods} pods, {} revisions", revisions.len());
        kruise_testkit::wait::seen(pods == 0 && revisions.is_empty(), left)
    };
    demo.sandbox.eventually("pods and revisions are gone", look).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(demo.all_pods().await.is_empty());
    Ok(())
}
managed!(everything_goes_with_the_set, []);

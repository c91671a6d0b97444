//! What an older release or a native manifest left behind.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_testkit::Outcome;
use kube::{Api, api::Patch};
use serde_json::json;

use crate::{
    agent::{Agent, all, is_settled},
    kit::{is_active, name},
    stage::{Stage, managed},
};

/// DAEMONSET-41: pods whose owner has the version of an older release are kept, and replaced within seconds when deleted.
async fn pods_of_an_older_release_are_kept(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "older", json!({})).await;
    let uid = agent.set().await.metadata.uid.unwrap();
    let api: Api<Pod> = agent.sandbox().api();
    for pod in agent.demo.pods().await {
        let owner = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "DaemonSet", "name": "agent", "uid": uid,
            "controller": true, "blockOwnerDeletion": true});
        let patch = Patch::Merge(json!({"metadata": {"ownerReferences": [owner]}}));
        api.patch(&name(&pod), &Default::default(), &patch).await.unwrap();
    }
    // The webhook for pods answers only while a manager runs, so they are changed before.
    stage.kill_manager();
    let versions = |pods: &[Pod]| -> Vec<Option<String>> {
        pods.iter().map(|pod| pod.metadata.resource_version.clone()).collect()
    };
    let before = versions(&agent.demo.all_pods().await);
    stage.start_manager().await;
    agent.always("no pod is written to", Duration::from_secs(30), |_, pods| versions(pods) == before).await;
    let node = agent.nodes().await.remove(0);
    let gone = agent.uid_on(&node).await;
    agent.sandbox().delete::<Pod>(&agent.pod_on(&node).await).await;
    let begun = tokio::time::Instant::now();
    agent
        .until("it is replaced", |_, pods| {
            pods.len() == before.len()
                && pods.iter().all(|pod| is_active(pod) && pod.metadata.uid.as_deref() != Some(&*gone))
        })
        .await;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    Ok(())
}
managed!(pods_of_an_older_release_are_kept, [], alone);

/// DAEMONSET-40: a manifest that was exported from a native DaemonSet rolls out.
async fn an_exported_native_manifest_rolls_out(stage: &mut Stage) -> Outcome {
    let annotation = json!({"metadata": {"annotations": {"deprecated.daemonset.template.generation": "1"}}});
    let agent = Agent::start(stage, "exported", annotation).await;
    agent.set_image("app:v2").await;
    agent.rolled_out().await;
    assert_eq!(agent.images().await, all(&agent.nodes().await, "app:v2"));
    agent.until("it is at rest", is_settled).await;
    Ok(())
}
managed!(an_exported_native_manifest_rolls_out, []);

//! Pods that fail, end, or cannot be made.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_testkit::Outcome;
use kube::{Api, api::Patch};
use serde_json::json;

use crate::{
    agent::{Agent, all, is_settled, rolling},
    stage::{Stage, embedded_only, managed},
};

async fn set_phase(agent: &Agent, pod: &str, phase: &str) {
    let api: Api<Pod> = agent.sandbox().api();
    let patch = Patch::Merge(json!({"status": {"phase": phase}}));
    api.patch_status(pod, &Default::default(), &patch).await.unwrap();
}

/// DAEMONSET-9: a failed pod is reported and replaced, again and again at growing intervals.
async fn a_failed_pod_is_replaced_at_growing_intervals(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "failed", json!({})).await;
    let node = agent.nodes().await.remove(0);
    let mut times = Vec::new();
    for _ in 0..5 {
        let (pod, uid) = (agent.pod_on(&node).await, agent.uid_on(&node).await);
        set_phase(&agent, &pod, "Failed").await;
        agent
            .until("it is replaced", |set, pods| {
                is_settled(set, pods) && pods.iter().all(|pod| pod.metadata.uid.as_deref() != Some(&*uid))
            })
            .await;
        times.push(tokio::time::Instant::now());
    }
    let pauses: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses[3] >= Duration::from_secs(4), "{pauses:?}");
    let events = agent.demo.events("FailedDaemonPod").await;
    assert!(
        !events.is_empty() && events[0].message.contains(&format!("on node {node}, will try to kill it"))
    );
    Ok(())
}
embedded_only!(a_failed_pod_is_replaced_at_growing_intervals, []);

/// DAEMONSET-10: a pod that ended is replaced.
async fn a_pod_that_ended_is_replaced(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "succeeded", json!({})).await;
    let node = agent.nodes().await.remove(0);
    let (pod, uid) = (agent.pod_on(&node).await, agent.uid_on(&node).await);
    set_phase(&agent, &pod, "Succeeded").await;
    agent
        .until("it is replaced", |set, pods| {
            is_settled(set, pods) && pods.iter().all(|pod| pod.metadata.uid.as_deref() != Some(&*uid))
        })
        .await;
    assert_eq!(agent.demo.events("SucceededDaemonPod").await.len(), 1);
    Ok(())
}
// A real kubelet corrects the phase.
embedded_only!(a_pod_that_ended_is_replaced, []);

/// DAEMONSET-11: the burst limits how many pods are made at once; none at all is a freeze.
async fn burst_replicas_limits_each_pass(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "burst", json!({"spec": {"burstReplicas": "1%"}})).await;
    assert_eq!(agent.images().await, all(&agent.nodes().await, "app:v1"));
    agent.change(json!({"spec": {"burstReplicas": 0}})).await;
    let node = agent.nodes().await.remove(0);
    agent.sandbox().delete::<Pod>(&agent.pod_on(&node).await).await;
    agent.until("the pod is gone", |_, pods| pods.len() == 3 || pods.is_empty()).await;
    agent.always("it does not come back", Duration::from_secs(10), |_, pods| pods.len() == 3).await;
    agent.change(json!({"spec": {"burstReplicas": 1}})).await;
    agent.settled().await;
    let refused = agent.try_change(json!({"spec": {"burstReplicas": "abc"}})).await.unwrap_err();
    assert!(refused.starts_with("422 ") && refused.contains("spec.burstReplicas"), "{refused}");
    Ok(())
}
managed!(burst_replicas_limits_each_pass, []);

/// DAEMONSET-12: a quota is reported, the status stays true, and the rest comes when the quota is raised.
async fn a_quota_is_reported(stage: &mut Stage) -> Outcome {
    let agent = Agent::prepare(stage, "quota").await;
    let quota = |pods: &str| {
        json!({"apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "few", "namespace": agent.sandbox().namespace()}, "spec": {"hard": {"pods": pods}}})
    };
    stage.put(quota("2")).await;
    let look = async || {
        let found = stage.api(&quota("2")).get("few").await.unwrap();
        kruise_testkit::wait::seen(
            found.data["status"]["hard"]["pods"] == "2",
            found.data["status"].to_string(),
        )
    };
    agent.sandbox().eventually("the quota is in force", look).await;
    agent.create(json!({})).await;
    let nodes = agent.nodes().await;
    agent
        .until("two pods are there and counted", |set, pods| {
            let status = set.status.clone().unwrap_or_default();
            pods.len() == 2
                && (status.current_number_scheduled, status.number_ready) == (2, 2)
                && status.desired_number_scheduled == i32::try_from(nodes.len()).unwrap()
                && status.observed_generation.is_none()
        })
        .await;
    let events = agent.demo.events("FailedCreate").await;
    assert!(
        events[0].message.starts_with("Error creating: ") && events[0].message.contains("exceeded quota")
    );
    stage.put(quota("20")).await;
    agent.settled().await;
    Ok(())
}
managed!(a_quota_is_reported, []);

/// An update goes on where it can while a quota keeps a pod from being made.
async fn a_missing_pod_does_not_stop_an_update_in_place(stage: &mut Stage) -> Outcome {
    let in_place = rolling(json!({"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 2}));
    let agent = Agent::start(stage, "quota-update", in_place).await;
    let nodes = agent.nodes().await;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": agent.sandbox().namespace()}, "spec": {"hard": {"pods": "1"}}});
    stage.put(quota).await;
    agent.sandbox().delete::<Pod>(&agent.pod_on(&nodes[0]).await).await;
    agent.set_image("app:v2").await;
    let mut expected = all(&nodes, "app:v2");
    expected.remove(&nodes[0]);
    agent
        .until("the others are updated", |_, pods| {
            let updated = pods.iter().filter(|pod| {
                crate::kit::image_of(pod, "main").ends_with("app:v2") && crate::kit::is_ready(pod)
            });
            updated.count() == nodes.len() - 1
        })
        .await;
    assert_eq!(agent.images().await, expected);
    Ok(())
}
managed!(a_missing_pod_does_not_stop_an_update_in_place, []);

/// DAEMONSET-35, DAEMONSET-36: the partition holds back new pods, in both versions.
async fn a_partition_holds_back_new_pods(stage: &mut Stage) -> Outcome {
    let agent = Agent::prepare(stage, "progressive").await;
    let nodes = agent.nodes().await;
    let mut object = agent.object(&rolling(json!({"partition": nodes.len() - 1})));
    object["apiVersion"] = json!("apps.kruise.io/v1alpha1");
    object["metadata"]["annotations"] = json!({"daemonset.kruise.io/progressive-create-pod": "true"});
    stage.create(object.clone()).await.unwrap();
    let set = agent.set().await;
    assert_eq!(set.spec.scale_strategy.and_then(|scale| scale.partitioned_scaling), Some(true));
    let first = all(&nodes[..1], "app:v1");
    agent.until("one pod is there", |_, pods| pods.len() == 1).await;
    agent.always("no other comes", Duration::from_secs(5), |_, pods| pods.len() == 1).await;
    assert_eq!(agent.images().await, first);
    agent.change(rolling(json!({"partition": 0}))).await;
    agent.at_rest(&all(&nodes, "app:v1")).await;
    agent.change(json!({"spec": {"scaleStrategy": {"partitionedScaling": false}}})).await;
    let alpha = stage.patch(&object, &json!({"metadata": {"labels": {"touched": "yes"}}})).await.unwrap();
    assert!(alpha["metadata"]["annotations"]["daemonset.kruise.io/progressive-create-pod"].is_null());
    let set = agent.set().await;
    assert_ne!(set.spec.scale_strategy.and_then(|scale| scale.partitioned_scaling), Some(true));
    Ok(())
}
managed!(a_partition_holds_back_new_pods, []);

/// DAEMONSET-42: a pod without an owner is adopted, and the younger pod of the node is deleted.
async fn an_orphan_is_adopted(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "orphan", json!({})).await;
    let nodes = agent.nodes().await;
    let kept = agent.uid_on(&nodes[1]).await;
    agent.always("it is older than what comes", Duration::from_secs(2), is_settled).await;
    let stray = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "stray", "namespace": agent.sandbox().namespace(), "labels": {"app": "agent"}},
        "spec": {"nodeName": nodes[1], "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": agent.demo.image("app:v1")}]},
    });
    stage.create(stray).await.unwrap();
    agent
        .until("the stray pod is gone", |set, pods| {
            is_settled(set, pods) && pods.iter().all(|pod| pod.metadata.name.as_deref() != Some("stray"))
        })
        .await;
    assert_eq!(agent.uid_on(&nodes[1]).await, kept);
    let deleted = agent.demo.events("SuccessfulDelete").await;
    assert_eq!(deleted[0].message, "Deleted pod: stray");
    Ok(())
}
managed!(an_orphan_is_adopted, []);

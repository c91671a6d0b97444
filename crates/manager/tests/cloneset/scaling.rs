//! Scaling: the scale subresource, pods that come and go by other hands, and how fast pods are added.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_api::cloneset::v1beta1::CloneSet;
use kruise_testkit::{Backend, Outcome, wait::seen};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{
    kit::{Demo, condition, is_active, is_available, is_ready, name},
    stage::{Stage, managed},
};

/// CLONESET-4: `kubectl scale` patches the scale, an autoscaler reads and replaces it.
async fn the_scale_is_read_and_written(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "subresource", json!({})).await;
    let api: Api<CloneSet> = demo.sandbox.api();
    let patch = Patch::Merge(json!({"spec": {"replicas": 7}}));
    api.patch_scale("demo", &PatchParams::default(), &patch).await.unwrap();
    demo.settled().await;
    assert_eq!(demo.pods().await.len(), 7);
    let mut scale = api.get_scale("demo").await.unwrap();
    let status = scale.status.clone().unwrap();
    assert_eq!((status.replicas, status.selector.as_deref()), (7, Some("app=demo")));
    assert_eq!(demo.set().await.status.unwrap().label_selector.as_deref(), Some("app=demo"));
    scale.spec = serde_json::from_value(json!({"replicas": 4})).unwrap();
    api.replace_scale("demo", &PostParams::default(), &scale).await.unwrap();
    demo.settled().await;
    assert_eq!(demo.pods().await.len(), 4);
    Ok(())
}
managed!(the_scale_is_read_and_written, []);

/// CLONESET-5
async fn a_pod_that_somebody_deletes_is_replaced(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "replace", json!({})).await;
    let before = demo.uids().await;
    let (victim, _) = before.first_key_value().unwrap();
    demo.sandbox.delete::<Pod>(victim).await;
    let within = Duration::from_secs(10);
    let replaced = kruise_testkit::wait::eventually("a new pod is there", within, async || {
        let pods = demo.pods().await;
        let new = pods.iter().filter(|pod| !before.contains_key(&name(pod))).count();
        seen(new == 1 && pods.len() == 5, format!("{} pods, {new} new", pods.len()))
    });
    replaced.await.unwrap();
    demo.settled().await;
    Ok(())
}
managed!(a_pod_that_somebody_deletes_is_replaced, []);

/// CLONESET-6
async fn a_pod_with_other_labels_is_let_go(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "release", json!({})).await;
    let before = demo.uids().await;
    let (freed, uid) = before.first_key_value().unwrap();
    demo.change_pod(freed, json!({"metadata": {"labels": {"app": "other"}}})).await;
    demo.until("a replacement is there", |_, pods| {
        pods.len() == 6 && pods.iter().filter(|pod| name(pod) != *freed).all(is_available)
    })
    .await;
    let others = async || demo.all_pods().await.into_iter().find(|pod| name(pod) == *freed).unwrap();
    let look = async || seen(others().await.metadata.owner_references.is_none(), "it has an owner");
    demo.sandbox.eventually("the pod has no owner", look).await;
    demo.always("it runs on", Duration::from_secs(10), |set, pods| {
        let pod = pods.iter().find(|pod| name(pod) == *freed);
        pod.is_some_and(|pod| is_active(pod) && is_ready(pod) && pod.metadata.uid.as_ref() == Some(uid))
            && pods.len() == 6
            && set.status.as_ref().is_some_and(|status| status.replicas == 5)
    })
    .await;
    Ok(())
}
managed!(a_pod_with_other_labels_is_let_go, []);

/// CLONESET-7
async fn a_pod_without_an_owner_stays_alone(stage: &mut Stage) -> Outcome {
    let demo = Demo::prepare(stage, "orphan").await;
    let template = demo.object(&json!({}))["spec"]["template"].clone();
    let mut orphan = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "demo-alone", "labels": {"app": "demo"}}});
    orphan["spec"] = template["spec"].clone();
    let made: Pod = demo.sandbox.create(orphan).await;
    demo.create(json!({"spec": {"replicas": 2}})).await;
    let alone = |pods: &[Pod]| {
        let pod = pods.iter().find(|pod| name(pod) == "demo-alone");
        pod.is_some_and(|pod| {
            is_active(pod) && pod.metadata.owner_references.is_none() && pod.metadata.uid == made.metadata.uid
        })
    };
    demo.until("two pods are its own", |set, pods| {
        pods.len() == 3
            && pods.iter().all(is_ready)
            && set.status.as_ref().is_some_and(|status| status.replicas == 2)
    })
    .await;
    for replicas in [3, 0] {
        demo.change(json!({"spec": {"replicas": replicas}})).await;
        demo.until("the set follows", |set, pods| {
            let status = set.status.clone().unwrap_or_default();
            status.replicas == replicas && pods.len() == usize::try_from(replicas).unwrap() + 1
        })
        .await;
        demo.always("nobody touches it", Duration::from_secs(5), |_, pods| alone(pods)).await;
    }
    Ok(())
}
managed!(a_pod_without_an_owner_stays_alone, []);

/// CLONESET-9
async fn pods_are_added_one_after_the_other_if_so_wanted(stage: &mut Stage) -> Outcome {
    let change =
        json!({"spec": {"replicas": 1, "minReadySeconds": 10, "scaleStrategy": {"maxUnavailable": 1}}});
    let demo = Demo::start(stage, "streaming", change).await;
    let film = demo.film().await;
    demo.change(json!({"spec": {"replicas": 4}})).await;
    demo.settled().await;
    let seen = film.appearances();
    assert_eq!(seen.len(), 4, "{seen:?}");
    let apart: Vec<Duration> = seen.windows(2).skip(1).map(|two| two[1].1 - two[0].1).collect();
    // Since when a pod is ready is told in whole seconds, so up to one of the ten may be gone already.
    assert!(apart.iter().all(|time| *time >= Duration::from_secs(9)), "{apart:?}");
    let events = demo.events("ScaleUpLimited").await;
    let told =
        |limit: usize| format!("scaleUp is limited because of scaleStrategy.maxUnavailable, limit: {limit}");
    assert!(events.iter().any(|event| event.message == told(1)), "{events:?}");
    assert!(events.iter().any(|event| event.message == told(0)), "{events:?}");
    assert!(events.iter().all(|event| event.kind == "Warning" && event.about == "CloneSet/demo"));
    Ok(())
}
managed!(pods_are_added_one_after_the_other_if_so_wanted, []);

/// CLONESET-15
async fn a_quota_is_told_until_it_is_raised(stage: &mut Stage) -> Outcome {
    use k8s_openapi::api::core::v1::ResourceQuota;
    let demo = Demo::start(stage, "quota", json!({"spec": {"replicas": 1}})).await;
    let quota = json!({"metadata": {"name": "few"}, "spec": {"hard": {"pods": "3"}}});
    demo.sandbox.create::<ResourceQuota>(quota).await;
    if stage.cluster.backend() == Backend::Real {
        let counted = async || {
            let quota: ResourceQuota = demo.sandbox.get("few").await;
            seen(quota.status.clone().and_then(|status| status.used).is_some(), format!("{quota:?}"))
        };
        demo.sandbox.eventually("the quota is counted", counted).await;
    }
    demo.change(json!({"spec": {"replicas": 5}})).await;
    demo.until("three pods and a condition", |set, pods| {
        pods.len() == 3 && condition(set, "FailedScale").is_some()
    })
    .await;
    let [status, reason, message] = condition(&demo.set().await, "FailedScale").unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", ""));
    let said = " is forbidden: exceeded quota: few, requested: pods=1, used: pods=3, limited: pods=3";
    assert!(message.starts_with("pods \"demo-") && message.ends_with(said), "{message}");
    let events = demo.events("FailedCreate").await;
    assert!(!events.is_empty());
    for event in &events {
        let (words, pod) = event.message.rsplit_once(", pod: ").unwrap();
        assert_eq!(words, format!("failed to create pod: pods \"{pod}\"{said}"));
        assert_eq!(event.kind, "Warning");
    }
    demo.always("no fourth pod", Duration::from_secs(5), |_, pods| pods.len() == 3).await;
    demo.sandbox.merge::<ResourceQuota>("few", json!({"spec": {"hard": {"pods": "10"}}})).await;
    demo.settled().await;
    demo.until("the condition is gone", |set, _| condition(set, "FailedScale").is_none()).await;
    Ok(())
}
managed!(a_quota_is_told_until_it_is_raised, []);

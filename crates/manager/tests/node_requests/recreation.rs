//! ContainerRecreateRequests.

use std::time::Duration;

use kruise_api::containerrecreaterequest::v1beta1::{ContainerRecreateRequest, Phase};
use kruise_testkit::{Outcome, Sandbox, pod, wait::Look};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    stage::{Stage, embedded_only},
    words::{ready_pod, room, until},
};

async fn request(sandbox: &Sandbox, name: &str, spec: Value) -> ContainerRecreateRequest {
    sandbox.create(json!({"metadata": {"name": name}, "spec": spec})).await
}

/// What a daemon would write.
async fn say(sandbox: &Sandbox, name: &str, status: Value) {
    let requests: Api<ContainerRecreateRequest> = sandbox.api();
    let patch = Patch::Merge(json!({"status": status}));
    requests.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}

async fn until_request(
    sandbox: &Sandbox,
    name: &str,
    what: &str,
    is_so: impl Fn(&ContainerRecreateRequest) -> bool,
) -> ContainerRecreateRequest {
    sandbox
        .eventually(what, async || {
            let found: ContainerRecreateRequest = sandbox.get(name).await;
            if is_so(&found) { Look::Yes(found) } else { Look::No(format!("{found:?}")) }
        })
        .await
}

fn message(request: &ContainerRecreateRequest) -> &str {
    request.status.as_ref().and_then(|status| status.message.as_deref()).unwrap_or_default()
}

/// CRR-1, CRR-12: a request is completed from its pod, the pod is held and let go, and the label goes.
///
/// On a real cluster the daemon itself would answer.
async fn a_request_is_completed_and_accompanied(stage: &mut Stage) -> Outcome {
    let sandbox = room(stage, "recreate").await;
    let gate = json!([{"conditionType": "KruisePodReady"}]);
    let pod = ready_pod(stage, &sandbox, "web", gate).await;
    let spec = json!({"podName": "web", "containers": [{"name": "app"}], "strategy": {"unreadyGracePeriodSeconds": 5}});
    let made = request(&sandbox, "again", spec).await;
    let labels = made.metadata.labels.clone().unwrap();
    assert_eq!(labels.get("crr.apps.kruise.io/pod-uid"), pod.metadata.uid.as_ref());
    assert_eq!(labels["crr.apps.kruise.io/node-name"], pod.spec.as_ref().unwrap().node_name.clone().unwrap());
    assert_eq!(labels["crr.apps.kruise.io/active"], "true");
    let strategy = made.spec.strategy.clone().unwrap();
    assert_eq!(strategy.termination_grace_period_seconds, Some(5));
    let context = made.spec.containers[0].status_context.clone().unwrap();
    assert_eq!(Some(&context.container_id), pod::container(&pod, "app").unwrap().container_id.as_ref());

    say(&sandbox, "again", json!({"phase": "Recreating"})).await;
    until(&sandbox, "web", "the pod is held", |pod| pod::condition(pod, "KruisePodReady") == Some("False"))
        .await;
    let held = until_request(&sandbox, "again", "the time is marked", |request| {
        request.status.as_ref().is_some_and(|status| status.conditions.len() == 1)
    })
    .await;
    assert_eq!(held.metadata.finalizers.as_deref().unwrap(), ["crr.apps.kruise.io/unready-acquired"]);
    until(&sandbox, "web", "the pod is not ready", |pod| !pod::is_ready(pod)).await;

    say(&sandbox, "again", json!({"phase": "Completed", "completionTime": "2026-01-01T00:00:00Z"})).await;
    until(&sandbox, "web", "the pod is ready again", pod::is_ready).await;
    until_request(&sandbox, "again", "finalizer and label are gone", |request| {
        request.metadata.finalizers.as_ref().is_none_or(Vec::is_empty)
            && !request.metadata.labels.as_ref().unwrap().contains_key("crr.apps.kruise.io/active")
    })
    .await;
    Ok(())
}
embedded_only!(a_request_is_completed_and_accompanied, crate::words::PLAIN);

/// CRR-13: a request that is deleted while it holds its pod.
async fn a_deleted_request_lets_its_pod_go(stage: &mut Stage) -> Outcome {
    let sandbox = room(stage, "delete").await;
    let gate = json!([{"conditionType": "KruisePodReady"}]);
    ready_pod(stage, &sandbox, "web", gate).await;
    let spec = json!({"podName": "web", "containers": [{"name": "app"}], "strategy": {"unreadyGracePeriodSeconds": 50}});
    request(&sandbox, "again", spec).await;
    say(&sandbox, "again", json!({"phase": "Recreating"})).await;
    until(&sandbox, "web", "the pod is held", |pod| !pod::is_ready(pod)).await;
    sandbox.delete::<ContainerRecreateRequest>("again").await;
    until(&sandbox, "web", "the pod is ready again", pod::is_ready).await;
    sandbox
        .eventually("the request is gone", async || {
            let left: Vec<ContainerRecreateRequest> = sandbox.list().await;
            if left.is_empty() { Look::Yes(()) } else { Look::No(format!("{left:?}")) }
        })
        .await;
    Ok(())
}
embedded_only!(a_deleted_request_lets_its_pod_go, crate::words::PLAIN);

/// CRR-17, CRR-18, CRR-2: nobody answers; the pod goes; the request goes.
async fn a_request_that_cannot_go_on_ends_with_the_reason(stage: &mut Stage) -> Outcome {
    let sandbox = room(stage, "ends").await;
    ready_pod(stage, &sandbox, "web", json!([])).await;
    let spec = json!({"podName": "web", "containers": [{"name": "app"}], "ttlSecondsAfterFinished": 3});
    request(&sandbox, "alone", spec).await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    let ended = until_request(&sandbox, "alone", "nobody has answered", |request| {
        request.status.as_ref().is_some_and(|status| status.phase == Phase::Completed)
    })
    .await;
    assert_eq!(message(&ended), "daemon has not responded for a long time");
    tokio::time::sleep(Duration::from_secs(6)).await;
    let left: Vec<ContainerRecreateRequest> = sandbox.list().await;
    assert_eq!(left, [], "its time is over");

    request(&sandbox, "late", json!({"podName": "web", "containers": [{"name": "app"}]})).await;
    say(&sandbox, "late", json!({"phase": "Recreating"})).await;
    sandbox.delete::<k8s_openapi::api::core::v1::Pod>("web").await;
    let ended =
        until_request(&sandbox, "late", "the pod has gone", |request| !message(request).is_empty()).await;
    assert_eq!(message(&ended), "pod has gone");
    Ok(())
}
embedded_only!(a_request_that_cannot_go_on_ends_with_the_reason, crate::words::PLAIN);

/// CRR-26: refusals reach the writer.
async fn bad_requests_are_refused(stage: &mut Stage) -> Outcome {
    let sandbox = room(stage, "refused").await;
    ready_pod(stage, &sandbox, "web", json!([])).await;
    let refused = async |spec: Value| {
        sandbox.refused::<ContainerRecreateRequest>(json!({"metadata": {"name": "bad"}, "spec": spec})).await
    };
    let text = refused(json!({"podName": "nope", "containers": [{"name": "app"}]})).await;
    assert!(text.contains("no found Pod named nope"), "{text}");
    let text = refused(json!({"podName": "web", "containers": [{"name": "nope"}]})).await;
    assert!(text.contains("container nope not found in Pod"), "{text}");
    Ok(())
}
embedded_only!(bad_requests_are_refused, crate::words::PLAIN);

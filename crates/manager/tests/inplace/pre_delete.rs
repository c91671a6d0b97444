//! Hooks before a deletion, and everybody who holds a pod's readiness.

use k8s_openapi::api::core::v1::Pod;
use kruise_api::conditions::KRUISE_POD_READY;
use kruise_testkit::Outcome;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    kit::{Demo, is_active, name},
    stage::{Stage, managed},
    words::{MOMENT, condition, is_false, lifecycle, status_of},
};

const FINALIZER: &str = "ex.io/f";

/// Two pods that are held by a finalizer before they may go.
async fn held(stage: &Stage, purpose: &str, mark: bool) -> Demo {
    let hook = json!({"finalizersHandler": [FINALIZER], "markPodNotReady": mark});
    let template = json!({"metadata": {"finalizers": [FINALIZER]}});
    let spec = json!({"replicas": 2, "lifecycle": {"preDelete": hook}, "template": template});
    let demo = Demo::start(stage, purpose, json!({"spec": spec})).await;
    assert!(demo.pods().await.iter().all(|pod| pod.metadata.finalizers == Some(vec![FINALIZER.to_owned()])));
    demo
}

/// Scales in by one and returns the pod that waits for its hook.
async fn scale_in(demo: &Demo) -> Pod {
    demo.change(json!({"spec": {"replicas": 1}})).await;
    demo.until("a pod waits for its hook", |_, pods| {
        pods.iter().any(|pod| lifecycle(pod) == "PreparingDelete")
    })
    .await;
    let mut waiting = demo.pods().await;
    waiting.retain(|pod| lifecycle(pod) == "PreparingDelete");
    let [pod] = waiting.as_slice() else { panic!("{} pods wait", waiting.len()) };
    pod.clone()
}

async fn release(demo: &Demo, pod: &str) {
    let _: Pod = demo.sandbox.merge(pod, json!({"metadata": {"finalizers": null}})).await;
}

/// Nobody is left behind in a namespace that cannot go.
async fn release_all(demo: &Demo) {
    demo.change(json!({"spec": {"replicas": 0}})).await;
    for pod in demo.all_pods().await {
        release(demo, &name(&pod)).await;
    }
    demo.until("all pods are gone", |_, pods| pods.is_empty()).await;
}

fn held_by(pod: &Pod) -> Value {
    let message = condition(pod, KRUISE_POD_READY).and_then(|held| held.message.clone()).unwrap_or_default();
    serde_json::from_str(&message).unwrap_or(Value::Null)
}

/// INPLACE-23: a pod is not deleted before its hook lets it go, and is then.
async fn a_pod_goes_when_its_hook_lets_it(stage: &mut Stage) -> Outcome {
    let demo = held(stage, "pre-delete", false).await;
    let waiting = name(&scale_in(&demo).await);
    demo.always("the pod waits and is not deleted", MOMENT, |_, pods| {
        let pod = pods.iter().find(|pod| name(pod) == waiting);
        pods.len() == 2 && pod.is_some_and(|pod| is_active(pod) && lifecycle(pod) == "PreparingDelete")
    })
    .await;
    release(&demo, &waiting).await;
    demo.until("the pod is gone", |_, pods| pods.len() == 1 && name(&pods[0]) != waiting).await;
    assert_eq!(demo.events("SuccessfulDelete").await.len(), 1);
    release_all(&demo).await;
    Ok(())
}
managed!(a_pod_goes_when_its_hook_lets_it, []);

/// INPLACE-24: a pod that waits may be taken out of service first, with its containers running.
async fn a_pod_that_waits_can_be_out_of_service(stage: &mut Stage) -> Outcome {
    let demo = held(stage, "mark", true).await;
    let film = demo.film().await;
    let waiting = name(&scale_in(&demo).await);
    demo.always("the pod is out of service and runs", MOMENT, |_, pods| {
        let pod = pods.iter().find(|pod| name(pod) == waiting);
        pod.is_some_and(|pod| {
            let held = condition(pod, KRUISE_POD_READY).cloned();
            let runs = status_of(pod, "main").and_then(|main| main.state.as_ref()?.running.as_ref());
            held.is_some_and(|held| {
                held.status == "False"
                    && held.message.as_deref() == Some(r#"[{"userAgent":"Lifecycle","key":"preDeleteHook"}]"#)
            }) && is_false(pod, "Ready")
                && is_active(pod)
                && runs.is_some()
        })
    })
    .await;
    for frame in film.frames() {
        for pod in frame.active().filter(|pod| lifecycle(pod) == "PreparingDelete") {
            assert!(is_false(pod, KRUISE_POD_READY), "the state was written before the hold");
        }
    }
    release_all(&demo).await;
    Ok(())
}
managed!(a_pod_that_waits_can_be_out_of_service, []);

/// INPLACE-25: two hold one pod, and it stays out of service as long as one of them does.
///
/// The other one is whoever restarts containers; here the test writes what that would write.
async fn two_who_hold_a_pod_do_not_disturb_each_other(stage: &mut Stage) -> Outcome {
    let demo = held(stage, "two-writers", true).await;
    let pods: Api<Pod> = demo.sandbox.api();
    let chosen = name(&demo.pods().await[0]);
    let other = json!({"userAgent": "ContainerRecreateRequest", "key": format!("{}/again", demo.sandbox.namespace())});
    let own = json!({"userAgent": "Lifecycle", "key": "preDeleteHook"});
    let say = async |reasons: &Value| {
        let one = json!({"type": KRUISE_POD_READY, "status": "False", "message": reasons.to_string()});
        let patch = Patch::Strategic(json!({"status": {"conditions": [one]}}));
        pods.patch_status(&chosen, &PatchParams::default(), &patch).await.unwrap();
    };
    say(&json!([other])).await;
    demo.until("the pod is not ready", |_, pods| {
        pods.iter().any(|pod| name(pod) == chosen && is_false(pod, "Ready"))
    })
    .await;
    // A pod that is not ready goes first.
    let waiting = scale_in(&demo).await;
    assert_eq!(name(&waiting), chosen);
    assert_eq!(held_by(&waiting), json!([other, own]));
    say(&json!([own])).await;
    demo.always("the pod stays out of service", MOMENT, |_, pods| {
        pods.iter()
            .any(|pod| name(pod) == chosen && is_false(pod, KRUISE_POD_READY) && held_by(pod) == json!([own]))
    })
    .await;
    release_all(&demo).await;
    Ok(())
}
managed!(two_who_hold_a_pod_do_not_disturb_each_other, []);

/// INPLACE-31: a pod that waits for its end comes back when it is needed again, and no other is made.
async fn a_deletion_that_is_not_needed_any_more_is_taken_back(stage: &mut Stage) -> Outcome {
    let demo = held(stage, "cancel", false).await;
    let before = demo.uids().await;
    let waiting = name(&scale_in(&demo).await);
    let film = demo.film().await;
    demo.change(json!({"spec": {"replicas": 2}})).await;
    demo.until("the pod is back", |set, pods| {
        let available = set.status.as_ref().map_or(0, |status| status.available_replicas);
        available == 2 && pods.iter().all(|pod| lifecycle(pod) == "Normal")
    })
    .await;
    assert_eq!(film.order(|pod| lifecycle(pod) == "PreparingNormal"), [waiting]);
    assert_eq!(demo.uids().await, before);
    assert_eq!(film.most_active(), 2);
    release_all(&demo).await;
    Ok(())
}
managed!(a_deletion_that_is_not_needed_any_more_is_taken_back, []);

/// INPLACE-31: it does not come back once it was taken out of service for that.
async fn a_deletion_that_took_a_pod_out_of_service_stays(stage: &mut Stage) -> Outcome {
    let demo = held(stage, "no-cancel", true).await;
    let waiting = name(&scale_in(&demo).await);
    demo.change(json!({"spec": {"replicas": 2}})).await;
    demo.always("the pod still waits for its end", MOMENT, |_, pods| {
        pods.iter().any(|pod| name(pod) == waiting && lifecycle(pod) == "PreparingDelete")
    })
    .await;
    release_all(&demo).await;
    Ok(())
}
managed!(a_deletion_that_took_a_pod_out_of_service_stays, []);

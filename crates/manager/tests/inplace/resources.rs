//! Other amounts of cpu and memory, with and without their gate.

use k8s_openapi::api::core::v1::Pod;
use kruise_testkit::{Outcome, Skip};
use serde_json::{Value, json};

use crate::{
    kit::{Demo, is_ready, merged},
    stage::{Stage, managed},
    words::{is_false, lifecycle, restarts, start, state},
};

const RESIZE: [&str; 1] = ["--feature-gates=InPlaceWorkloadVerticalScaling=true"];

fn with_resources(image: &str, resources: Value, change: &Value) -> Value {
    let container = json!({
        "name": "main", "image": image, "resources": resources,
        "readinessProbe": {"httpGet": {"port": 8080}, "periodSeconds": 1},
    });
    merged(container, change)
}

/// Three pods, updated one by one. Goes on only where the server can resize pods.
async fn sized(
    stage: &Stage,
    purpose: &str,
    resources: Value,
    change: &Value,
    others: &[Value],
) -> Result<Demo, Skip> {
    stage.cluster.require("v1", "pods/resize").await?;
    unchecked(stage, purpose, resources, change, others).await
}

async fn unchecked(
    stage: &Stage,
    purpose: &str,
    resources: Value,
    change: &Value,
    others: &[Value],
) -> Result<Demo, Skip> {
    let mut containers = vec![with_resources(&stage.cluster.image("app:v1"), resources, change)];
    containers.extend(others.iter().cloned());
    start(stage, purpose, 3, json!({"spec": {"template": {"spec": {"containers": containers}}}})).await
}

/// Gives the first container other amounts.
async fn resize(demo: &Demo, resources: Value) {
    let mut template = demo.template().await;
    template["spec"]["containers"][0]["resources"] = resources;
    let containers = &template["spec"]["containers"];
    demo.change(json!({"spec": {"template": {"spec": {"containers": containers}}}})).await;
}

/// The amount of cpu that is in force, as the node reports it.
fn cpu_in_force(pod: &Pod) -> Value {
    let pod = serde_json::to_value(pod).unwrap();
    let statuses = pod["status"]["containerStatuses"].as_array().cloned().unwrap_or_default();
    let main = statuses.iter().find(|status| status["name"] == "main").cloned().unwrap_or_default();
    main["resources"]["requests"]["cpu"].clone()
}

/// INPLACE-18: more cpu without a restart. Ready all the time, and yet counted as unavailable while it lasts.
async fn more_cpu_comes_without_a_restart(stage: &mut Stage) -> Outcome {
    let demo = sized(stage, "resize", json!({"requests": {"cpu": "100m"}}), &json!({}), &[]).await?;
    let before = demo.uids().await;
    let film = demo.film().await;
    resize(&demo, json!({"requests": {"cpu": "200m"}})).await;
    demo.rolled_out().await;
    assert_eq!(demo.uids().await, before);
    for pod in demo.pods().await {
        assert_eq!(cpu_in_force(&pod), "200m");
        assert_eq!(restarts(&pod, "main"), 0);
        assert_eq!(state(&pod)["updateResources"], true);
        assert_eq!(lifecycle(&pod), "Normal");
    }
    assert_eq!(film.order(|pod| lifecycle(pod) == "Updating").len(), 3);
    for frame in film.frames() {
        assert!(frame.active().all(is_ready));
        // One may be unavailable, so one at a time is being changed.
        assert!(frame.active().filter(|pod| lifecycle(pod) != "Normal").count() <= 1);
    }
    Ok(())
}
managed!(more_cpu_comes_without_a_restart, super::RESIZE);

/// INPLACE-19: a container that wants to be restarted for it is, and its pod is not ready meanwhile.
async fn more_cpu_restarts_a_container_that_asks_for_it(stage: &mut Stage) -> Outcome {
    let policy = json!({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]});
    let demo = sized(stage, "resize-restart", json!({"requests": {"cpu": "100m"}}), &policy, &[]).await?;
    let before = demo.uids().await;
    let film = demo.film().await;
    resize(&demo, json!({"requests": {"cpu": "200m"}})).await;
    demo.rolled_out().await;
    assert_eq!(demo.uids().await, before);
    for pod in demo.pods().await {
        assert_eq!(cpu_in_force(&pod), "200m");
        assert_eq!(restarts(&pod, "main"), 1);
    }
    // Not ready before the amounts change, each of them.
    let changed = |pod: &Pod| {
        let cpu =
            serde_json::to_value(pod).unwrap()["spec"]["containers"][0]["resources"]["requests"].clone();
        cpu["cpu"] == "200m"
    };
    assert_eq!(film.order(|pod| is_false(pod, "Ready") && !changed(pod)).len(), 3);
    assert!(film.fewest_ready() >= 2, "{}", film.fewest_ready());
    Ok(())
}
managed!(more_cpu_restarts_a_container_that_asks_for_it, super::RESIZE);

/// INPLACE-20: another class of service needs new pods.
async fn another_class_of_service_needs_new_pods(stage: &mut Stage) -> Outcome {
    let all = json!({"cpu": "100m", "memory": "32Mi"});
    let guaranteed = json!({"requests": all, "limits": all});
    let demo = sized(stage, "resize-class", guaranteed, &json!({}), &[]).await?;
    let before = demo.uids().await;
    let burstable = json!({"requests": all, "limits": {"cpu": "200m", "memory": "32Mi"}});
    resize(&demo, burstable).await;
    demo.rolled_out().await;
    let after = demo.uids().await;
    assert!(before.values().all(|uid| !after.values().any(|other| other == uid)), "{before:?} {after:?}");
    Ok(())
}
managed!(another_class_of_service_needs_new_pods, super::RESIZE);

/// INPLACE-21: a second container without any amounts does not hold it up.
async fn a_container_without_amounts_does_not_hold_up_a_resize(stage: &mut Stage) -> Outcome {
    let env = json!([{"name": "PORT", "value": "8081"}]);
    let plain = json!({"name": "plain", "image": stage.cluster.image("app:v1"), "env": env});
    let demo =
        sized(stage, "resize-plain", json!({"requests": {"cpu": "100m"}}), &json!({}), &[plain]).await?;
    let before = demo.uids().await;
    resize(&demo, json!({"requests": {"cpu": "200m"}})).await;
    demo.rolled_out().await;
    assert_eq!(demo.uids().await, before);
    for pod in demo.pods().await {
        assert_eq!(cpu_in_force(&pod), "200m");
        assert_eq!([restarts(&pod, "main"), restarts(&pod, "plain")], [0, 0]);
        assert_eq!(lifecycle(&pod), "Normal");
    }
    Ok(())
}
managed!(a_container_without_amounts_does_not_hold_up_a_resize, super::RESIZE);

/// INPLACE-22: without the gate other amounts need new pods.
async fn without_the_gate_other_amounts_need_new_pods(stage: &mut Stage) -> Outcome {
    let demo = unchecked(stage, "no-resize", json!({"requests": {"cpu": "100m"}}), &json!({}), &[]).await?;
    let before = demo.uids().await;
    resize(&demo, json!({"requests": {"cpu": "200m"}})).await;
    demo.rolled_out().await;
    let after = demo.uids().await;
    assert!(before.values().all(|uid| !after.values().any(|other| other == uid)), "{before:?} {after:?}");
    Ok(())
}
managed!(without_the_gate_other_amounts_need_new_pods, []);

//! Objects that were stored before a rule, or past it, and what follows from them.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use kruise_api::{imagepulljob::v1beta1::ImagePullJob, nodepodprobe::v1alpha1::NodePodProbe};
use kruise_testkit::{Outcome, Sandbox, wait::seen};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::stage::{Stage, embedded_only};

/// How many writes of a controller were refused.
async fn refused(stage: &Stage, controller: &str) -> usize {
    let metrics = stage.metrics().await;
    let lines = metrics.lines().filter(|line| {
        line.starts_with("kruise_effects_total")
            && line.contains(&format!("controller=\"{controller}\""))
            && line.contains("result=\"refused\"")
    });
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
}

/// The messages of the events of a reason.
async fn told(sandbox: &Sandbox, reason: &str) -> Vec<String> {
    let events: Vec<Event> = sandbox.list().await;
    let own = events.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
    own.map(|event| format!("{} {}", event.count.unwrap_or(1), event.message.unwrap_or_default())).collect()
}

/// Our own webhook refuses the children of such a list.
async fn a_stored_list_that_is_invalid_is_not_tried_for_ever(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("stored").await;
    stage.remove_webhooks().await;
    let list = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImageListPullJob",
        "metadata": {"name": "odd", "namespace": sandbox.namespace()},
        "spec": {"images": ["app:v1"], "parallelism": "10%", "completionPolicy": {"type": "Always"}},
    });
    stage.sim().advance(Duration::from_secs(5)).await;
    stage.kill_manager();
    stage.create(list.clone()).await.unwrap();
    stage.put_webhooks().await;
    stage.sim().advance(Duration::from_secs(5)).await;
    stage.start_manager().await;
    stage.sim().advance(Duration::from_secs(3600)).await;
    // Once when it is found, and once when its own status has been written.
    let problem = "2 parallelism does not support percentage value";
    assert_eq!(told(&sandbox, "Invalid").await, [problem]);
    let tries = refused(stage, "imagelistpulljob-controller").await;
    stage.sim().advance(Duration::from_secs(3 * 3600)).await;
    assert_eq!(refused(stage, "imagelistpulljob-controller").await, tries);
    stage.patch(&list, &json!({"spec": {"parallelism": 2}})).await.unwrap();
    sandbox
        .eventually("the list goes on once it is changed", async || {
            let jobs: Vec<ImagePullJob> = sandbox.list().await;
            seen(jobs.len() == 1, format!("{} jobs", jobs.len()))
        })
        .await;
    Ok(())
}
// Only there an object gets past the webhooks.
embedded_only!(
    a_stored_list_that_is_invalid_is_not_tried_for_ever,
    ["--feature-gates=ImagePullJobGate=true"]
);

/// Whoever may write the status of a pod may write that.
async fn a_pod_with_an_impossible_address_keeps_no_other_pod_from_being_probed(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("address").await;
    stage.sim().advance(Duration::from_secs(120)).await;
    // Its kubelet would write the address anew.
    stage.sim().stop_node("hollow-0");
    for (name, ip) in [("odd", "::::"), ("fine", "10.1.2.3")] {
        let _: Pod = sandbox
            .create(json!({"metadata": {"name": name, "labels": {"app": "web"}},
                "spec": {"nodeName": "hollow-0", "containers": [{"name": "app", "image": "app:v1"}]}}))
            .await;
        let status = json!({"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
            "conditions": [{"type": "Initialized", "status": "True"}, {"type": "PodScheduled", "status": "True"}]}});
        let pods: Api<Pod> = Api::namespaced(stage.cluster.client(), sandbox.namespace());
        pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }
    let probe = json!({"name": "ok", "containerName": "app", "podConditionType": "game.io/ok",
        "probe": {"exec": {"command": ["true"]}}});
    let marker = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker",
        "metadata": {"name": "ppm", "namespace": sandbox.namespace()},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "probes": [probe]},
    });
    stage.create(marker).await.unwrap();
    let lists: Api<NodePodProbe> = Api::all(stage.cluster.client());
    sandbox
        .eventually("the other pod is listed", async || {
            let list = lists.get("hollow-0").await.unwrap();
            let names: Vec<String> = list.spec.pod_probes.into_iter().map(|entry| entry.name).collect();
            seen(names == ["fine"], format!("{names:?}"))
        })
        .await;
    stage.sim().advance(Duration::from_secs(20)).await;
    assert_eq!(refused(stage, "NodePodProbe-controller").await, 0);
    let said = told(&sandbox, "ProbesLeftOut").await;
    assert_eq!(said, ["1 status.podIP \"::::\" is not an address of a pod, so nobody probes it"]);
    Ok(())
}
embedded_only!(a_pod_with_an_impossible_address_keeps_no_other_pod_from_being_probed, [""; 0]);

//! What our own workloads do to their pods under a budget: they ask before the first write that makes a pod not ready.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_api::{
    cloneset::v1beta1::CloneSet, daemonset::v1beta1::DaemonSet, statefulset::v1beta1::StatefulSet,
};
use kruise_testkit::{
    Outcome,
    sandbox::{Kind, Sandbox},
    wait::seen,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    scene::{NO_FLAGS, Scene, UPDATES, image, is_ready, merged},
    stage::{Stage, managed},
};

/// A workload `web` with pods `app: web` that are changed in place.
fn object(scene: &Scene, kind: &str, spec: &Value) -> Value {
    let gates = json!([{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}]);
    let template = merged(scene.template(), &json!({"spec": {"readinessGates": gates}}));
    let set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    });
    merged(set, &json!({"spec": spec}))
}

fn stateful(replicas: usize, policy: &str) -> Value {
    json!({"replicas": replicas, "serviceName": "web", "podManagementPolicy": "Parallel",
        "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": policy, "maxUnavailable": "100%"}}})
}

fn daemon() -> Value {
    json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
        "rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": "100%"}}})
}

/// A budget of one pod for a workload `web`.
fn one_of(kind: &str, pods: usize) -> Value {
    json!({"targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "name": "web"},
        "protectTotalReplicas": pods, "maxUnavailable": 1})
}

fn containers(scene: &Scene, image: &str) -> Value {
    let mut containers = scene.pod_spec()["containers"].clone();
    containers[0]["image"] = scene.cluster.image(image).into();
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

/// Waits for the end of an update. At no look more pods are out of service than the budget allows.
async fn until_updated(scene: &Scene, pods: usize, image_name: &str) {
    let new = scene.cluster.image(image_name);
    let look = async || {
        let found = scene.pods().await;
        let ready = found.iter().filter(|pod| is_ready(pod)).count();
        assert!(ready + 1 >= pods, "{ready} of {pods} pods are ready");
        let done = found.iter().filter(|pod| image(pod) == new && is_ready(pod)).count();
        seen(done == pods, format!("{done} of {pods} pods are updated"))
    };
    scene.sandbox.eventually("the update ends", look).await;
}

/// Reason and message of the condition `Waiting` of a workload `web`.
async fn waiting<T: Kind + serde::Serialize>(sandbox: &Sandbox) -> (String, String) {
    let set = serde_json::to_value(sandbox.get::<T>("web").await).unwrap();
    let conditions = set["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|one| one["type"] == "Waiting").cloned().unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

/// Makes a scenario of an update in place for one kind of workload, and one of its condition (WAITING-10).
macro_rules! updates {
    ($takes:ident, $waits:ident, $type:ty, $kind:literal, $pods:literal, $spec:expr) => {
        async fn $takes(stage: &mut Stage) -> Outcome {
            let scene = Scene::prepare(stage, "own").await;
            let _: $type = scene.sandbox.create(object(&scene, $kind, &$spec)).await;
            scene.ready($pods).await;
            scene.create_budget("web", one_of($kind, $pods)).await;
            scene.until_numbers("web", [1, $pods, $pods - 1, $pods]).await;
            scene.sandbox.merge::<$type>("web", containers(&scene, "app:v2")).await;
            until_updated(&scene, $pods, "app:v2").await;
            Ok(())
        }
        managed!($takes, super::UPDATES);

        /// WAITING-10: the condition names budget and numbers; the update begins as soon as the budget allows.
        async fn $waits(stage: &mut Stage) -> Outcome {
            let scene = Scene::prepare(stage, "waits").await;
            let _: $type = scene.sandbox.create(object(&scene, $kind, &$spec)).await;
            scene.ready($pods).await;
            scene.create_budget("web", merged(one_of($kind, $pods), &json!({"maxUnavailable": 0}))).await;
            scene.sandbox.merge::<$type>("web", containers(&scene, "app:v2")).await;
            let look = async || {
                let (reason, message) = waiting::<$type>(&scene.sandbox).await;
                let numbers = concat!("it allows 0 more unavailable pods now, ", $pods, " of ", $pods, " are available and ", $pods, " must be");
                let is_told = message.contains(" for PodUnavailableBudget web (") && message.contains(numbers);
                seen(reason == "BudgetRefuses" && is_told, format!("{reason}: {message}"))
            };
            scene.sandbox.eventually("the set says what it waits for", look).await;
            tokio::time::sleep(Duration::from_secs(120)).await;
            assert_eq!(scene.serving().await.len(), $pods);
            scene.change_budget("web", json!({"spec": {"maxUnavailable": 1}})).await.unwrap();
            let began = Instant::now();
            let new = scene.cluster.image("app:v2");
            let look = async || {
                let pods = scene.sandbox.list::<Pod>().await;
                let begun = pods.iter().any(|pod| image(pod) == new || pod.metadata.deletion_timestamp.is_some());
                seen(begun, "nothing is updated")
            };
            scene.sandbox.eventually("the update begins", look).await;
            assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
            until_updated(&scene, $pods, "app:v2").await;
            let look = async || {
                let (reason, message) = waiting::<$type>(&scene.sandbox).await;
                seen(reason == "NotWaiting", format!("{reason}: {message}"))
            };
            scene.sandbox.eventually("the wait ends", look).await;
            Ok(())
        }
        managed!($waits, super::UPDATES);
    };
}

updates!(
    a_stateful_set_in_place_takes_no_more_than_the_budget,
    a_stateful_set_in_place_says_which_budget_it_waits_for,
    StatefulSet,
    "StatefulSet",
    5,
    stateful(5, "InPlaceIfPossible")
);
updates!(
    a_stateful_set_takes_no_more_than_the_budget,
    a_stateful_set_says_which_budget_it_waits_for,
    StatefulSet,
    "StatefulSet",
    3,
    stateful(3, "ReCreate")
);
updates!(
    a_daemon_set_in_place_takes_no_more_than_the_budget,
    a_daemon_set_in_place_says_which_budget_it_waits_for,
    DaemonSet,
    "DaemonSet",
    3,
    daemon()
);

const HOOK: &str = "kruise-rs.io/hook";

/// A CloneSet whose hook makes pods not ready.
async fn hooked(stage: &Stage, hook: &str) -> Scene {
    let scene = Scene::prepare(stage, "hook").await;
    let spec = json!({"replicas": 4,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
            "podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"}},
        "lifecycle": {hook: {"labelsHandler": {HOOK: "yes"}, "markPodNotReady": true}},
        "template": {"metadata": {"labels": {HOOK: "yes"}}}});
    let _: CloneSet = scene.sandbox.create(object(&scene, "CloneSet", &spec)).await;
    scene.ready(4).await;
    scene.create_budget("web", one_of("CloneSet", 4)).await;
    scene.until_numbers("web", [1, 4, 3, 4]).await;
    scene
}

/// At every look of a minute, exactly one pod is out of service.
async fn one_is_held(scene: &Scene) {
    let look = async || {
        let ready = scene.serving().await.len();
        seen(ready == 3, format!("{ready} pods are ready"))
    };
    scene.sandbox.eventually("one pod is made not ready", look).await;
    scene.sandbox.always("no other is", Duration::from_secs(60), look).await;
}

/// A hook before updates makes pods not ready: it is a disruption like any other.
async fn pods_are_made_not_ready_for_an_update_only_within_the_budget(stage: &mut Stage) -> Outcome {
    let scene = hooked(stage, "inPlaceUpdate").await;
    scene.change_set(containers(&scene, "app:v2")).await;
    one_is_held(&scene).await;
    // Whoever handles the hook lets each pod go once it is out of service, and takes it back after the update.
    let (new, look) = (scene.cluster.image("app:v2"), Duration::from_secs(2));
    for _ in 0..60 {
        for pod in scene.pods().await {
            let labels = pod.metadata.labels.clone().unwrap_or_default();
            let state = labels.get("lifecycle.apps.kruise.io/state").map(String::as_str);
            let label = match state {
                Some("PreparingUpdate") if labels.contains_key(HOOK) => json!(null),
                Some("Updated") => json!("yes"),
                _ => continue,
            };
            let change = json!({"metadata": {"labels": {HOOK: label}}});
            scene.patch_pod(&crate::scene::name(&pod), change).await.unwrap();
        }
        let ready = scene.serving().await.len();
        assert!(ready >= 3, "{ready} pods are ready");
        tokio::time::sleep(look).await;
    }
    let pods = scene.pods().await;
    assert!(pods.iter().all(|pod| image(pod) == new && is_ready(pod)), "{pods:?}");
    Ok(())
}
managed!(pods_are_made_not_ready_for_an_update_only_within_the_budget, super::UPDATES);

/// A hook before deletions, with the gates as they are by default.
async fn pods_are_made_not_ready_for_their_deletion_only_within_the_budget(stage: &mut Stage) -> Outcome {
    let scene = hooked(stage, "preDelete").await;
    let pods = scene.serving().await;
    let listed = json!({"spec": {"scaleStrategy": {"podsToDelete": &pods[..2]}}});
    scene.change_set(listed).await;
    one_is_held(&scene).await;
    let held = scene.pods().await;
    let held = held.iter().find(|pod| !is_ready(pod)).map(crate::scene::name).unwrap();
    let look = async || {
        let (reason, message) = waiting::<CloneSet>(&scene.sandbox).await;
        seen(reason == "BudgetRefuses", format!("{reason}: {message}"))
    };
    scene.sandbox.eventually("the set says what it waits for", look).await;
    assert_eq!(scene.events(&format!("Pod/{held}"), "NotDeleted").await, 0, "nobody has failed to delete it");
    scene.patch_pod(&held, json!({"metadata": {"labels": {HOOK: null}}})).await.unwrap();
    let other = if held == pods[0] { &pods[1] } else { &pods[0] };
    let look = async || {
        let ready = scene.serving().await;
        assert!(ready.len() >= 3, "{ready:?}");
        seen(!ready.contains(other), "the other pod is ready")
    };
    scene.sandbox.eventually("the next pod is made not ready", look).await;
    Ok(())
}
managed!(pods_are_made_not_ready_for_their_deletion_only_within_the_budget, super::NO_FLAGS);

//! EphemeralJobs beside other work on the same pods.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kruise_api::ephemeraljob::v1alpha1::EphemeralJob;
use kruise_testkit::{
    Outcome,
    pod::{is_ready, summary},
    wait::Look,
};
use serde_json::json;

use crate::{
    node::on_a_node,
    stage::Stage,
    words::{Room, states, status},
};

/// The id of the injected container, once it runs.
fn injected(pod: &Pod) -> Option<String> {
    let all = pod.status.as_ref()?.ephemeral_container_statuses.as_ref()?;
    let is_running = |one: &&ContainerStatus| one.state.as_ref().is_some_and(|state| state.running.is_some());
    all.iter().find(is_running)?.container_id.clone()
}

/// EJ-11: an injected container disturbs no other, and neither an update in place nor a request to recreate disturbs it.
async fn an_injected_container_and_the_others_leave_each_other_alone(stage: &mut Stage) -> Outcome {
    stage.cluster.require_kind("v1", "pods/ephemeralcontainers", "Pod").await?;
    let room = Room::prepare(stage, "injected").await?;
    let set = room.set(&json!({}), room.two(&json!({}), &json!({})));
    stage.create(set.clone()).await.unwrap();
    let first = async || {
        let pods: Vec<Pod> = room.sandbox.list().await;
        match pods.into_iter().find(is_ready) {
            Some(pod) => Look::Yes(pod),
            None => Look::No("no pod is ready".to_owned()),
        }
    };
    let before = room.sandbox.eventually("the pod of the set is ready", first).await;
    let name = before.metadata.name.clone().unwrap();
    let id = |pod: &Pod, container: &str| status(pod, container).container_id.clone();

    let debug = json!({
        "name": "debug", "image": room.image, "imagePullPolicy": "IfNotPresent", "terminationMessagePolicy": "File",
        "command": ["sh", "-c", "sleep 100000"],
    });
    let spec =
        json!({"selector": {"matchLabels": {"app": "set"}}, "template": {"ephemeralContainers": [debug]}});
    let _: EphemeralJob = room.sandbox.create(json!({"metadata": {"name": "look"}, "spec": spec})).await;
    let served = room.until(&name, "the container is injected", |pod| injected(pod).is_some()).await;
    assert_eq!(
        ["app", "sidecar"].map(|one| id(&served, one)),
        ["app", "sidecar"].map(|one| id(&before, one))
    );

    let newer = room.two(&json!({"image": stage.cluster.image("app:v2")}), &json!({}));
    stage.patch(&set, &json!({"spec": {"template": {"spec": {"containers": newer}}}})).await.unwrap();
    let is_new =
        |pod: &Pod| is_ready(pod) && id(pod, "app").is_some() && id(pod, "app") != id(&before, "app");
    let updated = room.until(&name, "the pod is updated", is_new).await;
    assert_eq!(updated.metadata.uid, before.metadata.uid, "{}", summary(&updated));
    assert_eq!(id(&updated, "sidecar"), id(&before, "sidecar"));
    assert_eq!(injected(&updated), injected(&served));

    room.ask("again", &name, &["sidecar"], &json!({})).await;
    assert_eq!(states(&room.ended("again").await), ["sidecar Succeeded killed"]);
    let is_new = |pod: &Pod| id(pod, "sidecar").is_some() && id(pod, "sidecar") != id(&before, "sidecar");
    let recreated = room.until(&name, "the sidecar is a new one", is_new).await;
    assert_eq!(id(&recreated, "app"), id(&updated, "app"));
    assert_eq!(injected(&recreated), injected(&served));
    Ok(())
}
on_a_node!(an_injected_container_and_the_others_leave_each_other_alone);

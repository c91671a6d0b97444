//! Requests that end early say why.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_testkit::{Outcome, pod::container};
use serde_json::{Value, json};

use crate::{
    node::on_a_node,
    stage::Stage,
    words::{Room, made_at, message, states, status},
};

fn hook(seconds: &str) -> Value {
    json!({"lifecycle": {"preStop": {"exec": {"command": ["sleep", seconds]}}}})
}

/// CRR-8: a request ends at its deadline. What was begun by then is carried out, and nothing else is begun.
async fn a_request_ends_at_its_deadline(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "deadline").await?;
    room.pod("web", room.two(&hook("8"), &json!({})), json!({})).await;
    let made = room.ask("again", "web", &["app", "sidecar"], &json!({"activeDeadlineSeconds": 3})).await;
    let done = room.ended("again").await;
    assert_eq!(message(&done), "recreating has exceeded the activeDeadlineSeconds");
    assert_eq!(states(&done), ["app Pending", "sidecar Pending"]);
    let completed = done.status.as_ref().unwrap().completion_time.as_ref().unwrap().0;
    let after = completed.duration_since(made_at(&made)).as_secs();
    assert!((3..=5).contains(&after), "{after} s");
    room.until_request("again", "the container is stopped nevertheless", |request| {
        states(request) == ["app Recreating killed", "sidecar Pending"]
    })
    .await;
    let restarted = |pod: &Pod| container(pod, "app").is_some_and(|app| app.restart_count == 1 && app.ready);
    room.until("web", "the container is back", restarted).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let pod: Pod = room.sandbox.get("web").await;
    assert_eq!(status(&pod, "sidecar").restart_count, 0);
    Ok(())
}
on_a_node!(a_request_ends_at_its_deadline);

/// CRR-18: the pod goes. CRR-23: the pod ends, because nobody starts its containers again.
async fn a_request_ends_with_its_pod(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "ends").await?;
    tokio::join!(
        room.pod("goes", room.two(&hook("20"), &json!({})), json!({})),
        room.pod("ends", room.two(&json!({}), &json!({})), json!({"restartPolicy": "Never"})),
    );
    room.ask("of-goes", "goes", &["app"], &json!({})).await;
    room.ask("of-ends", "ends", &["app", "sidecar"], &json!({})).await;
    room.until_request("of-goes", "it has begun", |request| !states(request).is_empty()).await;
    room.sandbox.delete::<Pod>("goes").await;
    assert_eq!(message(&room.ended("of-goes").await), "pod has gone");
    assert_eq!(message(&room.ended("of-ends").await), "pod has terminated");
    Ok(())
}
on_a_node!(a_request_ends_with_its_pod);

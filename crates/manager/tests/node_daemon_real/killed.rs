//! The daemon ends in the middle of its work.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_api::nodeimage::v1beta1::{NodeImage, Phase};
use kruise_testkit::{
    Outcome,
    pod::container,
    registry::{Mood, Registry},
    wait::seen,
};
use kube::Api;
use serde_json::json;
use tokio::time::Instant;

use crate::{
    image_pulls::{ended, job, told},
    node::{self, Daemon, on_a_node},
    stage::Stage,
    words::{Room, states, status},
};

/// CRR-22, IMAGES-29: a daemon that is killed while a hook runs, while an image is pulled and right after a stop. The next one
/// finishes everything; no container is stopped twice.
async fn a_killed_daemon_finishes_its_work_later(stage: &mut Stage) -> Outcome {
    let node = node::name(stage).await?;
    let mut daemon = Daemon::start(&node, &stage.kubeconfig()).await;
    let room = Room::new(stage, "killed", None).await;
    let lists: Api<NodeImage> = Api::all(stage.cluster.client());
    let registry = Registry::open().await;
    let hook = json!({"lifecycle": {"preStop": {"exec": {"command": ["sleep", "6"]}}}});
    tokio::join!(
        room.pod("hooked", room.two(&hook, &json!({})), json!({})),
        room.pod("stopped", room.two(&json!({}), &json!({})), json!({})),
    );
    let image = registry.put("app", "v1");
    registry.set(Mood::Slow(Duration::from_secs(8)));
    job(&room.sandbox, "job", &image, &node, &json!({})).await;
    room.sandbox
        .eventually("a layer is on its way", async || {
            seen(registry.layers_asked() > 0, format!("{:?}", registry.asked()))
        })
        .await;
    room.ask("of-hooked", "hooked", &["app"], &json!({})).await;
    room.ask("of-stopped", "stopped", &["app"], &json!({})).await;
    let is_down = |pod: &Pod| {
        let app = container(pod, "app");
        let ended = app.and_then(|app| app.state.as_ref()).is_some_and(|state| state.terminated.is_some());
        ended || app.is_some_and(|app| app.restart_count > 0)
    };
    room.until("stopped", "one container is stopped", is_down).await;
    daemon.kill();
    let pod: Pod = room.sandbox.get("hooked").await;
    assert_eq!(status(&pod, "app").restart_count, 0, "its hook runs");
    assert_eq!(told(&lists, &node, &registry.repository("app"), "v1").await.unwrap().phase, Phase::Pulling);
    tokio::time::sleep(Duration::from_secs(1)).await;
    daemon.come_back().await;
    assert_eq!(states(&room.ended("of-stopped").await), ["app Succeeded killed"]);
    assert_eq!(states(&room.ended("of-hooked").await), ["app Succeeded killed"]);
    assert_eq!(ended(&room.sandbox, "job").await, (1, 0));
    tokio::time::sleep(Duration::from_secs(3)).await;
    for name in ["hooked", "stopped"] {
        let pod: Pod = room.sandbox.get(name).await;
        assert_eq!(status(&pod, "app").restart_count, 1, "{name} was stopped once");
        assert_eq!(status(&pod, "sidecar").restart_count, 0, "{name}");
    }
    room.clear().await;
    Ok(())
}
on_a_node!(a_killed_daemon_finishes_its_work_later, alone);

/// Node daemon 8.1-13: a daemon that is asked to end does so in time, in the middle of a pull, and tells no success.
async fn a_daemon_that_is_asked_to_end_leaves_its_pull(stage: &mut Stage) -> Outcome {
    let node = node::name(stage).await?;
    let mut daemon = Daemon::start(&node, &stage.kubeconfig()).await;
    let room = Room::new(stage, "asked", None).await;
    let lists: Api<NodeImage> = Api::all(stage.cluster.client());
    let registry = Registry::open().await;
    let image = registry.put("app", "v1");
    registry.set(Mood::Slow(Duration::from_secs(30)));
    job(&room.sandbox, "job", &image, &node, &json!({})).await;
    room.sandbox
        .eventually("a layer is on its way", async || {
            seen(registry.layers_asked() > 0, format!("{:?}", registry.asked()))
        })
        .await;
    let began = Instant::now();
    assert!(daemon.asked_to_end().await.success());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let found = told(&lists, &node, &registry.repository("app"), "v1").await;
    assert!(found.is_none_or(|tag| tag.phase != Phase::Succeeded));
    registry.set(Mood::Well);
    daemon.come_back().await;
    assert_eq!(ended(&room.sandbox, "job").await, (1, 0));
    room.clear().await;
    Ok(())
}
on_a_node!(a_daemon_that_is_asked_to_end_leaves_its_pull, alone);

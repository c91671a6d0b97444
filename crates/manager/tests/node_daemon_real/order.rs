//! Several containers of one pod.

use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    node::on_a_node,
    stage::Stage,
    words::{Room, ended_at, states},
};

/// A container that is up only some seconds after its start.
fn slow() -> Value {
    json!({"lifecycle": {"postStart": {"exec": {"command": ["sleep", "5"]}}}})
}

/// CRR-4, CRR-5: without an order containers are stopped one right after the other; in order, the second one is stopped when
/// the first one is back.
async fn containers_go_at_once_or_in_order(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "order").await?;
    tokio::join!(
        room.pod("at-once", room.two(&slow(), &json!({})), json!({})),
        room.pod("ordered", room.two(&slow(), &json!({})), json!({})),
    );
    room.ask("of-at-once", "at-once", &["app", "sidecar"], &json!({})).await;
    room.ask("of-ordered", "ordered", &["app", "sidecar"], &json!({"strategy": {"orderedRecreate": true}}))
        .await;
    for (request, name, between) in [("of-at-once", "at-once", 0..=3), ("of-ordered", "ordered", 5..=30)] {
        let done = room.ended(request).await;
        assert_eq!(states(&done), ["app Succeeded killed", "sidecar Succeeded killed"], "{request}");
        let pod = room.after_stop(name, &["app", "sidecar"]).await;
        let seconds = ended_at(&pod, "sidecar").duration_since(ended_at(&pod, "app")).as_secs();
        assert!(between.contains(&seconds), "{request}: {seconds} s");
    }
    Ok(())
}
on_a_node!(containers_go_at_once_or_in_order);

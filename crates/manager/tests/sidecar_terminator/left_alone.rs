//! Pods for which nothing is done.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_api::env::TERMINATE_SIDECAR;
use kruise_testkit::{Outcome, wait::seen};
use serde_json::json;

use crate::{
    kit::merged,
    stage::{Stage, managed},
    words::{Room, exit_code, named, phase, runs},
};

/// TERMINATOR-2: the feature is off by default.
async fn nothing_is_done_while_the_gate_is_closed(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "closed").await?;
    room.job("Never", &[room.main("main", 2, 0), room.normal("sc")], &json!({})).await;
    room.main_has_ended().await;
    room.nothing_happens(15).await;
    let left = room.pods().await.remove(0);
    assert!(phase(&left) == "Running" && runs(&left, "sc"));
    Ok(())
}
managed!(nothing_is_done_while_the_gate_is_closed, []);

/// TERMINATOR-10: `true` may be written in capitals; what is not `true` marks nothing, so the container is one whose end the
/// pod waits for.
async fn only_true_marks_a_sidecar(stage: &mut Stage) -> Outcome {
    for value in ["TRUE", "True"] {
        let room = Room::prepare(stage, "capitals").await?;
        let sidecar = room.sidecar("sc", "app:v1", &[(TERMINATE_SIDECAR, value)]);
        room.job("Never", &[room.main("main", 2, 0), sidecar], &json!({})).await;
        assert_eq!(named(&room.request().await), ["sc"], "{value}");
    }
    for value in ["1", "yes", ""] {
        let room = Room::prepare(stage, "other").await?;
        let unmarked = room.sidecar("sc", "app:v1", &[(TERMINATE_SIDECAR, value)]);
        // One that is marked shows that the other is waited for.
        room.job("Never", &[room.main("main", 2, 0), unmarked, room.normal("marked")], &json!({})).await;
        room.main_has_ended().await;
        room.nothing_happens(5).await;
        assert!(runs(&room.pods().await.remove(0), "sc"));
    }
    Ok(())
}
managed!(only_true_marks_a_sidecar, crate::words::ON);

/// TERMINATOR-15: a pod that is deleted, or that never ends, is none of our business.
async fn pods_that_go_or_stay_for_ever_are_left_alone(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "deleted").await?;
    let slow = json!({"lifecycle": {"preStop": {"exec": {"command": ["sleep", "10"]}}}});
    let main = json!({"name": "main", "image": room.image("app:v1")});
    let made = room.pod("going", "Never", &[main, merged(room.normal("sc"), &slow)]).await;
    room.until("both run", |pod| runs(pod, "main") && runs(pod, "sc")).await;
    let pods: kube::Api<Pod> = room.sandbox.api();
    let own = made.metadata.name.as_deref().unwrap();
    pods.delete(own, &kube::api::DeleteParams::default().grace_period(30)).await.unwrap();
    let mut sidecar_ran_on = false;
    let look = async || {
        assert_eq!(room.requests().await, []);
        let left = room.pods().await;
        sidecar_ran_on |= left.iter().any(|pod| exit_code(pod, "main").is_some() && runs(pod, "sc"));
        seen(left.is_empty(), format!("{} pods", left.len()))
    };
    room.sandbox.eventually("the pod is gone", look).await;
    // Some kubelets tell of all containers at the end only.
    assert!(sidecar_ran_on || stage.cluster.backend() == kruise_testkit::Backend::Real);
    assert_eq!(room.events().await, []);

    let room = Room::prepare(stage, "always").await?;
    room.pod("staying", "Always", &[room.main("main", 1, 0), room.normal("sc")]).await;
    let restarted =
        |pod: &Pod| kruise_testkit::pod::container(pod, "main").is_some_and(|main| main.restart_count > 0);
    room.until("the main container has started again", restarted).await;
    room.nothing_happens(Duration::from_secs(15).as_secs()).await;
    assert!(runs(&room.pods().await.remove(0), "sc"));
    Ok(())
}
managed!(pods_that_go_or_stay_for_ever_are_left_alone, crate::words::ON);

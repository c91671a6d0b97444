//! What a failed pod means for a BroadcastJob, and what a pause does. Several nodes and commands on them are needed, which
//! only the embedded cluster has.

use std::time::Duration;

use kruise_testkit::{Outcome, wait::seen};
use serde_json::json;

use crate::{
    kit::is_active,
    room::Room,
    stage::{Stage, embedded_only},
};

/// JOBS-17: the first failure ends the job, and is reported once.
async fn the_first_failed_pod_fails_the_job(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-failfast").await;
    room.broadcast(&room.failing_on_first(600), json!({})).await;
    room.until("failed 3/0/0/3").await;
    let look = async || {
        let active = room.pods().await.iter().filter(|pod| is_active(pod)).count();
        seen(active == 0, format!("{active} pods are active"))
    };
    room.within("no pod is active", look).await;
    stage.sim().advance(Duration::from_secs(30)).await;
    assert_eq!(room.events("BroadcastJob", "failed pod is found").await.len(), 1);
    Ok(())
}
embedded_only!(the_first_failed_pod_fails_the_job, []);

/// JOBS-18
async fn a_job_goes_on_after_failures(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-continue").await;
    room.broadcast(&room.failing_on_first(5), json!({"spec": {"failurePolicy": {"type": "Continue"}}})).await;
    room.until("completed 3/0/2/1").await;
    assert_eq!(
        room.condition("Complete").await.unwrap()[2],
        "Job completed, 2 pods succeeded, 1 pods failed"
    );
    Ok(())
}
embedded_only!(a_job_goes_on_after_failures, []);

/// JOBS-19: the job pauses itself once, and goes on when someone lets it (BJ-D1).
async fn a_failed_pod_pauses_the_job(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-pause").await;
    let spec = json!({"spec": {"parallelism": 1, "failurePolicy": {"type": "Pause"}}});
    room.broadcast(&room.failing_on_first(5), spec).await;
    room.until("paused 3/0/0/1").await;
    stage.sim().advance(Duration::from_secs(60)).await;
    assert_eq!(room.job().await["spec"]["paused"], true);
    assert_eq!((room.told().await.as_str(), room.pods().await.len()), ("paused 3/0/0/1", 1));
    assert_eq!(room.events("BroadcastJob", "Paused").await, ["job is paused, due to failed pod"]);
    assert_eq!(room.condition("Waiting").await.unwrap()[..2], ["True", "Paused"]);
    room.change_job(json!({"spec": {"paused": false}})).await;
    room.until("completed 3/0/2/1").await;
    assert_eq!(room.events("BroadcastJob", "Continue").await, ["continue to process job"]);
    assert_eq!(room.events("BroadcastJob", "Paused").await.len(), 1);
    Ok(())
}
embedded_only!(a_failed_pod_pauses_the_job, []);

/// JOBS-20, JOBS-21: a pod that restarts too often has failed (BJ-D3).
async fn pods_that_restart_too_often_have_failed(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-restarts").await;
    let spec = |limit: i32, kind: &str| {
        json!({"spec": {"failurePolicy": {"type": kind, "restartLimit": limit},
            "template": {"spec": {"restartPolicy": "OnFailure"}}}})
    };
    room.broadcast("exit 1", spec(2, "Continue")).await;
    room.until("completed 3/0/0/3").await;
    for pod in room.pods().await {
        let restarts = pod.status.unwrap().container_statuses.unwrap()[0].restart_count;
        assert!(restarts >= 3, "{restarts} restarts");
    }
    room.sandbox.delete::<kruise_api::broadcastjob::v1beta1::BroadcastJob>("job").await;
    stage.sim().advance(Duration::from_secs(10)).await;
    room.broadcast(&room.failing_on_first(600), spec(0, "FailFast")).await;
    room.until("failed 3/0/0/3").await;
    stage.sim().advance(Duration::from_secs(10)).await;
    assert_eq!(room.pods().await.len(), 0, "the one that kept failing is deleted too");
    Ok(())
}
embedded_only!(pods_that_restart_too_often_have_failed, []);

/// JOBS-22: a pause starts nothing, and what runs ends and is counted.
async fn a_paused_job_starts_nothing(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-paused").await;
    room.broadcast("sleep 5", json!({"spec": {"parallelism": 1}})).await;
    room.until("running 3/1/0/0").await;
    room.change_job(json!({"spec": {"paused": true}})).await;
    room.until("paused 3/0/1/0").await;
    stage.sim().advance(Duration::from_secs(30)).await;
    assert_eq!(room.pods().await.len(), 1);
    room.change_job(json!({"spec": {"paused": false}})).await;
    room.until("completed 3/0/3/0").await;
    assert_eq!(room.events("BroadcastJob", "Continue").await.len(), 1);
    Ok(())
}
embedded_only!(a_paused_job_starts_nothing, []);

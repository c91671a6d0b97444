//! Why jobs and schedules make no progress: the condition, the event and the metric.

use std::time::Duration;

use kruise_testkit::Outcome;
use serde_json::json;

use crate::{
    kit::merged,
    room::{Room, name},
    stage::{Stage, embedded_only},
};

/// The reasons that the metric shows for an object.
async fn shown(stage: &Stage, room: &Room, kind: &str, object: &str) -> Vec<String> {
    let namespace = room.sandbox.namespace();
    let begin =
        format!("kruise_waiting{{kind=\"{kind}\",namespace=\"{namespace}\",name=\"{object}\",reason=\"");
    let metrics = stage.metrics().await;
    let found = metrics.lines().filter_map(|line| line.strip_prefix(&begin));
    found.map(|rest| rest.strip_suffix("\"} 1").unwrap().to_owned()).collect()
}

/// WAITING-19: parallelism, then a pause, then the end.
async fn a_job_says_why_it_waits(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-waits").await;
    room.broadcast("sleep 60", json!({"spec": {"parallelism": 1}})).await;
    room.until("running 3/1/0/0").await;
    stage.sim().advance(Duration::from_secs(12)).await;
    let sentence = "1 of at most 1 run at once (parallelism: 1); 2 still to come";
    assert_eq!(room.condition("Waiting").await.unwrap(), ["True", "ParallelismReached", sentence]);
    assert_eq!(shown(stage, &room, "BroadcastJob", "job").await, ["ParallelismReached"]);
    let told = room.events("BroadcastJob", "Waiting").await;
    assert_eq!(told, [format!("ParallelismReached: {sentence}")]);
    room.change_job(json!({"spec": {"paused": true}})).await;
    stage.sim().advance(Duration::from_secs(12)).await;
    let [status, reason, message] = room.condition("Waiting").await.unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Paused"));
    assert!(message.contains("spec.paused: true") && message.contains("2 nodes"), "{message}");
    assert_eq!(shown(stage, &room, "BroadcastJob", "job").await, ["Paused"]);
    assert_eq!(room.events("BroadcastJob", "Waiting").await.len(), 2);
    room.change_job(json!({"spec": {"paused": false}})).await;
    room.until("completed 3/0/3/0").await;
    assert_eq!(room.condition("Waiting").await.unwrap(), ["False", "NotWaiting", ""]);
    let job = room.job().await;
    let holds = job["status"]["conditions"].as_array().unwrap().iter().filter(|one| one["status"] == "True");
    assert_eq!(holds.map(|one| one["type"].as_str().unwrap()).collect::<Vec<_>>(), ["Complete"]);
    assert_eq!(shown(stage, &room, "BroadcastJob", "job").await, Vec::<String>::new());
    Ok(())
}
embedded_only!(a_job_says_why_it_waits, []);

/// WAITING-20: a run that is held back, then a pause. The status of this kind has no conditions.
async fn a_schedule_says_why_it_waits(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "acj-waits").await;
    let forbid = json!({"spec": {"concurrencyPolicy": "Forbid"}});
    room.schedule("*/1 * * * *", merged(room.jobs("sleep 200"), &forbid)).await;
    let now = stage.sim().clock().now().as_second();
    let until_next = u64::try_from(60 - now.rem_euclid(60)).unwrap();
    stage.sim().advance(Duration::from_secs(until_next + 2)).await;
    let made = room.made().await;
    assert_eq!(made.len(), 1);
    assert_eq!(shown(stage, &room, "AdvancedCronJob", "tick").await, Vec::<String>::new());
    stage.sim().advance(Duration::from_secs(60)).await;
    assert_eq!(shown(stage, &room, "AdvancedCronJob", "tick").await, ["ConcurrencyForbids"]);
    assert_eq!(room.events("AdvancedCronJob", "Waiting").await.len(), 0, "it has lasted for two seconds");
    stage.sim().advance(Duration::from_secs(10)).await;
    let told = room.events("AdvancedCronJob", "Waiting").await;
    let begin = format!(
        "ConcurrencyForbids: Job {} still runs (concurrencyPolicy: Forbid); the run of ",
        name(&made[0])
    );
    assert!(
        told.len() == 1 && told[0].starts_with(&begin) && told[0].ends_with(" starts when it ends"),
        "{told:?}"
    );
    room.change_tick(json!({"spec": {"paused": true}})).await;
    stage.sim().advance(Duration::from_secs(12)).await;
    assert_eq!(shown(stage, &room, "AdvancedCronJob", "tick").await, ["ScheduleSuspended"]);
    let told = room.events("AdvancedCronJob", "Waiting").await;
    assert!(
        told.iter().any(|one| one.starts_with("ScheduleSuspended: spec.paused is true since the run of ")),
        "{told:?}"
    );
    let status = room.tick().await["status"].clone();
    let fields: Vec<&str> = status.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, ["active", "lastScheduleTime", "type"]);
    room.change_tick(json!({"spec": {"paused": false}})).await;
    stage.sim().advance(Duration::from_secs(150)).await;
    assert_eq!(room.made().await.len(), 2);
    room.sandbox.delete::<kruise_api::advancedcronjob::v1beta1::AdvancedCronJob>("tick").await;
    stage.sim().advance(Duration::from_secs(5)).await;
    assert_eq!(shown(stage, &room, "AdvancedCronJob", "tick").await, Vec::<String>::new());
    Ok(())
}
embedded_only!(a_schedule_says_why_it_waits, []);

/// A quota that is full and a name that is taken hold runs back, and both are reported.
async fn a_run_that_is_refused_says_why(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "acj-refused").await;
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/jobs.batch": "0"}}});
    let _: k8s_openapi::api::core::v1::ResourceQuota = room.sandbox.create(quota).await;
    stage.sim().advance(Duration::from_secs(5)).await;
    room.schedule("*/1 * * * *", room.jobs("exit 0")).await;
    stage.sim().advance(Duration::from_secs(100)).await;
    assert_eq!(shown(stage, &room, "AdvancedCronJob", "tick").await, ["QuotaExceeded"]);
    let told = room.events("AdvancedCronJob", "Waiting").await;
    assert!(told.iter().any(|one| one.contains("quota q is used up")), "{told:?}");
    room.sandbox.delete::<k8s_openapi::api::core::v1::ResourceQuota>("q").await;
    stage.sim().advance(Duration::from_secs(65)).await;
    assert_eq!(shown(stage, &room, "AdvancedCronJob", "tick").await, Vec::<String>::new());
    assert!(!room.made().await.is_empty());
    Ok(())
}
embedded_only!(a_run_that_is_refused_says_why, []);

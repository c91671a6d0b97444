//! AdvancedCronJobs: what is started when. Minutes pass in virtual time; real clusters play the first scenario only.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kruise_api::{
    advancedcronjob::v1beta1::AdvancedCronJob, broadcastjob::v1beta1::BroadcastJob,
    imagelistpulljob::v1beta1::ImageListPullJob,
};
use kruise_testkit::{Outcome, wait::seen};
use serde_json::{Value, json};

use crate::{
    kit::merged,
    room::{Room, due, name},
    stage::{Stage, embedded_only, managed},
};

const MINUTE: Duration = Duration::from_secs(60);
const EVERY_MINUTE: &str = "*/1 * * * *";

fn spec(change: Value) -> Value {
    json!({"spec": change})
}

/// Moves on to so many seconds after the next full minute.
async fn at_second(stage: &Stage, second: i64) {
    let now = stage.sim().clock().now().as_second();
    let wait = 60 - now.rem_euclid(60) + second;
    stage.sim().advance(Duration::from_secs(u64::try_from(wait).unwrap())).await;
}

fn active(tick: &Value) -> usize {
    tick["status"]["active"].as_array().map_or(0, Vec::len)
}

/// JOBS-33, JOBS-55: each run has the name and the annotation of its time, and what the template says.
async fn a_job_is_started_at_each_full_minute(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "acj-job").await;
    let metadata =
        json!({"name": "x", "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["f.io/x"]});
    let jobs = merged(
        room.jobs("echo hello"),
        &json!({"spec": {"template": {"jobTemplate": {"metadata": metadata}}}}),
    );
    room.schedule(EVERY_MINUTE, jobs).await;
    let made = room
        .within("the first job is complete", async || {
            let made = room.made().await;
            let is_done = made.iter().any(|job| job["status"]["succeeded"] == 1);
            if is_done {
                kruise_testkit::wait::Look::Yes(made)
            } else {
                kruise_testkit::wait::Look::No(format!("{made:?}"))
            }
        })
        .await;
    let job = &made[0];
    assert_eq!(name(job), format!("tick-{}", due(job)));
    assert_eq!(due(job) % 60, 0);
    assert_eq!(
        (&job["metadata"]["labels"]["a"], &job["metadata"]["annotations"]["c"]),
        (&json!("b"), &json!("d"))
    );
    assert!(job["metadata"]["finalizers"].is_null());
    let tick = room.tick().await;
    let owner = &job["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["uid"], &owner["controller"]), (&tick["metadata"]["uid"], &json!(true)));
    assert_eq!(tick["status"]["type"], "Job");
    assert!(tick["status"]["lastScheduleTime"].is_string());
    let told = room.events("AdvancedCronJob", "SuccessfulCreate").await;
    assert!(told.contains(&format!("Created Job {}", name(job))), "{told:?}");
    Ok(())
}
managed!(a_job_is_started_at_each_full_minute, []);

/// JOBS-34, JOBS-43 (ACJ-D2): BroadcastJobs that delete themselves, 150 times.
async fn broadcast_jobs_are_started_for_hours(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "acj-bcj").await;
    let job = json!({"template": room.template("sleep 2"),
        "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 5}});
    room.schedule(EVERY_MINUTE, spec(json!({"template": {"broadcastJobTemplate": {"spec": job}}}))).await;
    at_second(stage, 1).await;
    let made = room.made_broadcasts().await;
    assert_eq!(made.len(), 1);
    stage.sim().advance(Duration::from_secs(1)).await;
    assert_eq!(room.pods().await.len(), 3);
    assert_eq!(room.tick().await["status"]["type"], "BroadcastJob");
    stage.sim().advance(150 * MINUTE).await;
    let last = room.made_broadcasts().await;
    assert_eq!(last.len(), 1, "the others have deleted themselves");
    assert_eq!(due(&last[0]) - due(&made[0]), 150 * 60);
    assert_eq!(room.events("AdvancedCronJob", "TooManyMissedTimes").await.len(), 0);
    Ok(())
}
embedded_only!(broadcast_jobs_are_started_for_hours, []);

/// JOBS-35, JOBS-54, JOBS-57: lists of images, which may change between runs.
async fn image_lists_are_started(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "acj-images").await;
    let list = |image: &str| {
        spec(
            json!({"template": {"imageListPullJobTemplate": {"spec": {"images": [image], "completionPolicy": {}}}},
            "failedJobsHistoryLimit": 0}),
        )
    };
    room.schedule(EVERY_MINUTE, list("127.0.0.1:9/a:1")).await;
    assert_eq!(room.tick().await["spec"]["concurrencyPolicy"], "Replace");
    at_second(stage, 2).await;
    let first = room.made_lists().await;
    assert_eq!((first.len(), room.tick().await["status"]["type"].as_str()), (1, Some("ImageListPullJob")));
    room.change_tick(list("127.0.0.1:9/b:1")).await;
    stage.sim().advance(MINUTE).await;
    let second = room.made_lists().await;
    assert_eq!(second.len(), 1, "the one that still ran was replaced");
    assert_eq!(second[0]["spec"]["images"], json!(["127.0.0.1:9/b:1"]));
    // A list that could not pull everything has failed.
    let ended = json!({"status": {"desired": 1, "succeeded": 0, "completed": 1, "completionTime": "2026-01-01T00:00:00Z"}});
    let api: kube::Api<ImageListPullJob> = room.sandbox.api();
    api.patch_status(name(&second[0]), &kube::api::PatchParams::default(), &kube::api::Patch::Merge(ended))
        .await
        .unwrap();
    stage.sim().advance(Duration::from_secs(3)).await;
    assert_eq!(room.made_lists().await.len(), 0);
    Ok(())
}
embedded_only!(image_lists_are_started, ["--feature-gates=ImagePullJobGate=true"]);

/// JOBS-36, JOBS-37: a paused schedule starts nothing, and the latest missed run once it goes on, unless it is too late.
async fn a_paused_schedule_catches_up_once(stage: &mut Stage) -> Outcome {
    for (deadline, caught_up) in [(None, 1), (Some(20), 0)] {
        let room = Room::prepare(stage, &format!("acj-paused-{caught_up}")).await;
        let jobs =
            merged(room.jobs("exit 0"), &spec(json!({"paused": true, "startingDeadlineSeconds": deadline})));
        at_second(stage, 50).await;
        room.schedule(EVERY_MINUTE, jobs).await;
        stage.sim().advance(2 * MINUTE + Duration::from_secs(50)).await;
        assert_eq!(room.made().await.len(), 0);
        room.change_tick(spec(json!({"paused": false}))).await;
        stage.sim().advance(Duration::from_secs(2)).await;
        assert_eq!(room.made().await.len(), caught_up);
        assert_eq!(room.events("AdvancedCronJob", "MissSchedule").await.len(), 1 - caught_up);
        at_second(stage, 2).await;
        assert_eq!(room.made().await.len(), caught_up + 1);
        room.sandbox.delete::<AdvancedCronJob>("tick").await;
    }
    Ok(())
}
embedded_only!(a_paused_schedule_catches_up_once, []);

/// JOBS-38
async fn runs_may_overlap(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "acj-allow").await;
    room.schedule(EVERY_MINUTE, room.jobs("sleep 185")).await;
    at_second(stage, 2).await;
    stage.sim().advance(2 * MINUTE).await;
    assert_eq!((room.made().await.len(), active(&room.tick().await)), (3, 3));
    Ok(())
}
embedded_only!(runs_may_overlap, []);

/// JOBS-39, JOBS-56: with Forbid a run waits for the one before, and starts as soon as that ends (ACJ-D3).
async fn a_run_waits_for_the_one_before(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "acj-forbid").await;
    room.schedule(
        EVERY_MINUTE,
        merged(room.jobs("sleep 150; exit 1"), &spec(json!({"concurrencyPolicy": "Forbid"}))),
    )
    .await;
    at_second(stage, 2).await;
    stage.sim().advance(2 * MINUTE).await;
    let made = room.made().await;
    assert_eq!((made.len(), active(&room.tick().await)), (1, 1));
    let told = room.events("AdvancedCronJob", "JobAlreadyActive").await;
    assert_eq!(
        told,
        ["Not starting Job because prior execution is running and concurrency policy is Forbid"]
    );
    // It ends 152 seconds or so after its minute, and within five seconds the run after it starts.
    let mut after = made;
    for _ in 0..60 {
        stage.sim().advance(Duration::from_secs(1)).await;
        after = room.made().await;
        let conditions = after[0]["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if conditions.iter().any(|one| one["type"] == "Failed" && one["status"] == "True") {
            break;
        }
    }
    let is_listed = |tick: &Value| tick["status"]["active"].to_string().contains(name(&after[0]));
    assert!(after[0]["status"]["conditions"].to_string().contains("Failed"), "{after:?}");
    stage.sim().advance(Duration::from_secs(5)).await;
    assert!(!is_listed(&room.tick().await), "{after:?}");
    let made = after;
    let after = room.made().await;
    assert_eq!(name(&made[0]), name(&after[0]));
    assert_eq!(after.len(), 2, "{after:?}");
    assert_eq!(due(&after[1]) - due(&after[0]), 120, "the latest minute that was missed");
    let tick = room.tick().await;
    assert_eq!((active(&tick), &tick["status"]["active"][0]["name"]), (1, &json!(name(&after[1]))));
    Ok(())
}
embedded_only!(a_run_waits_for_the_one_before, []);

/// JOBS-40
async fn a_run_replaces_the_one_before(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "acj-replace").await;
    room.schedule(
        EVERY_MINUTE,
        merged(room.jobs("sleep 600"), &spec(json!({"concurrencyPolicy": "Replace"}))),
    )
    .await;
    at_second(stage, 10).await;
    for _ in 0..3 {
        let made = room.made().await;
        let alive = made.iter().filter(|job| job["metadata"]["deletionTimestamp"].is_null()).count();
        assert_eq!(alive, 1, "{made:?}");
        let look = async || {
            let made = room.made().await;
            let alive = made.iter().filter(|job| job["metadata"]["deletionTimestamp"].is_null()).count();
            seen(alive <= 1, format!("{alive} jobs"))
        };
        room.sandbox.always("there is one job at most", MINUTE, look).await;
    }
    assert_eq!(room.pods().await.len(), 1, "the pods of deleted jobs are deleted with them");
    assert_eq!(room.events("AdvancedCronJob", "SuccessfulDelete").await.len(), 3);
    Ok(())
}
embedded_only!(a_run_replaces_the_one_before, []);

/// JOBS-41, JOBS-42 (ACJ-D1): what is kept of the past, down to nothing, and no run comes twice.
async fn the_history_is_limited(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "acj-history").await;
    let limits = spec(json!({"successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 0}));
    room.schedule(EVERY_MINUTE, merged(room.jobs("exit 0"), &limits)).await;
    at_second(stage, 30).await;
    stage.sim().advance(4 * MINUTE).await;
    let made = room.made().await;
    assert_eq!(made.len(), 2);
    assert_eq!(due(&made[1]) - due(&made[0]), 60);
    room.sandbox.delete::<AdvancedCronJob>("tick").await;
    stage.sim().advance(Duration::from_secs(10)).await;
    let none = spec(json!({"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0}));
    room.schedule(EVERY_MINUTE, merged(room.jobs("exit 1"), &none)).await;
    let before = room.events("AdvancedCronJob", "SuccessfulCreate").await.len();
    at_second(stage, 30).await;
    for minute in 0..3 {
        assert_eq!(room.made().await.len(), 0, "it has ended and is deleted");
        room.change_tick(json!({"metadata": {"labels": {"edited": format!("m{minute}")}}})).await;
        stage.sim().advance(MINUTE).await;
    }
    let told = room.events("AdvancedCronJob", "SuccessfulCreate").await.split_off(before);
    let mut unique = told.clone();
    unique.sort();
    unique.dedup();
    assert_eq!((told.len(), unique.len()), (4, 4), "{told:?}");
    Ok(())
}
embedded_only!(the_history_is_limited, []);

/// JOBS-44: after three hours without a manager one run is started, and that is reported.
async fn a_long_stop_is_followed_by_one_run(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "acj-stop").await;
    room.schedule(EVERY_MINUTE, room.jobs("exit 0")).await;
    at_second(stage, 5).await;
    let first = room.made().await;
    assert_eq!(first.len(), 1);
    stage.kill_manager();
    stage.sim().advance(180 * MINUTE).await;
    stage.start_manager().await;
    stage.sim().advance(Duration::from_secs(20)).await;
    let made = room.made().await;
    assert_eq!(made.len(), 2, "{made:?}");
    assert_eq!(due(&made[1]) - due(&first[0]), 180 * 60);
    assert_eq!(room.events("AdvancedCronJob", "TooManyMissedTimes").await.len(), 1);
    at_second(stage, 5).await;
    assert_eq!(room.made().await.len(), 3);
    Ok(())
}
embedded_only!(a_long_stop_is_followed_by_one_run, []);

/// JOBS-45: a manager that dies after any of its writes starts no run twice.
async fn a_manager_that_dies_starts_no_run_twice(stage: &mut Stage) -> Outcome {
    for write in 1..4 {
        let room = Room::prepare(stage, &format!("acj-crash-{write}")).await;
        at_second(stage, 50).await;
        room.schedule(EVERY_MINUTE, room.jobs("sleep 600")).await;
        stage.sim().advance(Duration::from_secs(5)).await;
        stage.sim().faults().crash_after_write(write);
        stage.sim().advance(Duration::from_secs(15)).await;
        stage.kill_manager();
        stage.sim().faults().revive();
        stage.start_manager().await;
        stage.sim().advance(Duration::from_secs(30)).await;
        let made = room.made().await;
        assert_eq!(made.len(), 1, "the manager died after write {write}: {made:?}");
        assert_eq!(active(&room.tick().await), 1);
        room.sandbox.delete::<AdvancedCronJob>("tick").await;
    }
    Ok(())
}
embedded_only!(a_manager_that_dies_starts_no_run_twice, []);

/// JOBS-46, JOBS-47: nine in Shanghai is one in UTC, however the zone is given.
async fn zones_are_respected(stage: &mut Stage) -> Outcome {
    for (index, (schedule, zone, hour)) in [
        ("0 9 * * *", Some("Asia/Shanghai"), 1),
        ("TZ=Asia/Shanghai 0 9 * * *", None, 1),
        ("CRON_TZ=Asia/Shanghai 0 9 * * *", None, 1),
        ("0 9 * * *", Some("Etc/UTC"), 9),
    ]
    .into_iter()
    .enumerate()
    {
        let room = Room::prepare(stage, &format!("acj-zone-{index}")).await;
        room.schedule(schedule, merged(room.jobs("exit 0"), &spec(json!({"timeZone": zone})))).await;
        stage.sim().advance(24 * 60 * MINUTE).await;
        let made = room.made().await;
        assert_eq!((made.len(), due(&made[0]) % 86_400), (1, hour * 3_600), "{schedule} {zone:?}");
        room.sandbox.delete::<AdvancedCronJob>("tick").await;
    }
    Ok(())
}
embedded_only!(zones_are_respected, []);

/// JOBS-58: everything is deleted with the object, also in the foreground, and nothing new is started meanwhile.
async fn everything_is_deleted_with_the_schedule(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "acj-delete").await;
    at_second(stage, 55).await;
    room.schedule(EVERY_MINUTE, room.jobs("sleep 600")).await;
    assert_eq!(room.made().await.len(), 0);
    stage.sim().advance(Duration::from_secs(10)).await;
    assert_eq!((room.made().await.len(), room.pods().await.len()), (1, 1));
    // Something holds the child back, so that the deletion lasts over two full minutes.
    let child = name(&room.made().await[0]).to_owned();
    let _: Job = room.sandbox.merge(&child, json!({"metadata": {"finalizers": ["example.com/hold"]}})).await;
    let api: kube::Api<AdvancedCronJob> = room.sandbox.api();
    api.delete("tick", &kube::api::DeleteParams::foreground()).await.unwrap();
    stage.sim().advance(2 * MINUTE).await;
    let made = room.made().await;
    assert_eq!(made.iter().map(name).collect::<Vec<_>>(), [child.as_str()], "nothing is started meanwhile");
    assert!(!room.tick().await["metadata"]["deletionTimestamp"].is_null());
    let _: Job = room.sandbox.merge(&child, json!({"metadata": {"finalizers": null}})).await;
    stage.sim().advance(MINUTE).await;
    assert_eq!((room.made().await.len(), room.pods().await.len()), (0, 0));
    assert_eq!(room.sandbox.list::<AdvancedCronJob>().await.len(), 0);
    Ok(())
}
embedded_only!(everything_is_deleted_with_the_schedule, []);

/// JOBS-59: a name that leaves no place for the time is reported at each run, and tried again at the next.
async fn a_name_that_is_too_long_is_reported(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "acj-long").await;
    let long = "a".repeat(60);
    let begin = stage.sim().clock().now().as_second() / 60 * 60;
    let job = json!({"spec": {"template": room.template("exit 0")}});
    let cron = json!({"metadata": {"name": long},
        "spec": {"schedule": EVERY_MINUTE, "template": {"broadcastJobTemplate": job}}});
    let _: AdvancedCronJob = room.sandbox.create(cron).await;
    at_second(stage, 5).await;
    stage.sim().advance(2 * MINUTE).await;
    let told = room.events("AdvancedCronJob", "FailedCreate").await;
    assert!(!told.is_empty() && told.len() < 30, "{} events", told.len());
    assert!(told[0].contains("must be no more than 63 characters"), "{told:?}");
    let is_of = |minute: i64| told.iter().any(|one| one.contains(&format!("{long}-{minute}")));
    let minutes: Vec<i64> = (1..=3).map(|minute| begin + 60 * minute).collect();
    assert!(minutes.iter().all(|minute| is_of(*minute)), "each minute is tried: {told:?}");
    assert_eq!(room.sandbox.list::<BroadcastJob>().await.len(), 0);
    Ok(())
}
embedded_only!(a_name_that_is_too_long_is_reported, []);

/// JOBS-64: a schedule that becomes denser runs at once the latest minute after its last run, or after its creation.
async fn a_schedule_may_change(stage: &mut Stage) -> Outcome {
    for has_run in [false, true] {
        let room = Room::prepare(stage, &format!("acj-edit-{has_run}")).await;
        let now = stage.sim().clock().now().as_second();
        // To the next hour and ten minutes, or ten minutes before it.
        let wait = 3600 - now.rem_euclid(3600) + if has_run { 3000 } else { 600 };
        stage.sim().advance(Duration::from_secs(u64::try_from(wait).unwrap())).await;
        room.schedule("0 * * * *", room.jobs("exit 0")).await;
        let until_edit = if has_run { 600 + 1820 } else { 1220 };
        stage.sim().advance(Duration::from_secs(until_edit)).await;
        assert_eq!(room.made().await.len(), usize::from(has_run));
        let now = stage.sim().clock().now().as_second();
        assert_eq!(now.rem_euclid(3600), 1820);
        room.change_tick(spec(json!({"schedule": EVERY_MINUTE, "successfulJobsHistoryLimit": 9}))).await;
        stage.sim().advance(Duration::from_secs(5)).await;
        let half_past = now - 20;
        let hour = has_run.then_some(now - 1820);
        let times = async || room.made().await.iter().map(due).collect::<Vec<_>>();
        assert_eq!(times().await, hour.into_iter().chain([half_past]).collect::<Vec<_>>());
        stage.sim().advance(MINUTE).await;
        assert_eq!(times().await, hour.into_iter().chain([half_past, half_past + 60]).collect::<Vec<_>>());
        room.sandbox.delete::<AdvancedCronJob>("tick").await;
    }
    Ok(())
}
embedded_only!(a_schedule_may_change, []);

//! CronJobs: jobs at the times of a schedule.

use kruise_sim::Sim;
use serde_json::{Value, json};

use super::{create, delete, events, get, list, patch, seconds};

fn cron(schedule: &str, image: &str, change: &Value) -> Value {
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": image}]});
    let mut spec = json!({"schedule": schedule, "jobTemplate": {"spec": {"backoffLimit": 0, "template": {"spec": pod}}}});
    spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    json!({"metadata": {"name": "tick"}, "spec": spec})
}

/// The names of the jobs without the common beginning: minutes since 2026.
fn jobs(sim: &Sim) -> Vec<i64> {
    let first_of_2026 = 1_767_225_600 / 60;
    let mut jobs: Vec<i64> = list(sim, "batch/jobs")
        .iter()
        .map(|job| {
            let name = job["metadata"]["name"].as_str().unwrap();
            name.strip_prefix("tick-").unwrap().parse::<i64>().unwrap() - first_of_2026
        })
        .collect();
    jobs.sort_unstable();
    jobs
}

fn status(sim: &Sim) -> Value {
    get(sim, "batch/cronjobs", "tick")["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn jobs_start_on_time_and_the_last_three_are_kept() {
    let sim = Sim::builder().start();
    create(&sim, "batch/cronjobs", cron("*/2 * * * *", "exit0:1", &json!({}))).await;
    seconds(&sim, 119).await;
    assert_eq!(jobs(&sim), [0; 0]);
    seconds(&sim, 2).await;
    assert_eq!(jobs(&sim), [2]);
    assert_eq!(status(&sim)["active"][0]["kind"], "Job");
    assert_eq!(status(&sim)["lastScheduleTime"], "2026-01-01T00:02:00Z");
    let job = &list(&sim, "batch/jobs")[0];
    assert_eq!(
        job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"],
        "2026-01-01T00:02:00Z"
    );
    assert_eq!(job["metadata"]["ownerReferences"][0]["kind"], "CronJob");
    seconds(&sim, 600).await;
    assert_eq!(jobs(&sim), [6, 8, 10, 12], "one has only just begun");
    seconds(&sim, 60).await;
    assert_eq!(jobs(&sim), [8, 10, 12]);
    assert_eq!(status(&sim)["active"], Value::Null);
    assert!(status(&sim)["lastSuccessfulTime"].as_str().unwrap() > "2026-01-01T00:12:00Z");
    let said = events(&sim, "tick");
    let name = format!("tick-{}", 1_767_225_600 / 60 + 2);
    for expected in [
        format!("SuccessfulCreate: Created job {name}"),
        format!("SawCompletedJob: Saw completed job: {name}, condition: Complete"),
        format!("SuccessfulDelete: Deleted job {name}"),
    ] {
        assert!(said.contains(&expected), "{expected} in {said:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_takes_long_is_joined_waited_for_or_replaced() {
    for (policy, expected) in [("Allow", vec![1, 2, 3]), ("Forbid", vec![1]), ("Replace", vec![3])] {
        let sim = Sim::builder().start();
        create(&sim, "batch/cronjobs", cron("* * * * *", "nginx:1", &json!({"concurrencyPolicy": policy})))
            .await;
        seconds(&sim, 200).await;
        assert_eq!(jobs(&sim), expected, "{policy}");
        assert_eq!(status(&sim)["active"].as_array().unwrap().len(), expected.len(), "{policy}");
        let waits = events(&sim, "tick").iter().any(|event| event.starts_with("JobAlreadyActive"));
        assert_eq!(waits, policy == "Forbid");
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspended_schedule_rests_and_a_deadline_forgets_what_it_missed() {
    let sim = Sim::builder().start();
    let change = json!({"suspend": true, "startingDeadlineSeconds": 30});
    create(&sim, "batch/cronjobs", cron("*/10 * * * *", "exit0:1", &change)).await;
    seconds(&sim, 15 * 60).await;
    assert_eq!(jobs(&sim), [0; 0]);
    patch(&sim, "batch/cronjobs", "tick", None, json!({"spec": {"suspend": false}})).await;
    seconds(&sim, 60).await;
    assert_eq!(jobs(&sim), [0; 0], "ten past is too long ago");
    seconds(&sim, 5 * 60).await;
    assert_eq!(jobs(&sim), [20]);
    // Without a deadline, what was missed last starts at once.
    patch(&sim, "batch/cronjobs", "tick", None, json!({"spec": {"suspend": true}})).await;
    seconds(&sim, 15 * 60).await;
    let change = json!({"spec": {"suspend": false, "startingDeadlineSeconds": null}});
    patch(&sim, "batch/cronjobs", "tick", None, change).await;
    seconds(&sim, 1).await;
    assert_eq!(jobs(&sim), [20, 30]);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_counts_by_the_clocks_of_its_zone_and_a_change_of_it_looks_ahead() {
    let sim = Sim::builder().start();
    let zone = json!({"timeZone": "Asia/Kolkata"});
    create(&sim, "batch/cronjobs", cron("0 6 * * *", "exit0:1", &zone)).await;
    seconds(&sim, 40 * 60).await;
    // Six in the morning in Kolkata is half past midnight in UTC.
    assert_eq!(jobs(&sim), [30]);
    assert_eq!(
        list(&sim, "batch/jobs")[0]["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"],
        "2026-01-01T06:00:00+05:30"
    );
    patch(&sim, "batch/cronjobs", "tick", None, json!({"spec": {"schedule": "*/5 * * * *"}})).await;
    seconds(&sim, 5).await;
    assert_eq!(jobs(&sim), [30], "what the new schedule would have started before does not start");
    seconds(&sim, 300).await;
    assert_eq!(jobs(&sim), [30, 45]);
}

#[tokio::test(start_paused = true)]
async fn what_a_schedule_made_goes_with_it_and_foreign_jobs_are_noticed() {
    let sim = Sim::builder().start();
    create(&sim, "batch/cronjobs", cron("@hourly", "app:1", &json!({}))).await;
    let owner = get(&sim, "batch/cronjobs", "tick");
    let reference = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": owner["metadata"]["uid"], "controller": true,
    });
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "app:1"}]});
    let by_hand = json!({
        "metadata": {"name": "by-hand", "ownerReferences": [reference]}, "spec": {"template": {"spec": pod}},
    });
    create(&sim, "batch/jobs", by_hand).await;
    seconds(&sim, 30).await;
    let said = events(&sim, "tick");
    let expected = "UnexpectedJob: Saw a job that the controller did not create or forgot: by-hand";
    assert!(said.contains(&expected.to_owned()), "{said:?}");
    delete(&sim, "batch/cronjobs", "tick").await;
    seconds(&sim, 60).await;
    assert!(list(&sim, "batch/jobs").is_empty() && list(&sim, "pods").is_empty());
}

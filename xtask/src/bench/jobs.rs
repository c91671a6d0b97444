//! What many jobs cost: a BroadcastJob on every node of a large cluster, and as many AdvancedCronJobs that all start a job
//! in the same minute.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use jiff::{ToSpan as _, Unit, tz::TimeZone};
use serde_json::{Value, json};

use super::local::Clock;
use super::local::http::Connection;
use super::stage::Stage;

const BROADCAST_JOBS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/broadcastjobs";
const CRON_JOBS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/advancedcronjobs";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs?includeObject=None&resourceVersion=0";

pub(super) fn run(root: &Path, count: usize) -> Result<Value> {
    let mut stage = Stage::start(root, count)?;
    stage.measure(
        "broadcast",
        |api| api.send("POST", BROADCAST_JOBS, Some(&broadcast_job())).map(drop),
        |api| succeeded(api, count),
    )?;
    // All are there before their minute begins, and it is theirs once a day.
    let start = Clock::now().checked_add(3.minutes())?.to_zoned(TimeZone::UTC).round(Unit::Minute)?;
    let schedule = format!("{} {} * * *", start.minute(), start.hour());
    for number in 0..count {
        stage.connection.send("POST", CRON_JOBS, Some(&cron_job(number, &schedule)))?;
    }
    let left = Duration::try_from(start.timestamp().duration_since(Clock::now()));
    thread::sleep(left.context("the schedules took longer to create than until their minute")?);
    stage.measure("fire", |_| Ok(()), |api| Ok(rows(&api.send("GET", JOBS, None)?) >= count))?;
    stage.end()
}

/// How many objects a table shows.
fn rows(table: &Value) -> usize {
    table.get("rows").and_then(Value::as_array).map_or(0, Vec::len)
}

fn succeeded(api: &mut Connection, count: usize) -> Result<bool> {
    let job = api.get(&format!("{BROADCAST_JOBS}/bench"))?;
    Ok(job.pointer("/status/succeeded").and_then(Value::as_u64) == Some(count as u64))
}

fn template() -> Value {
    let container = json!({"name": "main", "image": "busybox:1.36", "command": ["true"]});
    json!({"spec": {"restartPolicy": "Never", "containers": [container]}})
}

fn broadcast_job() -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "BroadcastJob", "metadata": {"name": "bench"},
        "spec": {"parallelism": "100%", "completionPolicy": {"type": "Always"}, "template": template()},
    })
}

fn cron_job(number: usize, schedule: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob", "metadata": {"name": format!("bench-{number}")},
        "spec": {
            "schedule": schedule, "timeZone": "UTC",
            "template": {"jobTemplate": {"spec": {"template": template()}}},
        },
    })
}

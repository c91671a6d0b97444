//! No run of a schedule is started twice, and with Forbid no two run at once, whatever goes wrong.

use std::{collections::BTreeMap, time::Duration};

use kruise_sim::Sim;
use serde_json::{Value, json};

use crate::{
    classes::{Class, each_seed},
    process::Kept,
    world::{all, broadcasts, change, create, install, jobs, schedules, template},
};

/// The uids of jobs by name: a name belongs to one run.
#[derive(Default)]
pub(crate) struct Runs(BTreeMap<String, String>);

fn of<'j>(jobs: &'j [Value], schedule: &str) -> Vec<&'j Value> {
    let prefix = format!("{schedule}-");
    jobs.iter().filter(|job| job["metadata"]["name"].as_str().unwrap().starts_with(&prefix)).collect()
}

fn has_ended(job: &Value) -> bool {
    let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .into_iter()
        .any(|one| matches!(one["type"].as_str(), Some("Complete" | "Failed")) && one["status"] == "True")
}

impl Runs {
    pub(crate) async fn look(&mut self, sim: &Sim) -> Result<(), String> {
        let mut found = all(&jobs(sim)).await;
        found.extend(all(&broadcasts(sim)).await);
        for job in &found {
            let text = |field: &str| job["metadata"][field].as_str().unwrap().to_owned();
            let known = self.0.entry(text("name")).or_insert_with(|| text("uid"));
            if *known != text("uid") {
                return Err(format!("{} was started twice", text("name")));
            }
        }
        let is_alive = |job: &&&Value| job["metadata"]["deletionTimestamp"].is_null() && !has_ended(job);
        for schedule in ["forbid", "replace", "nodes"] {
            let alive = of(&found, schedule).iter().filter(is_alive).count();
            if alive > 1 {
                return Err(format!("{alive} jobs of {schedule} run at once"));
            }
        }
        Ok(())
    }

    pub(crate) fn count(&self, schedule: &str) -> usize {
        self.0.keys().filter(|name| name.starts_with(&format!("{schedule}-"))).count()
    }
}

pub(crate) async fn start(sim: &Sim) {
    for (name, policy, script, limit) in [
        ("allow", "Allow", "exit 0", 0),
        ("forbid", "Forbid", "sleep 80", 3),
        ("replace", "Replace", "sleep 200", 1),
    ] {
        let job = json!({"spec": {"backoffLimit": 0, "template": template(script)}});
        let spec = json!({"schedule": "* * * * *", "concurrencyPolicy": policy, "successfulJobsHistoryLimit": limit,
            "failedJobsHistoryLimit": limit, "template": {"jobTemplate": job}});
        create(&schedules(sim), json!({"metadata": {"name": name}, "spec": spec})).await;
    }
    let job = json!({"spec": {"failurePolicy": {"type": "Continue"}, "template": template("sleep 70")}});
    let spec = json!({"schedule": "*/1 * * * *", "timeZone": "Asia/Kolkata", "startingDeadlineSeconds": 600,
        "concurrencyPolicy": "Forbid", "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1,
        "template": {"broadcastJobTemplate": job}});
    create(&schedules(sim), json!({"metadata": {"name": "nodes"}, "spec": spec})).await;
}

/// The schedules that are played.
const NAMES: [&str; 4] = ["allow", "forbid", "replace", "nodes"];

async fn story(seed: u64, class: Class) -> Result<(), String> {
    let mut sim = Sim::builder().seed(seed).nodes(2).without_events().start();
    install(&sim).await;
    let resync = class.loses_events().then_some(Duration::from_secs(60));
    class.begin(&mut sim);
    let mut process = Kept::start(&sim, seed, resync);
    start(&sim).await;
    let mut runs = Runs::default();
    for _ in 0..400 {
        sim.advance(Duration::from_secs(1)).await;
        process.look(&mut sim);
        runs.look(&sim).await?;
    }
    sim.faults().heal();
    sim.faults().revive();
    process.restart(&sim);
    let before = NAMES.map(|name| runs.count(name));
    for _ in 0..300 {
        sim.advance(Duration::from_secs(1)).await;
        runs.look(&sim).await?;
    }
    let after = NAMES.map(|name| runs.count(name));
    if after[0] < before[0] + 4 || after[1] <= before[1] || after[2] < before[2] + 4 || after[3] <= before[3]
    {
        return Err(format!("the schedules do not go on: {before:?}, then {after:?}"));
    }
    for name in NAMES {
        change(&schedules(&sim), name, json!({"spec": {"paused": true}})).await;
    }
    sim.advance(Duration::from_secs(400)).await;
    let writes = sim.faults().writes();
    sim.advance(Duration::from_secs(900)).await;
    if sim.faults().writes() != writes {
        return Err("writes although all schedules are paused".to_owned());
    }
    Ok(())
}

macro_rules! under_faults {
    ($($name:ident: $class:ident, $seeds:expr;)*) => {$(
        #[test]
        fn $name() {
            each_seed($seeds, |seed| story(seed, Class::$class));
        }
    )*};
}

under_faults! {
    runs_are_started_once_when_the_process_dies: Crash, 0..4;
    runs_are_started_once_when_reads_come_late: LateReads, 100..104;
    runs_are_started_once_when_reads_show_an_older_state: OldReads, 200..204;
    runs_are_started_once_when_watch_events_are_lost: LostEvents, 300..304;
    runs_are_started_once_when_watch_events_are_merged: MergedEvents, 400..404;
    runs_are_started_once_when_calls_are_refused: Refusals, 500..504;
    runs_are_started_once_when_answers_are_lost: LostAnswers, 600..604;
    runs_are_started_once_when_reads_come_late_and_answers_are_lost: LateReadsAndLostAnswers, 700..704;
    runs_are_started_once_when_everything_goes_wrong: Storm, 800..804;
    runs_are_started_once_when_the_process_dies_while_everything_goes_wrong: CrashInStorm, 900..904;
}

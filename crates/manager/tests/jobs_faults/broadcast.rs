//! A BroadcastJob does its work once on every node, whatever goes wrong.

use std::{collections::BTreeMap, time::Duration};

use kruise_sim::{Node, Sim};
use serde_json::{Value, json};

use crate::{
    classes::{Class, each_seed},
    process::Kept,
    world::{all, broadcasts, change, create, get, install, is_active, node_of, pods, template},
};

const LIMIT: usize = 2;

/// What was seen of pods so far.
#[derive(Default)]
struct Seen {
    /// The pods that ever ended well on each node, by uid.
    succeeded: BTreeMap<String, Vec<String>>,
}

impl Seen {
    async fn look(&mut self, sim: &Sim) -> Result<(), String> {
        let pods = all(&pods(sim)).await;
        let active: Vec<&Value> = pods.iter().filter(|pod| is_active(pod)).collect();
        if active.len() > LIMIT {
            return Err(format!("{} pods are active", active.len()));
        }
        let mut by_node: BTreeMap<&str, usize> = BTreeMap::new();
        for pod in &pods {
            *by_node.entry(node_of(pod)).or_default() += 1;
            if pod["status"]["phase"] == "Succeeded" {
                let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
                let known = self.succeeded.entry(node_of(pod).to_owned()).or_default();
                if !known.contains(&uid) {
                    known.push(uid);
                }
            }
        }
        if let Some((node, count)) = by_node.iter().find(|(_, count)| **count > 1) {
            return Err(format!("{count} pods are on {node}"));
        }
        match self.succeeded.iter().find(|(_, uids)| uids.len() > 1) {
            Some((node, uids)) => Err(format!("the work was done {} times on {node}", uids.len())),
            None => Ok(()),
        }
    }
}

async fn story(seed: u64, class: Class) -> Result<(), String> {
    let mut sim = Sim::builder().seed(seed).nodes(5).without_events().start();
    install(&sim).await;
    let resync = class.loses_events().then_some(Duration::from_secs(60));
    class.begin(&mut sim);
    let mut process = Kept::start(&sim, seed, resync);
    let spec = json!({"parallelism": LIMIT, "completionPolicy": {"type": "Never"},
        "failurePolicy": {"type": "Continue"}, "template": template("sleep 7")});
    create(&broadcasts(&sim), json!({"metadata": {"name": "job"}, "spec": spec})).await;
    let mut seen = Seen::default();
    for second in 0..150 {
        sim.advance(Duration::from_secs(1)).await;
        process.look(&mut sim);
        seen.look(&sim).await?;
        match second {
            20 => sim.add_node(Node::named("late")),
            40 => change(&broadcasts(&sim), "job", json!({"spec": {"paused": true}})).await,
            60 => change(&broadcasts(&sim), "job", json!({"spec": {"paused": false}})).await,
            _ => {}
        }
    }
    sim.faults().heal();
    sim.faults().revive();
    process.restart(&sim);
    for second in 0.. {
        let job = get(&broadcasts(&sim), "job").await;
        if job["status"]["succeeded"] == 6 && job["status"]["active"] == 0 {
            break;
        }
        if second == 900 {
            return Err(format!("it does not go on: {}", job["status"]));
        }
        sim.advance(Duration::from_secs(1)).await;
        seen.look(&sim).await?;
    }
    // Now it may end, and does.
    change(&broadcasts(&sim), "job", json!({"spec": {"completionPolicy": {"type": "Always"}}})).await;
    sim.advance(Duration::from_secs(60)).await;
    let job = get(&broadcasts(&sim), "job").await;
    if job["status"]["phase"] != "completed" {
        return Err(format!("it is not complete: {}", job["status"]));
    }
    seen.look(&sim).await?;
    let writes = sim.faults().writes();
    sim.advance(Duration::from_secs(900)).await;
    if sim.faults().writes() != writes {
        return Err("writes after everything was done".to_owned());
    }
    Ok(())
}

/// A pod that restarts too often fails the job (`FailFast`), whatever is lost on the way: it is never taken for complete, and in the
/// end nothing of it runs.
async fn failing(seed: u64, class: Class) -> Result<(), String> {
    let mut sim = Sim::builder().seed(seed).nodes(4).without_events().start();
    install(&sim).await;
    let resync = class.loses_events().then_some(Duration::from_secs(60));
    class.begin(&mut sim);
    let mut process = Kept::start(&sim, seed, resync);
    let mut pod = template("if [ \"$NODE\" = node-2 ]; then sleep 5; exit 1; fi; sleep 3600");
    pod["spec"]["restartPolicy"] = json!("OnFailure");
    pod["spec"]["containers"][0]["env"] =
        json!([{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]);
    let spec = json!({"failurePolicy": {"type": "FailFast", "restartLimit": 1}, "template": pod});
    create(&broadcasts(&sim), json!({"metadata": {"name": "job"}, "spec": spec})).await;
    let look = async |sim: &Sim| {
        let status = get(&broadcasts(sim), "job").await["status"].clone();
        match status["phase"].as_str() {
            Some("completed" | "paused") => Err(format!("it is not failed: {status}")),
            Some("failed") => Ok(true),
            _ => Ok(false),
        }
    };
    for _ in 0..150 {
        sim.advance(Duration::from_secs(1)).await;
        process.look(&mut sim);
        look(&sim).await?;
    }
    sim.faults().heal();
    sim.faults().revive();
    process.restart(&sim);
    for second in 0.. {
        if look(&sim).await? && all(&pods(&sim)).await.is_empty() {
            break;
        }
        if second == 900 {
            let job = get(&broadcasts(&sim), "job").await;
            return Err(format!("it does not end: {}, {} pods", job["status"], all(&pods(&sim)).await.len()));
        }
        sim.advance(Duration::from_secs(1)).await;
    }
    let writes = sim.faults().writes();
    sim.advance(Duration::from_secs(900)).await;
    if sim.faults().writes() != writes {
        return Err("writes after everything was done".to_owned());
    }
    Ok(())
}

macro_rules! under_faults {
    ($story:ident, $($name:ident: $class:ident, $seeds:expr;)*) => {$(
        #[test]
        fn $name() {
            each_seed($seeds, |seed| $story(seed, Class::$class));
        }
    )*};
}

under_faults! { failing,
    a_failed_job_has_failed_when_the_process_dies: Crash, 0..8;
    a_failed_job_has_failed_when_reads_come_late: LateReads, 100..108;
    a_failed_job_has_failed_when_reads_show_an_older_state: OldReads, 200..208;
    a_failed_job_has_failed_when_watch_events_are_lost: LostEvents, 300..308;
    a_failed_job_has_failed_when_watch_events_are_merged: MergedEvents, 400..408;
    a_failed_job_has_failed_when_calls_are_refused: Refusals, 500..508;
    a_failed_job_has_failed_when_answers_are_lost: LostAnswers, 600..608;
    a_failed_job_has_failed_when_reads_come_late_and_answers_are_lost: LateReadsAndLostAnswers, 700..708;
    a_failed_job_has_failed_when_everything_goes_wrong: Storm, 800..808;
    a_failed_job_has_failed_when_the_process_dies_while_everything_goes_wrong: CrashInStorm, 900..908;
}

under_faults! { story,
    every_node_works_once_when_the_process_dies: Crash, 0..12;
    every_node_works_once_when_reads_come_late: LateReads, 100..112;
    every_node_works_once_when_reads_show_an_older_state: OldReads, 200..212;
    every_node_works_once_when_watch_events_are_lost: LostEvents, 300..312;
    every_node_works_once_when_watch_events_are_merged: MergedEvents, 400..412;
    every_node_works_once_when_calls_are_refused: Refusals, 500..512;
    every_node_works_once_when_answers_are_lost: LostAnswers, 600..612;
    every_node_works_once_when_reads_come_late_and_answers_are_lost: LateReadsAndLostAnswers, 700..712;
    every_node_works_once_when_everything_goes_wrong: Storm, 800..812;
    every_node_works_once_when_the_process_dies_while_everything_goes_wrong: CrashInStorm, 900..912;
}

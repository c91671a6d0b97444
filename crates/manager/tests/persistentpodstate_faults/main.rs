//! PersistentPodStates under every class of faults. People delete, force and scale pods of two StatefulSets of Kubernetes in
//! random order, and change annotations, while the process dies, reads lag, events get lost and calls fail. A pod that was
//! noted and then deleted always comes back to its zone. After the faults every pod is noted where it is, the generated object
//! is as its annotations say, pods that are not wanted any more are forgotten, and nothing is written any more.
//!
//! One class is left out: a server that answers a read of one object with an older state (`OldReads`). Kubernetes promises
//! that it does not.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../../runtime/tests/faults/classes.rs"]
#[allow(dead_code, reason = "shared with other kinds")]
mod classes;
#[path = "../sidecarset_faults/process.rs"]
mod process;

mod lasting;
mod world;

use std::{collections::BTreeMap, time::Duration};

use kruise_runtime::random::Random;
use kruise_sim::Sim;
use serde_json::{Value, json};

use classes::{Class, crash_soon, each_seed};
use process::Process;
use world::{NOTED, ZONE, change, delete, install, is_ready, name, pods, scale, state, zone_of};

const DEEDS: u64 = 25;
const WITHIN: u32 = 1800;

/// Where pods were noted when they were deleted, with the uid that they had.
type Left = BTreeMap<String, (String, String)>;

/// Whether a pod was noted where it was.
fn noted(pod: &Value, state: &Value) -> Option<(String, String)> {
    let record = &state["status"]["podStates"][name(pod)];
    let is_settled = is_ready(pod) && record["nodeName"] == pod["spec"]["nodeName"];
    let zone = record["nodeTopologyLabels"][ZONE].as_str().filter(|_| is_settled)?;
    Some((pod["metadata"]["uid"].as_str()?.to_owned(), zone.to_owned()))
}

/// `kept` is noted as long as it lives, by an object of a user. `made` has an object that its annotations ask for.
async fn act(sim: &mut Sim, left: &mut Left, wanted: &mut BTreeMap<&str, i64>, keys: &mut String) -> String {
    let all = pods(sim).await;
    match sim.pick(0..8) {
        0 => {
            let replicas = i64::try_from(sim.pick(1..5)).unwrap();
            scale(sim, "made", replicas).await;
            wanted.insert("made", replicas);
            // What is scaled in is forgotten.
            left.retain(|pod, _| !pod.starts_with("made-"));
            format!("made has {replicas}")
        }
        1 => {
            let replicas = i64::try_from(sim.pick(2..5)).unwrap();
            scale(sim, "kept", replicas).await;
            wanted.insert("kept", replicas);
            format!("kept has {replicas}")
        }
        2 => {
            *keys = ["ip", "ip,other", ""][usize::try_from(sim.pick(0..3)).unwrap()].to_owned();
            change(sim, "made", json!({"metadata": {"annotations": {NOTED: keys}}})).await;
            format!("made notes {keys:?}")
        }
        deed => {
            let Some(pod) = sim.pick_one(&all).cloned() else { return "nothing".to_owned() };
            let object = if name(&pod).starts_with("made-") { "made" } else { "kept" };
            let wants = (0..wanted[object]).any(|ordinal| name(&pod) == format!("{object}-{ordinal}"));
            let known = state(sim, object).await.and_then(|state| noted(&pod, &state)).filter(|_| wants);
            let is_force = deed == 3;
            let answer = delete(sim, name(&pod), is_force).await;
            if let Some(known) = known.filter(|_| answer.is_ok()) {
                left.insert(name(&pod).to_owned(), known);
            }
            format!("delete {} {is_force}: {answer:?}", name(&pod))
        }
    }
}

/// A pod that was noted when it was deleted is in its zone again.
async fn holds(sim: &Sim, left: &Left) -> Result<(), String> {
    for pod in pods(sim).await {
        let Some((uid, zone)) = left.get(name(&pod)) else { continue };
        if pod["metadata"]["uid"] != *uid && pod["spec"]["nodeSelector"][ZONE] != zone.as_str() {
            let selector = &pod["spec"]["nodeSelector"];
            return Err(format!("{} was in {zone} and is sent to {selector}", name(&pod)));
        }
    }
    Ok(())
}

/// Everything is as it should be.
async fn is_settled(sim: &Sim, wanted: &BTreeMap<&str, i64>, keys: &str) -> Result<(), String> {
    let all = pods(sim).await;
    for (set, replicas) in wanted {
        let Some(state) = state(sim, set).await else { return Err(format!("{set} has no object")) };
        let records = state["status"]["podStates"].as_object().cloned().unwrap_or_default();
        let wants = |pod: &str| (0..*replicas).any(|ordinal| pod == format!("{set}-{ordinal}"));
        let own: Vec<&Value> = all.iter().filter(|pod| name(pod).starts_with(&format!("{set}-"))).collect();
        if own.len() != usize::try_from(*replicas).unwrap() || !own.iter().all(|pod| is_ready(pod)) {
            return Err(format!("{set} has {} pods", own.len()));
        }
        for pod in own {
            let record = records.get(name(pod)).cloned().unwrap_or_default();
            let zone = zone_of(sim, pod).await;
            if record["nodeName"] != pod["spec"]["nodeName"] || record["nodeTopologyLabels"][ZONE] != zone {
                return Err(format!("{} is on {} and noted as {record}", name(pod), pod["spec"]["nodeName"]));
            }
        }
        if *set == "made" {
            let others: Vec<&String> = records.keys().filter(|pod| !wants(pod)).collect();
            let listed: Vec<&str> = keys.split(',').filter(|key| !key.is_empty()).collect();
            let known = state["spec"]["persistentPodAnnotations"].as_array().cloned().unwrap_or_default();
            let known: Vec<&str> = known.iter().filter_map(|one| one["key"].as_str()).collect();
            if !others.is_empty() || known != listed {
                return Err(format!("{others:?} are noted, {known:?} instead of {listed:?}"));
            }
        }
        if state["status"]["observedGeneration"] != state["metadata"]["generation"] {
            return Err(format!("{set} is not observed"));
        }
    }
    Ok(())
}

async fn story(seed: u64, class: Class) -> Result<(), String> {
    let mut sim = world::start(seed);
    install(&sim).await;
    let random = Random::seeded(seed);
    let resync = if class.loses_events() { "--sync-period=60s" } else { "--sync-period=0s" };
    let mut process = Process::start(&sim, &random, resync);
    sim.advance(Duration::from_secs(5)).await;
    world::create(&sim).await;
    let mut wanted = BTreeMap::from([("kept", 3), ("made", 3)]);
    let mut keys = "ip".to_owned();
    world::until(&sim, 120, async || is_settled(&sim, &wanted, &keys).await).await?;
    class.begin(&mut sim);
    let (mut deeds, mut crashes, mut left) = (Vec::new(), 0, Left::new());
    for _ in 0..DEEDS {
        deeds.push(format!(
            "{} {}",
            sim.clock().now(),
            act(&mut sim, &mut left, &mut wanted, &mut keys).await
        ));
        for _ in 0..sim.pick(1..16) {
            sim.advance(Duration::from_millis(500)).await;
            if sim.faults().is_crashed() {
                drop(process);
                sim.faults().revive();
                crashes += 1;
                if crashes < 12 {
                    crash_soon(&mut sim);
                }
                process = Process::start(&sim, &random, resync);
            }
            process.is_well()?;
            holds(&sim, &left).await.map_err(|problem| format!("{problem}\n{}", deeds.join("\n")))?;
        }
    }
    sim.faults().heal();
    sim.faults().revive();
    if class.loses_events() {
        // What was lost shows with the next list.
        drop(process);
        process = Process::start(&sim, &random, resync);
    }
    world::until(&sim, WITHIN, async || is_settled(&sim, &wanted, &keys).await)
        .await
        .map_err(|problem| format!("{problem}\n{}", deeds.join("\n")))?;
    holds(&sim, &left).await?;
    sim.advance(Duration::from_secs(120)).await;
    let writes = sim.faults().writes();
    sim.advance(Duration::from_secs(600)).await;
    if sim.faults().writes() != writes {
        return Err("writes after everything was done".to_owned());
    }
    process.is_well()?;
    is_settled(&sim, &wanted, &keys).await
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
    pods_return_when_the_process_dies: Crash, 0..4;
    pods_return_when_reads_come_late: LateReads, 100..104;
    pods_return_when_watch_events_are_lost: LostEvents, 300..304;
    pods_return_when_watch_events_are_merged: MergedEvents, 400..404;
    pods_return_when_calls_are_refused: Refusals, 500..504;
    pods_return_when_answers_are_lost: LostAnswers, 600..604;
    pods_return_when_reads_come_late_and_answers_are_lost: LateReadsAndLostAnswers, 700..704;
    pods_return_when_everything_goes_wrong: Storm, 800..804;
    pods_return_when_the_process_dies_while_everything_goes_wrong: CrashInStorm, 900..904;
}

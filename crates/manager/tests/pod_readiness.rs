//! The pod-readiness controller under every class of faults: each pod that waits gets its condition, once.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../runtime/tests/faults/classes.rs"]
mod classes;
#[path = "cloneset_faults/settings.rs"]
mod settings;

use std::{collections::BTreeMap, time::Duration};

use kruise_manager::{controllers::pod_readiness, shared::Shared};
use kruise_runtime::{cache, random::Random, scope::Stop};
use kruise_sim::{Sim, history::Recorder};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use classes::{Class, crash_soon, each_seed};

/// The controller as a process.
struct Process {
    shared: Shared,
    _tasks: JoinSet<()>,
}

impl Process {
    fn start(sim: &Sim, random: &Random, resync: Option<Duration>) -> Self {
        let shared = settings::shared(sim, random, &[]);
        let client = shared.client.clone();
        let controller = pod_readiness::controller(&shared);
        let pods = shared.caches.pods.clone();
        let mut tasks = JoinSet::new();
        let options = cache::Options { resync, ..cache::Options::default() };
        tasks.spawn(async move { pods.run(client, options).await });
        tasks.spawn(controller.run(Stop::default(), Duration::from_secs(5)));
        Self { shared, _tasks: tasks }
    }

    fn reconciles(&self) -> f64 {
        let total = &self.shared.metrics.reconcile_total;
        ["success", "error", "requeue", "requeue_after"]
            .iter()
            .map(|result| total.value(&[pod_readiness::NAME, result]))
            .sum()
    }
}

/// What the server's own history says about the condition, by uid: the times it was set to.
#[derive(Default)]
struct Truth {
    conditions: BTreeMap<String, Vec<String>>,
    ready: BTreeMap<String, bool>,
}

impl Truth {
    fn look(&mut self, history: &mut Recorder) {
        for (table, event) in history.take() {
            if table.as_ref() != "/pods" {
                continue;
            }
            let pod: Value = serde_json::from_slice(&event.new.json()).unwrap();
            let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
            for condition in pod["status"]["conditions"].as_array().into_iter().flatten() {
                let time = condition["lastTransitionTime"].as_str().unwrap_or_default().to_owned();
                match condition["type"].as_str() {
                    Some("KruisePodReady") => {
                        let times = self.conditions.entry(uid.clone()).or_default();
                        if times.last() != Some(&time) {
                            times.push(time);
                        }
                    }
                    Some("Ready") => {
                        self.ready.insert(uid.clone(), condition["status"] == "True");
                    }
                    _ => {}
                }
            }
        }
    }
}

fn pods(sim: &Sim) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Pod"), "pods");
    Api::namespaced_with(sim.client(), "default", &resource)
}

async fn create(sim: &Sim, name: &str, gate: bool) -> String {
    let gates = if gate { json!([{"conditionType": "KruisePodReady"}]) } else { json!([]) };
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "app", "image": "nginx"}], "readinessGates": gates},
    });
    let pod: DynamicObject = serde_json::from_value(pod).unwrap();
    pods(sim).create(&PostParams::default(), &pod).await.unwrap().metadata.uid.unwrap()
}

async fn story(seed: u64, class: Class) -> Result<(), String> {
    let mut sim = Sim::builder().seed(seed).nodes(3).without_events().start();
    let mut history = sim.history();
    let random = Random::seeded(seed);
    let mut truth = Truth::default();
    let resync = class.loses_events().then_some(Duration::from_secs(120));
    class.begin(&mut sim);
    let mut process = Process::start(&sim, &random, resync);
    let mut crashes = 0;
    let mut expected: Vec<String> = Vec::new();
    let plain = create(&sim, "plain", false).await;
    for round in 0..3 {
        for name in ["a", "b", "c"] {
            expected.push(create(&sim, name, true).await);
        }
        let mut patience = 7200;
        while !expected.iter().all(|uid| truth.ready.get(uid) == Some(&true)) {
            sim.advance(Duration::from_millis(500)).await;
            if sim.faults().is_crashed() {
                drop(process);
                sim.faults().revive();
                crashes += 1;
                if crashes < 5 {
                    crash_soon(&mut sim);
                }
                process = Process::start(&sim, &random, resync);
            }
            truth.look(&mut history);
            patience -= 1;
            if patience == 0 {
                return Err(format!("round {round}: not all of {expected:?} ready: {:?}", truth.ready));
            }
        }
        if round < 2 {
            // Namesakes follow: what was known of the old ones must not count for them.
            for name in ["a", "b", "c"] {
                let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
                pods(&sim).delete(name, &now).await.unwrap();
            }
        }
    }
    sim.faults().heal();
    sim.faults().revive();
    sim.advance(Duration::from_secs(300)).await;
    let (writes, reconciles) = (sim.faults().writes(), process.reconciles());
    sim.advance(Duration::from_secs(900)).await;
    truth.look(&mut history);
    for uid in &expected {
        let times = truth.conditions.get(uid).map_or(0, Vec::len);
        if times != 1 {
            return Err(format!("pod {uid} got its condition {times} times"));
        }
    }
    if truth.conditions.contains_key(&plain) {
        return Err("a pod without the gate got the condition".to_owned());
    }
    if sim.faults().writes() != writes {
        return Err("writes after everything was done".to_owned());
    }
    if !class.loses_events() && process.reconciles() != reconciles {
        return Err("reconciles after everything was done".to_owned());
    }
    // One to write, at most one when the write can be read; pods without the gate and all that kubelets write cost none.
    if class == Class::LateReads && process.reconciles() > 18.0 {
        return Err(format!("{} reconciles for nine pods", process.reconciles()));
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
    pods_get_their_condition_once_when_the_process_dies: Crash, 0..20;
    pods_get_their_condition_once_when_reads_come_late: LateReads, 100..120;
    pods_get_their_condition_once_when_reads_show_an_older_state: OldReads, 200..220;
    pods_get_their_condition_once_when_watch_events_are_lost: LostEvents, 300..320;
    pods_get_their_condition_once_when_watch_events_are_merged: MergedEvents, 400..420;
    pods_get_their_condition_once_when_calls_are_refused: Refusals, 500..520;
    pods_get_their_condition_once_when_answers_are_lost: LostAnswers, 600..620;
    pods_get_their_condition_once_when_reads_come_late_and_answers_are_lost: LateReadsAndLostAnswers, 700..720;
    pods_get_their_condition_once_when_everything_goes_wrong: Storm, 800..820;
    pods_get_their_condition_once_when_the_process_dies_while_everything_goes_wrong: CrashInStorm, 900..920;
}

//! What the status tells of progress and of availability.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::StreamExt as _;
use kruise_api::cloneset::v1beta1::CloneSet;
use kruise_testkit::{Backend, Outcome};
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    kit::{Demo, condition, is_ready, merged, rolling},
    stage::{Stage, managed},
};

/// Everything that the status of a set has said.
struct Log {
    lines: Arc<Mutex<Vec<(Instant, CloneSet)>>>,
    _writer: JoinSet<()>,
}

impl Log {
    fn of(demo: &Demo) -> Self {
        let lines: Arc<Mutex<Vec<(Instant, CloneSet)>>> = Arc::default();
        let (written, sets) = (lines.clone(), demo.sandbox.api::<CloneSet>());
        let mut writer = JoinSet::new();
        writer.spawn(async move {
            let mut events = std::pin::pin!(watcher::watcher(sets, watcher::Config::default()));
            while let Some(event) = events.next().await {
                if let Ok(watcher::Event::Apply(set) | watcher::Event::InitApply(set)) = event {
                    written.lock().unwrap().push((Instant::now(), set));
                }
            }
        });
        Self { lines, _writer: writer }
    }

    fn all(&self) -> Vec<(Instant, CloneSet)> {
        self.lines.lock().unwrap().clone()
    }

    /// Reasons of the progress from a generation on, each once in a row, with the time of the first.
    fn reasons(&self, generation: Option<i64>) -> Vec<(Instant, String)> {
        let mut reasons: Vec<(Instant, String)> = Vec::new();
        for (at, set) in self.all() {
            let status = set.status.clone().unwrap_or_default();
            let Some([_, reason, _]) = condition(&set, "Progressing") else { continue };
            if status.observed_generation >= generation
                && reasons.last().is_none_or(|(_, last)| *last != reason)
            {
                reasons.push((at, reason));
            }
        }
        reasons
    }
}

fn words(reasons: &[(Instant, String)]) -> Vec<&str> {
    reasons.iter().map(|(_, reason)| reason.as_str()).collect()
}

fn progressing(set: &CloneSet) -> [String; 3] {
    condition(set, "Progressing").unwrap_or_default()
}

async fn until_reason(demo: &Demo, reason: &str) -> [String; 3] {
    demo.until(&format!("progress is {reason}"), |set, _| {
        let observed = set.status.as_ref().and_then(|status| status.observed_generation);
        progressing(set)[1] == reason && observed == set.metadata.generation
    })
    .await;
    progressing(&demo.set().await)
}

/// Pods that no node takes.
fn nowhere(selector: &str) -> Value {
    json!({"spec": {"template": {"spec": {"nodeSelector": {"kruise-rs.io/node-type": selector}}}}})
}

/// Seconds of the scenario, and a shorter time where seconds are real.
fn seconds(stage: &Stage, wanted: u64, real: u64) -> u64 {
    if stage.cluster.backend() == Backend::Real { real } else { wanted }
}

fn deadline(seconds: u64) -> Value {
    json!({"spec": {"replicas": 2, "progressDeadlineSeconds": seconds}})
}

/// CLONESET-39
async fn an_update_that_does_not_move_is_told_after_the_deadline(stage: &mut Stage) -> Outcome {
    let limit = seconds(stage, 30, 10);
    let demo = Demo::start(stage, "stuck", deadline(limit)).await;
    let told = until_reason(&demo, "CloneSetAvailable").await;
    assert_eq!(told, ["True", "CloneSetAvailable", "CloneSet is available"]);
    let log = Log::of(&demo);
    let stuck = demo.change(nowhere("nowhere")).await.metadata.generation;
    let told = until_reason(&demo, "ProgressDeadlineExceeded").await;
    let revision = demo.set().await.status.unwrap().update_revision.unwrap();
    assert_eq!(told[0], "False");
    assert_eq!(told[2], format!("CloneSet revision {revision} has timed out progressing"));
    let reasons = log.reasons(stuck);
    assert_eq!(words(&reasons), ["CloneSetUpdated", "ProgressDeadlineExceeded"]);
    let took = reasons[1].0 - reasons[0].0;
    let bounds = Duration::from_secs(limit)..=Duration::from_secs(limit + 10);
    assert!(bounds.contains(&took), "{took:?}");

    let mended = demo.change(nowhere("hollow")).await.metadata.generation;
    let told = until_reason(&demo, "CloneSetAvailable").await;
    assert_eq!(told[0], "True");
    assert_eq!(words(&log.reasons(mended)), ["CloneSetUpdated", "CloneSetAvailable"]);
    let progress = log.all().into_iter().map(|(_, set)| progressing(&set));
    assert!(progress.filter(|[_, reason, _]| reason == "CloneSetUpdated").all(|[status, _, message]| (
        status.as_str(),
        message.as_str()
    ) == (
        "True",
        "CloneSet is progressing"
    )));
    Ok(())
}
managed!(an_update_that_does_not_move_is_told_after_the_deadline, []);

/// CLONESET-40
async fn idle_time_does_not_count(stage: &mut Stage) -> Outcome {
    let limit = seconds(stage, 30, 8);
    let demo = Demo::start(stage, "idle", deadline(limit)).await;
    until_reason(&demo, "CloneSetAvailable").await;
    tokio::time::sleep(Duration::from_secs(seconds(stage, 300, 12))).await;
    let log = Log::of(&demo);
    let changed = demo.set_image("app:v2").await.metadata.generation;
    demo.rolled_out().await;
    until_reason(&demo, "CloneSetAvailable").await;
    assert_eq!(words(&log.reasons(changed)), ["CloneSetUpdated", "CloneSetAvailable"]);
    Ok(())
}
managed!(idle_time_does_not_count, []);

/// CLONESET-41
async fn time_that_is_paused_or_waits_at_the_partition_does_not_count(stage: &mut Stage) -> Outcome {
    let limit = seconds(stage, 30, 8);
    let demo = Demo::start(stage, "pause", deadline(limit)).await;
    let log = Log::of(&demo);
    demo.change(merged(rolling(json!({"paused": true})), &nowhere("nowhere"))).await;
    let told = until_reason(&demo, "CloneSetPaused").await;
    assert_eq!(told, ["True", "CloneSetPaused", "CloneSet is paused"]);
    demo.always("it stays so", Duration::from_secs(seconds(stage, 60, 12)), |set, _| {
        progressing(set)[1] == "CloneSetPaused"
    })
    .await;
    let resumed = demo.change(rolling(json!({"paused": false}))).await.metadata.generation;
    until_reason(&demo, "CloneSetUpdated").await;
    until_reason(&demo, "ProgressDeadlineExceeded").await;
    let reasons = log.reasons(resumed);
    assert_eq!(words(&reasons), ["CloneSetUpdated", "ProgressDeadlineExceeded"]);
    assert!(reasons[1].0 - reasons[0].0 >= Duration::from_secs(limit), "the pause does not count");

    demo.change(nowhere("hollow")).await;
    until_reason(&demo, "CloneSetAvailable").await;
    demo.change(rolling(json!({"partition": 1}))).await;
    demo.set_image("app:v2").await;
    let told = until_reason(&demo, "ProgressPartitionAvailable").await;
    assert_eq!(
        (told[0].as_str(), told[2].as_str()),
        ("True", "CloneSet has been paused due to partition ready")
    );
    demo.always("it stays so", Duration::from_secs(limit + 5), |set, _| {
        progressing(set)[1] == "ProgressPartitionAvailable"
    })
    .await;
    demo.change(json!({"spec": {"progressDeadlineSeconds": null}})).await;
    demo.until("nothing is said of progress", |set, _| condition(set, "Progressing").is_none()).await;
    Ok(())
}
managed!(time_that_is_paused_or_waits_at_the_partition_does_not_count, []);

/// CLONESET-42
async fn pods_are_available_after_they_were_ready_for_a_while(stage: &mut Stage) -> Outcome {
    let wait = seconds(stage, 20, 10);
    let demo = Demo::prepare(stage, "minready").await;
    demo.create(json!({"spec": {"minReadySeconds": wait}})).await;
    let log = Log::of(&demo);
    demo.until("five pods are ready", |set, pods| {
        pods.iter().filter(|pod| is_ready(pod)).count() == 5
            && set.status.as_ref().is_some_and(|status| status.ready_replicas == 5)
    })
    .await;
    let status = demo.set().await.status.unwrap();
    assert_eq!((status.available_replicas, status.updated_available_replicas.unwrap_or(0)), (0, 0));
    assert_eq!(status.updated_ready_replicas, 5);
    demo.settled().await;
    let first = |is_so: fn(CloneSet) -> bool| {
        let found = log.all().into_iter().find(|(_, set)| is_so(set.clone()));
        found.map(|(at, _)| at).unwrap()
    };
    let ready = first(|set| set.status.is_some_and(|status| status.ready_replicas > 0));
    let available = first(|set| set.status.is_some_and(|status| status.available_replicas > 0));
    // Conditions of pods have no fractions of seconds.
    assert!(available - ready >= Duration::from_secs(wait - 1), "{:?}", available - ready);
    for (_, set) in log.all() {
        let status = set.status.unwrap_or_default();
        assert_eq!(status.updated_available_replicas.unwrap_or(0), status.available_replicas);
        assert_eq!(status.updated_ready_replicas, status.ready_replicas);
    }
    Ok(())
}
managed!(pods_are_available_after_they_were_ready_for_a_while, []);

//! Several managers on a cluster: one leads, another takes over, and no pod is forgotten or written twice.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_api::cloneset::v1beta1::CloneSet;
use kruise_runtime::scope::Stop;
use kruise_testkit::{
    Backend, Outcome, Sandbox,
    wait::{always, seen},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    pods,
    stage::{
        Stage, launched,
        network::{Door, Line},
        process::{Launch, Process},
    },
};

/// Short times, so that many rounds fit into a minute or two. They keep the ratios of the defaults.
const SHORT: &[&str] = &[
    "--leader-election-id=kruise-manager-test",
    "--leader-election-lease-duration=3s",
    "--leader-election-renew-deadline=2s",
    "--leader-election-retry-period=400ms",
];
/// The defaults: 15 s, 10 s, 2 s.
const DEFAULTS: &[&str] = &["--leader-election-id=kruise-manager-test-defaults"];

/// What ends a leader, and how long nobody may lead after it.
#[derive(Clone, Copy)]
struct End {
    signal: &'static str,
    times: &'static [&'static str],
    rounds: usize,
    bar: Duration,
}

/// Rounds in which the leader ends and is replaced, while pods are made all the time.
async fn rounds(stage: &Stage, end: End) {
    let sandbox = stage.cluster.sandbox("leader").await;
    let door = Door::open().await;
    let launch = stage.launch().flags(end.times).behind(&door);
    let leader = launch.ready().await;
    leader.until_leads(Instant::now(), Duration::from_secs(30)).await;
    let record = pods::Record::begin(stage.cluster.client(), sandbox.namespace()).await;
    let done = Stop::default();
    let ending = async {
        let gaps = replacements(&launch, leader, end).await;
        done.ask();
        gaps
    };
    let load = pods::make(stage.cluster.client(), sandbox.namespace(), &done);
    let ((mut gaps, _leader), (made, refusals)) = futures::join!(ending, load);
    gaps.sort();
    println!(
        "{} {} rounds, without a leader: median {:?}, longest {:?}; {made} pods, {} tries refused",
        end.signal,
        end.rounds,
        gaps[gaps.len() / 2],
        gaps[gaps.len() - 1],
        refusals.len(),
    );
    record.each_has_one(made).await;
}

/// The times without a leader, and the last leader.
async fn replacements(launch: &Launch, mut leader: Process, end: End) -> (Vec<Duration>, Process) {
    let mut standby = launch.ready().await;
    let mut gaps = Vec::new();
    for _ in 0..end.rounds {
        assert!(leader.leads().await && !standby.leads().await, "one leads and one waits");
        leader.signal(end.signal);
        let since = Instant::now();
        // As its Deployment would. Either of the two may be the next.
        let replacement = launch.spawn();
        let (led, next) = tokio::select! {
            led = standby.until_leads(since, end.bar) => (led, true),
            led = replacement.until_leads(since, end.bar) => (led, false),
        };
        gaps.push(led);
        let status = leader.until_ended(Duration::from_secs(30)).await;
        assert_eq!(status.success(), end.signal == "-TERM", "{status}\n{}", leader.log());
        replacement.until_ready().await;
        (leader, standby) = if next { (standby, replacement) } else { (replacement, standby) };
    }
    (gaps, leader)
}

fn rounds_on(stage: &Stage) -> usize {
    match stage.cluster.backend() {
        Backend::Real => 20,
        Backend::Embedded => 3,
    }
}

/// PLATFORM-15: a leader that is killed is replaced when its lease ran out.
async fn a_killed_leader_is_replaced(stage: &mut Stage) -> Outcome {
    let (rounds_here, bar) = (rounds_on(stage), Duration::from_secs(6));
    rounds(stage, End { signal: "-KILL", times: SHORT, rounds: rounds_here, bar }).await;
    Ok(())
}
launched!(a_killed_leader_is_replaced);

/// PLATFORM-15: a leader that is asked to end hands over at once.
async fn a_leader_that_ends_hands_over(stage: &mut Stage) -> Outcome {
    let (rounds_here, bar) = (rounds_on(stage), Duration::from_secs(3));
    rounds(stage, End { signal: "-TERM", times: SHORT, rounds: rounds_here, bar }).await;
    Ok(())
}
launched!(a_leader_that_ends_hands_over);

/// PLATFORM-15: the same with the times that users have.
#[test]
#[ignore = "needs a real cluster; `cargo xtask test` brings one up"]
fn with_default_times_a_killed_leader_is_replaced_within_twenty_seconds_real() {
    crate::stage::prepared("default-times", &[], async |stage: &mut Stage| {
        let end = End { signal: "-TERM", times: DEFAULTS, rounds: 2, bar: Duration::from_secs(5) };
        rounds(stage, end).await;
        let end = End { signal: "-KILL", rounds: 1, bar: Duration::from_secs(20), ..end };
        rounds(stage, end).await;
        Ok(())
    });
}

/// PLATFORM-16: a leader that cannot reach the API server ends before another one begins, and nothing is done twice.
async fn a_leader_without_an_api_server_ends_before_another_begins(stage: &mut Stage) -> Outcome {
    let (times, bar) = match stage.cluster.backend() {
        Backend::Real => (DEFAULTS, Duration::from_secs(25)),
        Backend::Embedded => (SHORT, Duration::from_secs(8)),
    };
    let sandbox = stage.cluster.sandbox("cut").await;
    let door = Door::open().await;
    let line = Line::lay(&stage.kubeconfig()).await;
    let launch = stage.launch().flags(times).behind(&door);
    let mut leader = launch.clone().reaching(&line.kubeconfig).ready().await;
    leader.until_leads(Instant::now(), Duration::from_secs(30)).await;
    let standby = launch.ready().await;
    let record = pods::Record::begin(stage.cluster.client(), sandbox.namespace()).await;
    let other = stage.cluster.sandbox("cut-set").await;
    stage.create(cloneset(other.namespace())).await.unwrap();
    has_pods(&other, 1).await;
    let done = Stop::default();
    let cutting = async {
        line.cut();
        // Both of them want to make these pods, one after the other.
        other.merge::<CloneSet>("web", json!({"spec": {"replicas": 6}})).await;
        let since = Instant::now();
        let status = leader.until_ended(bar).await;
        let ended = since.elapsed();
        assert!(!status.success(), "{status}");
        assert!(leader.log().contains("leader election lost"), "{}", leader.log());
        assert!(!standby.leads().await, "two of them led");
        let led = standby.until_leads(since, bar).await;
        line.mend();
        println!("the cut leader ended after {ended:?}, the other one led after {led:?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
        done.ask();
    };
    let load = pods::make(stage.cluster.client(), sandbox.namespace(), &done);
    let ((), (made, _)) = futures::join!(cutting, load);
    record.each_has_one(made).await;
    has_pods(&other, 6).await;
    let kept = always("no more pods than wanted", Duration::from_secs(2), async || {
        let pods: Vec<Pod> = other.list().await;
        seen(pods.len() == 6, format!("{} pods", pods.len()))
    });
    kept.await.unwrap();
    Ok(())
}
launched!(a_leader_without_an_api_server_ends_before_another_begins);

fn cloneset(namespace: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"nodeSelector": {"no": "node"}, "containers": [{"name": "main", "image": "app:v1"}]}}},
    })
}

async fn has_pods(sandbox: &Sandbox, count: usize) {
    sandbox
        .eventually("the set has its pods", async || {
            let pods: Vec<Pod> = sandbox.list().await;
            seen(pods.len() == count, format!("{} pods", pods.len()))
        })
        .await;
}

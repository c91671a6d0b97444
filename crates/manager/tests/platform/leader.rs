//! Two managers on a real cluster: one leads, and the other takes over.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_testkit::{
    Outcome,
    wait::{Look, eventually},
};
use serde_json::json;
use tokio::time::Instant;

use crate::stage::{Door, Process, Stage, get, process};

/// Short times, so that twenty rounds fit into a minute or two. They keep the ratios of the defaults.
const LEASE: &[&str] = &[
    "--leader-election-id=kruise-manager-test",
    "--leader-election-lease-duration=3s",
    "--leader-election-renew-deadline=2s",
    "--leader-election-retry-period=400ms",
];
const ROUNDS: usize = 20;

async fn leads(process: &Process) -> bool {
    let text = get(process.metrics, "/metrics").await.map(|(_, text)| text).unwrap_or_default();
    text.lines().any(|line| line == "kruise_manager_is_leader 1")
}

async fn until_leads(process: &Process, patience: Duration) -> Duration {
    let began = Instant::now();
    let led = eventually("the other one leads", patience, async || {
        if leads(process).await { Look::Yes(()) } else { Look::No("nobody leads".to_owned()) }
    });
    if let Err(message) = led.await {
        panic!("{message}\n{}", process.log());
    }
    began.elapsed()
}

/// A pod with our gate, made in every round: each must get its condition, whoever leads.
async fn make_pod(stage: &Stage, namespace: &str, round: usize) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("pod-{round}"), "namespace": namespace},
        "spec": {"nodeSelector": {"no": "node"}, "readinessGates": [{"conditionType": "KruisePodReady"}],
            "containers": [{"name": "main", "image": "app:v1"}]},
    });
    let made = eventually("the pod is made", Duration::from_secs(20), async || {
        match stage.create(pod.clone()).await {
            Ok(_) => Look::Yes(()),
            Err(error) => Look::No(error),
        }
    });
    made.await.unwrap();
}

async fn rounds(stage: &mut Stage, signal: &str, bar: Duration) -> Outcome {
    let sandbox = stage.cluster.sandbox("leader").await;
    let door = Door::open().await;
    let mut leader = process(LEASE, Some(&door)).await;
    until_leads(&leader, Duration::from_secs(20)).await;
    let mut longest = Duration::ZERO;
    for round in 0..ROUNDS {
        let standby = process(LEASE, Some(&door)).await;
        assert!(leads(&leader).await && !leads(&standby).await, "one leads and one waits");
        make_pod(stage, sandbox.namespace(), round).await;
        let id = leader.child.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        longest = longest.max(until_leads(&standby, bar).await);
        let status = leader.child.wait().unwrap();
        assert_eq!(status.success(), signal == "-TERM", "{status}\n{}", leader.log());
        leader = standby;
    }
    println!("longest time without a leader after {signal}: {longest:?}");
    sandbox
        .eventually("every pod has its condition, once", async || {
            let pods: Vec<Pod> = sandbox.list().await;
            let conditions = |pod: &Pod| {
                let all =
                    pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
                all.iter().filter(|condition| condition.type_ == "KruisePodReady").count()
            };
            let counts: Vec<usize> = pods.iter().map(conditions).collect();
            if counts == vec![1; ROUNDS] { Look::Yes(()) } else { Look::No(format!("{counts:?}")) }
        })
        .await;
    Ok(())
}

/// PLATFORM-15: a leader that is killed is replaced when its lease ran out.
#[test]
#[ignore = "needs a real cluster; `cargo xtask test` brings one up"]
fn a_killed_leader_is_replaced_real() {
    crate::stage::prepared("killed", &[], async |stage: &mut Stage| {
        rounds(stage, "-KILL", Duration::from_secs(6)).await
    });
}

/// PLATFORM-15: a leader that is asked to end hands over at once.
#[test]
#[ignore = "needs a real cluster; `cargo xtask test` brings one up"]
fn a_leader_that_ends_hands_over_real() {
    crate::stage::prepared("handed-over", &[], async |stage: &mut Stage| {
        rounds(stage, "-TERM", Duration::from_secs(3)).await
    });
}

//! What must not stop a workload.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_sim::faults::WatchFaults;
use kruise_testkit::Outcome;
use kube::{Api, api::DeleteParams};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    kit::{Demo, name},
    stage::{Stage, embedded_only},
};

/// INPLACE-42: a pod that came and went before the manager heard of it is not waited for without end.
///
/// Not on a real cluster, whose watches tell everything.
async fn a_pod_that_nobody_heard_of_is_not_waited_for_without_end(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "leak", json!({"spec": {"replicas": 1}})).await;
    let before = demo.uids().await;
    let leaks = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with("cloneset_scale_expectation_leakage{"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(leaks(&stage.metrics().await), Vec::<String>::new());
    // Whatever comes and goes within ten seconds is never told.
    stage.sim().faults().watch(WatchFaults { merge: Duration::from_secs(10), ..WatchFaults::default() });
    demo.change(json!({"spec": {"replicas": 2}})).await;
    demo.until("there is a second pod", |_, pods| pods.len() == 2).await;
    let begun = Instant::now();
    let second = demo.pods().await.iter().map(name).find(|name| !before.contains_key(name)).unwrap();
    let pods: Api<Pod> = demo.sandbox.api();
    pods.delete(&second, &DeleteParams::default().grace_period(0)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(demo.uids().await, before);
    stage.sim().faults().heal();
    demo.settled().await;
    assert!(begun.elapsed() < Duration::from_secs(45), "{:?}", begun.elapsed());
    assert!(begun.elapsed() >= Duration::from_secs(30), "{:?}: was the pod heard of?", begun.elapsed());
    let namespace = demo.sandbox.namespace();
    let counted = leaks(&stage.metrics().await);
    assert_eq!(counted.len(), 1, "{counted:?}");
    assert!(counted[0].contains(&format!("namespace=\"{namespace}\"")), "{counted:?}");
    assert!(counted[0].contains("name=\"demo\"") && counted[0].ends_with(" 1"), "{counted:?}");
    Ok(())
}
embedded_only!(a_pod_that_nobody_heard_of_is_not_waited_for_without_end, ["--expectation-timeout=30s"]);

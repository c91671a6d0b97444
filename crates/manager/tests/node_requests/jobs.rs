//! EphemeralJobs.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_api::ephemeraljob::v1alpha1::{EphemeralJob, Phase};
use kruise_testkit::{Outcome, Sandbox, cluster::REAL_NODES};
use serde_json::json;

use crate::{
    stage::{Stage, managed},
    words::{ready_pod, room, until_so},
};

async fn job(stage: &Stage, sandbox: &Sandbox, script: &str, field: &str, value: i32) {
    let container = json!({
        "name": "debug", "image": stage.cluster.image("app:v1"), "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "File", "command": ["sh", "-c", script],
    });
    let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}, "template": {"ephemeralContainers": [container]}});
    spec[field] = json!(value);
    let _: EphemeralJob = sandbox.create(json!({"metadata": {"name": "debug"}, "spec": spec})).await;
}

async fn ends_as(sandbox: &Sandbox, phase: Phase, numbers: [i32; 3]) -> EphemeralJob {
    until_so(sandbox, "the job has ended", async || {
        let job: EphemeralJob = sandbox.get("debug").await;
        let status = job.status.clone().unwrap_or_default();
        let found = [status.matched, status.succeeded, status.failed];
        let is_so = status.phase.as_ref() == Some(&phase) && found == numbers.map(Some);
        (is_so && status.completion_time.is_some(), format!("{status:?}"))
    })
    .await;
    sandbox.get("debug").await
}

fn containers(pod: &Pod) -> usize {
    pod.spec.as_ref().and_then(|spec| spec.ephemeral_containers.as_ref()).map_or(0, Vec::len)
}

/// EJ-1: the oldest pods get the container, the newest none.
async fn the_oldest_pods_are_served_and_the_job_succeeds(stage: &mut Stage) -> Outcome {
    stage.cluster.require_nodes(REAL_NODES).await?;
    let sandbox = room(stage, "served").await;
    for name in ["a", "b", "c"] {
        ready_pod(stage, &sandbox, name, json!([])).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    job(stage, &sandbox, "sleep 3; exit 0", "replicas", 2).await;
    let job = ends_as(&sandbox, Phase::Succeeded, [2, 2, 0]).await;
    for (name, wanted) in [("a", 1), ("b", 1), ("c", 0)] {
        let pod: Pod = sandbox.get(name).await;
        assert_eq!(containers(&pod), wanted, "{name}");
        let marks = pod.spec.unwrap().ephemeral_containers.unwrap_or_default();
        let env = marks.iter().flat_map(|container| container.env.clone().unwrap_or_default());
        assert!(env.into_iter().all(|variable| variable.value == job.metadata.uid));
    }
    Ok(())
}
managed!(the_oldest_pods_are_served_and_the_job_succeeds, crate::words::PLAIN);

/// EJ-3, EJ-7: a job whose containers fail says so, and goes after its time.
async fn a_job_that_fails_says_so_and_goes(stage: &mut Stage) -> Outcome {
    stage.cluster.require_nodes(REAL_NODES).await?;
    let sandbox = room(stage, "fails").await;
    ready_pod(stage, &sandbox, "a", json!([])).await;
    job(stage, &sandbox, "exit 3", "ttlSecondsAfterFinished", 5).await;
    ends_as(&sandbox, Phase::Failed, [1, 0, 1]).await;
    until_so(&sandbox, "the job is gone", async || {
        let left: Vec<EphemeralJob> = sandbox.list().await;
        (left.is_empty(), format!("{left:?}"))
    })
    .await;
    let pod: Pod = sandbox.get("a").await;
    assert_eq!(containers(&pod), 1, "the container stays");
    Ok(())
}
managed!(a_job_that_fails_says_so_and_goes, crate::words::PLAIN);

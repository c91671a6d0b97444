//! Jobs with sidecars, whose daemon stops them.

use serde_json::{Value, json};

use crate::world::{PODS, REQUESTS, World, condition, container, states, text};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const JOB: &str = "/apis/batch/v1/namespaces/default/jobs/work";
const FLAGS: &[&str] = &["--feature-gates=SidecarTerminator=true"];

/// A job whose main container ends after five seconds, with a sidecar that has these variables beside the usual one.
async fn begin(world: &World, image: &str, more: &[&str]) -> Value {
    let mut env = vec![json!({"name": "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", "value": "true"})];
    env.extend(more.iter().map(|name| json!({"name": name, "value": "true"})));
    let containers = json!([{"name": "main", "image": "app:v1", "command": ["sleep", "5"]},
        {"name": "sc", "image": image, "command": ["sleep", "1000"], "env": env}]);
    let template = json!({"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "containers": containers}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"},
        "spec": {"backoffLimit": 0, "template": template}});
    world.post(JOBS, job).await;
    world
        .until(JOB, |job| {
            condition(job, "Complete")["status"] == "True" || condition(job, "Failed")["status"] == "True"
        })
        .await
}

/// A sidecar is stopped by the daemon when the main container is done, and the job is complete.
#[tokio::test(start_paused = true)]
async fn a_job_completes_when_its_daemon_stopped_the_sidecar() {
    let world = World::new(1, FLAGS).await;
    let job = begin(&world, "sidecar:v1", &[]).await;
    assert_eq!(condition(&job, "Complete")["status"], "True");
    assert_eq!(world.stops("node-1").len(), 1);
    let requests = world.list(REQUESTS).await;
    assert!(text(&requests[0]["metadata"]["name"]).starts_with("sidecar-termination-"), "{requests:?}");
}

/// A sidecar that dies badly does not count where the user says so: the phase that was declared stays, whatever its
/// kubelet finds afterwards.
#[tokio::test(start_paused = true)]
async fn a_pod_that_was_declared_finished_stays_so() {
    let world = World::new(1, FLAGS).await;
    let job = begin(&world, "sidecar:v1-stubborn", &["KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE"]).await;
    assert_eq!(condition(&job, "Complete")["status"], "True");
    world.live(30).await;
    let pod = world.list(PODS).await.remove(0);
    assert_eq!(pod["status"]["phase"], "Succeeded");
    assert_eq!(condition(&pod, "SidecarTerminated")["message"], "Terminated by Sidecar Terminator");
    assert_eq!(container(&pod, "sc")["state"]["terminated"]["exitCode"], 137);
    let open: Vec<String> = world.list(REQUESTS).await.iter().map(states).collect();
    assert!(
        world.list(REQUESTS).await.iter().all(|request| request["status"]["phase"] == "Completed"),
        "{open:?}"
    );
}

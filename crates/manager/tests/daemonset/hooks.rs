//! The preDelete hook, and images that are pulled ahead.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    agent::{Agent, node_of, rolling},
    kit::{has_condition, is_ready, label, merged, name},
    stage::{Stage, managed},
};

fn prepared(pods: &[Pod]) -> Vec<&Pod> {
    pods.iter().filter(|pod| label(pod, "lifecycle.apps.kruise.io/state") == "PreparingDelete").collect()
}

/// DAEMONSET-33: one pod at a time waits for its hook, not ready if that is wanted.
async fn a_hook_holds_one_pod_after_the_other(stage: &mut Stage) -> Outcome {
    let hook = json!({"spec": {
        "lifecycle": {"preDelete": {"labelsHandler": {"hold": "yes"}, "markPodNotReady": true}},
        "template": {"metadata": {"labels": {"hold": "yes"}}},
    }});
    let agent = Agent::start(stage, "hook", merged(hook, &rolling(json!({"maxUnavailable": 1})))).await;
    let nodes = agent.nodes().await;
    agent.set_image("app:v2").await;
    for node in nodes.iter().rev().take(2) {
        agent
            .until("one pod waits", |_, pods| {
                prepared(pods).len() == 1
                    && prepared(pods).iter().all(|pod| node_of(pod) == *node && !is_ready(pod))
            })
            .await;
        agent
            .always("no other is touched", Duration::from_secs(5), |_, pods| {
                prepared(pods).len() == 1
                    && pods.iter().filter(|pod| is_ready(pod)).count() == nodes.len() - 1
            })
            .await;
        let held = agent.demo.pods().await;
        let held = prepared(&held)[0].clone();
        assert!(has_condition(&held, "ContainersReady"), "its containers run");
        agent.demo.change_pod(&name(&held), json!({"metadata": {"labels": {"hold": "no"}}})).await;
        let uid = held.metadata.uid.clone();
        agent.until("it is replaced", |_, pods| pods.iter().all(|pod| pod.metadata.uid != uid)).await;
    }
    Ok(())
}
managed!(a_hook_holds_one_pod_after_the_other, []);

/// DAEMONSET-34: a hook for updates in place is refused.
async fn a_hook_for_updates_in_place_is_refused(stage: &mut Stage) -> Outcome {
    let agent = Agent::prepare(stage, "no-hook").await;
    let hook = json!({"spec": {"lifecycle": {"inPlaceUpdate": {"labelsHandler": {"a": "b"}}}}});
    let refused = stage.create(agent.object(&hook)).await.unwrap_err();
    assert!(refused.contains("inPlaceUpdate hook has not supported yet"), "{refused}");
    Ok(())
}
managed!(a_hook_for_updates_in_place_is_refused, []);

async fn jobs(agent: &Agent) -> Vec<Value> {
    let jobs: Vec<kruise_api::imagepulljob::v1beta1::ImagePullJob> = agent.sandbox().list().await;
    jobs.iter().map(|job| serde_json::to_value(job).unwrap()).collect()
}

/// DAEMONSET-37: one job for each changed container, for pods that are not updated, until the update is over.
async fn images_are_pulled_ahead(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "pull-ahead", rolling(json!({"partition": 3}))).await;
    assert_eq!(jobs(&agent).await, Vec::<Value>::new());
    agent.set_image("app:v2").await;
    let look = async || {
        let jobs = jobs(&agent).await;
        kruise_testkit::wait::seen(jobs.len() == 1, format!("{} jobs", jobs.len()))
    };
    agent.sandbox().eventually("a job is there", look).await;
    let job = jobs(&agent).await.remove(0);
    agent
        .until("the new revision is reported", |set, _| {
            set.status.as_ref().is_some_and(|status| status.observed_generation == set.metadata.generation)
        })
        .await;
    let hash = agent.set().await.status.unwrap().update_revision.unwrap();
    let revision = format!("agent-{hash}");
    assert_eq!(job["metadata"]["name"], format!("{revision}-main"));
    let left_out =
        json!({"key": "controller-revision-hash", "operator": "NotIn", "values": [revision, hash]});
    assert_eq!(
        job["spec"]["podSelector"],
        json!({"matchLabels": {"app": "agent"}, "matchExpressions": [left_out]})
    );
    assert_eq!(job["spec"]["image"], agent.demo.image("app:v2"));
    agent.change(rolling(json!({"partition": 0}))).await;
    agent.rolled_out().await;
    let look = async || {
        let jobs = jobs(&agent).await;
        kruise_testkit::wait::seen(jobs.is_empty(), format!("{} jobs", jobs.len()))
    };
    agent.sandbox().eventually("the job is gone", look).await;
    Ok(())
}
managed!(
    images_are_pulled_ahead,
    ["--feature-gates=PreDownloadImageForDaemonSetUpdate=true,ImagePullJobGate=true"]
);

/// DAEMONSET-37: without a rolling update no image is pulled ahead, and the controller goes on.
async fn on_delete_pulls_nothing_ahead(stage: &mut Stage) -> Outcome {
    let agent =
        Agent::start(stage, "no-pull", json!({"spec": {"updateStrategy": {"type": "OnDelete"}}})).await;
    agent.set_image("app:v2").await;
    agent
        .until("the new revision is reported", |set, _| {
            set.status.as_ref().is_some_and(|status| status.observed_generation == set.metadata.generation)
        })
        .await;
    agent.always("it rests", Duration::from_secs(5), |_, _| true).await;
    assert_eq!(jobs(&agent).await, Vec::<Value>::new());
    let node = agent.nodes().await.remove(0);
    agent.sandbox().delete::<Pod>(&agent.pod_on(&node).await).await;
    agent.settled().await;
    Ok(())
}
managed!(
    on_delete_pulls_nothing_ahead,
    ["--feature-gates=PreDownloadImageForDaemonSetUpdate=true,ImagePullJobGate=true"]
);

//! BroadcastJobs with sidecars.

use kruise_api::broadcastjob::v1beta1::BroadcastJob;
use kruise_testkit::{Outcome, wait::seen};
use serde_json::json;

use crate::{
    daemon::NodeDaemon,
    stage::{Stage, embedded_only},
    words::{Room, pod_spec},
};

/// TERMINATOR-14: a BroadcastJob ends on every node although a sidecar runs, with both restart policies.
///
/// The test plays the node daemon.
async fn a_broadcast_job_with_a_sidecar_completes(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "broadcast").await?;
    let daemon = NodeDaemon::new(stage, &room);
    let story = async {
        for (name, policy) in [("never", "Never"), ("on-failure", "OnFailure")] {
            let mut spec = pod_spec(policy, &[room.main("main", 5, 0), room.normal("sc")]);
            spec["nodeSelector"] = serde_json::Value::Null;
            let job = json!({"metadata": {"name": name}, "spec": {"template": {"spec": spec}}});
            let _: BroadcastJob = room.sandbox.create(job).await;
            let look = async || {
                let job: BroadcastJob = room.sandbox.get(name).await;
                let status = serde_json::to_value(job.status).unwrap();
                let is_done = status["phase"] == "completed" && status["succeeded"] == status["desired"];
                seen(is_done && status["succeeded"] == 4, status.to_string())
            };
            room.sandbox.eventually("the job is complete", look).await;
        }
    };
    daemon.during(story).await;
    Ok(())
}
embedded_only!(a_broadcast_job_with_a_sidecar_completes, crate::words::ON);

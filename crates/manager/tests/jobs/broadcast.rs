//! BroadcastJobs from their creation to their end.

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kruise_api::broadcastjob::v1beta1::BroadcastJob;
use kruise_testkit::{Outcome, wait::seen};
use kube::ResourceExt as _;
use serde_json::json;

use crate::{
    kit::is_active,
    room::{Room, node_of, phase},
    stage::{Stage, embedded_only, managed},
};

/// JOBS-1: one pod on each node, bound to it, and the job is complete after them.
async fn a_job_runs_once_on_every_node(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-all").await;
    room.broadcast("for i in 3 2 1; do echo $i; sleep 1; done", json!({})).await;
    let n = room.count();
    room.until(&format!("completed {n}/0/{n}/0")).await;
    let job = room.job().await;
    let pods = room.pods().await;
    let nodes: BTreeSet<String> = pods.iter().map(node_of).collect();
    assert_eq!(nodes.into_iter().collect::<Vec<_>>(), room.nodes);
    for pod in &pods {
        assert_eq!(pod.labels()["broadcastjob-name"], "job");
        assert_eq!(pod.labels()["broadcastjob-controller-uid"], job["metadata"]["uid"].as_str().unwrap());
        let written = serde_json::to_value(pod).unwrap();
        let required =
            &written["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let field = &required["nodeSelectorTerms"][0]["matchFields"][0];
        assert_eq!((&field["key"], &field["values"][0]), (&json!("metadata.name"), &json!(node_of(pod))));
    }
    assert_eq!(
        room.condition("Complete").await.unwrap(),
        ["True", "Complete", &format!("Job completed, {n} pods succeeded, 0 pods failed")]
    );
    let namespace = room.sandbox.namespace().to_owned();
    let look = async || {
        let told = room.events("BroadcastJob", "JobComplete").await;
        let expected = format!("Job {namespace}/job is completed, {n} pods succeeded, 0 pods failed");
        seen(told == [expected], format!("{told:?}"))
    };
    room.within("its end was reported", look).await;
    Ok(())
}
managed!(a_job_runs_once_on_every_node, []);

/// JOBS-2: with parallelism 1 no two pods are active at once. Three nodes are needed, and commands on them.
async fn pods_take_turns(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-turns").await;
    room.broadcast("sleep 5", json!({"spec": {"parallelism": 1}})).await;
    let look = async || {
        let active = room.pods().await.iter().filter(|pod| is_active(pod)).count();
        seen(active <= 1, format!("{active} pods are active"))
    };
    room.sandbox.always("at most one pod is active", Duration::from_secs(14), look).await;
    room.until("completed 3/0/3/0").await;
    assert_eq!(room.condition("Waiting").await.unwrap()[..2], ["False", "NotWaiting"]);
    Ok(())
}
embedded_only!(pods_take_turns, []);

/// JOBS-3: a percentage is of the nodes that fit, rounded up.
async fn a_percentage_of_the_nodes_runs_at_once(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-percent").await;
    room.broadcast("sleep 5", json!({"spec": {"parallelism": "40%"}})).await;
    room.until("running 3/2/0/0").await;
    let look = async || {
        let active = room.pods().await.iter().filter(|pod| is_active(pod)).count();
        seen(active <= 2, format!("{active} pods are active"))
    };
    room.sandbox.always("at most two pods are active", Duration::from_secs(10), look).await;
    room.until("completed 3/0/3/0").await;
    Ok(())
}
embedded_only!(a_percentage_of_the_nodes_runs_at_once, []);

/// JOBS-4: nothing happens at parallelism 0, and the job says why.
async fn a_job_without_parallelism_waits(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-zero").await;
    room.broadcast("sleep 5", json!({"spec": {"parallelism": 0}})).await;
    let n = room.count();
    room.until(&format!("running {n}/0/0/0")).await;
    let [status, reason, message] = room.condition("Waiting").await.unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", "ParallelismReached"));
    assert!(message.contains("parallelism: 0"), "{message}");
    assert_eq!(room.pods().await.len(), 0);
    room.change_job(json!({"spec": {"parallelism": 2}})).await;
    room.until(&format!("completed {n}/0/{n}/0")).await;
    Ok(())
}
managed!(a_job_without_parallelism_waits, []);

/// JOBS-14: the job and its pods are deleted after its time.
async fn a_finished_job_is_deleted_after_its_ttl(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-ttl").await;
    let policy =
        |ttl: i32| json!({"spec": {"completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": ttl}}});
    for ttl in [5, 0] {
        room.broadcast("exit 0", policy(ttl)).await;
        let look = async || {
            let (jobs, pods) = (room.sandbox.list::<BroadcastJob>().await, room.pods().await);
            seen(jobs.is_empty() && pods.is_empty(), format!("{} jobs, {} pods", jobs.len(), pods.len()))
        };
        room.within("the job and its pods are gone", look).await;
    }
    Ok(())
}
managed!(a_finished_job_is_deleted_after_its_ttl, []);

/// JOBS-14: not before its time, and not long after it.
async fn a_finished_job_stays_for_its_ttl(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-ttl-time").await;
    let policy = json!({"type": "Always", "ttlSecondsAfterFinished": 5});
    room.broadcast("exit 0", json!({"spec": {"completionPolicy": policy}})).await;
    room.until("completed 3/0/3/0").await;
    let job = room.job().await;
    let end: jiff::Timestamp = job["status"]["completionTime"].as_str().unwrap().parse().unwrap();
    let left = end + jiff::SignedDuration::from_secs(4);
    let left = left.duration_since(stage.sim().clock().now()).max(jiff::SignedDuration::ZERO);
    stage.sim().advance(Duration::try_from(left).unwrap()).await;
    assert_eq!((room.sandbox.list::<BroadcastJob>().await.len(), room.pods().await.len()), (1, 3));
    stage.sim().advance(Duration::from_secs(11)).await;
    assert_eq!((room.sandbox.list::<BroadcastJob>().await.len(), room.pods().await.len()), (0, 0));
    Ok(())
}
embedded_only!(a_finished_job_stays_for_its_ttl, []);

/// JOBS-15: at the deadline all pods are deleted and the job has failed.
async fn a_job_fails_at_its_deadline(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-deadline").await;
    let policy = json!({"spec": {"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 10}}});
    room.broadcast("sleep 3600", policy).await;
    let n = room.count();
    room.until(&format!("failed {n}/0/0/{n}")).await;
    let job = room.job().await;
    let time = |field: &str| job["status"][field].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let took = time("completionTime").duration_since(time("startTime")).as_secs();
    assert!((10..=15).contains(&took), "{took} seconds");
    let message = format!("Job {}/job was active longer than specified deadline", room.sandbox.namespace());
    assert_eq!(room.condition("Failed").await.unwrap(), ["True", "Failed", &message]);
    let look = async || {
        let (pods, told) = (room.pods().await.len(), room.events("BroadcastJob", "DeadlineExceeded").await);
        seen(pods == 0 && told.len() == 1, format!("{pods} pods, {told:?}"))
    };
    room.within("its pods are gone, and that is reported", look).await;
    Ok(())
}
managed!(a_job_fails_at_its_deadline, []);

/// JOBS-16: the deadline is kept although the manager was away (BJ-D5).
async fn a_deadline_is_kept_across_a_restart(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-restart").await;
    let policy = json!({"spec": {"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 10}}});
    room.broadcast("sleep 3600", policy).await;
    room.until("running 3/3/0/0").await;
    stage.sim().advance(Duration::from_secs(5)).await;
    stage.kill_manager();
    stage.sim().advance(Duration::from_secs(3)).await;
    stage.start_manager().await;
    stage.sim().advance(Duration::from_secs(7)).await;
    assert_eq!(room.told().await, "failed 3/0/0/3");
    Ok(())
}
embedded_only!(a_deadline_is_kept_across_a_restart, []);

/// JOBS-23, JOBS-24: a pod that someone deletes is replaced on its node, from the template as it is then.
async fn a_deleted_pod_is_replaced_on_its_node(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-replaced").await;
    room.broadcast("sleep 60", json!({})).await;
    room.until("running 3/3/0/0").await;
    let mut template = room.job().await["spec"]["template"].clone();
    template["metadata"] = json!({"labels": {"version": "new"}});
    room.change_job(json!({"spec": {"template": template}})).await;
    let old = room.pods().await.swap_remove(0);
    room.sandbox.delete::<Pod>(&old.name_any()).await;
    let look = async || {
        let pods = room.pods().await;
        let new = pods.iter().find(|pod| node_of(pod) == node_of(&old) && pod.uid() != old.uid());
        seen(
            pods.len() == 3 && new.is_some_and(|pod| pod.labels().contains_key("version")),
            format!("{} pods", pods.len()),
        )
    };
    room.within("a new pod runs on the node", look).await;
    let others = room.pods().await.into_iter().filter(|pod| !pod.labels().contains_key("version"));
    assert_eq!(others.count(), 2);
    Ok(())
}
embedded_only!(a_deleted_pod_is_replaced_on_its_node, []);

/// JOBS-25: a quota holds pods back without a storm of events, and the job goes on when it is lifted.
async fn a_quota_holds_pods_back(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-quota").await;
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}});
    let _: ResourceQuota = room.sandbox.create(quota).await;
    stage.sim().advance(Duration::from_secs(2)).await;
    room.broadcast("sleep 600", json!({})).await;
    room.until("running 3/2/0/0").await;
    stage.sim().advance(Duration::from_secs(30)).await;
    let [status, reason, message] = room.condition("Waiting").await.unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", "QuotaExceeded"));
    assert!(message.starts_with("1 pod is missing: quota q is used up ("), "{message}");
    let refused = room.events("BroadcastJob", "FailedCreate").await;
    assert!(!refused.is_empty() && refused.len() < 20, "{} events", refused.len());
    assert!(refused[0].starts_with("Error creating: "), "{refused:?}");
    room.sandbox.delete::<ResourceQuota>("q").await;
    room.until("running 3/3/0/0").await;
    assert_eq!(room.condition("Waiting").await.unwrap()[..2], ["False", "NotWaiting"]);
    Ok(())
}
embedded_only!(a_quota_holds_pods_back, []);

/// JOBS-26: a manager that dies in between makes no second pod for a node.
async fn no_node_gets_two_pods_from_two_managers(stage: &mut Stage) -> Outcome {
    for write in 1..6 {
        let room = Room::prepare(stage, &format!("bcj-crash-{write}")).await;
        let faults = stage.sim().faults();
        faults.crash_after_write(write);
        room.broadcast("sleep 20", json!({})).await;
        stage.sim().advance(Duration::from_secs(5)).await;
        stage.kill_manager();
        stage.sim().faults().revive();
        stage.start_manager().await;
        room.until("completed 3/0/3/0").await;
        let pods = room.pods().await;
        let nodes: BTreeSet<String> = pods.iter().map(node_of).collect();
        assert_eq!((pods.len(), nodes.len()), (3, 3), "the manager died after write {write}");
        assert!(pods.iter().all(|pod| phase(pod) == "Succeeded"));
    }
    Ok(())
}
embedded_only!(no_node_gets_two_pods_from_two_managers, []);

/// JOBS-27: without the scheduler.
async fn pods_may_be_put_on_their_nodes_directly(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-direct").await;
    room.broadcast("exit 0", json!({})).await;
    let n = room.count();
    room.until(&format!("completed {n}/0/{n}/0")).await;
    for pod in room.pods().await {
        let pod = serde_json::to_value(pod).unwrap();
        assert!(pod["spec"]["affinity"]["nodeAffinity"].is_null(), "{pod}");
    }
    Ok(())
}
managed!(pods_may_be_put_on_their_nodes_directly, ["--assign-bcj-pods-by-scheduler=false"]);

/// JOBS-32: a smaller parallelism kills nothing and holds from then on.
async fn a_smaller_parallelism_takes_effect_without_harm(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-smaller").await;
    room.broadcast("sleep 10", json!({"spec": {"parallelism": 2}})).await;
    room.until("running 3/2/0/0").await;
    room.change_job(json!({"spec": {"parallelism": 1}})).await;
    stage.sim().advance(Duration::from_secs(3)).await;
    assert_eq!(room.told().await, "running 3/2/0/0");
    assert_eq!(
        room.events("BroadcastJob", "TooManyActivePods").await,
        ["Number of active pods exceed parallelism limit"]
    );
    let is_down = std::cell::Cell::new(false);
    let look = async || {
        let active = room.pods().await.iter().filter(|pod| is_active(pod)).count();
        is_down.set(is_down.get() || active <= 1);
        seen(active <= if is_down.get() { 1 } else { 2 }, format!("{active} pods are active"))
    };
    room.sandbox.always("at most one pod is active from then on", Duration::from_secs(25), look).await;
    assert!(is_down.get());
    room.until("completed 3/0/3/0").await;
    assert_eq!(room.events("BroadcastJob", "SuccessfulDelete").await.len(), 0);
    Ok(())
}
embedded_only!(a_smaller_parallelism_takes_effect_without_harm, []);

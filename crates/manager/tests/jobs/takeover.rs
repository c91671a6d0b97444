//! Objects that another release has left behind.

use std::time::Duration;

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kruise_testkit::Outcome;
use kube::ResourceExt as _;
use serde_json::json;

use crate::{
    room::{Room, due, name, node_of},
    stage::{Stage, embedded_only},
};

/// JOBS-31: pods whose reference has the old version are counted, and none is made twice.
async fn half_a_broadcast_job_is_taken_over(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-takeover").await;
    room.broadcast("sleep 30", json!({"spec": {"parallelism": 2}})).await;
    room.until("running 3/2/0/0").await;
    stage.kill_manager();
    // Without a manager nobody answers the webhooks of pods.
    stage.remove_webhooks().await;
    for pod in room.pods().await {
        let mut owner = serde_json::to_value(&pod.owner_references()[0]).unwrap();
        owner["apiVersion"] = json!("apps.kruise.io/v1alpha1");
        let change = json!({"metadata": {"ownerReferences": [owner]}});
        let _: Pod = room.sandbox.merge(&pod.name_any(), change).await;
    }
    stage.put_webhooks().await;
    stage.start_manager().await;
    stage.sim().advance(Duration::from_secs(10)).await;
    room.until("completed 3/0/3/0").await;
    let nodes: std::collections::BTreeSet<String> = room.pods().await.iter().map(node_of).collect();
    assert_eq!((nodes.len(), room.pods().await.len()), (3, 3));
    Ok(())
}
embedded_only!(half_a_broadcast_job_is_taken_over, []);

/// JOBS-61 (ACJ-D4): children with the old version are listed, and their times are known.
async fn a_schedule_is_taken_over(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "acj-takeover").await;
    room.schedule("*/10 * * * *", room.jobs("sleep 3000")).await;
    stage.sim().advance(Duration::from_secs(605)).await;
    let made = room.made().await;
    assert_eq!(made.len(), 1);
    stage.kill_manager();
    stage.remove_webhooks().await;
    let mut owner = made[0]["metadata"]["ownerReferences"][0].clone();
    owner["apiVersion"] = json!("apps.kruise.io/v1alpha1");
    let change = json!({"metadata": {"ownerReferences": [owner]}});
    let _: Job = room.sandbox.merge(name(&made[0]), change).await;
    let api: kube::Api<kruise_api::advancedcronjob::v1beta1::AdvancedCronJob> = room.sandbox.api();
    let empty = kube::api::Patch::Merge(json!({"status": {"active": null, "lastScheduleTime": null}}));
    api.patch_status("tick", &kube::api::PatchParams::default(), &empty).await.unwrap();
    stage.put_webhooks().await;
    stage.start_manager().await;
    stage.sim().advance(Duration::from_secs(10)).await;
    let tick = room.tick().await;
    assert_eq!(room.made().await.len(), 1, "the run is not repeated");
    assert_eq!(tick["status"]["active"][0]["name"], name(&made[0]));
    let last: jiff::Timestamp = tick["status"]["lastScheduleTime"].as_str().unwrap().parse().unwrap();
    assert_eq!(last.as_second(), due(&made[0]));
    Ok(())
}
embedded_only!(a_schedule_is_taken_over, []);

/// JOBS-60 (ACJ-D5): a namesake's children are not the new object's.
async fn children_of_a_namesake_are_not_adopted(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "acj-namesake").await;
    room.schedule("*/10 * * * *", room.jobs("sleep 3000")).await;
    stage.sim().advance(Duration::from_secs(605)).await;
    let made = room.made().await;
    assert_eq!(made.len(), 1);
    let api: kube::Api<kruise_api::advancedcronjob::v1beta1::AdvancedCronJob> = room.sandbox.api();
    api.delete(
        "tick",
        &kube::api::DeleteParams {
            propagation_policy: Some(kube::api::PropagationPolicy::Orphan),
            ..Default::default()
        },
    )
    .await
    .unwrap();
    stage.sim().advance(Duration::from_secs(5)).await;
    room.schedule("0 0 1 1 *", room.jobs("exit 0")).await;
    stage.sim().advance(Duration::from_secs(5)).await;
    let tick = room.tick().await;
    assert!(tick["status"]["active"].is_null() && tick["status"]["lastScheduleTime"].is_null(), "{tick}");
    assert_eq!(room.made().await.len(), 1);
    Ok(())
}
embedded_only!(children_of_a_namesake_are_not_adopted, []);

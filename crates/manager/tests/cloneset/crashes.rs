//! The manager dies in the middle of something, and another one ends it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_testkit::{Backend, Outcome};
use serde_json::json;

use crate::{
    claims::Stored,
    kit::{Demo, is_available, name, rolling},
    stage::{Stage, managed},
};

/// Moments at which managers die, spread over a time by a rule that has no other meaning. A real manager needs a while to
/// be sure that another one is gone, so there are fewer then.
fn moments(stage: &Stage, within: Duration) -> Vec<Duration> {
    let runs = if stage.cluster.backend() == Backend::Real { 2 } else { 10 };
    let within = u64::try_from(within.as_millis()).unwrap();
    (0..runs).map(|run| Duration::from_millis((run * 7919 + 331) % within)).collect()
}

async fn die_after(stage: &mut Stage, moment: Duration) {
    tokio::time::sleep(moment).await;
    stage.kill_manager();
    tokio::time::sleep(Duration::from_millis(500)).await;
    stage.start_manager().await;
}

/// CLONESET-34 during CLONESET-20
async fn an_update_by_replacement_goes_on_after_a_crash(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "crash", json!({})).await;
    for (run, moment) in moments(stage, Duration::from_secs(12)).into_iter().enumerate() {
        let before = demo.uids().await;
        let film = demo.film().await;
        demo.set_image(&format!("app:v{}", run + 2)).await;
        die_after(stage, moment).await;
        demo.rolled_out().await;
        let after = demo.uids().await;
        assert!(before.values().all(|uid| !after.values().any(|other| other == uid)), "{moment:?}");
        assert_eq!((film.fewest_available(), film.most_active()), (4, 5), "{moment:?}");
        assert_eq!(film.appearances().len(), 10, "no pod too many: {moment:?}");
    }
    Ok(())
}
managed!(an_update_by_replacement_goes_on_after_a_crash, [], alone);

/// CLONESET-34 during CLONESET-30
async fn an_update_in_place_with_a_surge_goes_on_after_a_crash(stage: &mut Stage) -> Outcome {
    let change = rolling(json!({"podUpdatePolicy": "InPlaceIfPossible", "maxSurge": 2}));
    let demo = Demo::start(stage, "crash", change).await;
    for (run, moment) in moments(stage, Duration::from_secs(9)).into_iter().enumerate() {
        let before = demo.uids().await;
        let film = demo.film().await;
        demo.set_image(&format!("app:v{}", run + 2)).await;
        die_after(stage, moment).await;
        demo.rolled_out().await;
        let after = demo.uids().await;
        let kept = before.values().filter(|uid| after.values().any(|other| other == *uid)).count();
        assert_eq!(kept, 3, "{moment:?}");
        assert_eq!(film.most_active(), 7, "{moment:?}");
        assert!(film.fewest_available() >= 4, "{moment:?}: {}", film.fewest_available());
    }
    Ok(())
}
managed!(an_update_in_place_with_a_surge_goes_on_after_a_crash, [], alone);

/// CLONESET-34 during CLONESET-16
async fn a_pod_comes_back_with_its_claims_after_a_crash(stage: &mut Stage) -> Outcome {
    let change = json!({"spec": {"scaleStrategy": {"enablePVCReuse": true}}});
    let stored = Stored::start(stage, "crash", change).await;
    let demo = &stored.demo;
    stored.all_claimed().await;
    let claims = stored.claims().await;
    for (run, moment) in moments(stage, Duration::from_millis(2500)).into_iter().enumerate() {
        let before = demo.uids().await;
        let (lost, uid) = before.iter().nth(run % 5).unwrap();
        demo.sandbox.delete::<Pod>(lost).await;
        die_after(stage, moment).await;
        demo.until("the pod is back", |_, pods| {
            let pod = pods.iter().find(|pod| name(pod) == *lost);
            pod.is_some_and(|pod| is_available(pod) && pod.metadata.uid.as_ref() != Some(uid))
        })
        .await;
        demo.settled().await;
        assert_eq!(demo.uids().await.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
        assert_eq!(stored.claims().await, claims, "{moment:?}");
        assert_eq!(demo.events("FailedCreate").await, [], "{moment:?}");
    }
    stored.leave().await;
    Ok(())
}
managed!(a_pod_comes_back_with_its_claims_after_a_crash, [], alone);

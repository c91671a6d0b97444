//! Updates: order, limits, partition, pause, roll back.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::ControllerRevision, core::v1::Pod};
use kruise_testkit::Outcome;
use serde_json::json;

use crate::{
    kit::{is_available, name},
    stage::{Stage, managed},
    web::{Web, comings, pulling},
};

/// STATEFULSET-19
async fn a_rollout_keeps_to_its_limit(stage: &mut Stage) -> Outcome {
    let web =
        Web::start(stage, "limit", json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}})).await;
    let film = web.film().await;
    web.set_image("app:v2").await;
    web.rests_at("0:v2 1:v2 2:v2 3:v2 4:v2").await;
    assert!(film.fewest_available() >= 3, "{}", film.fewest_available());
    let status = web.status().await;
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    let deleted = web.messages("SuccessfulDelete").await;
    assert_eq!(deleted.len(), 5, "{deleted:?}");
    Ok(())
}
managed!(a_rollout_keeps_to_its_limit, []);

/// STATEFULSET-22, STATEFULSET-25 and the walk of the tutorials: three of five at once, the partition, then all.
async fn a_canary_grows_pauses_and_ends(stage: &mut Stage) -> Outcome {
    let rolling = json!({"maxUnavailable": 3, "partition": 4});
    let web = Web::start(stage, "canary", json!({"updateStrategy": {"rollingUpdate": rolling}})).await;
    web.set_image("app:v2").await;
    web.rests_at("0:v1 1:v1 2:v1 3:v1 4:v2").await;
    let status = web.status().await;
    assert_eq!(status["updatedReplicas"], 1);
    assert_ne!(status["currentRevision"], status["updateRevision"]);
    web.rolling(json!({"partition": 3, "paused": true})).await;
    web.always("nothing is updated", Duration::from_secs(10), |_, pods| {
        web.shown(pods) == "0:v1 1:v1 2:v1 3:v1 4:v2"
    })
    .await;
    web.rolling(json!({"paused": false})).await;
    web.rests_at("0:v1 1:v1 2:v1 3:v2 4:v2").await;
    for ordinal in [1, 4] {
        web.sandbox.delete::<Pod>(&format!("web-{ordinal}")).await;
        web.rests_at("0:v1 1:v1 2:v1 3:v2 4:v2").await;
    }
    web.rolling(json!({"partition": 0})).await;
    web.rests_at("0:v2 1:v2 2:v2 3:v2 4:v2").await;
    Ok(())
}
managed!(a_canary_grows_pauses_and_ends, []);

/// STATEFULSET-28
async fn a_rollback_uses_the_old_revision_again(stage: &mut Stage) -> Outcome {
    let rolling = json!({"partition": 3});
    let web = Web::start(stage, "back", json!({"updateStrategy": {"rollingUpdate": rolling}})).await;
    let old = web.set().await.status.unwrap().update_revision;
    web.set_image("app:v2").await;
    web.rests_at("0:v1 1:v1 2:v1 3:v2 4:v2").await;
    web.set_image("app:v1").await;
    web.rests_at("0:v1 1:v1 2:v1 3:v1 4:v1").await;
    let revisions: Vec<ControllerRevision> = web.sandbox.list().await;
    let newest = revisions.iter().max_by_key(|one| one.revision).unwrap();
    assert_eq!((revisions.len(), newest.revision, &newest.metadata.name), (2, 3, &old));
    Ok(())
}
managed!(a_rollback_uses_the_old_revision_again, []);

/// STATEFULSET-29: an image that never starts, and back. With OrderedReady the broken pod waits until somebody deletes it, as
/// with the native kind.
async fn a_broken_revision_is_repaired(stage: &mut Stage) -> Outcome {
    let spec = json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}});
    let web = Web::start(stage, "broken", pulling(stage, spec).await?).await;
    web.set_image("nosuch:v1-fail").await;
    let broken = |pods: &[Pod]| pods.iter().filter(|pod| !is_available(pod)).count();
    web.until("two pods are broken", |_, pods| broken(pods) == 2 && pods.len() == 5).await;
    web.always("no more are", Duration::from_secs(20), |_, pods| broken(pods) <= 2).await;
    web.set_image("app:v1").await;
    web.rests_at("0:v1 1:v1 2:v1 3:v1 4:v1").await;

    let spec = json!({"podManagementPolicy": "OrderedReady", "replicas": 3});
    let ordered = Web::start(stage, "ordered", pulling(stage, spec).await?).await;
    ordered.set_image("nosuch:v1-fail").await;
    let is_new_broken = |pods: &[Pod]| broken(pods) == 1 && ordered.shown(pods) == "0:v1 1:v1 2:v1-fail";
    ordered.until("the new pod is broken", |_, pods| is_new_broken(pods)).await;
    ordered.set_image("app:v1").await;
    ordered.always("it waits", Duration::from_secs(20), |_, pods| is_new_broken(pods)).await;
    ordered.sandbox.delete::<Pod>("web-2").await;
    ordered.rests_at("0:v1 1:v1 2:v1").await;
    Ok(())
}
managed!(a_broken_revision_is_repaired, []);

/// STATEFULSET-6, and specified deletion with OnDelete.
async fn deletions_alone_bring_new_pods(stage: &mut Stage) -> Outcome {
    let strategy = json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}, "replicas": 3});
    let web = Web::start(stage, "ondelete", strategy).await;
    web.set_image("app:v2").await;
    web.always("nothing is updated", Duration::from_secs(10), |_, pods| web.shown(pods) == "0:v1 1:v1 2:v1")
        .await;
    web.sandbox.delete::<Pod>("web-2").await;
    web.rests_at("0:v1 1:v1 2:v2").await;
    web.change_pod(0, json!({"metadata": {"labels": {"apps.kruise.io/specified-delete": "true"}}})).await;
    web.rests_at("0:v2 1:v1 2:v2").await;
    Ok(())
}
managed!(deletions_alone_bring_new_pods, []);

/// STATEFULSET-39
async fn pods_are_deleted_on_request(stage: &mut Stage) -> Outcome {
    let web =
        Web::start(stage, "request", json!({"updateStrategy": {"rollingUpdate": {"partition": 5}}})).await;
    web.set_image("app:v2").await;
    let film = web.film().await;
    let before: Vec<_> = web.pods().await.into_iter().map(|pod| pod.metadata.uid).collect();
    for ordinal in [0, 3] {
        web.change_pod(ordinal, json!({"metadata": {"labels": {"apps.kruise.io/specified-delete": "true"}}}))
            .await;
    }
    web.until("both are new", |_, pods| {
        let new = pods.iter().filter(|pod| !before.contains(&pod.metadata.uid) && is_available(pod));
        new.map(name).collect::<Vec<_>>() == ["web-0", "web-3"]
    })
    .await;
    web.rests_at("0:v1 1:v1 2:v1 3:v1 4:v1").await;
    assert!(film.fewest_available() >= 4, "{}", film.fewest_available());
    Ok(())
}
managed!(pods_are_deleted_on_request, []);

/// STATEFULSET-32: an image changes in place, other changes need new pods.
async fn images_change_in_place(stage: &mut Stage) -> Outcome {
    let web = Web::prepare(stage, "inplace").await;
    let in_place = json!({"updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2}}});
    let refused =
        web.sandbox.refused::<kruise_api::statefulset::v1beta1::StatefulSet>(web.object(&in_place)).await;
    assert!(
        refused.contains("must contains InPlaceUpdateReady when podUpdatePolicy is InPlaceIfPossible"),
        "{refused}"
    );
    let gate = json!({"template": {"spec": {"readinessGates": [{"conditionType": "InPlaceUpdateReady"}]}}});
    for policy in ["Parallel", "OrderedReady"] {
        let web = Web::prepare(stage, "inplace").await;
        let spec = crate::kit::merged(
            crate::kit::merged(in_place.clone(), &gate),
            &json!({"podManagementPolicy": policy}),
        );
        web.create(spec).await;
        web.settled().await;
        let before: Vec<_> = web.pods().await.into_iter().map(|pod| pod.metadata.uid).collect();
        let film = web.film().await;
        web.set_image("app:v2").await;
        web.rests_at("0:v2 1:v2 2:v2 3:v2 4:v2").await;
        let after: Vec<_> = web.pods().await.into_iter().map(|pod| pod.metadata.uid).collect();
        assert_eq!(before, after);
        assert!(film.fewest_available() >= 3);
        assert_eq!(web.messages("SuccessfulUpdatePodInPlace").await.len(), 5);
    }
    Ok(())
}
managed!(images_change_in_place, []);

/// STATEFULSET-51
async fn an_ordered_set_updates_two_pods_at_once(stage: &mut Stage) -> Outcome {
    let rolling = json!({"maxUnavailable": 2, "minReadySeconds": 5});
    let spec = json!({"podManagementPolicy": "OrderedReady", "updateStrategy": {"rollingUpdate": rolling}});
    let web = Web::start(stage, "two", spec).await;
    let film = web.film().await;
    web.set_image("app:v2").await;
    web.rests_at("0:v2 1:v2 2:v2 3:v2 4:v2").await;
    assert!(film.fewest_available() >= 3, "{}", film.fewest_available());
    let comings = comings(&film);
    assert_eq!(
        comings[5..],
        ["web-3", "web-4", "web-1", "web-2", "web-0"],
        "those deleted together come back upwards"
    );
    web.rolling(json!({"partition": 4})).await;
    web.set_image("app:v3").await;
    web.rests_at("0:v2 1:v2 2:v2 3:v2 4:v3").await;
    Ok(())
}
managed!(an_ordered_set_updates_two_pods_at_once, []);

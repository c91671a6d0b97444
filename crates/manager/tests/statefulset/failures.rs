//! What is refused, and what is reported of it.

use k8s_openapi::api::core::v1::ResourceQuota;
use kruise_testkit::Outcome;
use serde_json::json;

use crate::{
    stage::{Stage, managed},
    web::{Web, comings},
};

/// STATEFULSET-46 and WAITING-8
async fn a_quota_is_reported_until_it_is_raised(stage: &mut Stage) -> Outcome {
    let web = Web::prepare(stage, "quota").await;
    let quota = json!({"metadata": {"name": "few"}, "spec": {"hard": {"pods": "2"}}});
    web.sandbox.create::<ResourceQuota>(quota).await;
    web.create(json!({"replicas": 3})).await;
    web.until("the set says so", |set, pods| {
        let conditions = set.status.clone().unwrap_or_default().conditions;
        pods.len() == 2
            && conditions.iter().any(|one| {
                one.kind == "FailedCreatePod"
                    && one.status == "True"
                    && one.reason.as_deref() == Some("QuotaExceeded")
            })
    })
    .await;
    assert!(!web.messages("FailedCreate").await.is_empty());
    web.until("the set says what it waits for", |set, _| {
        let (reason, message) = crate::waits::waiting(set);
        reason == "QuotaExceeded"
            && message.starts_with("1 pod is missing: quota few is used up (requested: ")
    })
    .await;
    web.sandbox.merge::<ResourceQuota>("few", json!({"spec": {"hard": {"pods": "5"}}})).await;
    web.settled().await;
    web.until("the condition is gone", |set, _| {
        !set.status.as_ref().unwrap().conditions.iter().any(|one| one.kind == "FailedCreatePod")
    })
    .await;
    Ok(())
}
managed!(a_quota_is_reported_until_it_is_raised, []);

/// STATEFULSET-47
async fn identity_cannot_be_changed(stage: &mut Stage) -> Outcome {
    let web = Web::start(stage, "identity", json!({"replicas": 1})).await;
    for change in [json!({"serviceName": "x"}), json!({"podManagementPolicy": "OrderedReady"})] {
        let refused = web.try_change(change).await.unwrap_err();
        assert!(
            refused.starts_with("422")
                && refused.contains("updates to statefulset spec for fields other than"),
            "{refused}"
        );
    }
    Ok(())
}
managed!(identity_cannot_be_changed, []);

/// STATEFULSET-31: the manager dies in the middle of a rollout.
async fn a_rollout_survives_a_restart_of_the_manager(stage: &mut Stage) -> Outcome {
    let web = Web::start(stage, "restart", json!({})).await;
    let film = web.film().await;
    web.set_image("app:v2").await;
    web.until("two pods are updated", |_, pods| web.shown(pods).matches("v2").count() == 2).await;
    stage.kill_manager();
    stage.start_manager().await;
    web.rests_at("0:v2 1:v2 2:v2 3:v2 4:v2").await;
    assert!(film.fewest_available() >= 4);
    assert_eq!(comings(&film).len(), 10, "five old pods and five new ones");
    Ok(())
}
managed!(a_rollout_survives_a_restart_of_the_manager, [], alone);

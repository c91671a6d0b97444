//! Claims: created, kept, deleted.

use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kruise_api::statefulset::v1beta1::StatefulSet;
use kruise_testkit::{Backend, Outcome, wait::seen};
use serde_json::{Value, json};

use crate::{
    stage::{Stage, managed},
    web::Web,
};

fn stored(more: Value) -> Value {
    let claim = json!([{"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
    crate::kit::merged(json!({"replicas": 2, "volumeClaimTemplates": claim}), &more)
}

/// STATEFULSET-2
async fn a_pod_finds_its_claim_again(stage: &mut Stage) -> Outcome {
    if stage.cluster.backend() == Backend::Real {
        return Ok(());
    }
    let web = Web::start(stage, "claims", stored(json!({}))).await;
    assert_eq!(web.claims().await, ["data-web-0", "data-web-1"]);
    let before = web.pod(1).await.metadata.uid;
    web.sandbox.delete::<Pod>("web-1").await;
    web.until("it is new", |_, pods| {
        pods.iter().any(|pod| crate::kit::name(pod) == "web-1" && pod.metadata.uid != before)
    })
    .await;
    web.settled().await;
    let volumes = web.pod(1).await.spec.unwrap().volumes.unwrap_or_default();
    let claim = volumes.iter().find_map(|volume| volume.persistent_volume_claim.clone()).unwrap();
    assert_eq!(claim.claim_name, "data-web-1");
    web.change(json!({"replicas": 1})).await;
    web.settled().await;
    assert_eq!(web.claims().await, ["data-web-0", "data-web-1"]);
    Ok(())
}
managed!(a_pod_finds_its_claim_again, []);

/// STATEFULSET-41 and STATEFULSET-42
async fn claims_are_deleted_as_the_policy_says(stage: &mut Stage) -> Outcome {
    if stage.cluster.backend() == Backend::Real {
        return Ok(());
    }
    let policy = json!({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
        "reserveOrdinals": [0, "2-5"], "replicas": 3});
    let web = Web::start(stage, "retention", stored(policy)).await;
    web.rests_at("1:v1 6:v1 7:v1").await;
    let uid = async |claim: &str| web.sandbox.get::<PersistentVolumeClaim>(claim).await.metadata.uid;
    let before = uid("data-web-1").await;
    web.change(json!({"replicas": 1})).await;
    let look = async || {
        let claims = web.claims().await;
        seen(claims == ["data-web-1"], format!("{claims:?}"))
    };
    web.sandbox.eventually("the claims are gone", look).await;
    web.sandbox.delete::<Pod>("web-1").await;
    web.rests_at("1:v1").await;
    assert_eq!(uid("data-web-1").await, before, "its data stays for the next pod");
    web.change(json!({"replicas": 2})).await;
    web.rests_at("1:v1 6:v1").await;
    web.sandbox.delete::<StatefulSet>("web").await;
    let look = async || {
        let claims = web.claims().await;
        seen(claims.is_empty(), format!("{claims:?}"))
    };
    web.sandbox.eventually("all claims are gone", look).await;
    Ok(())
}
managed!(claims_are_deleted_as_the_policy_says, []);

/// STATEFULSET-41: without the policy claims outlive their set.
async fn claims_outlive_their_set(stage: &mut Stage) -> Outcome {
    if stage.cluster.backend() == Backend::Real {
        return Ok(());
    }
    let web = Web::start(stage, "outlive", stored(json!({}))).await;
    web.sandbox.delete::<StatefulSet>("web").await;
    let look = async || {
        let pods = web.pods().await;
        seen(pods.is_empty(), format!("{} pods", pods.len()))
    };
    web.sandbox.eventually("all pods are gone", look).await;
    assert_eq!(web.claims().await, ["data-web-0", "data-web-1"]);
    Ok(())
}
managed!(claims_outlive_their_set, []);

/// STATEFULSET-45
async fn a_new_claim_template_waits_for_new_pods(stage: &mut Stage) -> Outcome {
    if stage.cluster.backend() == Backend::Real {
        return Ok(());
    }
    let web = Web::start(stage, "added", json!({"replicas": 2})).await;
    let templates = stored(json!({}))["volumeClaimTemplates"].clone();
    web.change(json!({"volumeClaimTemplates": templates})).await;
    let message = |set: &StatefulSet| {
        let conditions = set.status.clone().unwrap_or_default().conditions;
        conditions.into_iter().find(|one| one.kind == "Waiting").map(|one| (one.reason, one.message))
    };
    let lack = |text: &str| (Some("ClaimTemplateNotApplied".to_owned()), Some(text.to_owned()));
    web.until("the set says so", |set, _| {
        message(set)
            == Some(lack(
                "2 of 2 pods lack the volume of volumeClaimTemplate data (web-0, web-1); each gets it when it is re-created",
            ))
    })
    .await;
    web.always("no pod is touched", Duration::from_secs(5), |_, pods| web.shown(pods) == "0:v1 1:v1").await;
    for ordinal in [1, 0] {
        web.sandbox.delete::<Pod>(&format!("web-{ordinal}")).await;
    }
    web.until("the wait is over", |set, _| {
        message(set) == Some((Some("NotWaiting".to_owned()), Some(String::new())))
    })
    .await;
    let events = web.messages("ClaimTemplateNotApplied").await;
    assert_eq!(
        events,
        ["2 of 2 pods lack the volume of volumeClaimTemplate data; each gets it when it is re-created"]
    );
    Ok(())
}
managed!(a_new_claim_template_waits_for_new_pods, []);

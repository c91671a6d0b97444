//! Which pods there are, with which names, and in which order they come and go.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_api::statefulset::v1beta1::StatefulSet;
use kruise_testkit::Outcome;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    kit::{is_active, is_available, label, name},
    stage::{Stage, managed},
    web::Web,
};

/// STATEFULSET-1 and STATEFULSET-3
async fn ordered_pods_come_and_go_one_after_the_other(stage: &mut Stage) -> Outcome {
    let web = Web::prepare(stage, "ordered").await;
    let film = web.film().await;
    web.create(json!({"podManagementPolicy": "OrderedReady", "replicas": 3})).await;
    web.rests_at("0:v1 1:v1 2:v1").await;
    for frame in film.frames() {
        for ordinal in [1, 2] {
            let find = |ordinal: i32| frame.active().find(|pod| name(pod) == format!("web-{ordinal}"));
            assert!(find(ordinal).is_none() || find(ordinal - 1).is_some_and(is_available));
        }
    }
    let revision = web.set().await.status.unwrap().update_revision.unwrap();
    let pod = web.pod(1).await;
    for (key, expected) in [
        ("statefulset.kubernetes.io/pod-name", "web-1"),
        ("apps.kubernetes.io/pod-index", "1"),
        ("controller-revision-hash", revision.as_str()),
        ("lifecycle.apps.kruise.io/state", "Normal"),
    ] {
        assert_eq!(label(&pod, key), expected);
    }
    let spec = pod.spec.unwrap();
    assert_eq!((spec.hostname.as_deref(), spec.subdomain.as_deref()), (Some("web-1"), Some("web")));

    let film = web.film().await;
    web.change(json!({"replicas": 1})).await;
    web.rests_at("0:v1").await;
    for frame in film.frames() {
        assert!(frame.pods.values().filter(|pod| !is_active(pod)).count() <= 1);
    }
    let messages = web.messages("SuccessfulDelete").await;
    assert!(messages.contains(&"delete Pod web-2 in StatefulSet web successful".to_owned()), "{messages:?}");
    Ok(())
}
managed!(ordered_pods_come_and_go_one_after_the_other, []);

/// STATEFULSET-5
async fn pods_without_an_owner_are_adopted(stage: &mut Stage) -> Outcome {
    let web = Web::start(stage, "adopt", json!({"replicas": 3})).await;
    let before = web.pod(1).await.metadata.uid;
    web.sandbox.merge::<Pod>("web-1", json!({"metadata": {"ownerReferences": null}})).await;
    web.until("it has its owner again", |_, pods| {
        pods.iter().all(|pod| pod.metadata.owner_references.as_ref().is_some_and(|owners| owners.len() == 1))
    })
    .await;
    assert_eq!(web.pod(1).await.metadata.uid, before);
    web.change_pod(1, json!({"metadata": {"labels": {"app": "other"}}})).await;
    let is_free = |pods: &[Pod]| pods.iter().any(|pod| pod.metadata.owner_references.is_none());
    web.until("it is released", |_, pods| is_free(pods)).await;
    web.until("the set says so", |set, _| {
        let conditions = &set.status.as_ref().unwrap().conditions;
        conditions.iter().any(|one| one.kind == "Waiting" && one.reason.as_deref() == Some("NameTaken"))
    })
    .await;
    web.sandbox.delete::<Pod>("web-1").await;
    web.settled().await;
    assert_ne!(web.pod(1).await.metadata.uid, before);
    Ok(())
}
managed!(pods_without_an_owner_are_adopted, []);

/// STATEFULSET-7
async fn an_evicted_pod_is_replaced(stage: &mut Stage) -> Outcome {
    let web =
        Web::start(stage, "evicted", json!({"replicas": 2, "scaleStrategy": {"maxUnavailable": 1}})).await;
    let before = web.pod(1).await.metadata.uid;
    let api: Api<Pod> = web.sandbox.api();
    let failed = Patch::Merge(json!({"status": {"phase": "Failed", "reason": "Evicted"}}));
    api.patch_status("web-1", &PatchParams::default(), &failed).await.unwrap();
    web.until("a new pod is there", |_, pods| {
        pods.iter().any(|pod| name(pod) == "web-1" && pod.metadata.uid != before)
    })
    .await;
    web.settled().await;
    Ok(())
}
managed!(an_evicted_pod_is_replaced, []);

/// STATEFULSET-9
async fn the_scale_is_read_and_written(stage: &mut Stage) -> Outcome {
    let web = Web::start(stage, "scale", json!({"replicas": 2})).await;
    let api: Api<StatefulSet> = web.sandbox.api();
    let patch = Patch::Merge(json!({"spec": {"replicas": 4}}));
    api.patch_scale("web", &PatchParams::default(), &patch).await.unwrap();
    web.settled().await;
    let scale = api.get_scale("web").await.unwrap().status.unwrap();
    assert_eq!((scale.replicas, scale.selector.as_deref()), (4, Some("app=web")));
    Ok(())
}
managed!(the_scale_is_read_and_written, []);

/// STATEFULSET-10, STATEFULSET-11 and STATEFULSET-13
async fn reserved_ordinals_are_left_out(stage: &mut Stage) -> Outcome {
    let web = Web::start(stage, "reserve", json!({"replicas": 4, "reserveOrdinals": [1]})).await;
    web.rests_at("0:v1 2:v1 3:v1 4:v1").await;
    web.change(json!({"reserveOrdinals": [1, 3]})).await;
    web.rests_at("0:v1 2:v1 4:v1 5:v1").await;
    web.change(json!({"replicas": 3})).await;
    web.rests_at("0:v1 2:v1 4:v1").await;
    web.change(json!({"replicas": 4, "reserveOrdinals": ["2-5", 7]})).await;
    web.rests_at("0:v1 1:v1 6:v1 8:v1").await;
    for (wrong, text) in [
        (json!(["5-2"]), "0 th reserve ordinal is invalid: 5-2, err = invalid range 5-2"),
        (json!(["a-b"]), "0 th reserve ordinal is not a valid range: a-b"),
        (json!(["12"]), "0 th reserve ordinal is not a valid range: 12"),
        (json!([-1]), "0 th reserve ordinal is negative: -1"),
        (json!(["1-2-3"]), "0 th reserve ordinal is not a valid range: 1-2-3"),
    ] {
        let refused = web.try_change(json!({"reserveOrdinals": wrong})).await.unwrap_err();
        assert!(refused.starts_with("422") && refused.contains(text), "{refused}");
    }
    let ordered =
        Web::start(stage, "ordered", json!({"podManagementPolicy": "OrderedReady", "replicas": 3})).await;
    let film = ordered.film().await;
    ordered.change(json!({"reserveOrdinals": [1]})).await;
    ordered.rests_at("0:v1 2:v1 3:v1").await;
    assert_eq!(film.fewest_available(), 3);
    Ok(())
}
managed!(reserved_ordinals_are_left_out, []);

/// STATEFULSET-12
async fn ordinals_start_where_the_spec_says(stage: &mut Stage) -> Outcome {
    let web = Web::start(stage, "start", json!({"replicas": 3, "ordinals": {"start": 2}})).await;
    web.rests_at("2:v1 3:v1 4:v1").await;
    web.change(json!({"ordinals": {"start": 4}})).await;
    web.rests_at("4:v1 5:v1 6:v1").await;
    web.change(json!({"ordinals": null})).await;
    web.rests_at("0:v1 1:v1 2:v1").await;
    Ok(())
}
managed!(ordinals_start_where_the_spec_says, ["--feature-gates=StatefulSetStartOrdinal=true"]);

/// STATEFULSET-18
async fn a_parallel_set_is_removed_at_once(stage: &mut Stage) -> Outcome {
    let web =
        Web::start(stage, "away", json!({"replicas": 10, "scaleStrategy": {"maxUnavailable": 1}})).await;
    let film = web.film().await;
    web.change(json!({"replicas": 0})).await;
    web.until("all are being deleted or gone", |_, pods| !pods.iter().any(is_active)).await;
    let frames = film.frames();
    let first = frames.iter().find(|frame| frame.pods.values().any(|pod| !is_active(pod))).unwrap().at;
    let after = frames.iter().filter(|frame| frame.at >= first);
    let last = after.filter(|frame| frame.pods.values().any(is_active)).map(|frame| frame.at).max();
    let took = last.unwrap_or(first) - first;
    assert!(took <= Duration::from_secs(1), "the first was deleted {took:?} before the last");
    web.always("nothing comes back", Duration::from_secs(5), |_, pods| !pods.iter().any(is_active)).await;
    Ok(())
}
managed!(a_parallel_set_is_removed_at_once, []);

//! Clients that change sets: in the old version, in a hurry, and those that delete what is protected.

use kruise_api::statefulset::v1beta1::StatefulSet;
use kruise_testkit::Outcome;
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, PostParams},
};
use serde_json::json;

use crate::{
    stage::{Stage, managed},
    web::Web,
};

const PROTECTED: [&str; 1] = ["--feature-gates=ResourcesDeletionProtection=true"];

/// STATEFULSET-14: a client of the old version reads, changes and replaces a set, and erases nothing.
async fn the_old_version_keeps_what_it_does_not_know(stage: &mut Stage) -> Outcome {
    let web = Web::start(stage, "old", json!({"replicas": 3, "reserveOrdinals": [2]})).await;
    web.rests_at("0:v1 1:v1 3:v1").await;
    let mut of_kind = web.object(&json!({}));
    of_kind["apiVersion"] = "apps.kruise.io/v1alpha1".into();
    let api: Api<DynamicObject> = stage.api(&of_kind);
    let replaced = loop {
        let mut old = api.get("web").await.unwrap();
        old.data["spec"]["replicas"] = 4.into();
        match api.replace("web", &PostParams::default(), &old).await {
            Ok(replaced) => break replaced,
            // The manager wrote the status in between.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(replaced.data["spec"]["replicas"], 4);
    web.rests_at("0:v1 1:v1 3:v1 4:v1").await;
    let set = serde_json::to_value(web.set().await).unwrap();
    assert_eq!(set["spec"]["reserveOrdinals"], json!([2]));
    let left = set["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    assert!(!left.keys().any(|key| key.starts_with("conversion.kruise.io/")), "{left:?}");
    Ok(())
}
managed!(the_old_version_keeps_what_it_does_not_know, []);

/// STATEFULSET-48
async fn a_protected_set_is_not_deleted_while_it_has_pods(stage: &mut Stage) -> Outcome {
    let web = Web::start(stage, "protected", json!({"replicas": 2})).await;
    let label = json!({"metadata": {"labels": {"policy.kruise.io/delete-protection": "Cascading"}}});
    web.sandbox.merge::<StatefulSet>("web", label).await;
    let api: Api<StatefulSet> = web.sandbox.api();
    match api.delete("web", &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) => {
            assert_eq!(status.code, 403);
            let text = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading and \
                        replicas 2>0";
            assert!(status.message.contains(text), "{}", status.message);
        }
        other => panic!("{other:?}"),
    }
    web.change(json!({"replicas": 0})).await;
    web.rests_at("").await;
    api.delete("web", &DeleteParams::default()).await.unwrap();
    Ok(())
}
managed!(a_protected_set_is_not_deleted_while_it_has_pods, super::PROTECTED);

/// STATEFULSET-49: a hundred edits as fast as they go, while the manager writes the status. The last one counts.
async fn quick_edits_end_at_the_last_one(stage: &mut Stage) -> Outcome {
    let web = Web::start(stage, "edits", json!({"replicas": 2})).await;
    for edit in 0..100 {
        if edit % 3 == 0 {
            web.change(json!({"replicas": 2 + edit % 4})).await;
        } else {
            web.set_image(if edit % 2 == 0 { "app:v1" } else { "app:v2" }).await;
        }
    }
    web.change(json!({"replicas": 3})).await;
    web.set_image("app:v3").await;
    web.rests_at("0:v3 1:v3 2:v3").await;
    Ok(())
}
managed!(quick_edits_end_at_the_last_one, []);

//! What the server refuses, and what is missing.

use std::time::Duration;

use kruise_testkit::{Outcome, wait::seen};
use kube::api::PostParams;
use serde_json::json;

use crate::{
    scene::{CONDITIONS, OPEN, Scene, condition, config, included, types},
    stage::{Stage, managed},
};

/// DISTRIBUTION-7
async fn a_namespace_that_is_missing_is_reported_until_it_comes(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-missing").await;
    let (one, two) = (scene.space(json!({})).await, scene.name("later"));
    let name = scene.distribute(config(&scene.name("x"), json!({"a": "1"})), included(&[&one, &two])).await;
    let object = scene.until(&name, "2/1/1").await;
    let reason = scene.until_failing(&name, "NamespaceNotExists", &[&two]).await;
    assert_eq!(reason, "namespace not found or is terminating");
    assert_eq!(condition(&object, "Waiting").unwrap()["reason"], "NamespaceTerminating");
    let namespace = serde_json::from_value(json!({"metadata": {"name": two}})).unwrap();
    scene.namespaces().create(&PostParams::default(), &namespace).await.unwrap();
    let object = scene.until(&name, "2/2/0").await;
    assert_eq!(types(&object), CONDITIONS);
    scene.namespaces().delete(&two, &kube::api::DeleteParams::default()).await.unwrap();
    Ok(())
}
managed!(a_namespace_that_is_missing_is_reported_until_it_comes, super::OPEN);

/// DISTRIBUTION-18: the type of a Secret never changes, as the server says; the change can be taken back.
async fn a_type_that_cannot_change_is_reported(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-type").await;
    let one = scene.space(json!({})).await;
    let name = scene.name("x");
    let resource = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "example.com/a",
        "stringData": {"a": "1"}});
    scene.distribute(resource, included(&[&one])).await;
    scene.until(&name, "1/1/0").await;
    scene.change(&name, json!({"spec": {"resource": {"type": "example.com/b"}}})).await.unwrap();
    let reason = scene.until_failing(&name, "UpdateResourceFailed", &[&one]).await;
    assert!(reason.contains("field is immutable"), "{reason}");
    scene.until(&name, "1/0/1").await;
    scene
        .home
        .eventually("it is reported once", async || {
            let told = scene.events(&name, "UpdateResourceFailed").await;
            let is_so = told.len() == 1 && told[0].starts_with(&format!("1 of 1 namespace ({one}): "));
            seen(is_so, format!("{told:?}"))
        })
        .await;
    scene.change(&name, json!({"spec": {"resource": {"type": "example.com/a"}}})).await.unwrap();
    let object = scene.until(&name, "1/1/0").await;
    assert_eq!(types(&object), CONDITIONS);
    Ok(())
}
managed!(a_type_that_cannot_change_is_reported, super::OPEN);

/// A copy of a resource that nobody may change cannot be updated, and says so until somebody deletes it.
async fn an_immutable_copy_is_replaced_when_it_is_deleted(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-fixed").await;
    let one = scene.space(json!({})).await;
    let mut resource = config(&scene.name("x"), json!({"a": "1"}));
    resource["immutable"] = json!(true);
    let name = scene.distribute(resource, included(&[&one])).await;
    scene.until(&name, "1/1/0").await;
    scene.change(&name, json!({"spec": {"resource": {"data": {"a": "2"}}}})).await.unwrap();
    let reason = scene.until_failing(&name, "UpdateResourceFailed", &[&one]).await;
    assert!(reason.contains("immutable"), "{reason}");
    scene.remove("ConfigMap", &one, &name).await;
    scene.until(&name, "1/1/0").await;
    assert_eq!(scene.copy(&one, &name).await.unwrap()["data"], json!({"a": "2"}));
    Ok(())
}
managed!(an_immutable_copy_is_replaced_when_it_is_deleted, super::OPEN);

/// A quota in one namespace holds up no other, and the copy comes within minutes after there is room.
async fn a_quota_in_one_namespace_holds_up_no_other(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-quota").await;
    let mut spaces = Vec::new();
    for _ in 0..4 {
        spaces.push(scene.space(json!({})).await);
    }
    spaces.sort();
    let full = spaces[0].clone();
    let quota = json!({"metadata": {"name": "few"}, "spec": {"hard": {"count/configmaps": "0"}}});
    scene.put("ResourceQuota", &full, quota).await;
    scene
        .home
        .eventually("the quota is counted", async || {
            let quota = scene.object("ResourceQuota", &full, "few").await.unwrap();
            seen(quota["status"]["hard"]["count/configmaps"] == "0", quota["status"].to_string())
        })
        .await;
    let all: Vec<&str> = spaces.iter().map(String::as_str).collect();
    let name = scene.distribute(config(&scene.name("x"), json!({"a": "1"})), included(&all)).await;
    let object = scene.until(&name, "4/3/1").await;
    let reason = scene.until_failing(&name, "CreateResourceFailed", &[&full]).await;
    assert!(reason.contains("exceeded quota: few"), "{reason}");
    let waiting = condition(&object, "Waiting").unwrap();
    assert_eq!((&waiting["reason"], &waiting["failedNamespaces"]), (&json!("QuotaExceeded"), &json!([full])));
    scene
        .home
        .eventually("the wait is reported", async || {
            let told = scene.events(&name, "Waiting").await;
            let is_so = told.len() == 1
                && told[0]
                    .starts_with("QuotaExceeded: 1 configmap is missing: quota few is used up (requested: ");
            seen(is_so, format!("{told:?}"))
        })
        .await;
    scene.remove("ResourceQuota", &full, "few").await;
    let healed =
        kruise_testkit::wait::eventually("the copy is there", Duration::from_secs(400), async || {
            let object = scene.get(&name).await;
            seen(crate::scene::counts(&object) == "4/4/0", object["status"].to_string())
        });
    healed.await.unwrap();
    Ok(())
}
managed!(a_quota_in_one_namespace_holds_up_no_other, super::OPEN);

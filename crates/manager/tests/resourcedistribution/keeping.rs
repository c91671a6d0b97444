//! Copies are kept as they should be.

use kruise_core::resourcedistribution::hash;
use kruise_testkit::{Outcome, wait::seen};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use crate::{
    scene::{FROM, HASH, MOMENT, OPEN, Scene, config, included},
    stage::{Stage, managed},
};

/// DISTRIBUTION-10
async fn edits_of_copies_are_undone(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-edit").await;
    let one = scene.space(json!({})).await;
    let mut resource = config(&scene.name("x"), json!({"a": "1"}));
    resource["metadata"]["labels"] = json!({"own": "yes"});
    let name = scene.distribute(resource, included(&[&one])).await;
    scene.until(&name, "1/1/0").await;
    let is_whole = async || {
        let copy = scene.copy(&one, &name).await.unwrap_or_default();
        let metadata = &copy["metadata"];
        let is_ours = metadata["labels"]["own"] == "yes" && metadata["annotations"][FROM] == json!(name);
        let is_so = copy["data"] == json!({"a": "1"}) && copy["binaryData"].is_null() && is_ours;
        seen(is_so && metadata["deletionTimestamp"].is_null(), copy.to_string())
    };
    for edit in [
        json!({"data": {"a": "2"}}),
        json!({"data": {"a": null, "b": "3"}, "binaryData": {"c": "AAAA"}}),
        json!({"metadata": {"labels": {"own": "no"}}}),
        json!({"metadata": {"annotations": {FROM: null}}}),
    ] {
        scene.edit("ConfigMap", &one, &name, edit).await;
        scene.home.eventually("the edit is undone", is_whole).await;
    }
    // What others add stays, also when the copy is brought up to date.
    let foreign = json!({"metadata": {"labels": {"theirs": "yes"}, "annotations": {"theirs": "yes"}}});
    scene.edit("ConfigMap", &one, &name, foreign).await;
    scene.remove("ConfigMap", &one, &name).await;
    scene.home.eventually("it is created again", is_whole).await;
    let foreign = json!({"metadata": {"labels": {"theirs": "yes"}, "annotations": {"theirs": "yes"}}});
    scene.edit("ConfigMap", &one, &name, foreign).await;
    scene.edit("ConfigMap", &one, &name, json!({"data": {"a": "2"}})).await;
    scene.home.eventually("the edit is undone", is_whole).await;
    let copy = scene.copy(&one, &name).await.unwrap();
    assert_eq!(copy["metadata"]["labels"], json!({"own": "yes", "theirs": "yes"}));
    assert_eq!(copy["metadata"]["annotations"]["theirs"], "yes");
    Ok(())
}
managed!(edits_of_copies_are_undone, super::OPEN);

#[derive(Deserialize)]
struct Object<'t> {
    #[serde(borrow)]
    spec: Spec<'t>,
}

#[derive(Deserialize)]
struct Spec<'t> {
    #[serde(borrow)]
    resource: &'t RawValue,
}

/// DISTRIBUTION-11, DISTRIBUTION-12: a change reaches all copies; the hash is of the bytes that the server sends.
async fn a_change_reaches_all_copies(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-change").await;
    let (one, two) = (scene.space(json!({})).await, scene.space(json!({})).await);
    let mut resource = config(&scene.name("x"), json!({"a": "1", "gone": "soon"}));
    resource["metadata"]["finalizers"] = json!(["example.com/never"]);
    resource["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "1"}]);
    resource["metadata"]["namespace"] = json!("elsewhere");
    let name = scene.distribute(resource, included(&[&one, &two])).await;
    scene.until(&name, "2/2/0").await;
    let path = format!("/apis/apps.kruise.io/v1beta1/resourcedistributions/{name}");
    for change in [
        json!({"data": {"a": "2 < 3 && \"ü\"\u{2028}", "gone": null}, "binaryData": {"b": "AAEC"}}),
        json!({"metadata": {"labels": {"added": "yes"}, "annotations": {"note": "<x>"}}}),
    ] {
        scene.change(&name, json!({"spec": {"resource": change}})).await.unwrap();
        let request = http::Request::get(&path).body(Vec::new()).unwrap();
        let text = scene.cluster.client().request_text(request).await.unwrap();
        let Object { spec } = serde_json::from_str(&text).unwrap();
        let expected = hash(spec.resource.get());
        for namespace in [&one, &two] {
            scene
                .home
                .eventually("the copy is of the new resource", async || {
                    let copy = scene.copy(namespace, &name).await.unwrap();
                    let found = &copy["metadata"]["annotations"][HASH];
                    seen(*found == json!(expected), format!("{copy} {expected}"))
                })
                .await;
        }
    }
    let copy = scene.copy(&one, &name).await.unwrap();
    assert_eq!(copy["data"], json!({"a": "2 < 3 && \"ü\"\u{2028}"}));
    assert_eq!(copy["binaryData"], json!({"b": "AAEC"}));
    assert_eq!(copy["metadata"]["labels"], json!({"added": "yes"}));
    assert!(copy["metadata"]["finalizers"].is_null());
    assert_eq!(copy["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    // So the namespace can go, and the named one is missed.
    scene.namespaces().delete(&two, &kube::api::DeleteParams::default()).await.unwrap();
    scene
        .home
        .eventually("the namespace is gone", async || {
            let found = scene.namespaces().get_opt(&two).await.unwrap();
            seen(found.is_none(), "it is there")
        })
        .await;
    scene.until(&name, "2/1/1").await;
    scene.until_failing(&name, "NamespaceNotExists", &[&two]).await;
    Ok(())
}
managed!(a_change_reaches_all_copies, super::OPEN);

/// DISTRIBUTION-13: what the server fills in and writes in another way is no difference.
async fn copies_rest_however_the_resource_is_written(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-rest").await;
    let one = scene.space(json!({})).await;
    let name = scene.name("x");
    let resource = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "uid": "1", "resourceVersion": "2", "creationTimestamp": null, "annotations":
            {"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
        "stringData": {"a": "word", "b": "other"}, "data": {"a": "b2xk", "c": "bGluZQ=="},
        "immutable": false,
    });
    scene.distribute(resource, included(&[&one])).await;
    scene.until(&name, "1/1/0").await;
    let copy = scene.object("Secret", &one, &name).await.unwrap();
    assert_eq!(copy["data"], json!({"a": "d29yZA==", "b": "b3RoZXI=", "c": "bGluZQ=="}));
    assert_eq!(copy["type"], "Opaque");
    assert!(
        copy["metadata"]["annotations"].get("kubectl.kubernetes.io/last-applied-configuration").is_none()
    );
    // A change of something else makes it look again.
    let before = copy["metadata"]["resourceVersion"].clone();
    scene.label(&one, json!({"other": "label"})).await;
    scene.change(&name, json!({"metadata": {"labels": {"other": "label"}}})).await.unwrap();
    let look = async || {
        let copy = scene.object("Secret", &one, &name).await.unwrap();
        seen(copy["metadata"]["resourceVersion"] == before, copy["metadata"].to_string())
    };
    scene.home.always("the copy is not written", MOMENT, look).await;
    Ok(())
}
managed!(copies_rest_however_the_resource_is_written, super::OPEN);

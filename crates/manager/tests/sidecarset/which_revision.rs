//! Which revision of a set new pods get.

use k8s_openapi::api::{apps::v1::ControllerRevision, core::v1::Pod};
use kruise_api::{annotations, labels};
use kruise_testkit::Outcome;
use kube::{ResourceExt as _, api::DeleteParams};
use serde_json::{Value, json};

use crate::{
    kit::{image_of, merged},
    scene::{Scene, strategy},
    stage::{Stage, managed},
    words::record,
};

const DENIED: &str = "422 admission webhook \"vsidecarset.kb.io\" denied the request: ";

/// New pods get this revision.
fn chosen(revision: Value) -> Value {
    json!({"spec": {"injectionStrategy": {"revision": revision}}})
}

/// SIDECARSET-21: a version can be chosen by the name that its author gave it.
async fn new_pods_get_the_version_that_is_chosen(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "custom").await;
    let version = |index: usize| {
        json!({"spec": {
            "customVersion": index.to_string(),
            "containers": [scene.sidecar("sc", &format!("app:c{index}"), json!({}))],
        }})
    };
    scene.create_set("s", merged(version(0), &strategy(json!({"paused": true})))).await;
    for index in 1..=5 {
        scene.publish("s", version(index)).await;
    }
    scene.publish("s", chosen(json!({"customVersion": "3"}))).await;
    let third: Vec<ControllerRevision> = scene.revisions("s").await;
    let third = third
        .iter()
        .find(|one| one.labels().get(labels::SIDECARSET_CUSTOM_VERSION).is_some_and(|v| v == "3"));
    let third = third.unwrap();
    let pod = scene.create_pod("pod", json!({})).await;
    assert_eq!(image_of(&pod, "sc"), scene.image("app:c3"));
    let told = record(&pod, &scene.named("s"));
    assert_eq!(told["controllerRevision"], third.name_any());
    assert_eq!(told["hash"], third.annotations()[annotations::SIDECARSET_HASH]);
    scene.rests_at("s", [1, 0, 1, 0]).await;

    scene.change_set("s", strategy(json!({"paused": false}))).await;
    scene.until_counts("s", [1; 4]).await;
    let pod = scene.pod("pod").await;
    assert_eq!(image_of(&pod, "sc"), scene.image("app:c5"));
    let set = scene.set("s").await;
    assert_eq!(record(&pod, &scene.named("s"))["controllerRevision"], set["status"]["latestRevision"]);
    Ok(())
}
managed!(new_pods_get_the_version_that_is_chosen, []);

/// SIDECARSET-22
async fn a_revision_that_is_missing_is_told(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "missing").await;
    let first = scene.create_set("s", strategy(json!({"paused": true}))).await;
    let first = first["status"]["latestRevision"].as_str().unwrap().to_owned();
    let refused = scene.try_change_set("s", chosen(json!({"revisionName": "nobody"}))).await.unwrap_err();
    let words = |name: &str| {
        format!(
            "revision: Invalid value: \"null\": Cannot find specific ControllerRevision, err: ControllerRevision.apps \
             {name:?} not found"
        )
    };
    assert_eq!(refused, format!("{DENIED}{}", words("nobody")));
    let refused = scene.try_change_set("s", chosen(json!({"customVersion": "9"}))).await.unwrap_err();
    assert_eq!(refused, format!("{DENIED}{}", words(&scene.named("s"))));

    let next = scene.with_image("s", "app:v2").await;
    scene.publish("s", next).await;
    scene.publish("s", chosen(json!({"revisionName": first}))).await;
    let pod = scene.imagine_pod(&json!({})).await.unwrap();
    assert_eq!(image_of(&pod, "sc"), scene.image("app:v1"));
    scene.revision_api().delete(&first, &DeleteParams::default()).await.unwrap();
    let words = format!("ControllerRevision.apps {first:?} not found");
    let is_refused = |answer: &Result<Pod, String>| {
        answer.as_ref().is_err_and(|told| told.contains("\"mpod.kb.io\"") && told.contains(&words))
    };
    scene.until_pods_would("pods are refused", &json!({}), is_refused).await;
    Ok(())
}
managed!(a_revision_that_is_missing_is_told, []);

/// SIDECARSET-23: pods that an update would leave alone get the old revision.
async fn a_part_of_the_new_pods_gets_the_old_revision(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "partial").await;
    let first = scene.create_set("s", json!({})).await["status"]["latestRevision"].clone();
    let canary = json!({"matchLabels": {"version": "canary"}});
    let change = merged(
        chosen(json!({"revisionName": first, "policy": "Partial"})),
        &scene.with_image("s", "app:v2").await,
    );
    scene.publish("s", merged(change, &strategy(json!({"selector": canary})))).await;
    let (old, new) = (scene.image("app:v1"), scene.image("app:v2"));
    let labelled = json!({"metadata": {"labels": {"version": "canary"}}});
    for _ in 0..20 {
        assert_eq!(image_of(&scene.imagine_pod(&json!({})).await.unwrap(), "sc"), old);
        assert_eq!(image_of(&scene.imagine_pod(&labelled).await.unwrap(), "sc"), new);
    }
    let old_of = async |partition: &str, pods: usize| {
        scene.publish("s", strategy(json!({"selector": null, "partition": partition}))).await;
        let mut with_old = 0;
        for _ in 0..pods {
            let image = image_of(&scene.imagine_pod(&json!({})).await.unwrap(), "sc");
            assert!(image == old || image == new, "{image}");
            with_old += usize::from(image == old);
        }
        with_old
    };
    assert_eq!(old_of("100%", 30).await, 30);
    assert_eq!(old_of("0%", 30).await, 0);
    let half = old_of("50%", 200).await;
    assert!((60..=140).contains(&half), "{half} of 200");
    Ok(())
}
managed!(a_part_of_the_new_pods_gets_the_old_revision, []);

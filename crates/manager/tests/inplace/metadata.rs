//! Labels and annotations of the template, and environments that read them.

use std::time::Duration;

use kruise_api::annotations;
use kruise_testkit::Outcome;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    kit::{annotation, image_of, label, name},
    node_daemon::NodeDaemon,
    stage::{Stage, embedded_only, managed},
    words::{batches, only_pod, restarts, start, state, status_of},
};

/// INPLACE-3: an annotation comes to the pods without any restart, and soon all are ready.
async fn a_new_annotation_restarts_nothing(stage: &mut Stage) -> Outcome {
    let demo = start(stage, "annotation", 3, json!({})).await?;
    let before = demo.uids().await;
    let begun = Instant::now();
    demo.change(json!({"spec": {"template": {"metadata": {"annotations": {"note": "new"}}}}})).await;
    demo.rolled_out().await;
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(demo.uids().await, before);
    for pod in demo.pods().await {
        assert_eq!(annotation(&pod, "note"), "new");
        assert_eq!(restarts(&pod, "main"), 0);
        // No container was touched, and the record says so.
        assert_eq!(batches(&pod), [json!([])]);
        assert_eq!(state(&pod)["lastContainerStatuses"], Value::Null);
    }
    Ok(())
}
managed!(a_new_annotation_restarts_nothing, []);

/// INPLACE-4: a label that the template lost goes, one that somebody put on a pod stays.
async fn a_removed_label_goes_and_a_foreign_one_stays(stage: &mut Stage) -> Outcome {
    let change = json!({"spec": {"template": {"metadata": {"labels": {"x": "1"}}}}});
    let demo = start(stage, "label", 2, change).await?;
    let before = demo.uids().await;
    for pod in demo.pods().await {
        assert_eq!(label(&pod, "x"), "1");
        demo.change_pod(&name(&pod), json!({"metadata": {"labels": {"y": "2"}}})).await;
    }
    demo.change(json!({"spec": {"template": {"metadata": {"labels": {"x": null}}}}})).await;
    demo.rolled_out().await;
    assert_eq!(demo.uids().await, before);
    for pod in demo.pods().await {
        let labels = pod.metadata.labels.clone().unwrap_or_default();
        assert!(!labels.contains_key("x"), "{labels:?}");
        assert_eq!(labels.get("y").map(String::as_str), Some("2"));
    }
    Ok(())
}
managed!(a_removed_label_goes_and_a_foreign_one_stays, []);

/// The container of `demo` with a variable that reads something of the pod's metadata.
fn reading(image: &str, variable: &str, path: &str) -> Value {
    let from = json!({"fieldRef": {"apiVersion": "v1", "fieldPath": path}});
    json!([{"name": "main", "image": image, "env": [{"name": variable, "valueFrom": from}]}])
}

/// INPLACE-8: a label that the environment reads changes together with the image: one restart, with the new value.
///
/// Not on a real node, which has no node daemon yet.
async fn image_and_environment_change_with_one_restart(stage: &mut Stage) -> Outcome {
    let containers = reading(&stage.cluster.image("app:v1"), "TEST", "metadata.labels['k']");
    let template = json!({"metadata": {"labels": {"k": "one"}}, "spec": {"containers": containers}});
    let demo = start(stage, "env-label", 1, json!({"spec": {"template": template}})).await?;
    let daemon = NodeDaemon::new(stage, &demo);
    let before = demo.uids().await;
    let pod = daemon
        .during(async {
            let containers = reading(&demo.image("app:v2"), "TEST", "metadata.labels['k']");
            let template = json!({"metadata": {"labels": {"k": "two"}}, "spec": {"containers": containers}});
            demo.change(json!({"spec": {"template": template}})).await;
            demo.rolled_out().await;
            only_pod(&demo).await
        })
        .await;
    assert_eq!(demo.uids().await, before);
    assert_eq!(restarts(&pod, "main"), 1);
    assert_eq!(image_of(&pod, "main"), demo.image("app:v2"));
    assert_eq!(label(&pod, "k"), "two");
    assert_eq!(state(&pod)["updateEnvFromMetadata"], true);
    let environment = daemon.environment(status_of(&pod, "main").unwrap());
    assert_eq!(environment.get("TEST").map(String::as_str), Some("two"));
    Ok(())
}
embedded_only!(image_and_environment_change_with_one_restart, []);

/// INPLACE-9: the first annotation that a template ever gets is seen too, and the container starts again with it.
///
/// Not on a real node, which has no node daemon yet.
async fn the_first_annotation_reaches_the_environment(stage: &mut Stage) -> Outcome {
    let containers = reading(&stage.cluster.image("app:v1"), "CFG", "metadata.annotations['cfg']");
    let demo =
        start(stage, "env-first", 1, json!({"spec": {"template": {"spec": {"containers": containers}}}}))
            .await?;
    let daemon = NodeDaemon::new(stage, &demo);
    let before = demo.uids().await;
    let pod = daemon
        .during(async {
            demo.change(json!({"spec": {"template": {"metadata": {"annotations": {"cfg": "alpha"}}}}})).await;
            demo.rolled_out().await;
            only_pod(&demo).await
        })
        .await;
    assert_eq!(demo.uids().await, before);
    assert_eq!(restarts(&pod, "main"), 1);
    assert_eq!(state(&pod)["updateEnvFromMetadata"], true);
    let environment = daemon.environment(status_of(&pod, "main").unwrap());
    assert_eq!(environment.get("CFG").map(String::as_str), Some("alpha"));
    Ok(())
}
embedded_only!(the_first_annotation_reaches_the_environment, []);

/// INPLACE-17: what an old release left under an old name gives way to the new one.
async fn old_names_of_annotations_are_replaced(stage: &mut Stage) -> Outcome {
    let demo = start(stage, "legacy", 1, json!({})).await?;
    let pod = only_pod(&demo).await;
    let old = json!({
        "revision": crate::words::revision(&pod), "updateTimestamp": "2020-01-01T00:00:00Z",
        "lastContainerStatuses": {"main": {"imageID": "before"}},
    });
    let marks = json!({annotations::IN_PLACE_UPDATE_STATE_OLD: old.to_string()});
    demo.change_pod(&name(&pod), json!({"metadata": {"annotations": marks}})).await;
    demo.set_image("app:v2").await;
    demo.rolled_out().await;
    let after = only_pod(&demo).await;
    assert_eq!(after.metadata.uid, pod.metadata.uid);
    let marks = after.metadata.annotations.clone().unwrap_or_default();
    assert!(!marks.contains_key(annotations::IN_PLACE_UPDATE_STATE_OLD), "{marks:?}");
    assert_eq!(state(&after)["revision"], crate::words::revision(&after));
    Ok(())
}
managed!(old_names_of_annotations_are_replaced, []);

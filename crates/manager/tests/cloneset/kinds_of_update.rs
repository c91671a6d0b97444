//! Updates in place only, updates by hand, and labels of other shapes.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_api::labels;
use kruise_testkit::{Outcome, wait::seen};
use serde_json::json;

use crate::{
    kit::{Demo, image_of, is_available, is_ready, label, name, revision, rolling, updated},
    stage::{Stage, managed},
};

/// CLONESET-31
async fn in_place_only_takes_no_other_change(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "only", rolling(json!({"podUpdatePolicy": "InPlaceOnly"}))).await;
    let before = demo.uids().await;
    demo.set_image("app:v2").await;
    demo.rolled_out().await;
    assert_eq!(demo.uids().await, before);
    assert!(demo.pods().await.iter().all(|pod| image_of(pod, "main") == demo.image("app:v2")));

    let mut containers = demo.template().await["spec"]["containers"].clone();
    containers[0]["env"] = json!([{"name": "A", "value": "b"}]);
    let change = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    for version in ["v1beta1", "v1alpha1"] {
        let object = demo.object(&json!({"apiVersion": format!("apps.kruise.io/{version}")}));
        let refused = stage.patch(&object, &change).await.unwrap_err();
        let words = "spec: Forbidden: only allowed to update images in spec for InPlaceOnly, but found add /containers/0/env";
        assert!(refused.contains("vcloneset.kb.io") && refused.ends_with(words), "{version}: {refused}");
    }
    demo.always("no pod is touched", Duration::from_secs(5), |_, pods| pods.iter().all(is_available)).await;
    assert_eq!(demo.uids().await, before);
    Ok(())
}
managed!(in_place_only_takes_no_other_change, []);

/// CLONESET-32
async fn on_delete_waits_for_people(stage: &mut Stage) -> Outcome {
    let demo =
        Demo::start(stage, "ondelete", json!({"spec": {"updateStrategy": {"type": "OnDelete"}}})).await;
    let before = demo.uids().await;
    demo.set_image("app:v2").await;
    demo.always("no pod is touched", Duration::from_secs(10), |_, pods| {
        pods.len() == 5 && pods.iter().all(is_available)
    })
    .await;
    assert_eq!(demo.uids().await, before);
    for pod in before.keys().take(2) {
        demo.sandbox.delete::<Pod>(pod).await;
    }
    demo.at_rest(2).await;
    demo.change(json!({"spec": {"replicas": 3}})).await;
    demo.at_rest(2).await;
    demo.change(json!({"spec": {"replicas": 5}})).await;
    demo.at_rest(4).await;
    demo.change(json!({"spec": {"replicas": 3}})).await;
    demo.at_rest(3).await;
    let (chosen, _) = demo.uids().await.pop_first().unwrap();
    demo.change_pod(&chosen, json!({"metadata": {"labels": {labels::SPECIFIED_DELETE: "true"}}})).await;
    demo.until("the chosen pod goes", |_, pods| {
        pods.len() == 3 && pods.iter().all(|pod| name(pod) != chosen && is_available(pod))
    })
    .await;
    Ok(())
}
managed!(on_delete_waits_for_people, []);

/// CLONESET-36: the newest template wins, and no two pods restart together on the way.
async fn templates_in_a_row_end_with_the_last(stage: &mut Stage) -> Outcome {
    let change = rolling(json!({"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1}));
    let demo = Demo::start(stage, "row", change).await;
    let before = demo.uids().await;
    let film = demo.film().await;
    for image in ["app:v2", "app:v3", "app:v4"] {
        demo.set_image(image).await;
        tokio::time::sleep(Duration::from_millis(1600)).await;
    }
    demo.rolled_out().await;
    assert_eq!(demo.uids().await, before);
    let runs = |pod: &Pod| {
        let status = pod.status.clone().unwrap_or_default().container_statuses.unwrap_or_default();
        status.iter().map(|one| one.image.clone()).collect::<Vec<_>>()
    };
    let pods = demo.pods().await;
    assert!(pods.iter().all(|pod| image_of(pod, "main") == demo.image("app:v4")));
    assert!(pods.iter().all(|pod| runs(pod).iter().all(|image| image.ends_with("app:v4"))));
    assert_eq!(film.fewest_available(), 4);
    let stopped = |pod: &&Pod| {
        let status = pod.status.clone().unwrap_or_default().container_statuses.unwrap_or_default();
        status.iter().any(|one| one.state.clone().unwrap_or_default().running.is_none())
    };
    assert!(film.frames().iter().all(|frame| frame.active().filter(stopped).count() <= 1));
    Ok(())
}
managed!(templates_in_a_row_end_with_the_last, []);

/// CLONESET-37
async fn switching_to_short_labels_updates_nothing(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "short", rolling(json!({"partition": 3}))).await;
    demo.set_image("app:v2").await;
    demo.at_rest(2).await;
    let before = demo.uids().await;
    let film = demo.film().await;
    stage.kill_manager();
    stage.set_flags(&["--feature-gates=CloneSetShortHash=true"]);
    stage.start_manager().await;
    demo.always("no pod is touched", Duration::from_secs(30), |set, pods| {
        updated(pods, set) == 2 && pods.iter().all(is_available)
    })
    .await;
    assert_eq!(demo.uids().await, before);
    assert_eq!(film.appearances().len(), 5);
    let stages: Vec<_> = film.frames().iter().map(|frame| frame.pods.clone()).collect();
    assert!(stages.windows(2).all(|two| {
        let labels = |pods: &std::collections::BTreeMap<String, Pod>| -> Vec<String> {
            pods.values().map(|pod| format!("{:?}", pod.metadata.labels)).collect()
        };
        labels(&two[0]) == labels(&two[1])
    }));
    demo.change(json!({"spec": {"replicas": 6}})).await;
    demo.until("a sixth pod is there", |set, pods| {
        pods.len() == 6
            && pods.iter().all(is_available)
            && set.status.as_ref().is_some_and(|status| (status.replicas, status.updated_replicas) == (6, 3))
    })
    .await;
    let status = demo.set().await.status.unwrap();
    let hash = status.update_revision.as_deref().unwrap().rsplit('-').next().unwrap().to_owned();
    let pods = demo.pods().await;
    let new: Vec<&Pod> = pods.iter().filter(|pod| !before.contains_key(&name(pod))).collect();
    assert_eq!(new.iter().map(|pod| revision(pod)).collect::<Vec<_>>(), [hash]);
    demo.change(rolling(json!({"partition": 0}))).await;
    demo.until("the rest is updated", |set, pods| {
        let status = set.status.clone().unwrap_or_default();
        status.updated_available_replicas == Some(6)
            && status.current_revision == status.update_revision
            && pods.iter().all(|pod| image_of(pod, "main") == demo.image("app:v2"))
    })
    .await;
    let kept = demo.uids().await;
    assert_eq!(before.values().filter(|uid| kept.values().any(|other| other == *uid)).count(), 2);
    Ok(())
}
managed!(switching_to_short_labels_updates_nothing, [], alone);

/// CLONESET-38
async fn a_long_name_gets_short_labels(stage: &mut Stage) -> Outcome {
    let demo = Demo::prepare(stage, "longname").await;
    let long = "a".repeat(60);
    let object = demo.object(&json!({"metadata": {"name": long}, "spec": {"replicas": 2}}));
    stage.create(object.clone()).await.unwrap();
    let look = async || {
        let pods = demo.pods().await;
        seen(pods.len() == 2 && pods.iter().all(is_ready), format!("{} pods", pods.len()))
    };
    demo.sandbox.eventually("two pods are ready", look).await;
    let set = serde_json::to_value(stage.api(&object).get(&long).await.unwrap()).unwrap();
    let newest = set["status"]["updateRevision"].as_str().unwrap();
    let hash = newest.strip_prefix(&format!("{long}-")).unwrap();
    for pod in demo.pods().await {
        assert_eq!(revision(&pod), hash);
        assert_eq!(label(&pod, labels::POD_TEMPLATE_HASH), hash);
        assert!(name(&pod).starts_with(&format!("{long}-")));
    }
    let updated = set["status"]["updatedReplicas"].clone();
    assert_eq!(updated, 2);
    Ok(())
}
managed!(a_long_name_gets_short_labels, []);

//! New templates, patches, partitions and ways back.

use std::time::Duration;

use kruise_api::labels::{SUBSET_NAME, UNITED_DEPLOYMENT_REVISION};
use kruise_testkit::{Outcome, wait::seen};
use serde_json::{Value, json};

use crate::{
    fleet::{Fleet, KINDS, is_ready, label, name, subsets},
    stage::{Stage, embedded_only, managed},
};

/// UNITED-11, UNITED-12, UNITED-13
async fn partitions_pace_an_update(stage: &mut Stage) -> Outcome {
    for field in ["statefulSetTemplate", "advancedStatefulSetTemplate", "cloneSetTemplate"] {
        let purpose = format!("ud-partition-{}", field.to_lowercase());
        let more = [json!({"replicas": 2}), json!({"replicas": 5}), json!({})];
        let spec = json!({"replicas": 10, "topology": subsets(more)["topology"]});
        let fleet = Fleet::start(stage, &purpose, field, spec).await;
        let first = fleet.status().await["currentRevision"].clone();
        fleet
            .change(json!({"updateStrategy": {"manualUpdate": {"partitions": {"a": 1, "b": 2, "c": 0}}}}))
            .await;
        fleet.set_image("app:v2").await;
        fleet
            .until("all but three pods are updated", |web| {
                let status = &web["status"];
                status["updatedReadyReplicas"] == 7 && status["readyReplicas"] == 10
            })
            .await;
        for (subset, expected) in [("a", 1), ("b", 2), ("c", 0)] {
            assert_eq!(fleet.outdated(subset).await, expected);
        }
        let status = fleet.status().await;
        assert_eq!(status["currentRevision"], first);
        assert_eq!(
            fleet.condition("UnitedDeploymentUpdated").await["reason"],
            "UnitedDeploymentRevisionUpdating"
        );
        // More than there are is as many as there are.
        fleet.change(json!({"updateStrategy": {"manualUpdate": {"partitions": {"a": 20}}}})).await;
        fleet
            .until("the partition is shown", |web| web["status"]["subsetStatuses"][0]["partition"] == 2)
            .await;
        fleet.change(json!({"updateStrategy": {"manualUpdate": {"partitions": null}}})).await;
        fleet.settled().await;
        let updated = fleet.condition("UnitedDeploymentUpdated").await;
        assert_eq!(
            (&updated["status"], &updated["reason"]),
            (&json!("True"), &json!("UnitedDeploymentRevisionUpdated"))
        );
        fleet.set_image("app:v1").await;
        fleet.until("the first revision is back", |web| web["status"]["updatedRevision"] == first).await;
        fleet.settled().await;
        let revisions = fleet.revisions().await;
        let back = revisions.iter().find(|one| name(one) == first).unwrap();
        assert_eq!((revisions.len(), &back["revision"]), (2, &json!(3)));
    }
    Ok(())
}
embedded_only!(partitions_pace_an_update, []);

/// UNITED-11: on a real cluster for CloneSets.
async fn clone_sets_are_updated_by_partition(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::start(stage, "ud-update", "cloneSetTemplate", json!({"replicas": 3})).await;
    fleet.change(json!({"updateStrategy": {"manualUpdate": {"partitions": {"b": 1}}}})).await;
    fleet.set_image("app:v2").await;
    fleet.until("two pods are updated", |web| web["status"]["updatedReadyReplicas"] == 2).await;
    assert_eq!(fleet.outdated("b").await, 1);
    fleet.change(json!({"updateStrategy": {"manualUpdate": {"partitions": null}}})).await;
    fleet.settled().await;
    Ok(())
}
managed!(clone_sets_are_updated_by_partition, []);

/// UNITED-14: ten old revisions, the newest ones, besides the one that is used.
async fn old_revisions_are_limited(stage: &mut Stage) -> Outcome {
    for field in KINDS {
        let purpose = format!("ud-history-{}", field.to_lowercase());
        let fleet =
            Fleet::start(stage, &purpose, field, json!({"replicas": 3, "revisionHistoryLimit": 10})).await;
        for number in 2..=13 {
            fleet.set_image(&format!("app:v{number}")).await;
            fleet
                .until("the revision is there", |web| {
                    web["status"]["observedGeneration"] == web["metadata"]["generation"]
                })
                .await;
        }
        fleet.settled().await;
        let look = async || {
            let revisions = fleet.revisions().await;
            let mut numbers: Vec<i64> = revisions.iter().filter_map(|one| one["revision"].as_i64()).collect();
            numbers.sort_unstable();
            seen(numbers == (3..=13).collect::<Vec<_>>(), format!("{field}: {numbers:?}"))
        };
        fleet.sandbox.eventually("old revisions are deleted, the oldest first", look).await;
    }
    Ok(())
}
embedded_only!(old_revisions_are_limited, []);

/// UNITED-9: the patch of one subset changes the pods of this subset only.
async fn a_patch_changes_the_pods_of_its_subset(stage: &mut Stage) -> Outcome {
    let spec = |value: &str| {
        let patch = json!({"patch": {"metadata": {"labels": {"place": value}}, "spec": {"containers": [{"name": "main",
            "env": [{"name": "ZONE", "value": value}], "resources": {"requests": {"cpu": "10m"}}}]}}});
        json!({"replicas": 3, "topology": subsets([json!({}), patch, json!({})])["topology"]})
    };
    let fleet = Fleet::start(stage, "ud-patch", "cloneSetTemplate", spec("first")).await;
    let pods = async || {
        let mut pods: Vec<(String, Value)> = fleet
            .pods()
            .await
            .into_iter()
            .filter(is_ready)
            .map(|pod| (label(&pod, SUBSET_NAME).to_owned(), pod))
            .collect();
        pods.sort_by(|left, right| left.0.cmp(&right.0));
        pods.into_iter().map(|(_, pod)| pod).collect::<Vec<_>>()
    };
    let before = pods().await;
    assert_eq!(label(&before[1], "place"), "first");
    assert_eq!(before[1]["spec"]["containers"][0]["env"][0]["value"], "first");
    assert!(before[0]["spec"]["containers"][0]["env"].is_null());
    let uids = |pods: &[Value]| pods.iter().map(|pod| pod["metadata"]["uid"].clone()).collect::<Vec<_>>();
    fleet.change(spec("second")).await;
    let look = async || {
        let now = pods().await;
        let is_changed = now.len() == 3 && now[1]["spec"]["containers"][0]["env"][0]["value"] == "second";
        seen(is_changed, format!("{} pods", now.len()))
    };
    fleet.sandbox.eventually("the pod of b is another", look).await;
    let after = pods().await;
    assert_eq!((&uids(&after)[0], &uids(&after)[2]), (&uids(&before)[0], &uids(&before)[2]));
    assert_ne!(uids(&after)[1], uids(&before)[1]);
    let revision = fleet.status().await["updatedRevision"].clone();
    assert!(after.iter().all(|pod| label(pod, UNITED_DEPLOYMENT_REVISION) == revision));
    Ok(())
}
managed!(a_patch_changes_the_pods_of_its_subset, []);

/// UNITED-15: Kubernetes waits for ever for a pod of a broken revision; it is deleted.
async fn a_stuck_pod_of_a_stateful_set_is_replaced(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::start(stage, "ud-stuck", "statefulSetTemplate", json!({"replicas": 6})).await;
    fleet.set_image("nosuch:v1-fail").await;
    stage.sim().advance(Duration::from_secs(60)).await;
    assert!(fleet.pods().await.iter().any(|pod| !is_ready(pod)), "the image cannot be pulled");
    fleet.set_image("app:v2").await;
    fleet.settled().await;
    Ok(())
}
embedded_only!(a_stuck_pod_of_a_stateful_set_is_replaced, []);

//! Subsets, kinds and the object itself come and go.

use std::time::Duration;

use kruise_api::{
    cloneset::v1beta1::CloneSet, labels::SUBSET_NAME, uniteddeployment::v1beta1::UnitedDeployment,
};
use kruise_testkit::{Outcome, wait::seen};
use kube::{
    Api,
    api::{DeleteParams, PropagationPolicy},
};
use serde_json::{Value, json};

use crate::{
    fleet::{Fleet, KINDS, label, name, subset, subsets},
    stage::{Stage, embedded_only, managed},
};

fn uids(objects: &[Value]) -> Vec<String> {
    let mut uids: Vec<String> =
        objects.iter().map(|one| one["metadata"]["uid"].as_str().unwrap().to_owned()).collect();
    uids.sort();
    uids
}

/// UNITED-16
async fn a_subset_comes_and_goes(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::start(stage, "ud-subset", "deploymentTemplate", json!({"replicas": 6})).await;
    let mut four = subsets([json!({}), json!({}), json!({})]);
    four["topology"]["subsets"].as_array_mut().unwrap().push(subset("d", "zone-a", json!({})));
    fleet.change(four).await;
    fleet.divided("1/2/2/1").await;
    fleet.settled().await;
    assert_eq!(fleet.told("SuccessfulUpdateSubset").await.last().unwrap(), "Create 1 Subset (Deployment)");
    fleet.change(subsets([json!({}), json!({}), json!({})])).await;
    fleet.divided("2/2/2").await;
    fleet.settled().await;
    assert!(fleet.told("SuccessfulUpdateSubset").await.contains(&"Delete 1 Subset (Deployment)".to_owned()));
    assert!(fleet.entry("d").await.is_null());
    let look = async || {
        let left = fleet.pods().await.iter().filter(|pod| label(pod, SUBSET_NAME) == "d").count();
        seen(left == 0, format!("{left} pods"))
    };
    fleet.sandbox.eventually("its pods are deleted", look).await;
    Ok(())
}
managed!(a_subset_comes_and_goes, []);

/// UNITED-17
async fn the_kind_of_the_template_changes(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::start(stage, "ud-kind", "deploymentTemplate", json!({"replicas": 3})).await;
    let template = fleet.template("cloneSetTemplate");
    fleet.change(json!({"template": {"deploymentTemplate": null, "cloneSetTemplate": template}})).await;
    let look = async || {
        let children = fleet.children().await;
        let kinds: Vec<&str> = children.iter().filter_map(|one| one["kind"].as_str()).collect();
        let own = fleet.sandbox.list::<CloneSet>().await.len();
        seen(own == 3 && children.len() == 3, format!("{own} CloneSets, {kinds:?}"))
    };
    fleet.sandbox.eventually("CloneSets take the place of Deployments", look).await;
    fleet.settled().await;
    Ok(())
}
managed!(the_kind_of_the_template_changes, []);

/// UNITED-18
async fn the_older_of_two_workloads_stays(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::start(stage, "ud-twin", "cloneSetTemplate", json!({"replicas": 3})).await;
    let before = uids(&fleet.children().await);
    stage.sim().advance(Duration::from_secs(5)).await;
    let mut twin = fleet.child("b").await;
    twin["metadata"] = json!({"name": "twin", "namespace": fleet.sandbox.namespace(),
        "labels": twin["metadata"]["labels"], "annotations": twin["metadata"]["annotations"],
        "ownerReferences": twin["metadata"]["ownerReferences"]});
    twin.as_object_mut().unwrap().remove("status");
    twin["apiVersion"] = json!("apps.kruise.io/v1beta1");
    twin["kind"] = json!("CloneSet");
    fleet.sandbox.create_any(twin).await.unwrap();
    let look = async || {
        let now = uids(&fleet.children().await);
        seen(now == before, format!("{now:?}"))
    };
    fleet.sandbox.eventually("the newer one is deleted", look).await;
    Ok(())
}
embedded_only!(the_older_of_two_workloads_stays, []);

/// UNITED-29
async fn a_manager_that_dies_makes_no_workload_twice(stage: &mut Stage) -> Outcome {
    for nth in 1..6 {
        let fleet = Fleet::prepare(stage, &format!("ud-crash-{nth}"), "cloneSetTemplate").await;
        stage.sim().faults().crash_after_write(nth);
        fleet.create(json!({"replicas": 3})).await;
        stage.sim().advance(Duration::from_secs(10)).await;
        stage.kill_manager();
        stage.sim().faults().revive();
        stage.start_manager().await;
        stage.sim().advance(Duration::from_secs(30)).await;
        fleet.settled().await;
        assert_eq!(fleet.numbers().await, "1/1/1");
        assert_eq!(fleet.children().await.len(), 3);
    }
    Ok(())
}
embedded_only!(a_manager_that_dies_makes_no_workload_twice, []);

/// UNITED-30: the last spec wins.
async fn the_last_of_many_specs_wins(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::start(stage, "ud-edits", "cloneSetTemplate", json!({"replicas": 3})).await;
    for number in 1..15_i32 {
        fleet.change(json!({"replicas": 3 + number % 7})).await;
        if number % 4 == 0 {
            fleet.set_image(&format!("app:v{number}")).await;
        }
        stage.sim().advance(Duration::from_millis(u64::from(number.unsigned_abs()) * 37)).await;
    }
    fleet.change(json!({"replicas": 9})).await;
    fleet.divided("3/3/3").await;
    fleet.settled().await;
    let image = fleet.image("app:v12");
    assert!(fleet.pods().await.iter().all(|pod| pod["spec"]["containers"][0]["image"] == image));
    Ok(())
}
embedded_only!(the_last_of_many_specs_wins, []);

/// UNITED-34
async fn a_deleted_object_takes_its_workloads_along_unless_asked_not_to(stage: &mut Stage) -> Outcome {
    for field in KINDS {
        let purpose = format!("ud-orphans-{}", field.to_lowercase());
        let fleet = Fleet::start(stage, &purpose, field, json!({"replicas": 3})).await;
        let (children, pods) = (uids(&fleet.children().await), uids(&fleet.pods().await));
        let revision = fleet.status().await["updatedRevision"].clone();
        let api: Api<UnitedDeployment> = fleet.sandbox.api();
        let orphan =
            DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
        api.delete("web", &orphan).await.unwrap();
        let gone = async || seen(api.get_opt("web").await.unwrap().is_none(), "still there");
        fleet.sandbox.eventually("the object is gone", gone).await;
        let look = async || {
            let now = fleet.children().await;
            let free = now.iter().all(|one| one["metadata"]["ownerReferences"].is_null());
            let same = (uids(&now), uids(&fleet.pods().await)) == (children.clone(), pods.clone());
            seen(same && free, format!("{now:?}"))
        };
        fleet.sandbox.always("workloads and pods run on without it", Duration::from_secs(15), look).await;
        fleet.create(json!({"replicas": 3})).await;
        fleet.settled().await;
        assert_eq!((uids(&fleet.children().await), uids(&fleet.pods().await)), (children, pods), "{field}");
        assert_eq!(fleet.status().await["updatedRevision"], revision, "{field}");
        let owner = fleet.web().await["metadata"]["uid"].clone();
        for one in fleet.children().await.iter().chain(&fleet.revisions().await) {
            assert_eq!(one["metadata"]["ownerReferences"][0]["uid"], owner, "{one}");
        }
        assert_eq!(fleet.revisions().await.len(), 1, "{field}");
        // As kubectl asks for it.
        api.delete("web", &DeleteParams::background()).await.unwrap();
        let look = async || {
            let left =
                (fleet.children().await.len(), fleet.pods().await.len(), fleet.revisions().await.len());
            seen(left == (0, 0, 0), format!("{left:?}"))
        };
        fleet.sandbox.eventually("workloads, pods and revisions are gone", look).await;
    }
    Ok(())
}
managed!(a_deleted_object_takes_its_workloads_along_unless_asked_not_to, []);

/// UNITED-35: a workload that cannot be written holds up no other, and is tried again.
async fn a_workload_that_cannot_be_written_is_reported(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::prepare(stage, "ud-refused", "statefulSetTemplate").await;
    // Somebody's own StatefulSet says that it is of subset a, and has another policy, which never changes.
    let labels = json!({"app": "web", SUBSET_NAME: "a"});
    let mut template = fleet.template("statefulSetTemplate");
    template["spec"]["template"]["metadata"]["labels"] = labels.clone();
    template["spec"]["podManagementPolicy"] = json!("OrderedReady");
    template["spec"]["selector"] = json!({"matchLabels": labels});
    template["spec"]["replicas"] = json!(1);
    let own = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "own", "namespace": fleet.sandbox.namespace(), "labels": labels}, "spec": template["spec"]});
    fleet.sandbox.create_any(own.clone()).await.unwrap();
    fleet.create(json!({"replicas": 6})).await;
    fleet.divided("1/2/2").await;
    fleet
        .until("the refusal is reported", |web| {
            let all = web["status"]["conditions"].as_array().cloned().unwrap_or_default();
            all.iter().any(|one| {
                let message = one["message"].as_str().unwrap_or_default();
                one["type"] == "SubsetUpdated" && one["status"] == "False" && message.contains("forbidden")
            })
        })
        .await;
    let beginning = "Error updating PodSet (StatefulSet) own when updating: ";
    let told = fleet.told("FailedUpdateSubset").await;
    assert!(told.iter().any(|message| message.starts_with(beginning)), "{told:?}");
    // It is tried again, but not all the time, and what others want is done meanwhile.
    fleet.scale(9).await;
    fleet.divided("1/3/3").await;
    let tries = stage.sim().faults().writes();
    stage.sim().advance(Duration::from_secs(3600)).await;
    assert!(stage.sim().faults().writes() - tries < 100, "it asks again and again");
    fleet.sandbox.delete_any(own).await;
    fleet.divided("3/3/3").await;
    fleet.settled().await;
    assert_eq!(fleet.condition("SubsetUpdated").await["status"], "True");
    Ok(())
}
embedded_only!(a_workload_that_cannot_be_written_is_reported, []);

/// A hand-made number of a workload is undone; a label that nobody asked for stays.
async fn a_hand_made_number_is_undone(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::start(stage, "ud-hand", "cloneSetTemplate", json!({"replicas": 3})).await;
    let child = fleet.child("b").await;
    let change =
        json!({"metadata": {"labels": {"hand": "made"}}, "spec": {"replicas": 5, "minReadySeconds": 7}});
    let _: CloneSet = fleet.sandbox.merge(name(&child), change).await;
    fleet.divided("1/1/1").await;
    let child = fleet.child("b").await;
    assert_eq!((label(&child, "hand"), child["spec"]["minReadySeconds"].as_i64().unwrap_or(0)), ("made", 0));
    Ok(())
}
embedded_only!(a_hand_made_number_is_undone, []);

/// UNITED-31: a new manager finds everything as it should be and writes nothing.
async fn a_new_manager_writes_nothing(stage: &mut Stage) -> Outcome {
    for field in KINDS {
        let fleet =
            Fleet::start(stage, &format!("ud-rest-{}", field.to_lowercase()), field, json!({"replicas": 3}))
                .await;
        stage.sim().advance(Duration::from_secs(30)).await;
        let versions = async || {
            let mut all = fleet.children().await;
            all.extend(fleet.pods().await);
            all.push(fleet.web().await);
            all.iter().map(|one| one["metadata"]["resourceVersion"].clone()).collect::<Vec<_>>()
        };
        let before = versions().await;
        stage.kill_manager();
        stage.start_manager().await;
        stage.sim().advance(Duration::from_secs(120)).await;
        assert_eq!(versions().await, before, "{field}");
    }
    Ok(())
}
embedded_only!(a_new_manager_writes_nothing, []);

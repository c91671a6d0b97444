//! Pods that people choose to delete.

use std::time::Duration;

use kruise_api::{cloneset::v1beta1::CloneSet, labels};
use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    kit::{Demo, is_active, is_available, label, merged, name, rolling},
    stage::{Stage, managed},
};

/// Asks by its label that a pod be deleted.
async fn choose(demo: &Demo, pod: &str) {
    demo.change_pod(pod, json!({"metadata": {"labels": {labels::SPECIFIED_DELETE: "true"}}})).await;
}

fn to_delete(names: &[&String]) -> Value {
    json!({"spec": {"scaleStrategy": {"podsToDelete": names}}})
}

/// Whether no pod is left to delete, as far as the set says.
fn is_forgotten(set: &CloneSet) -> bool {
    set.spec.scale_strategy.as_ref().is_none_or(|scale| scale.pods_to_delete.is_empty())
}

/// CLONESET-10
async fn a_pod_to_delete_is_replaced_and_forgotten(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "podstodelete", json!({})).await;
    let before = demo.uids().await;
    let (chosen, _) = before.first_key_value().unwrap();
    let film = demo.film().await;
    demo.change(to_delete(&[chosen])).await;
    demo.until("the pod is replaced", |set, pods| {
        pods.len() == 5
            && pods.iter().all(|pod| is_available(pod) && name(pod) != *chosen)
            && is_forgotten(set)
    })
    .await;
    let after = demo.uids().await;
    assert_eq!(before.values().filter(|uid| after.values().any(|other| other == *uid)).count(), 4);
    assert!(film.most_active() <= 5);
    let deleted = demo.events("SuccessfulDelete").await;
    assert_eq!(deleted.len(), 1, "{deleted:?}");
    assert_eq!(deleted[0].message, format!("succeed to delete pod {chosen}"));
    Ok(())
}
managed!(a_pod_to_delete_is_replaced_and_forgotten, []);

/// CLONESET-11
async fn a_pod_to_delete_is_the_one_that_a_smaller_set_loses(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "smaller", json!({})).await;
    let mut wanted = demo.uids().await;
    let chosen = wanted.keys().nth(2).unwrap().clone();
    let film = demo.film().await;
    demo.change(merged(to_delete(&[&chosen]), &json!({"spec": {"replicas": 4}}))).await;
    wanted.remove(&chosen);
    demo.settled().await;
    demo.until("the name is forgotten", |set, _| is_forgotten(set)).await;
    assert_eq!(demo.uids().await, wanted);
    assert_eq!(film.appearances().len(), 5, "no pod was made");
    assert_eq!(demo.events("SuccessfulCreate").await.len(), 5);
    Ok(())
}
managed!(a_pod_to_delete_is_the_one_that_a_smaller_set_loses, []);

/// CLONESET-12
async fn chosen_pods_go_within_the_limit(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "chosen", rolling(json!({"maxUnavailable": 1}))).await;
    let before = demo.uids().await;
    let chosen: Vec<&String> = before.keys().take(2).collect();
    let film = demo.film().await;
    for pod in &chosen {
        choose(&demo, pod).await;
    }
    demo.until("both are replaced", |_, pods| {
        pods.len() == 5 && pods.iter().all(|pod| is_available(pod) && !chosen.contains(&&name(pod)))
    })
    .await;
    assert_eq!(film.fewest_available(), 4);
    assert_eq!(film.most_active(), 5);
    let after = demo.uids().await;
    assert_eq!(before.values().filter(|uid| after.values().any(|other| other == *uid)).count(), 3);
    Ok(())
}
managed!(chosen_pods_go_within_the_limit, []);

/// CLONESET-13
async fn with_a_surge_the_replacement_comes_first(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "surge", rolling(json!({"maxUnavailable": 0, "maxSurge": 1}))).await;
    let before = demo.uids().await;
    let (chosen, _) = before.first_key_value().unwrap();
    let film = demo.film().await;
    choose(&demo, chosen).await;
    demo.until("it is replaced", |_, pods| {
        pods.len() == 5 && pods.iter().all(|pod| is_available(pod) && name(pod) != *chosen)
    })
    .await;
    assert_eq!((film.fewest_available(), film.most_active()), (5, 6));
    let frames = film.frames();
    let going = frames.iter().find(|frame| !frame.active().any(|pod| name(pod) == *chosen)).unwrap();
    assert_eq!(going.active().filter(|pod| is_available(pod)).count(), 5);
    Ok(())
}
managed!(with_a_surge_the_replacement_comes_first, []);

/// CLONESET-14: a pod that waits for its deletion counts, unless the set says otherwise.
async fn a_pod_that_waits_for_its_deletion_counts_if_so_wanted(stage: &mut Stage) -> Outcome {
    const HOLD: &str = "example.com/hold";
    for exclude in [false, true] {
        let change = json!({"spec": {
            "lifecycle": {"preDelete": {"finalizersHandler": [HOLD]}},
            "scaleStrategy": {"excludePreparingDelete": exclude},
        }});
        let demo = Demo::start(stage, if exclude { "excluded" } else { "counted" }, change).await;
        let (chosen, _) = demo.uids().await.pop_first().unwrap();
        demo.change_pod(&chosen, json!({"metadata": {"finalizers": [HOLD]}})).await;
        choose(&demo, &chosen).await;
        demo.until("the pod waits", |_, pods| {
            let pod = pods.iter().find(|pod| name(pod) == chosen);
            pod.is_some_and(|pod| label(pod, labels::LIFECYCLE_STATE) == "PreparingDelete")
        })
        .await;
        let pods = if exclude { 6 } else { 5 };
        demo.until("the status counts it", |set, found| {
            found.len() == pods
                && set.status.as_ref().is_some_and(|status| usize::try_from(status.replicas) == Ok(pods))
                && found.iter().filter(|pod| is_available(pod)).count() == pods - 1
        })
        .await;
        demo.always("it stays so", Duration::from_secs(10), |_, found| {
            found.len() == pods && found.iter().all(is_active)
        })
        .await;
        demo.change_pod(&chosen, json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [HOLD]}})).await;
        demo.settled().await;
        assert!(!demo.uids().await.contains_key(&chosen));
    }
    Ok(())
}
managed!(a_pod_that_waits_for_its_deletion_counts_if_so_wanted, []);

//! Pods that find no node.

use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    scene::{NO_FLAGS, Scene, merged, node_of, subset, subset_of},
    stage::{Stage, embedded_only, managed},
};

fn adaptive(seconds: i64) -> Value {
    json!({"spec": {"scheduleStrategy": {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": seconds}}}})
}

fn is_closed(status: &Value, subset: usize) -> Option<bool> {
    let condition = &status["subsetStatuses"][subset]["conditions"][0];
    condition["status"].as_str().map(|status| status == "False")
}

/// SPREAD-23: pods that find no node move to the next subset; the first one is tried again after 300 seconds. A real cluster has
/// better things to do for so long.
async fn pods_that_find_no_node_move_on(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "ws-adaptive").await;
    // No node has a zone of this name.
    let subsets = json!([subset("nowhere", 2.into()), subset("b", Value::Null)]);
    let spread = scene.spread_object("apps.kruise.io/v1beta1", "CloneSet", subsets);
    scene.put_spread(merged(spread, &adaptive(5))).await;
    scene.create_set(5).await;
    scene.until_places("b5").await;
    let status = scene.status().await;
    assert_eq!((is_closed(&status, 0), is_closed(&status, 1)), (Some(true), Some(false)), "{status}");
    assert_eq!(
        is_closed(&json!({"subsetStatuses": status["versionedSubsetStatuses"]["versionIgnored"]}), 0),
        Some(true)
    );
    let said = scene.until_event("Waiting").await;
    assert!(said.starts_with("SubsetUnschedulable: subset nowhere cannot take pods since "), "{said}");
    assert!(said.contains("2 replicas are in other subsets, it is tried again at "), "{said}");
    let metrics = stage.metrics().await;
    assert!(
        metrics.contains("kruise_waiting_objects{kind=\"WorkloadSpread\",reason=\"SubsetUnschedulable\"} 1")
    );
    scene.rest(260).await;
    assert_eq!(is_closed(&scene.status().await, 0), Some(true));
    scene.rest(60).await;
    assert_eq!(is_closed(&scene.status().await, 0), Some(false));
    let event = scene.until_event("RecoverSchedulable").await;
    let namespace = scene.sandbox.namespace();
    assert_eq!(
        event,
        format!(
            "Subset nowhere of WorkloadSpread {namespace}/w is recovered from unschedulable to schedulable"
        )
    );
    Ok(())
}
embedded_only!(pods_that_find_no_node_move_on, super::NO_FLAGS);

/// A zone that stays full for ever: each window costs the new pods one try, what runs is left alone, and every wanted pod runs
/// in the end.
async fn a_zone_that_stays_full_is_tried_now_and_then(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "ws-full").await;
    let subsets = json!([subset("nowhere", 4.into()), subset("b", Value::Null)]);
    let spread = scene.spread_object("apps.kruise.io/v1beta1", "CloneSet", subsets);
    scene.put_spread(merged(spread, &adaptive(10))).await;
    scene.create_set(3).await;
    scene.until_places("b3").await;
    let first: Vec<String> = scene.pods().await.iter().map(crate::scene::name).collect();
    for replicas in 4..8 {
        scene.rest(320).await;
        scene.scale_set(replicas).await;
        scene.until_places(&format!("b{replicas}")).await;
    }
    let pods = scene.pods().await;
    assert!(pods.iter().all(|pod| !node_of(pod).is_empty()));
    let names: Vec<String> = pods.iter().map(crate::scene::name).collect();
    assert!(first.iter().all(|name| names.contains(name)), "{first:?} {names:?}");
    scene.rest(400).await;
    let writes = stage.sim().faults().writes();
    scene.rest(900).await;
    assert_eq!(stage.sim().faults().writes(), writes, "nobody tries where nothing is wanted");
    Ok(())
}
embedded_only!(a_zone_that_stays_full_is_tried_now_and_then, super::NO_FLAGS);

/// SPREAD-25: Fixed leaves pods where they wait, and has no condition.
async fn fixed_pods_wait(stage: &mut Stage) -> Outcome {
    let scene =
        Scene::start(stage, "ws-fixed", 3, json!([subset("nowhere", 2.into()), subset("b", Value::Null)]))
            .await;
    scene.until_places("b1 nowhere2").await;
    scene.rest(30).await;
    scene.until_places("b1 nowhere2").await;
    let waiting =
        scene.pods().await.iter().filter(|pod| node_of(pod).is_empty()).map(subset_of).collect::<Vec<_>>();
    assert_eq!(waiting, ["nowhere", "nowhere"]);
    assert!(!scene.status().await.to_string().contains("conditions"));
    Ok(())
}
managed!(fixed_pods_wait, super::NO_FLAGS);

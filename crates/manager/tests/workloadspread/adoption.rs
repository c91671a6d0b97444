//! Pods that are older than their spread.

use std::time::Duration;

use kruise_api::annotations::{MATCHED_WORKLOADSPREAD, WORKLOADSPREAD_IGNORE_PATCH_METADATA};
use kruise_testkit::Outcome;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::{
    scene::{NO_FLAGS, Scene, annotation, merged, node_of, places, subset, subset_of},
    stage::{Stage, embedded_only, managed},
};

/// A set of four pods, two in each of zone a and b, that nobody has spread.
async fn running(stage: &Stage, purpose: &str) -> Scene {
    let scene = Scene::prepare(stage, purpose).await;
    let zones = json!({"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a", "zone-b"]}]});
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [zones]}});
    let even = json!([{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}}]);
    let change = json!({"spec": {"template": {"spec": {"affinity": {"nodeAffinity": required}, "topologySpreadConstraints": even}}}});
    scene.create("apps.kruise.io/v1beta1", "CloneSet", 4, change).await;
    let look = async || {
        let pods = scene.pods().await;
        let there = pods.iter().filter(|pod| !node_of(pod).is_empty()).count();
        kruise_testkit::wait::seen(there == 4, format!("{there} of {} pods have a node", pods.len()))
    };
    scene.sandbox.eventually("the pods have nodes", look).await;
    scene
}

fn patched(name: &str) -> Value {
    merged(
        subset(name, 2.into()),
        &json!({"patch": {"metadata": {"labels": {"subset": name}, "annotations": {"p": name}}}}),
    )
}

/// SPREAD-19: pods get the mark of the subset that they run in, with the labels of its patch unless the spread says otherwise.
async fn running_pods_are_adopted(stage: &mut Stage) -> Outcome {
    for keeps in [false, true] {
        let scene = running(stage, "ws-adopt").await;
        let mut spread =
            scene.spread_object("apps.kruise.io/v1beta1", "CloneSet", json!([patched("a"), patched("b")]));
        if keeps {
            spread["metadata"]["annotations"] = json!({WORKLOADSPREAD_IGNORE_PATCH_METADATA: "true"});
        }
        scene.sandbox.create_any(spread).await.unwrap();
        scene.until_places("a2 b2").await;
        scene.until_costs("a200 a200 b100 b100").await;
        scene.until_account("a 2/0, b 2/0").await;
        for pod in scene.pods().await {
            let wanted = (!keeps).then(|| subset_of(&pod));
            assert_eq!(pod.labels().get("subset"), wanted.as_ref());
            assert_eq!(annotation(&pod, "p"), wanted.as_deref());
        }
    }
    Ok(())
}
managed!(running_pods_are_adopted, super::NO_FLAGS);

/// SPREAD-20: with preferred terms only, the subset with the higher weight for the node gets the pod; the first one of equals.
async fn preferred_terms_choose_by_weight(stage: &mut Stage) -> Outcome {
    let scene = running(stage, "ws-prefer").await;
    let prefers = |name: &str, zone: &str, weight: i32| {
        let term = json!({"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [format!("zone-{zone}")]}]});
        json!({"name": name, "preferredNodeSelector": [{"weight": weight, "preference": term}]})
    };
    let subsets = json!([prefers("x", "a", 5), prefers("y", "b", 7), prefers("z", "b", 7)]);
    scene.spread("apps.kruise.io/v1beta1", "CloneSet", subsets).await;
    scene.until_places("x2 y2").await;
    Ok(())
}
managed!(preferred_terms_choose_by_weight, super::NO_FLAGS);

/// A spread that another manager left is taken over without a write to a pod. How many writes there are is known of the
/// embedded cluster.
async fn a_spread_is_taken_over_without_a_write(stage: &mut Stage) -> Outcome {
    let scene =
        Scene::start(stage, "ws-takeover", 4, json!([subset("a", 2.into()), subset("b", Value::Null)])).await;
    scene.until_places("a2 b2").await;
    scene.until_account("a 2/0, b 2/-1").await;
    scene.rest(60).await;
    stage.kill_manager();
    let writes = stage.sim().faults().writes();
    stage.start_manager().await;
    scene.rest(120).await;
    assert_eq!(stage.sim().faults().writes(), writes);
    Ok(())
}
embedded_only!(a_spread_is_taken_over_without_a_write, super::NO_FLAGS);

/// The marks and costs of pods stay when their spread is deleted, and another spread takes the pods.
async fn another_spread_takes_the_pods(stage: &mut Stage) -> Outcome {
    let scene =
        Scene::start(stage, "ws-next", 2, json!([subset("a", 1.into()), subset("b", Value::Null)])).await;
    scene.until_places("a1 b1").await;
    scene.until_costs("a200 b100").await;
    scene.sandbox.delete::<kruise_api::workloadspread::v1beta1::WorkloadSpread>("w").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!((places(&scene.pods().await).as_str(), scene.costs().await.as_str()), ("a1 b1", "a200 b100"));
    let mut next =
        scene.spread_object("apps.kruise.io/v1beta1", "CloneSet", json!([subset("b", Value::Null)]));
    next["metadata"]["name"] = json!("next");
    scene.sandbox.create_any(next).await.unwrap();
    let look = async || {
        let marks: Vec<String> = scene
            .pods()
            .await
            .iter()
            .filter_map(|pod| annotation(pod, MATCHED_WORKLOADSPREAD).map(str::to_owned))
            .collect();
        let taken = marks.contains(&r#"{"name":"next","subset":"b"}"#.to_owned());
        kruise_testkit::wait::seen(taken, format!("{marks:?}"))
    };
    scene.sandbox.eventually("the pod in b belongs to the next spread", look).await;
    scene.until_costs("a-200 b100").await;
    Ok(())
}
managed!(another_spread_takes_the_pods, super::NO_FLAGS);

//! What people write.

use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    scene::{NO_FLAGS, Scene, merged, subset},
    stage::{Stage, managed},
};

async fn refusal(scene: &Scene, change: Value) -> String {
    let subsets = json!([subset("a", 1.into()), subset("b", Value::Null)]);
    let object = merged(scene.spread_object("apps.kruise.io/v1beta1", "CloneSet", subsets), &change);
    match scene.sandbox.create_any(object).await {
        Err(refusal) => refusal,
        Ok(_) => {
            let named = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread", "metadata": {"name": "w"}});
            scene.sandbox.delete_any(named).await;
            "accepted".to_owned()
        }
    }
}

/// SPREAD-5, SPREAD-24: limits and times that cannot be kept are refused with path and text.
async fn what_cannot_be_kept_is_refused(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "ws-input").await;
    let limits = |limits: &[Value]| {
        let all: Vec<Value> = limits
            .iter()
            .enumerate()
            .map(|(index, limit)| subset(["a", "b", "c"][index], limit.clone()))
            .collect();
        json!({"spec": {"subsets": all}})
    };
    let with = |seconds: i64| {
        let strategy = json!({"spec": {"scheduleStrategy": {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": seconds}}}});
        merged(limits(&[json!(1), json!(1), Value::Null]), &strategy)
    };
    for (change, expected) in [
        (
            limits(&[json!("40%"), json!("20%")]),
            "spec.subsets[0].maxReplicas: Invalid value: \"40%\": maxReplicas sum of all subsets must equal 100% when type is specified as percent",
        ),
        (limits(&[json!("40%"), Value::Null]), "accepted"),
        (
            limits(&[json!("60%"), json!("50%")]),
            "the sum of all subset's maxReplicas exceeds 100% is no permitted",
        ),
        (limits(&[json!("0.2%"), Value::Null]), "maxReplicas is not valid for subset"),
        (limits(&[json!(1), json!("50%")]), "the maxReplicas type of all subsets must be the same"),
        (with(147), "accepted"),
        (with(148), "rescheduleCriticalSeconds < 0 or rescheduleCriticalSeconds > 147 is not permitted"),
    ] {
        let told = refusal(&scene, change).await;
        assert!(told.contains(expected), "{told}");
    }
    Ok(())
}
managed!(what_cannot_be_kept_is_refused, super::NO_FLAGS);

/// SPREAD-16, SPREAD-32: a patch is tried on the template of the workload, once there is one.
async fn a_patch_is_tried_on_the_template(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "ws-tried").await;
    let broken =
        merged(subset("a", Value::Null), &json!({"patch": {"spec": {"containers": [{"name": "new"}]}}}));
    scene.spread("apps.kruise.io/v1beta1", "CloneSet", json!([broken])).await;
    let sound = merged(subset("a", Value::Null), &json!({"patch": {"metadata": {"labels": {"x": "y"}}}}));
    scene.change_spread(json!({"spec": {"subsets": [sound]}})).await;
    scene.create_set(1).await;
    scene.until_places("a1").await;
    let spread = scene.spread_object("apps.kruise.io/v1beta1", "CloneSet", json!([broken]));
    let told = stage
        .patch(
            &merged(spread, &json!({"metadata": {"namespace": scene.sandbox.namespace()}})),
            &json!({"spec": {"subsets": [broken]}}),
        )
        .await
        .unwrap_err();
    assert!(
        told.starts_with("422 ")
            && told.contains("spec.subsets[0].patch.containers[0].image: Required value"),
        "{told}"
    );
    Ok(())
}
managed!(a_patch_is_tried_on_the_template, super::NO_FLAGS);

/// SPREAD-30: a workload has one spread, and a spread has one workload.
async fn a_workload_has_one_spread(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "ws-one").await;
    let subsets = json!([subset("a", 1.into()), subset("b", Value::Null)]);
    scene.spread("apps.kruise.io/v1beta1", "CloneSet", subsets).await;
    scene.until_account("a 0/1, b 0/-1").await;
    let second = json!({"metadata": {"name": "second"}, "spec": {"targetRef": {"apiVersion": "apps.kruise.io/v1alpha1"}}});
    let told = refusal(&scene, second).await;
    assert!(told.contains("ws.spec.targetRef is in conflict with other WorkloadSpread w"), "{told}");
    let object = scene.spread_object("apps.kruise.io/v1beta1", "CloneSet", json!([]));
    let object = merged(object, &json!({"metadata": {"namespace": scene.sandbox.namespace()}}));
    let told = stage.patch(&object, &json!({"spec": {"targetRef": {"name": "other"}}})).await.unwrap_err();
    assert!(told.contains("change TargetReference is not permitted for WorkloadSpread"), "{told}");
    stage
        .patch(&object, &json!({"spec": {"targetRef": {"apiVersion": "apps.kruise.io/v1alpha1"}}}))
        .await
        .unwrap();
    Ok(())
}
managed!(a_workload_has_one_spread, super::NO_FLAGS);

/// SPREAD-34: both versions show the same object.
async fn both_versions_show_the_same(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "ws-versions").await;
    let term = subset("a", 1.into())["requiredNodeSelector"].clone();
    let old = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "WorkloadSpread", "metadata": {"name": "w"}, "spec": {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "subsets": [{"name": "a", "maxReplicas": 1, "requiredNodeSelectorTerm": term}, {"name": "b"}]}});
    scene.sandbox.create_any(old).await.unwrap();
    let new: kruise_api::workloadspread::v1beta1::WorkloadSpread = scene.sandbox.get("w").await;
    assert_eq!(json!(new.spec.subsets[0].required_node_selector), term);
    let back: kruise_api::workloadspread::v1alpha1::WorkloadSpread = scene.sandbox.get("w").await;
    assert_eq!(json!(back.spec.subsets[0].required_node_selector_term), term);
    scene.until_account("a 0/1, b 0/-1").await;
    Ok(())
}
managed!(both_versions_show_the_same, super::NO_FLAGS);

/// SPREAD-33: with the gate closed spreads are refused and pods are left alone.
async fn a_closed_gate_leaves_pods_alone(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "ws-gate").await;
    let told = refusal(&scene, json!({})).await;
    assert!(told.contains("feature-gate WorkloadSpread is not enabled"), "{told}");
    scene.create_set(2).await;
    scene.until_places("-2").await;
    assert_eq!(scene.costs().await, "-? -?");
    Ok(())
}
managed!(a_closed_gate_leaves_pods_alone, ["--feature-gates=WorkloadSpread=false"]);

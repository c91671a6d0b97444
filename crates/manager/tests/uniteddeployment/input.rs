//! Bad input: path and text, and what the versions say.

use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    fleet::{Fleet, subsets},
    kit::merged,
    stage::{Stage, managed},
};

/// UNITED-5, UNITED-8, UNITED-10, UNITED-23, UNITED-26
async fn what_cannot_work_is_refused(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::prepare(stage, "ud-input", "statefulSetTemplate").await;
    let refused = async |spec: Value| -> String { stage.create(fleet.object(&spec)).await.unwrap_err() };
    let with = |replicas: i64, more: [Value; 3]| json!({"replicas": replicas, "topology": subsets(more)["topology"]});
    let adaptive =
        |options: Value| json!({"topology": {"scheduleStrategy": {"type": "Adaptive", "adaptive": options}}});
    let max = json!({"maxReplicas": 2});
    for (spec, expected) in [
        (
            with(5, [json!({"replicas": "50%"}), json!({"replicas": "50%"}), json!({})]),
            "sum of indicated subset replicas 6 should not be greater than UnitedDeployment replicas 5",
        ),
        (with(5, [max.clone(), max.clone(), max]), "at least one subset.maxReplicas must be empty"),
        (
            with(5, [json!({"minReplicas": 3, "maxReplicas": 2}), json!({}), json!({})]),
            "spec.topology.subsets[0].minReplicas: Invalid value: 3: subset[0].minReplicas must be less than or equal to \
             maxReplicas",
        ),
        (
            with(5, [json!({"replicas": 1, "minReplicas": 1}), json!({}), json!({})]),
            "subset.Replicas and subset.MinReplicas/subset.MaxReplicas are mutually exclusive in a UnitedDeployment",
        ),
        (
            with(5, [json!({"replicas": "12.5%"}), json!({}), json!({})]),
            "subset replicas (12.5%) should be correct percentage integer",
        ),
        (
            with(5, [json!({"patch": {"spec": {"containers": "oops"}}}), json!({}), json!({})]),
            "spec.topology.subsets[0].patch: Invalid value",
        ),
        (
            merged(with(5, [json!({"replicas": 1}), json!({}), json!({})]), &adaptive(json!({}))),
            "spec.topology.subsets[0].replicas: Forbidden: specify replicas use minReplicas/maxReplicas to enable adaptive \
             strategy",
        ),
        (
            adaptive(json!({"reserveUnschedulablePods": true})),
            "only stateless workloads (Deployment and CloneSet) are supported by reserved rescheduling",
        ),
    ] {
        let said = refused(spec).await;
        assert!(said.starts_with("422") && said.contains(expected), "{said}\n{expected}");
    }
    Ok(())
}
managed!(what_cannot_work_is_refused, []);

/// UNITED-19
async fn places_and_selectors_stay(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::start(stage, "ud-places", "deploymentTemplate", json!({"replicas": 3})).await;
    let moved = json!({"nodeSelectorTerm": {"matchExpressions": [
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-b"]}]}});
    let said = fleet.try_change(subsets([moved, json!({}), json!({})])).await.unwrap_err();
    assert!(
        said.contains(
            "spec.topology.subsets[0].nodeSelectorTerm: Forbidden: may not be changed in an update"
        ),
        "{said}"
    );
    let tolerates = json!({"tolerations": [{"key": "t", "operator": "Exists"}]});
    let said = fleet.try_change(subsets([json!({}), tolerates, json!({})])).await.unwrap_err();
    assert!(
        said.contains("spec.topology.subsets[1].tolerations: Forbidden: may not be changed in an update"),
        "{said}"
    );
    let labels = json!({"tier": "x"});
    let said = fleet.try_change(json!({"selector": {"matchLabels": labels}})).await.unwrap_err();
    assert!(said.contains("spec.selector: Forbidden: may not be changed in an update"), "{said}");
    Ok(())
}
managed!(places_and_selectors_stay, []);

/// UNITED-32: the older shape of a CloneSet reaches the CloneSets, and each version shows its own.
async fn the_older_shape_of_a_clone_set_is_understood(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::prepare(stage, "ud-older", "cloneSetTemplate").await;
    let strategy = json!({"type": "InPlaceIfPossible", "maxUnavailable": "20%"});
    let mut object = fleet.object(
        &json!({"replicas": 3, "template": {"cloneSetTemplate": {"spec": {"updateStrategy": strategy}}}}),
    );
    object["apiVersion"] = json!("apps.kruise.io/v1alpha1");
    stage.create(object.clone()).await.unwrap();
    fleet.settled().await;
    for child in fleet.children().await {
        let rolling = &child["spec"]["updateStrategy"]["rollingUpdate"];
        assert_eq!(
            (&rolling["podUpdatePolicy"], &rolling["maxUnavailable"]),
            (&json!("InPlaceIfPossible"), &json!("20%"))
        );
    }
    let older = serde_json::to_value(stage.api(&object).get("web").await.unwrap()).unwrap();
    let shown = &older["spec"]["template"]["cloneSetTemplate"]["spec"]["updateStrategy"];
    assert_eq!((&shown["type"], &shown["maxUnavailable"]), (&json!("InPlaceIfPossible"), &json!("20%")));
    assert_eq!(older["status"]["subsetReplicas"], json!({"a": 1, "b": 1, "c": 1}));
    let newer = fleet.web().await;
    let shown = &newer["spec"]["template"]["cloneSetTemplate"]["spec"]["updateStrategy"]["rollingUpdate"];
    assert_eq!(shown["maxUnavailable"], "20%");
    Ok(())
}
managed!(the_older_shape_of_a_clone_set_is_understood, []);

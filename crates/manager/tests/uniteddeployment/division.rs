//! Who gets how many pods.

use std::time::Duration;

use kruise_api::labels::{SUBSET_NAME, UNITED_DEPLOYMENT_REVISION};
use kruise_testkit::Outcome;
use serde_json::json;

use crate::{
    fleet::{Fleet, KINDS, label, name, subsets},
    stage::{Stage, embedded_only, managed},
};

/// UNITED-1, UNITED-2, UNITED-3
async fn replicas_are_divided_as_the_author_says(stage: &mut Stage) -> Outcome {
    let spec = |more| json!({"replicas": 10, "topology": subsets(more)["topology"]});
    let fleet = Fleet::start(
        stage,
        "ud-division",
        "statefulSetTemplate",
        spec([json!({"replicas": 2}), json!({"replicas": "50%"}), json!({})]),
    )
    .await;
    assert_eq!(fleet.numbers().await, "2/5/3");
    let revision = fleet.status().await["updatedRevision"].clone();
    for pod in fleet.pods().await {
        let subset = label(&pod, SUBSET_NAME).to_owned();
        assert!(name(&pod).starts_with(&format!("web-{subset}-")), "{}", name(&pod));
        assert_eq!(label(&pod, UNITED_DEPLOYMENT_REVISION), revision);
        let required =
            &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let zone = &required["nodeSelectorTerms"][0]["matchExpressions"][0]["values"][0];
        assert_eq!(zone, &json!(format!("zone-{subset}")));
    }
    fleet.change(spec([json!({"replicas": 1}), json!({"replicas": "40%"}), json!({})])).await;
    fleet.divided("1/4/5").await;
    fleet.change(spec([json!({"replicas": null}), json!({"replicas": null}), json!({})])).await;
    fleet.divided("3/3/4").await;
    fleet.settled().await;
    Ok(())
}
managed!(replicas_are_divided_as_the_author_says, []);

/// UNITED-4, UNITED-20: and why, in one event.
async fn fresh_subsets_share_evenly(stage: &mut Stage) -> Outcome {
    for field in KINDS {
        let purpose = format!("ud-even-{}", field.to_lowercase());
        let fleet = Fleet::start(stage, &purpose, field, json!({"replicas": 7})).await;
        assert_eq!(fleet.numbers().await, "2/2/3");
        let told = fleet.told("SubsetAllocation").await;
        assert_eq!(told, ["7 replicas: a 2 (even share), b 2 (even share), c 3 (even share, one extra)"]);
        let kind = match field {
            "cloneSetTemplate" => "CloneSet",
            "advancedStatefulSetTemplate" => "AdvancedStatefulSet",
            "statefulSetTemplate" => "StatefulSet",
            _ => "Deployment",
        };
        assert_eq!(fleet.told("SuccessfulUpdateSubset").await, [format!("Create 3 Subset ({kind})")]);
        let status = fleet.status().await;
        assert_eq!((&status["labelSelector"], &status["collisionCount"]), (&json!("app=web"), &json!(null)));
    }
    Ok(())
}
embedded_only!(fresh_subsets_share_evenly, []);

/// UNITED-6, WAITING-21: numbers that an autoscaler makes impossible change nothing until they fit again.
async fn a_scale_that_does_not_fit_is_reported(stage: &mut Stage) -> Outcome {
    let halves = [json!({"replicas": "50%"}), json!({"replicas": "50%"}), json!({"replicas": 0})];
    let spec = json!({"replicas": 4, "topology": subsets(halves)["topology"]});
    let fleet = Fleet::start(stage, "ud-scale", "deploymentTemplate", spec).await;
    assert_eq!(fleet.numbers().await, "2/2/0");
    fleet.scale(5).await;
    let text = "specified subsets' replica (6) is greater than UnitedDeployment replica (5)";
    fleet
        .until("the numbers are reported", |web| {
            let all = web["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let has = |kind: &str, status: &str, reason: &str| {
                all.iter()
                    .any(|one| one["type"] == kind && one["status"] == status && one["reason"] == reason)
            };
            has("SubsetUpdated", "False", "Error") && has("Waiting", "True", "SpecInvalid")
        })
        .await;
    let told = fleet.told("Failed SpecifySubsetReplicas").await;
    assert_eq!(
        told.first().map(String::as_str),
        Some(&*format!("Specified subset replicas is ineffective: {text}"))
    );
    let waiting = fleet.condition("Waiting").await;
    assert_eq!(waiting["message"], format!("the spec cannot be carried out: spec.topology.subsets: {text}"));
    fleet.stays("2/2/0", Duration::from_secs(10)).await;
    fleet.scale(6).await;
    fleet.divided("3/3/0").await;
    fleet.settled().await;
    assert_eq!(fleet.condition("SubsetUpdated").await["status"], "True");
    assert_eq!(fleet.condition("Waiting").await["status"], "False");
    Ok(())
}
managed!(a_scale_that_does_not_fit_is_reported, []);

/// UNITED-7, UNITED-28: minimums and maximums, reached by scaling as an autoscaler does.
async fn minimums_and_maximums_are_reached_by_scaling(stage: &mut Stage) -> Outcome {
    let limits =
        [json!({"minReplicas": 1, "maxReplicas": 4}), json!({"minReplicas": 2, "maxReplicas": 3}), json!({})];
    let spec = json!({"replicas": 2, "topology": subsets(limits)["topology"]});
    let fleet = Fleet::start(stage, "ud-limits", "cloneSetTemplate", spec).await;
    assert_eq!(fleet.numbers().await, "1/1/0");
    for (total, expected) in [(9, "4/3/2"), (20, "4/3/13"), (9, "4/3/2"), (2, "1/1/0")] {
        fleet.scale(total).await;
        fleet.divided(expected).await;
    }
    fleet.settled().await;
    Ok(())
}
embedded_only!(minimums_and_maximums_are_reached_by_scaling, []);

/// UNITED-33
async fn a_selector_of_expressions_works(stage: &mut Stage) -> Outcome {
    let selector = json!({"matchLabels": null, "matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]});
    let fleet =
        Fleet::start(stage, "ud-expressions", "cloneSetTemplate", json!({"selector": selector})).await;
    assert_eq!(fleet.numbers().await, "2/2/2");
    assert_eq!(fleet.status().await["labelSelector"], "app in (web)");
    Ok(())
}
managed!(a_selector_of_expressions_works, []);

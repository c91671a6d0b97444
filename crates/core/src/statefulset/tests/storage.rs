use kruise_api::gates::Gate;
use serde_json::{Value, json};

use super::kit::{World, render};
use crate::statefulset::decide;

fn claims(size: &str) -> Value {
    json!([{"metadata": {"name": "data", "labels": {"vl": "1"}}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": size}}}}])
}

/// STATEFULSET-2
#[test]
fn claims_come_before_their_pods_and_stay() {
    let mut world = World::new(json!({"replicas": 1, "volumeClaimTemplates": claims("1Gi")}));
    world.pass();
    assert_eq!(render(&world.pass()), "claim data-web-0");
    assert_eq!(world.claims["data-web-0"]["metadata"]["labels"], json!({"app": "web", "vl": "1"}));
    assert_eq!(world.claims["data-web-0"]["metadata"]["ownerReferences"], Value::Null);
    assert_eq!(render(&world.pass()), "create web-0");
    assert_eq!(
        world.pods["web-0"]["spec"]["volumes"],
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}])
    );
    world.edit(json!({"replicas": 0}));
    world.rest();
    assert_eq!((world.pods.len(), world.claims.len()), (0, 1));
}

/// STATEFULSET-41 and STATEFULSET-42
#[test]
fn claims_are_owned_as_the_retention_policy_says() {
    let owner = |world: &World, claim: &str| {
        let owners =
            world.claims[claim]["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        owners.iter().map(|owner| owner["kind"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let policy = |deleted: &str, scaled: &str| json!({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled}});
    let mut world = World::resting(json!({"replicas": 2, "volumeClaimTemplates": claims("1Gi")}));
    for (deleted, scaled, expected) in
        [("Delete", "Retain", "StatefulSet"), ("Delete", "Delete", "StatefulSet"), ("Retain", "Delete", "")]
    {
        world.edit(policy(deleted, scaled));
        world.rest();
        assert_eq!(owner(&world, "data-web-1"), expected);
    }
    world.edit(json!({"replicas": 1}));
    assert_eq!(
        render(&world.pass()),
        "own data-web-1",
        "the claim follows its pod, which is deleted after that"
    );
    assert_eq!(owner(&world, "data-web-1"), "Pod");
    assert_eq!(render(&world.pass()), "delete web-1");
    world.edit(json!({"replicas": 2}));
    world.pods.remove("web-1");
    let (plan, _) = decide(&world.seen());
    assert_eq!(render(&plan), "", "the claim belongs to the pod before");
    assert_eq!(
        plan.waits.message(),
        "claim data-web-1 is being deleted; pod web-1 is created when it is gone"
    );
    world.claims.remove("data-web-1");
    world.rest();
    assert_eq!(world.shown(), "0:v1 1:v1");
}

/// STATEFULSET-43 and STATEFULSET-44
#[test]
fn claims_grow_with_their_templates() {
    let spec = json!({"replicas": 3, "volumeClaimTemplates": claims("1Gi"),
        "volumeClaimUpdateStrategy": {"type": "OnPodRollingUpdate"}});
    let mut world = World::new(spec).with_gate(Gate::StatefulSetAutoResizePVCGate);
    world.rest();
    let before = world.pods.clone();
    world.edit(json!({"volumeClaimTemplates": claims("2Gi")}));
    for ordinal in [2, 1, 0] {
        assert_eq!(render(&world.pass()), format!("resize data-web-{ordinal}"));
        assert_eq!(render(&world.pass()), "", "the volume has not grown yet");
        world.claims.get_mut(&format!("data-web-{ordinal}")).unwrap()["status"]["capacity"] =
            json!({"storage": "2Gi"});
    }
    world.rest();
    assert_eq!(world.pods, before, "a claim that grows restarts no pod");
    assert_eq!(
        world.set["status"]["volumeClaims"],
        json!([{"volumeClaimName": "data", "compatibleReplicas": 3, "compatibleReadyReplicas": 3}])
    );
    world.edit(json!({"volumeClaimTemplates": claims("1Gi")}));
    world.rest();
    assert_eq!(world.claims["data-web-0"]["spec"]["resources"]["requests"]["storage"], "2Gi");
}

/// STATEFULSET-45
#[test]
fn running_pods_are_left_alone_when_a_claim_template_is_added() {
    let mut world = World::resting(json!({"replicas": 2}));
    let before = world.pods.clone();
    world.edit(json!({"volumeClaimTemplates": claims("1Gi")}));
    world.rest();
    assert_eq!(world.pods, before);
    let (plan, _) = decide(&world.seen());
    assert_eq!(
        plan.waits.message(),
        "2 of 2 pods lack the volume of volumeClaimTemplate data (web-0, web-1); each gets it when it is re-created"
    );
    world.pods.remove("web-1");
    world.rest();
    let (_, standing) = decide(&world.seen());
    assert_eq!(
        standing.volume_news,
        [(
            "data".to_owned(),
            "1 of 2 pods lacks the volume of volumeClaimTemplate data; each gets it when it is re-created"
                .to_owned()
        )]
    );
    world.image("app:v2");
    world.rest();
    assert_eq!((world.shown().as_str(), world.claims.len()), ("0:v2 1:v2", 2));
}

/// STATEFULSET-8
#[test]
fn a_claim_that_somebody_deleted_comes_back_for_a_pending_pod() {
    let mut world = World::new(json!({"replicas": 1, "volumeClaimTemplates": claims("1Gi")}));
    for _ in 0..3 {
        world.pass();
    }
    world.claims.clear();
    assert_eq!(render(&world.pass()), "claim data-web-0");
}

const PRE_DELETE: &str = "PreparingDelete";

/// Scaling in with `whenScaled: Delete`, a hook that cannot be taken back, and a size that goes back before it is released.
fn scaled_in_and_back(policy: &str) -> World {
    let template = json!({"metadata": {"labels": {"app": "web", "hold": "yes"}}});
    let mut world = World::resting(json!({
        "podManagementPolicy": policy, "replicas": 3, "template": template, "volumeClaimTemplates": claims("1Gi"),
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Delete"},
        "lifecycle": {"preDelete": {"labelsHandler": {"hold": "yes"}, "markPodNotReady": true}}}));
    world.edit(json!({"replicas": 2}));
    world.rest();
    assert_eq!(world.pod(2)["metadata"]["labels"]["lifecycle.apps.kruise.io/state"], PRE_DELETE);
    assert_eq!(owners(&world, "data-web-2"), ["Pod"]);
    world
}

fn owners(world: &World, claim: &str) -> Vec<String> {
    let owners = world.claims[claim]["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    owners.iter().map(|owner| owner["kind"].as_str().unwrap().to_owned()).collect()
}

/// STATEFULSET-42: an ordinal that is wanted again keeps its data, also where the deletion of its pod is completed.
#[test]
fn the_claim_of_a_pod_that_is_wanted_again_survives_the_end_of_its_deletion() {
    for policy in ["Parallel", "OrderedReady"] {
        let mut world = scaled_in_and_back(policy);
        let before = world.claims["data-web-2"]["metadata"]["uid"].clone();
        world.edit(json!({"replicas": 3}));
        world.pod(2)["metadata"]["labels"].as_object_mut().unwrap().remove("hold");
        assert_eq!(
            render(&world.pass()),
            "own data-web-2",
            "{policy}: the pod waits until its claim is safe"
        );
        assert_eq!(render(&world.pass()), "delete web-2", "{policy}");
        world.rest();
        assert_eq!((world.shown().as_str(), owners(&world, "data-web-2")), ("0:v1 1:v1 2:v1", vec![]));
        assert_eq!(world.claims["data-web-2"]["metadata"]["uid"], before, "{policy}: the data is lost");
    }
}

/// STATEFULSET-42: with OrderedReady all claims are safe at once, not only those before the first pod that is unavailable.
#[test]
fn claims_of_wanted_pods_are_safe_while_an_earlier_pod_is_unavailable() {
    let spec = |policy: &str| {
        json!({
        "podManagementPolicy": policy, "replicas": 5, "volumeClaimTemplates": claims("1Gi"),
        "scaleStrategy": if policy == "Parallel" { json!({"maxUnavailable": 1}) } else { Value::Null },
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Delete"}})
    };
    for policy in ["Parallel", "OrderedReady"] {
        let mut world = World::resting(spec(policy));
        world.edit(json!({"replicas": 2}));
        world.pass();
        assert_eq!(owners(&world, "data-web-3"), ["Pod"]);
        world.pod(0)["status"]["conditions"][0]["status"] = "False".into();
        world.edit(json!({"replicas": 5}));
        world.pass();
        for claim in ["data-web-2", "data-web-3", "data-web-4"] {
            assert_eq!(owners(&world, claim), Vec::<String>::new(), "{policy}: {claim}");
        }
    }
}

//! Objects that are refused, in both versions of the API, with the words that people know.
//!
//! The original prints some values as structs of its language; ours are what people wrote.

use k8s_openapi::api::core::v1::Pod;
use kruise_api::cloneset::v1beta1::CloneSet;
use kruise_testkit::Outcome;
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};

use crate::{
    kit::{Demo, is_available, merged, name},
    stage::{Stage, managed},
};

const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];
/// What a server puts before the words of our webhook.
const DENIED: &str = "422 admission webhook \"vcloneset.kb.io\" denied the request: ";

/// Members of the update strategy where each version has them.
fn strategy(version: &str, members: Value) -> Value {
    let strategy = if version == "v1beta1" {
        json!({"type": "RollingUpdate", "rollingUpdate": members})
    } else {
        members
    };
    json!({"spec": {"updateStrategy": strategy}})
}

/// The path of a member of the update strategy.
fn path(version: &str, member: &str) -> String {
    let folder = if version == "v1beta1" { "rollingUpdate." } else { "" };
    format!("spec.updateStrategy.{folder}{member}")
}

/// `demo` without pods, in a version of the API.
fn object(demo: &Demo, version: &str, change: &Value) -> Value {
    let base = json!({"apiVersion": format!("apps.kruise.io/{version}"), "spec": {"replicas": 0}});
    demo.object(&merged(base, change))
}

/// A new set with this change is refused with these words, and nothing is stored.
#[track_caller]
fn is_refused(answer: Result<Value, String>, words: &str) {
    match answer {
        Ok(_) => panic!("accepted instead of: {words}"),
        Err(told) => assert_eq!(told, words),
    }
}

/// CLONESET-43
async fn the_selector_cannot_be_changed(stage: &mut Stage) -> Outcome {
    let demo = Demo::prepare(stage, "selector").await;
    demo.create(json!({"spec": {"replicas": 0}})).await;
    let labels = json!({"app": "demo", "x": "y"});
    let change = json!({"spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}});
    for version in VERSIONS {
        let answer = stage.patch(&object(&demo, version, &json!({})), &change).await;
        let words = "spec: Forbidden: updates to cloneset spec for fields other than 'replicas', 'template', 'lifecycle', \
            'scaleStrategy', 'updateStrategy', 'minReadySeconds', 'progressDeadlineSeconds', 'volumeClaimTemplates' and \
            'revisionHistoryLimit' are forbidden";
        is_refused(answer, &format!("{DENIED}{words}"));
    }
    let selector = serde_json::to_value(demo.set().await.spec.selector).unwrap();
    assert_eq!(selector, json!({"matchLabels": {"app": "demo"}}));
    Ok(())
}
managed!(the_selector_cannot_be_changed, []);

/// CLONESET-44
async fn an_update_must_be_able_to_begin(stage: &mut Stage) -> Outcome {
    for version in VERSIONS {
        let demo = Demo::prepare(stage, "nothing").await;
        let with = |replicas: u32, surge: u32| {
            let change = strategy(version, json!({"maxUnavailable": 0, "maxSurge": surge}));
            object(&demo, version, &merged(change, &json!({"spec": {"replicas": replicas}})))
        };
        let answer = stage.create(with(5, 0)).await;
        let words = "Invalid value: 0: maxUnavailable and maxSurge should not both be less than 1";
        is_refused(answer, &format!("{DENIED}{}: {words}", path(version, "maxUnavailable")));
        stage.create(with(0, 0)).await.unwrap();
        demo.sandbox.delete::<CloneSet>("demo").await;
        stage.create(with(5, 1)).await.unwrap();
        demo.settled().await;
    }
    Ok(())
}
managed!(an_update_must_be_able_to_begin, []);

/// CLONESET-45
async fn a_share_is_a_percentage(stage: &mut Stage) -> Outcome {
    for version in VERSIONS {
        let demo = Demo::prepare(stage, "share").await;
        let change =
            merged(strategy(version, json!({"maxUnavailable": "5"})), &json!({"spec": {"replicas": 5}}));
        let refused = stage.create(object(&demo, version, &change)).await.unwrap_err();
        let words = format!(
            "{}: Invalid value: \"5\": failed GetScaledValueFromIntOrPercent for maxUnavailable: invalid type: string is \
             not a percentage",
            path(version, "maxUnavailable")
        );
        assert!(refused.starts_with(DENIED) && refused.contains(&words), "{refused}");
        let change =
            merged(strategy(version, json!({"maxUnavailable": "33.3%"})), &json!({"spec": {"replicas": 9}}));
        stage.create(object(&demo, version, &change)).await.unwrap();
        demo.settled().await;
        let film = demo.film().await;
        demo.set_image("app:v2").await;
        demo.rolled_out().await;
        assert_eq!(film.fewest_available(), 6);
    }
    Ok(())
}
managed!(a_share_is_a_percentage, []);

/// CLONESET-46, all but pods to delete
async fn wrong_fields_are_refused(stage: &mut Stage) -> Outcome {
    for version in VERSIONS {
        let demo = Demo::prepare(stage, "wrong").await;
        let cases = [
            (
                json!({"spec": {"template": {"spec": {"restartPolicy": "Never"}}}}),
                "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"".to_owned(),
            ),
            (
                json!({"spec": {"template": {"spec": {"activeDeadlineSeconds": 5}}}}),
                "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in cloneset is not Supported"
                    .to_owned(),
            ),
            (
                json!({"spec": {"selector": {"matchLabels": null}}}),
                "spec.selector: Invalid value: {}: empty selector is invalid for cloneset".to_owned(),
            ),
            (
                json!({"spec": {"selector": {"matchLabels": {"app": "other"}}}}),
                "spec.template.metadata.labels: Invalid value: {\"app\":\"demo\"}: `selector` does not \
                 match template `labels`"
                    .to_owned(),
            ),
            (
                merged(strategy(version, json!({"partition": -1})), &json!({"spec": {"replicas": 5}})),
                format!("{}: Invalid value: -1: must be greater than or equal to 0", path(version, "partition")),
            ),
            (
                json!({"spec": {"progressDeadlineSeconds": 10, "minReadySeconds": 10}}),
                "spec.progressDeadlineSeconds: Invalid value: 10: must be greater than minReadySeconds".to_owned(),
            ),
        ];
        for (change, words) in cases {
            is_refused(stage.create(object(&demo, version, &change)).await, &format!("{DENIED}{words}"));
        }
        let negative =
            stage.create(object(&demo, version, &json!({"spec": {"replicas": -1}}))).await.unwrap_err();
        assert!(negative.starts_with("422 "), "{negative}");
        let words = ".spec.replicas: Invalid value: -1: should be a non-negative integer";
        assert!(negative.contains(words), "{negative}");
        assert!(demo.sandbox.list::<CloneSet>().await.is_empty());
    }
    Ok(())
}
managed!(wrong_fields_are_refused, []);

/// CLONESET-46, pods to delete
async fn only_its_own_pods_can_be_deleted(stage: &mut Stage) -> Outcome {
    const HOLD: &str = "example.com/hold";
    let demo = Demo::start(stage, "names", json!({"spec": {"replicas": 2}})).await;
    let mut foreign = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "foreign", "labels": {"app": "demo"}}});
    foreign["spec"] = demo.object(&json!({}))["spec"]["template"]["spec"].clone();
    demo.sandbox.create::<Pod>(foreign).await;
    let (ending, _) = demo.uids().await.into_iter().find(|(name, _)| name != "foreign").unwrap();
    demo.change_pod(&ending, json!({"metadata": {"finalizers": [HOLD]}})).await;
    demo.sandbox.delete::<Pod>(&ending).await;
    // Then the manager has heard of the deletion.
    demo.until("a replacement is there", |_, pods| {
        pods.iter().filter(|pod| is_available(pod) && name(pod) != "foreign").count() == 2
    })
    .await;
    for version in VERSIONS {
        let set = object(&demo, version, &json!({}));
        let cases = [
            (json!(["foreign"]), "\"foreign\": find pod foreign owner is not this CloneSet".to_owned()),
            (
                json!(["missing"]),
                "\"missing\": find pod missing failed: Pod \"missing\" not found".to_owned(),
            ),
            (json!([ending]), format!("\"{ending}\": find pod {ending} already terminating")),
            (json!(["a", "b", "a"]), "[\"a\",\"b\",\"a\"]: duplicated items [a]".to_owned()),
        ];
        for (names, words) in cases {
            let answer =
                stage.patch(&set, &json!({"spec": {"scaleStrategy": {"podsToDelete": names}}})).await;
            is_refused(answer, &format!("{DENIED}spec.scaleStrategy.podsToDelete: Invalid value: {words}"));
        }
    }
    demo.change_pod(&ending, json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [HOLD]}})).await;
    demo.until("the pod goes", |_, pods| !pods.iter().any(|pod| name(pod) == ending)).await;
    Ok(())
}
managed!(only_its_own_pods_can_be_deleted, []);

/// CLONESET-47
async fn in_place_only_has_no_surge(stage: &mut Stage) -> Outcome {
    let demo = Demo::prepare(stage, "onlysurge").await;
    for (version, change, words) in [
        (
            "v1beta1",
            strategy("v1beta1", json!({"podUpdatePolicy": "InPlaceOnly", "maxSurge": 1})),
            "can not use maxSurge with podUpdatePolicy InPlaceOnly",
        ),
        (
            "v1alpha1",
            json!({"spec": {"updateStrategy": {"type": "InPlaceOnly", "maxSurge": 1}}}),
            "can not use maxSurge with strategy type InPlaceOnly",
        ),
    ] {
        let answer = stage.create(object(&demo, version, &change)).await;
        is_refused(answer, &format!("{DENIED}{}: Invalid value: 1: {words}", path(version, "maxSurge")));
    }
    Ok(())
}
managed!(in_place_only_has_no_surge, []);

/// CLONESET-48
async fn a_protected_set_stays(stage: &mut Stage) -> Outcome {
    const LABEL: &str = "policy.kruise.io/delete-protection";
    let demo = Demo::start(stage, "protected", json!({"metadata": {"labels": {LABEL: "Always"}}})).await;
    let api: Api<CloneSet> = demo.sandbox.api();
    let delete = async |version: &str| {
        let set = object(&demo, version, &json!({}));
        match stage.api(&set).delete("demo", &DeleteParams::default()).await {
            Ok(_) => "deleted".to_owned(),
            Err(kube::Error::Api(status)) => format!("{} {}", status.code, status.message),
            Err(error) => error.to_string(),
        }
    };
    let words = |reason: &str| {
        format!(
            "403 admission webhook \"vcloneset.kb.io\" denied the request: forbidden by ResourcesProtectionDeletion for \
             {LABEL}={reason}"
        )
    };
    for version in VERSIONS {
        assert_eq!(delete(version).await, words("Always"));
    }
    demo.change(json!({"metadata": {"labels": {LABEL: "Cascading"}}})).await;
    for version in VERSIONS {
        assert_eq!(delete(version).await, words("Cascading and replicas 5>0"));
    }
    assert!(api.get("demo").await.unwrap().metadata.deletion_timestamp.is_none());
    assert_eq!(demo.pods().await.len(), 5);
    demo.change(json!({"spec": {"replicas": 0}})).await;
    assert_eq!(delete("v1beta1").await, "deleted");
    Ok(())
}
managed!(a_protected_set_stays, ["--feature-gates=ResourcesDeletionProtection=true"]);

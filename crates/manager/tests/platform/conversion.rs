//! Objects in both of their versions, through the API server and our conversion webhook.

use kruise_testkit::Outcome;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::stage::{Stage, managed};

const NO_FLAGS: [&str; 0] = [];

/// The same object in another version.
async fn read(stage: &Stage, object: &Value, version: &str) -> Value {
    let mut wanted = object.clone();
    wanted["apiVersion"] = version.into();
    let name = object["metadata"]["name"].as_str().unwrap();
    serde_json::to_value(stage.api(&wanted).get(name).await.unwrap()).unwrap()
}

fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": image}]},
    })
}

fn cloneset(namespace: &str, version: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": format!("apps.kruise.io/{version}"), "kind": "CloneSet",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template("app:v1")},
    });
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object
}

/// PLATFORM-17
async fn a_cloneset_of_the_original_reads_in_both_versions(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("convert").await;
    let mut old = cloneset(
        sandbox.namespace(),
        "v1alpha1",
        json!({
            "updateStrategy": {"type": "InPlaceIfPossible", "partition": "30%"},
            "scaleStrategy": {"disablePVCReuse": true},
        }),
    );
    old["metadata"]["annotations"] = json!({
        "apps.kruise.io/image-predownload-parallelism": "2",
        "apps.kruise.io/image-predownload-timeout-seconds": "300",
        "apps.kruise.io/image-predownload-min-updated-ready-pods": "1",
    });
    stage.create(old.clone()).await.unwrap();
    let new = read(stage, &old, "apps.kruise.io/v1beta1").await;
    let strategy = &new["spec"]["updateStrategy"];
    assert_eq!(strategy["type"], "RollingUpdate");
    assert_eq!(strategy["rollingUpdate"]["podUpdatePolicy"], "InPlaceIfPossible");
    assert_eq!(strategy["rollingUpdate"]["partition"], "30%");
    let in_place = &strategy["rollingUpdate"]["inPlaceUpdateStrategy"];
    assert_eq!(in_place["imagePreDownloadParallelism"], 2, "{new}");
    assert_eq!(in_place["imagePreDownloadTimeoutSeconds"], 300);
    assert_eq!(in_place["imagePreDownloadMinUpdatedReadyPods"], 1);
    assert_eq!(new["spec"]["scaleStrategy"]["enablePVCReuse"], false);
    let again = read(stage, &old, "apps.kruise.io/v1alpha1").await;
    assert_eq!(again["spec"]["updateStrategy"]["type"], "InPlaceIfPossible");
    assert_eq!(again["spec"]["updateStrategy"]["partition"], "30%");
    assert_eq!(again["spec"]["scaleStrategy"]["disablePVCReuse"], true);
    assert_eq!(again["metadata"]["annotations"]["apps.kruise.io/image-predownload-parallelism"], "2");
    Ok(())
}
managed!(a_cloneset_of_the_original_reads_in_both_versions, super::NO_FLAGS);

/// PLATFORM-18
async fn a_writer_of_the_old_version_loses_nothing_of_the_new(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("convert").await;
    let new = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": sandbox.namespace()},
        "spec": {
            "replicas": 0, "serviceName": "web", "reserveOrdinals": [1],
            "selector": {"matchLabels": {"app": "web"}}, "template": template("app:v1"),
        },
    });
    stage.create(new.clone()).await.unwrap();
    let mut old = read(stage, &new, "apps.kruise.io/v1alpha1").await;
    old["spec"]["replicas"] = json!(3);
    let api = stage.api(&old);
    api.replace("web", &PostParams::default(), &serde_json::from_value(old.clone()).unwrap()).await.unwrap();
    let after = read(stage, &new, "apps.kruise.io/v1beta1").await;
    assert_eq!((&after["spec"]["replicas"], &after["spec"]["reserveOrdinals"]), (&json!(3), &json!([1])));
    Ok(())
}
managed!(a_writer_of_the_old_version_loses_nothing_of_the_new, super::NO_FLAGS);

/// PLATFORM-19
async fn what_is_cleared_in_the_new_version_does_not_come_back(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("convert").await;
    let in_place = json!({"imagePreDownloadParallelism": 2});
    let new = cloneset(
        sandbox.namespace(),
        "v1beta1",
        json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate":
            {"podUpdatePolicy": "InPlaceIfPossible", "inPlaceUpdateStrategy": in_place}}}),
    );
    stage.create(new.clone()).await.unwrap();
    let annotation = "apps.kruise.io/image-predownload-parallelism";
    let old = read(stage, &new, "apps.kruise.io/v1alpha1").await;
    assert_eq!(old["metadata"]["annotations"][annotation], "2");
    let clear = json!({"spec": {"updateStrategy": {"rollingUpdate": {"inPlaceUpdateStrategy": {"imagePreDownloadParallelism": null}}}}});
    stage.api(&new).patch("web", &PatchParams::default(), &Patch::Merge(clear)).await.unwrap();
    let mut old = read(stage, &new, "apps.kruise.io/v1alpha1").await;
    assert_eq!(old["metadata"]["annotations"][annotation], Value::Null, "{old}");
    old["spec"]["replicas"] = json!(1);
    let api = stage.api(&old);
    api.replace("web", &PostParams::default(), &serde_json::from_value(old.clone()).unwrap()).await.unwrap();
    let after = read(stage, &new, "apps.kruise.io/v1beta1").await;
    let in_place = &after["spec"]["updateStrategy"]["rollingUpdate"]["inPlaceUpdateStrategy"];
    assert_eq!(in_place["imagePreDownloadParallelism"], Value::Null, "{after}");
    Ok(())
}
managed!(what_is_cleared_in_the_new_version_does_not_come_back, super::NO_FLAGS);

/// PLATFORM-20
async fn a_job_that_only_the_new_version_knows_does_not_break_lists_of_the_old(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("convert").await;
    let job = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob",
        "metadata": {"name": "pull", "namespace": sandbox.namespace()},
        "spec": {"schedule": "0 0 1 1 *", "template": {"imageListPullJobTemplate": {"spec":
            {"images": ["app:v1"], "completionPolicy": {"type": "Always"}}}}},
    });
    stage.create(job.clone()).await.unwrap();
    let mut old = job.clone();
    old["apiVersion"] = "apps.kruise.io/v1alpha1".into();
    let listed = stage.api(&old).list(&kube::api::ListParams::default()).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    let after = read(stage, &job, "apps.kruise.io/v1beta1").await;
    assert_eq!(after["spec"]["template"]["imageListPullJobTemplate"]["spec"]["images"], json!(["app:v1"]));
    Ok(())
}
managed!(a_job_that_only_the_new_version_knows_does_not_break_lists_of_the_old, super::NO_FLAGS);

/// PLATFORM-22
async fn a_sidecarset_with_a_namespace_applies_twice(stage: &mut Stage) -> Outcome {
    let name = format!("convert-{}", stage.cluster.sandbox("convert").await.namespace());
    let old = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name},
        "spec": {"namespace": "a", "selector": {"matchLabels": {"app": "web"}},
            "containers": [{"name": "side", "image": "side:v1"}]},
    });
    for _ in 0..2 {
        stage.put(old.clone()).await;
    }
    let stored = read(stage, &old, "apps.kruise.io/v1beta1").await;
    let selector = json!({"kubernetes.io/metadata.name": "a"});
    let deleted = stage.api(&old).delete(&name, &kube::api::DeleteParams::default()).await;
    assert_eq!(stored["spec"]["namespaceSelector"]["matchLabels"], selector, "{stored}");
    deleted.unwrap();
    Ok(())
}
managed!(a_sidecarset_with_a_namespace_applies_twice, super::NO_FLAGS);

fn budget(namespace: &str, operations: &str) -> Value {
    json!({
        "apiVersion": "policy.kruise.io/v1alpha1", "kind": "PodUnavailableBudget",
        "metadata": {"name": "web", "namespace": namespace,
            "annotations": {"kruise.io/pub-protect-operations": operations}},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
    })
}

/// PLATFORM-23
async fn protected_operations_become_a_list(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("convert").await;
    let old = budget(sandbox.namespace(), "DELETE, EVICT");
    stage.create(old.clone()).await.unwrap();
    let new = read(stage, &old, "policy.kruise.io/v1beta1").await;
    assert_eq!(new["spec"]["protectOperations"], json!(["DELETE", "EVICT"]));
    Ok(())
}
managed!(protected_operations_become_a_list, super::NO_FLAGS);

/// PLATFORM-24
async fn an_unknown_operation_is_refused_by_name(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("convert").await;
    let refused = stage.create(budget(sandbox.namespace(), "DELETE,FOO")).await.unwrap_err();
    assert!(refused.contains("FOO"), "{refused}");
    Ok(())
}
managed!(an_unknown_operation_is_refused_by_name, super::NO_FLAGS);

//! Clusters in which something is missing: definitions of our kinds, or a place for files.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kruise_api::gates::Gates;
use kruise_core::features;
use kruise_testkit::{
    Outcome, Sandbox,
    wait::{Look, eventually, seen},
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::stage::{Stage, launched};

/// The test of another scenario may still hold the usual lease.
const ALONE: &str = "--enable-leader-election=false";
const LEFT_OUT: &str = "left out, the definition of its kind is not installed";

/// The controllers that must be left out where only this kind is installed.
fn left_out(installed: &str) -> Vec<&'static str> {
    features::controllers(&Gates::default())
        .filter(|(_, controller)| controller.needs_kind.is_some_and(|kind| kind != installed))
        .map(|(_, controller)| controller.name)
        .collect()
}

fn cloneset(namespace: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "updateStrategy": {"partition": 3},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"nodeSelector": {"no": "node"}, "containers": [{"name": "main", "image": "app:v1"}]}}},
    })
}

/// Waits until the controller of CloneSets has done its work.
async fn has_two_pods(sandbox: &Sandbox) {
    sandbox
        .eventually("the set has its pods", async || {
            let pods: Vec<Pod> = sandbox.list().await;
            seen(pods.len() == 2, format!("{} pods", pods.len()))
        })
        .await;
}

/// PLATFORM-13
async fn one_definition_is_enough(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("subset").await;
    stage.keep_only(&["CloneSet"]).await;
    let manager = stage.launch().flags(&[ALONE]).ready().await;
    let old = cloneset(sandbox.namespace());
    stage.create(old.clone()).await.unwrap();
    let mut new = old;
    new["apiVersion"] = "apps.kruise.io/v1beta1".into();
    let new = stage.api(&new).get("web").await.unwrap();
    assert_eq!(new.data["spec"]["updateStrategy"]["rollingUpdate"]["partition"], 3);
    has_two_pods(&sandbox).await;
    let log = manager.log();
    let mut told: Vec<&str> = log.lines().filter(|line| line.contains(LEFT_OUT)).collect();
    for controller in left_out("CloneSet") {
        let name = format!("controller=\"{controller}\"");
        let before = told.len();
        told.retain(|line| !line.contains(&name));
        assert_eq!(before - told.len(), 1, "one line for {controller}\n{log}");
    }
    assert_eq!(told, [""; 0]);
    assert!(!log.contains("watch failed"), "nobody asks for kinds that are not there\n{log}");
    Ok(())
}
launched!(one_definition_is_enough);

/// PLATFORM-14: without a restart.
async fn a_definition_that_comes_later_is_worked_on_at_once(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("later").await;
    stage.keep_only(&["SidecarSet"]).await;
    let manager = stage.launch().flags(&[ALONE]).ready().await;
    let told = eventually("the controller is left out", Duration::from_secs(20), async || {
        let log = manager.log();
        let count = log.lines().filter(|line| line.contains(LEFT_OUT)).count();
        seen(count == left_out("SidecarSet").len(), log)
    });
    told.await.unwrap();
    assert!(left_out("SidecarSet").contains(&"cloneset-controller"));
    stage.cluster.install_crds().await;
    let made = eventually("the new kind can be used", Duration::from_secs(30), async || {
        // Its conversion must lead to the manager first.
        match stage.create(cloneset(sandbox.namespace())).await {
            Ok(_) => Look::Yes(()),
            Err(error) => Look::No(error),
        }
    });
    made.await.unwrap();
    has_two_pods(&sandbox).await;
    let log = manager.log();
    let begun =
        log.lines().filter(|line| line.contains("begins, the definition of its kind is installed now"));
    assert_eq!(begun.count(), left_out("SidecarSet").len(), "{log}");
    Ok(())
}
launched!(a_definition_that_comes_later_is_worked_on_at_once);

/// PLATFORM-34: also the folder of the certificates. Nobody, not even root, can make files there.
async fn without_a_place_for_files_refusals_are_told_in_the_log(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("readonly").await;
    let flags =
        ["--feature-gates=ResourcesDeletionProtection=true", "--protection-log-path=/proc/protection"];
    let launch = stage.launch().flags(&flags).variable("WEBHOOK_CERT_DIR", "/proc/certificates");
    let manager = launch.ready().await;
    let namespaces: Api<Namespace> = Api::all(stage.cluster.client());
    let label = |value: Value| {
        Patch::Merge(json!({"metadata": {"labels": {"policy.kruise.io/delete-protection": value}}}))
    };
    let (name, options) = (sandbox.namespace(), PatchParams::default());
    namespaces.patch(name, &options, &label("Always".into())).await.unwrap();
    let refused = namespaces.delete(name, &DeleteParams::default()).await.unwrap_err().to_string();
    assert!(refused.contains("forbidden by ResourcesProtectionDeletion"), "{refused}");
    namespaces.patch(name, &options, &label(Value::Null)).await.unwrap();
    let log = manager.log();
    let record = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find(|record| {
        record["Event"] == "DeletionProtection" && record["Kind"] == "Namespace" && record["Name"] == name
    });
    let record = record.unwrap_or_else(|| panic!("no record\n{log}"));
    assert!(!record["UserAgent"].as_str().unwrap().is_empty(), "{record}");
    for told in ["refused deletions go to this log", "certificates are served from memory only"] {
        assert_eq!(log.lines().filter(|line| line.contains(told)).count(), 1, "{told}\n{log}");
    }
    Ok(())
}
launched!(without_a_place_for_files_refusals_are_told_in_the_log);

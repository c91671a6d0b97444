//! Feature gates, as users meet them.

use std::time::Duration;

use kruise_api::gates::Gates;
use kruise_core::features::webhooks;
use kruise_testkit::{
    Outcome,
    wait::{Look, eventually, seen},
};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::stage::{Stage, launched, managed};

fn recreate_request(namespace: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
        "metadata": {"name": "again", "namespace": namespace},
        "spec": {"podName": "web", "containers": [{"name": "main"}]},
    })
}

fn spread(namespace: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "subsets": [{"name": "a", "maxReplicas": 1}, {"name": "b"}]},
    })
}

fn pull_job(namespace: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
        "metadata": {"name": "pull", "namespace": namespace},
        "spec": {"image": "app:v1", "completionPolicy": {"type": "Always"}},
    })
}

/// PLATFORM-7: the refusal, in virtual time.
async fn without_pod_webhooks_a_spread_is_refused(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("gates").await;
    let refused = stage.create(spread(sandbox.namespace())).await.unwrap_err();
    assert!(refused.starts_with("403 "), "{refused}");
    assert!(refused.contains("feature-gate WorkloadSpread is not enabled"), "{refused}");
    Ok(())
}
managed!(without_pod_webhooks_a_spread_is_refused, ["--feature-gates=PodWebhook=false"]);

/// The webhooks of pods that the cluster calls, and whether each of them leads somewhere.
async fn pod_webhooks(stage: &Stage) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for configuration in webhooks::configurations(&Gates::default(), &webhooks::Options::default()) {
        let name = configuration["metadata"]["name"].as_str().unwrap();
        let object = stage.api(&configuration).get(name).await.unwrap();
        for webhook in object.data["webhooks"].as_array().into_iter().flatten() {
            let name = webhook["name"].as_str().unwrap().to_owned();
            if ["mpod.kb.io", "vpod.kb.io", "vpodeviction.kb.io"].contains(&name.as_str()) {
                found.push((name, webhook["clientConfig"]["caBundle"].is_string()));
            }
        }
    }
    found
}

/// PLATFORM-7: the webhooks of pods go with their gate and come back with it.
async fn pod_webhooks_go_and_come_back_with_their_gate(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("gates").await;
    let all = ["mpod.kb.io", "vpod.kb.io", "vpodeviction.kb.io"].map(|name| (name.to_owned(), true));
    let alone = "--enable-leader-election=false";
    let open = stage.launch().flags(&[alone]);
    let manager = open.ready().await;
    assert_eq!(pod_webhooks(stage).await, all);
    drop(manager);
    let manager = open.clone().flags(&["--feature-gates=PodWebhook=false"]).ready().await;
    assert_eq!(pod_webhooks(stage).await, []);
    let refused = stage.create(spread(sandbox.namespace())).await.unwrap_err();
    assert!(refused.contains("feature-gate WorkloadSpread is not enabled"), "{refused}");
    drop(manager);
    let _manager = open.ready().await;
    assert_eq!(pod_webhooks(stage).await, all);
    stage.create(spread(sandbox.namespace())).await.unwrap();
    Ok(())
}
launched!(pod_webhooks_go_and_come_back_with_their_gate);

/// Services are protected by a gate that is opened after the installation, and not when it is closed again.
async fn services_are_protected_from_when_the_gate_opens(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("gates").await;
    let service = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": sandbox.namespace(),
                "labels": {"policy.kruise.io/delete-protection": "Always"}},
            "spec": {"ports": [{"port": 80}], "clusterIP": "None"},
        })
    };
    let names = async || {
        let [_, validating] = webhooks::configurations(&Gates::default(), &webhooks::Options::default());
        let name = validating["metadata"]["name"].as_str().unwrap();
        let object = stage.api(&validating).get(name).await.unwrap();
        let webhooks = object.data["webhooks"].as_array().cloned().unwrap_or_default();
        webhooks.iter().map(|webhook| webhook["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let until = async |is: bool| {
        let added = eventually("the configuration follows the gate", Duration::from_secs(30), async || {
            let names = names().await;
            let both = ["vservice.kb.io", "vingress.kb.io"];
            seen(both.iter().all(|name| names.iter().any(|one| one == name) == is), format!("{names:?}"))
        });
        added.await.unwrap();
    };
    let delete = async |name: &str| {
        let service = service(name);
        stage.api(&service).delete(name, &DeleteParams::default()).await.map_err(|error| error.to_string())
    };
    stage.create(service("a")).await.unwrap();
    let closed = stage.launch().flags(&["--enable-leader-election=false"]);
    let manager = closed.clone().flags(&["--feature-gates=ResourcesDeletionProtection=true"]).ready().await;
    until(true).await;
    let refused = eventually("the deletion is refused", Duration::from_secs(30), async || {
        // A real server takes a moment to heed a new webhook.
        let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
        match stage.api(&service("a")).delete("a", &dry).await {
            Ok(_) => Look::No("it would be deleted".to_owned()),
            Err(error) => Look::Yes(error.to_string()),
        }
    });
    let refused = refused.await.unwrap();
    assert!(refused.contains("forbidden by ResourcesProtectionDeletion"), "{refused}");
    assert!(delete("a").await.is_err());
    drop(manager);
    let _manager = closed.ready().await;
    until(false).await;
    delete("a").await.unwrap();
    Ok(())
}
launched!(services_are_protected_from_when_the_gate_opens);

/// PLATFORM-8
async fn without_the_daemon_a_recreate_request_is_refused(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("gates").await;
    let refused = stage.create(recreate_request(sandbox.namespace())).await.unwrap_err();
    assert!(refused.starts_with("403 "), "{refused}");
    assert!(refused.contains("feature-gate KruiseDaemon is not enabled"), "{refused}");
    Ok(())
}
managed!(without_the_daemon_a_recreate_request_is_refused, ["--feature-gates=KruiseDaemon=false"]);

/// PLATFORM-9
async fn pre_download_opens_the_gate_of_pull_jobs(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("gates").await;
    stage.create(pull_job(sandbox.namespace())).await.unwrap();
    Ok(())
}
managed!(
    pre_download_opens_the_gate_of_pull_jobs,
    ["--feature-gates=PreDownloadImageForInPlaceUpdate=true,ImagePullJobGate=false"]
);

/// PLATFORM-8: the other side of it, so that the refusal above is not for another reason.
async fn with_default_gates_pull_jobs_are_refused_and_spreads_are_not(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("gates").await;
    let refused = stage.create(pull_job(sandbox.namespace())).await.unwrap_err();
    assert!(refused.contains("feature-gate ImagePullJobGate is not enabled"), "{refused}");
    stage.create(spread(sandbox.namespace())).await.unwrap();
    Ok(())
}
managed!(with_default_gates_pull_jobs_are_refused_and_spreads_are_not, ["--feature-gates="]);

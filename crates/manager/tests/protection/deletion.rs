//! The label that keeps objects from being deleted.

use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod};
use kruise_api::gates::{Gate, Gates};
use kruise_core::features::webhooks;
use kruise_testkit::{
    Backend, Outcome,
    wait::{Look, seen},
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PropagationPolicy},
};
use serde_json::{Value, json};

use crate::{
    scene::{NO_FLAGS, Scene, merged, refusal},
    stage::{Stage, embedded_only, managed},
};

const PROTECTION: [&str; 1] = ["--feature-gates=ResourcesDeletionProtection=true"];
const DEFINITIONS: [&str; 1] =
    ["--feature-gates=ResourcesDeletionProtection=true,DeletionProtectionForCRDCascadingGate=true"];
const ALWAYS: &str = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always";
const CASCADING: &str =
    "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading";

/// The webhooks of the feature, as a chart with its gate installs them.
async fn configure(stage: &Stage) {
    let gates = Gates::default().with(Gate::ResourcesDeletionProtection);
    for configuration in webhooks::configurations(&gates, &webhooks::Options::default()) {
        stage.put(configuration).await;
    }
}

fn label(value: &str) -> Value {
    json!({"metadata": {"labels": {"policy.kruise.io/delete-protection": value}}})
}

async fn delete_with(stage: &Stage, object: &Value, params: DeleteParams) -> Result<(), String> {
    let name = object["metadata"]["name"].as_str().unwrap();
    stage.api(object).delete(name, &params).await.map(drop).map_err(refusal)
}

async fn delete(stage: &Stage, object: &Value) -> Result<(), String> {
    delete_with(stage, object, DeleteParams::default()).await
}

#[track_caller]
fn refused(answer: Result<(), String>, expected: &str) {
    let text = answer.unwrap_err();
    assert!(text.starts_with("403 ") && text.contains(expected), "{text}");
}

impl Scene {
    fn workload(&self, api_version: &str, kind: &str, name: &str, replicas: u32) -> Value {
        let mut object = json!({
            "apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": self.sandbox.namespace()},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": {
                    "nodeSelector": {"no": "node"}, "containers": [{"name": "main", "image": self.cluster.image("app:v1")}]}}},
        });
        if kind == "StatefulSet" {
            object["spec"]["serviceName"] = json!(name);
        }
        if kind == "UnitedDeployment" {
            let template = object["spec"]["template"].take();
            let spec = json!({"selector": {"matchLabels": {"app": name}}, "template": template});
            let template = json!({"metadata": {"labels": {"app": name}}, "spec": spec});
            object["spec"]["template"] = json!({"cloneSetTemplate": template});
            object["spec"]["topology"] = json!({"subsets": [{"name": "a"}]});
        }
        object
    }

    async fn labelled(&self, stage: &Stage, object: &Value, value: &str) {
        stage.create(merged(object.clone(), &label(value))).await.unwrap();
    }
}

/// PROTECTION-35, PROTECTION-36, PROTECTION-37
async fn a_namespace_stays_while_something_is_in_it(stage: &mut Stage) -> Outcome {
    configure(stage).await;
    let scene = Scene::prepare(stage, "namespace").await;
    let namespace = scene.sandbox.namespace();
    let namespaces: Api<Namespace> = Api::all(stage.cluster.client());
    let set = async |value: Value| {
        let patch = json!({"metadata": {"labels": {"policy.kruise.io/delete-protection": value}}});
        namespaces.patch(namespace, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    };
    let delete = async |dry: bool| {
        let params = if dry { DeleteParams::default().dry_run() } else { DeleteParams::default() };
        namespaces.delete(namespace, &params).await.map(drop).map_err(refusal)
    };
    set("Always".into()).await;
    refused(delete(false).await, ALWAYS);
    set("Cascading".into()).await;
    scene.create_pod("a", json!({})).await;
    refused(delete(false).await, &format!("{CASCADING} and active pods 1>0"));
    scene.sandbox.delete::<Pod>("a").await;
    let look = async || seen(scene.sandbox.list::<Pod>().await.is_empty(), "the pod is there");
    scene.sandbox.eventually("the pod is gone", look).await;
    // A pod of a Job that has ended is none that would be lost.
    let spec = merged(scene.pod_spec(), &json!({"nodeSelector": {"no": "node"}}));
    let ended = json!({"metadata": {"name": "job"}, "spec": spec});
    let _: Pod = scene.sandbox.create(ended).await;
    let done = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    scene.sandbox.api::<Pod>().patch_status("job", &PatchParams::default(), &done).await.unwrap();
    delete(true).await.unwrap();
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "",
        "resources": {"requests": {"storage": "1Gi"}}}});
    let _: PersistentVolumeClaim = scene.sandbox.create(claim).await;
    delete(true).await.unwrap();
    let claims: Api<PersistentVolumeClaim> = scene.sandbox.api();
    let bound = Patch::Merge(json!({"status": {"phase": "Bound"}}));
    claims.patch_status("data", &PatchParams::default(), &bound).await.unwrap();
    if claims.get("data").await.unwrap().status.and_then(|status| status.phase).as_deref() == Some("Bound") {
        refused(delete(true).await, &format!("{CASCADING} and \"Bound\" status pvc 1>0"));
    }
    set(Value::Null).await;
    delete(false).await.unwrap();
    Ok(())
}
managed!(a_namespace_stays_while_something_is_in_it, super::PROTECTION);

/// PROTECTION-36: an API server under load answers so late that all cannot be counted. (Only the embedded one can be slowed
/// down.) Without an answer in time it would let the deletion pass, because the webhook's failures are ignored.
async fn a_slow_server_does_not_let_a_protected_namespace_go(stage: &mut Stage) -> Outcome {
    configure(stage).await;
    let scene = Scene::prepare(stage, "slow").await;
    let namespaces: Api<Namespace> = Api::all(stage.cluster.client());
    let patch = Patch::Merge(label("Cascading"));
    namespaces.patch(scene.sandbox.namespace(), &PatchParams::default(), &patch).await.unwrap();
    scene.create_pod("a", json!({})).await;
    let delete = async || {
        let params = DeleteParams::default().dry_run();
        namespaces.delete(scene.sandbox.namespace(), &params).await.map(drop).map_err(refusal)
    };
    stage.sim().faults().latency(std::time::Duration::from_secs(6));
    refused(
        delete().await,
        "forbidden by ResourcesProtectionDeletion for list pods error: no answer within 4s",
    );
    stage.sim().faults().latency(std::time::Duration::ZERO);
    refused(delete().await, &format!("{CASCADING} and active pods 1>0"));
    Ok(())
}
embedded_only!(a_slow_server_does_not_let_a_protected_namespace_go, super::PROTECTION);

fn definition(kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.test.kruise-rs.io")},
        "spec": {"group": "test.kruise-rs.io", "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

/// PROTECTION-38 with the gate of CRDs off.
async fn a_definition_needs_its_own_gate_to_be_judged_by_its_objects(stage: &mut Stage) -> Outcome {
    configure(stage).await;
    let crd = definition("Apple");
    stage.put(merged(crd.clone(), &label("Always"))).await;
    refused(delete(stage, &crd).await, ALWAYS);
    stage.patch(&crd, &label("Cascading")).await.unwrap();
    refused(delete(stage, &crd).await, "feature-gate DeletionProtectionForCRDCascadingGate is not enabled");
    let unlabelled = json!({"metadata": {"labels": {"policy.kruise.io/delete-protection": null}}});
    stage.patch(&crd, &unlabelled).await.unwrap();
    delete(stage, &crd).await.unwrap();
    Ok(())
}
managed!(a_definition_needs_its_own_gate_to_be_judged_by_its_objects, super::PROTECTION);

/// PROTECTION-38 with both gates on: objects count, those that end do not.
async fn a_definition_stays_while_it_has_objects(stage: &mut Stage) -> Outcome {
    configure(stage).await;
    let scene = Scene::prepare(stage, "crd").await;
    let crd = definition("Pear");
    stage.put(merged(crd.clone(), &label("Cascading"))).await;
    let pear = json!({"apiVersion": "test.kruise-rs.io/v1", "kind": "Pear",
        "metadata": {"name": "p", "namespace": scene.sandbox.namespace(), "finalizers": ["kruise-rs.io/test"]}});
    let look = async || match stage.create(pear.clone()).await {
        Ok(_) => Look::Yes(()),
        Err(error) => seen(error.starts_with("409"), error),
    };
    scene.sandbox.eventually("the kind is served", look).await;
    refused(delete(stage, &crd).await, &format!("{CASCADING} and active CRs 1>0"));
    delete(stage, &pear).await.unwrap();
    delete(stage, &crd).await.unwrap();
    stage.patch(&pear, &json!({"metadata": {"finalizers": null}})).await.unwrap();
    Ok(())
}
managed!(a_definition_stays_while_it_has_objects, super::DEFINITIONS);

/// PROTECTION-39, PROTECTION-40, PROTECTION-43, PROTECTION-45: every kind in every version.
async fn workloads_stay_while_they_want_pods(stage: &mut Stage) -> Outcome {
    configure(stage).await;
    let scene = Scene::prepare(stage, "workloads").await;
    let kinds = [
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
        ("apps.kruise.io/v1alpha1", "CloneSet"),
        ("apps.kruise.io/v1beta1", "CloneSet"),
        ("apps.kruise.io/v1alpha1", "StatefulSet"),
        ("apps.kruise.io/v1beta1", "StatefulSet"),
        ("apps.kruise.io/v1alpha1", "UnitedDeployment"),
        ("apps.kruise.io/v1beta1", "UnitedDeployment"),
    ];
    for (number, (version, kind)) in kinds.into_iter().enumerate() {
        let object = scene.workload(version, kind, &format!("w-{number}"), 2);
        scene.labelled(stage, &object, "Always").await;
        let force = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Orphan),
            ..DeleteParams::default().grace_period(0)
        };
        refused(delete_with(stage, &object, force).await, ALWAYS);
        refused(delete_with(stage, &object, DeleteParams::default().dry_run()).await, ALWAYS);
        stage.patch(&object, &label("Cascading")).await.unwrap();
        refused(delete(stage, &object).await, &format!("{CASCADING} and replicas 2>0"));
        stage.patch(&object, &json!({"spec": {"replicas": 0}})).await.unwrap();
        delete(stage, &object).await.unwrap_or_else(|error| panic!("{version} {kind}: {error}"));
    }
    let metrics =
        if stage.cluster.backend() == Backend::Embedded { stage.metrics().await } else { String::new() };
    if !metrics.is_empty() {
        let place = format!(
            "workload_deletion_protection{{kind_namespace_name=\"Deployment_{}_w-0\"",
            scene.sandbox.namespace()
        );
        let line = metrics.lines().find(|line| line.starts_with(&place));
        // Not the dry run.
        assert!(line.is_some_and(|line| line.ends_with(" 2")), "{line:?}");
    }
    Ok(())
}
managed!(workloads_stay_while_they_want_pods, super::PROTECTION);

/// PROTECTION-41, PROTECTION-42
async fn services_and_ingresses_know_always_and_spelling_counts(stage: &mut Stage) -> Outcome {
    configure(stage).await;
    let scene = Scene::prepare(stage, "plain").await;
    let namespace = scene.sandbox.namespace();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": namespace},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}});
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "web", "namespace": namespace}, "spec": {"defaultBackend": backend}});
    for object in [service, ingress] {
        scene.labelled(stage, &object, "Always").await;
        refused(delete(stage, &object).await, ALWAYS);
        stage.patch(&object, &label("Cascading")).await.unwrap();
        delete(stage, &object).await.unwrap();
    }
    let object = scene.workload("apps/v1", "Deployment", "web", 1);
    scene.labelled(stage, &object, "always").await;
    delete(stage, &object).await.unwrap();
    Ok(())
}
managed!(services_and_ingresses_know_always_and_spelling_counts, super::PROTECTION);

/// PROTECTION-44, PROTECTION-48: `--all` is judged one by one, and a namespace waits for what is protected in it.
async fn what_is_protected_outlives_its_neighbours(stage: &mut Stage) -> Outcome {
    configure(stage).await;
    let scene = Scene::prepare(stage, "all").await;
    let kept = scene.workload("apps/v1", "Deployment", "kept", 1);
    scene.labelled(stage, &kept, "Always").await;
    stage.create(scene.workload("apps/v1", "Deployment", "gone", 1)).await.unwrap();
    // What `kubectl delete deployments --all` does.
    let names = stage.api(&kept).list(&ListParams::default()).await.unwrap().items;
    let mut failed = Vec::new();
    for object in names {
        let name = object.metadata.name.unwrap();
        if let Err(error) = stage.api(&kept).delete(&name, &DeleteParams::default()).await {
            failed.push((name, refusal(error)));
        }
    }
    assert!(failed.len() == 1 && failed[0].0 == "kept" && failed[0].1.contains(ALWAYS), "{failed:?}");
    let namespaces: Api<Namespace> = Api::all(stage.cluster.client());
    let namespace = scene.sandbox.namespace();
    namespaces.delete(namespace, &DeleteParams::default()).await.unwrap();
    let stays = async || {
        let phase = namespaces.get(namespace).await.unwrap().status.and_then(|status| status.phase);
        let there = stage.api(&kept).get_opt("kept").await.unwrap().is_some();
        seen(phase.as_deref() == Some("Terminating") && there, format!("{phase:?}"))
    };
    scene.sandbox.always("it waits", std::time::Duration::from_secs(10), stays).await;
    let unlabelled = json!({"metadata": {"labels": {"policy.kruise.io/delete-protection": null}}});
    stage.patch(&kept, &unlabelled).await.unwrap();
    let look = async || seen(namespaces.get_opt(namespace).await.unwrap().is_none(), "it is there");
    scene.sandbox.eventually("the namespace is gone", look).await;
    Ok(())
}
managed!(what_is_protected_outlives_its_neighbours, super::PROTECTION);

/// PROTECTION-46
async fn with_the_gate_off_a_label_protects_nothing(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "off").await;
    for (version, kind) in [("apps/v1", "Deployment"), ("apps.kruise.io/v1beta1", "CloneSet")] {
        let object = scene.workload(version, kind, "web", 1);
        scene.labelled(stage, &object, "Always").await;
        delete(stage, &object).await.unwrap();
    }
    Ok(())
}
managed!(with_the_gate_off_a_label_protects_nothing, super::NO_FLAGS);

/// PROTECTION-47, and nodes are drained without a manager where pods fail open.
async fn without_a_manager_the_failure_policy_decides(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "down", 2, json!({"maxUnavailable": 0})).await;
    let deployment = scene.workload("apps/v1", "Deployment", "kept", 1);
    scene.labelled(stage, &deployment, "Always").await;
    let set = scene.workload("apps.kruise.io/v1beta1", "CloneSet", "kept", 1);
    scene.labelled(stage, &set, "Always").await;
    stage.kill_manager();
    delete(stage, &deployment).await.unwrap();
    let text = delete(stage, &set).await.unwrap_err();
    assert!(text.contains("failed calling webhook \"vcloneset.kb.io\""), "{text}");
    let pods = scene.serving().await;
    let text = scene.evict(&pods[0]).await.unwrap_err();
    assert!(text.contains("failed calling webhook \"vpodeviction.kb.io\""), "{text}");
    stage.configure(&webhooks::Options::default().fail_open()).await;
    let look = async || match scene.evict(&pods[0]).await {
        Ok(()) => Look::Yes(()),
        Err(error) => Look::No(error),
    };
    scene.sandbox.eventually("the node can be drained", look).await;
    Ok(())
}
managed!(without_a_manager_the_failure_policy_decides, super::NO_FLAGS, alone);

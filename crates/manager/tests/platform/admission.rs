//! Webhooks, as users meet them.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_core::features::webhooks;
use kruise_testkit::{
    Outcome, pod,
    wait::{Look, seen},
};
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};

use crate::stage::{Stage, managed};

const NO_FLAGS: [&str; 0] = [];

/// A pod that one of our workloads would make, on no node.
fn owned_pod(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [{
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "no-such-uid",
            "controller": true, "blockOwnerDeletion": false}]},
        "spec": {"nodeSelector": {"no": "node"}, "containers": [{"name": "main", "image": "app:v1"}]},
    })
}

fn bad_cloneset(namespace: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "Main", "image": "app:v1"}], "restartPolicy": "Sometimes"}}},
    })
}

fn gates(pod: &Value) -> Vec<&str> {
    let gates = pod["spec"]["readinessGates"].as_array();
    gates.into_iter().flatten().filter_map(|gate| gate["conditionType"].as_str()).collect()
}

/// The gate is put on pods of our workloads, and the controller sets the first condition, once.
async fn a_pod_of_our_workloads_gets_its_gate_and_its_condition(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("ready").await;
    let made = stage.create(owned_pod(sandbox.namespace(), "web")).await.unwrap();
    assert_eq!(gates(&made), ["KruisePodReady"]);
    let condition = |pod: &Pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
        conditions.into_iter().find(|condition| condition.type_ == "KruisePodReady")
    };
    sandbox
        .eventually("the condition is there", async || {
            // The owner does not exist, so the garbage collector may be faster than we are.
            match sandbox.api::<Pod>().get_opt("web").await.unwrap() {
                None => Look::Yes(()),
                Some(pod) => match condition(&pod) {
                    Some(found) if found.status == "True" => Look::Yes(()),
                    found => Look::No(format!("{found:?}")),
                },
            }
        })
        .await;
    let plain = pod::named("plain").container("main", &stage.cluster.image("app:v1"));
    let plain: Pod = sandbox.create(plain).await;
    assert!(plain.spec.unwrap().readiness_gates.is_none());
    Ok(())
}
managed!(a_pod_of_our_workloads_gets_its_gate_and_its_condition, super::NO_FLAGS);

/// With the gate open every new pod gets it.
async fn with_its_gate_open_every_pod_becomes_ready_through_us(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("ready").await;
    let wanted = pod::named("plain").container("main", &stage.cluster.image("app:v1"));
    let made: Pod = sandbox.create(wanted).await;
    assert_eq!(made.spec.unwrap().readiness_gates.unwrap()[0].condition_type, "KruisePodReady");
    sandbox
        .eventually("the pod is ready", async || {
            let pod: Pod = sandbox.get("plain").await;
            seen(pod::is_ready(&pod), format!("{:?}", pod.status))
        })
        .await;
    Ok(())
}
managed!(
    with_its_gate_open_every_pod_becomes_ready_through_us,
    ["--feature-gates=KruisePodReadinessGate=true"]
);

/// PLATFORM-28
async fn exempt_namespaces_never_meet_the_pod_webhooks(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("exempt").await;
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(stage.cluster.client());
    let label = kube::api::Patch::Merge(json!({"metadata": {"labels": {"control-plane": "openkruise"}}}));
    namespaces.patch(sandbox.namespace(), &kube::api::PatchParams::default(), &label).await.unwrap();
    // API servers learn of labels of namespaces by watching.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let made = stage.create(owned_pod(sandbox.namespace(), "web")).await.unwrap();
    assert_eq!(gates(&made), [""; 0]);
    if stage.cluster.is_at_least(1, 21) {
        let made = stage.create(owned_pod("kube-system", "exempt")).await.unwrap();
        let _ = stage.api(&made).delete("exempt", &DeleteParams::default().grace_period(0)).await;
        assert_eq!(gates(&made), [""; 0]);
    }
    Ok(())
}
managed!(exempt_namespaces_never_meet_the_pod_webhooks, super::NO_FLAGS);

/// PLATFORM-30
async fn with_the_manager_down_only_what_must_wait_waits(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("down").await;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": sandbox.namespace(),
            "labels": {"policy.kruise.io/delete-protection": "Always"}},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "app:v1"}]}}},
    });
    stage.create(deployment.clone()).await.unwrap();
    stage.kill_manager();
    let refused = stage.create(owned_pod(sandbox.namespace(), "web")).await.unwrap_err();
    assert!(refused.contains("mpod.kb.io"), "{refused}");
    stage.api(&deployment).delete("web", &DeleteParams::default()).await.unwrap();
    let own = owned_pod("kruise-system", "manager");
    let made = stage.create(own.clone()).await.unwrap();
    assert_eq!(made["metadata"]["name"], "manager");
    let _ = stage.api(&own).delete("manager", &DeleteParams::default().grace_period(0)).await;
    stage.start_manager().await;
    sandbox
        .eventually("pods are made again", async || {
            match stage.create(owned_pod(sandbox.namespace(), "web")).await {
                Ok(_) => Look::Yes(()),
                Err(error) => Look::No(error),
            }
        })
        .await;
    Ok(())
}
managed!(with_the_manager_down_only_what_must_wait_waits, super::NO_FLAGS);

/// PLATFORM-30: with the fail-open option pods start everywhere. With the manager they get what they always get.
async fn with_fail_open_pods_start_everywhere_without_the_manager(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("open").await;
    stage.configure(&webhooks::Options::default().fail_open()).await;
    // A manager that is up repairs the bundles of new configurations, and servers learn of it by watching.
    let mut tries = 0;
    sandbox
        .eventually("the manager is asked", async || {
            tries += 1;
            let made = stage.create(owned_pod(sandbox.namespace(), &format!("web-{tries}"))).await.unwrap();
            seen(gates(&made) == ["KruisePodReady"], made.to_string())
        })
        .await;
    stage.kill_manager();
    let made = stage.create(owned_pod(sandbox.namespace(), "without")).await.unwrap();
    assert_eq!(gates(&made), [""; 0]);
    let plain: Pod =
        sandbox.create(pod::named("plain").container("main", &stage.cluster.image("app:v1"))).await;
    assert!(plain.spec.unwrap().readiness_gates.is_none());
    let api: Api<Pod> = sandbox.api();
    api.delete("plain", &DeleteParams::default().grace_period(0)).await.unwrap();
    // What is ours still waits for its rules.
    let refused = stage.create(bad_cloneset(sandbox.namespace())).await.unwrap_err();
    assert!(refused.contains("mcloneset.kb.io"), "{refused}");
    Ok(())
}
managed!(with_fail_open_pods_start_everywhere_without_the_manager, super::NO_FLAGS);

/// PLATFORM-35: counted, and refused with the words that people know.
async fn a_protected_namespace_stays(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("protected").await;
    let name = sandbox.namespace();
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(stage.cluster.client());
    let label = |value: Value| {
        kube::api::Patch::Merge(
            json!({"metadata": {"labels": {"policy.kruise.io/delete-protection": value}}}),
        )
    };
    namespaces.patch(name, &kube::api::PatchParams::default(), &label("Always".into())).await.unwrap();
    let refused = namespaces.delete(name, &DeleteParams::default()).await.unwrap_err().to_string();
    assert!(
        refused.contains(
            "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always"
        ),
        "{refused}"
    );
    let metrics = stage.metrics().await;
    let line = metrics.lines().find(|line| {
        line.starts_with("namespace_deletion_protection{") && line.contains(&format!("name=\"{name}\""))
    });
    // Servers as old as 1.20 ask twice about one deletion of a namespace.
    assert!(line.is_some_and(|line| line.ends_with(" 1") || line.ends_with(" 2")), "{line:?}");
    if stage.cluster.backend() == kruise_testkit::Backend::Real {
        let log = stage.process().protection_log();
        assert!(log.contains("\"Event\":\"DeletionProtection\"") && log.contains(name), "{log}");
    }
    namespaces.patch(name, &kube::api::PatchParams::default(), &label(Value::Null)).await.unwrap();
    Ok(())
}
managed!(a_protected_namespace_stays, ["--feature-gates=ResourcesDeletionProtection=true"]);

/// Bad input is refused at admission, with the field, the value and the rule, and nothing is stored.
async fn a_bad_template_is_refused_with_the_path_of_the_field(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("bad").await;
    let refused = stage.create(bad_cloneset(sandbox.namespace())).await.unwrap_err();
    assert!(refused.contains("spec.template.spec.containers[0].name: Invalid value: \"Main\""), "{refused}");
    assert!(refused.contains("spec.template.spec.restartPolicy"), "{refused}");
    Ok(())
}
managed!(a_bad_template_is_refused_with_the_path_of_the_field, super::NO_FLAGS);

/// PLATFORM-29
async fn a_namespace_without_its_label_is_told_with_an_event(stage: &mut Stage) -> Outcome {
    stage.kill_manager();
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(stage.cluster.client());
    let label =
        |value: Value| kube::api::Patch::Merge(json!({"metadata": {"labels": {"control-plane": value}}}));
    let options = kube::api::PatchParams::default();
    namespaces.patch("kruise-system", &options, &label(Value::Null)).await.unwrap();
    stage.start_manager().await;
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::all(stage.cluster.client());
    let told = kruise_testkit::wait::eventually("an event tells", Duration::from_secs(20), async || {
        let all = events.list(&kube::api::ListParams::default()).await.unwrap();
        let found = all.items.iter().find(|event| event.reason.as_deref() == Some("MissingNamespaceLabel"));
        match found.and_then(|event| event.message.clone()) {
            Some(message) => Look::Yes(message),
            None => Look::No(format!("{} events", all.items.len())),
        }
    });
    let told = told.await;
    namespaces.patch("kruise-system", &options, &label("openkruise".into())).await.unwrap();
    assert!(told.unwrap().contains("kubectl label namespace kruise-system control-plane=openkruise"));
    Ok(())
}
managed!(a_namespace_without_its_label_is_told_with_an_event, super::NO_FLAGS);

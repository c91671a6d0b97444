//! Kinds that the manager cannot read: only what needs them waits.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use kruise_api::{
    gates::{Gate, Gates},
    names,
    nodeimage::v1beta1::NodeImage,
};
use kruise_core::features::rbac;
use kruise_sim::faults::{Answer, Calls, Effect, Rule, When};
use kruise_testkit::{Outcome, Sandbox, wait::seen};
use kube::{Api, api::ListParams};
use serde_json::{Value, json};

use crate::stage::{Stage, embedded_only, embedded_prepared};

fn cloneset(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"nodeSelector": {"no": "node"}, "containers": [{"name": "main", "image": "app:v1"}]}}},
    })
}

async fn has_pods(sandbox: &Sandbox, count: usize) {
    sandbox
        .eventually("the set has its pods", async || {
            let pods: Vec<Pod> = sandbox.list().await;
            seen(pods.len() == count, format!("{} pods", pods.len()))
        })
        .await;
}

async fn shows(stage: &Stage, line: &str) -> bool {
    stage.metrics().await.lines().any(|shown| shown == line)
}

/// A gate is opened, and the role is still the one that was made without it.
#[test]
fn a_gate_without_its_role_leaves_only_its_own_controllers_waiting_until_the_role_comes() {
    let flags = ["--feature-gates=ImagePullJobGate=true", "--controller-cache-sync-timeout=30s"];
    embedded_prepared(&flags, async |stage: &mut Stage| {
        let sandbox = stage.cluster.sandbox("role").await;
        for object in rbac::objects(&Gates::default()) {
            // The namespace of the copies of pull secrets is not there, and not needed.
            if object.pointer("/metadata/namespace").and_then(Value::as_str)
                != Some(names::DAEMON_CONFIG_NAMESPACE)
            {
                stage.put(object).await;
            }
        }
        stage.start_manager_as(rbac::MANAGER_ACCOUNT);
        stage.sim().advance(Duration::from_secs(600)).await;
        let line = "cannot list imagepulljobs.apps.kruise.io at cluster scope: the ServiceAccount lacks `list` and `watch` \
                    on it; controllers waiting: imagepulljob-controller, imagelistpulljob-controller";
        let said = stage.unreadable_kinds();
        assert!(said.iter().any(|said| said == line), "{said:?}");
        let metric = |value| {
            format!(
                "kruise_kind_unreadable{{kind=\"imagepulljobs.apps.kruise.io\",reason=\"Forbidden\"}} {value}"
            )
        };
        assert!(shows(stage, &metric(1)).await, "{}", stage.metrics().await);
        let events: Api<Event> = Api::namespaced(stage.cluster.client(), "default");
        let events = events.list(&ListParams::default()).await.unwrap().items;
        let told = events.iter().filter(|event| event.message.as_deref() == Some(line));
        assert_eq!(told.map(|event| event.reason.as_deref()).collect::<Vec<_>>(), [Some("KindUnreadable")]);

        stage.create(cloneset(sandbox.namespace(), "web")).await.unwrap();
        has_pods(&sandbox, 2).await;
        let job = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
            "metadata": {"name": "pull", "namespace": sandbox.namespace()},
            "spec": {"image": "app:v1", "parallelism": 10, "completionPolicy": {"type": "Always"}},
        });
        stage.create(job).await.unwrap();
        stage.sim().advance(Duration::from_secs(60)).await;
        let images: Api<NodeImage> = Api::all(stage.cluster.client());
        let asked = async || {
            let all = images.list(&ListParams::default()).await.unwrap().items;
            all.iter().filter(|node| !node.spec.images.is_empty()).count()
        };
        assert_eq!(asked().await, 0);

        for object in rbac::objects(&Gates::default().with(Gate::ImagePullJobGate)) {
            if object.pointer("/metadata/namespace").and_then(Value::as_str)
                != Some(names::DAEMON_CONFIG_NAMESPACE)
            {
                stage.put(object).await;
            }
        }
        sandbox
            .eventually("the job is carried out without a restart", async || {
                seen(asked().await > 0, format!("{:?}", stage.unreadable_kinds()))
            })
            .await;
        stage.sim().advance(Duration::from_secs(60)).await;
        assert_eq!(stage.unreadable_kinds(), [""; 0]);
        assert!(shows(stage, &metric(0)).await, "{}", stage.metrics().await);
        Ok(())
    });
}

/// A pod that is made without knowing the SidecarSets would never get its sidecars.
async fn pods_wait_for_sidecar_sets_that_cannot_be_read_and_nothing_else_does(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("broken").await;
    // The manager begins anew, and the server fails for one kind from then on.
    stage.kill_manager();
    let calls = Calls { method: Some(http::Method::GET), path: "/sidecarsets".to_owned() };
    let rule = Rule { calls, when: When::Chance(1.0), effect: Effect::Before, answer: Answer::Internal };
    stage.sim().faults().rule(rule);
    stage.start_manager().await;
    stage.sim().advance(Duration::from_secs(600)).await;
    let said = stage.unreadable_kinds();
    let line = "cannot list sidecarsets.apps.kruise.io: Internal error occurred: an injected fault; \
                controllers waiting: sidecarset-controller";
    assert_eq!(said, [line]);
    let began = tokio::time::Instant::now();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": sandbox.namespace()},
        "spec": {"containers": [{"name": "main", "image": "app:v1"}]}});
    let refused = stage.create(pod).await.unwrap_err();
    assert!(
        refused.contains("nobody knows which sidecars are wanted, try again later: cannot list sidecarsets"),
        "{refused}"
    );
    assert_eq!(began.elapsed().as_secs(), 0, "nobody is kept waiting");
    // Webhooks and controllers of other kinds work.
    stage.create(cloneset(sandbox.namespace(), "web")).await.unwrap();
    let set = cloneset(sandbox.namespace(), "web");
    sandbox
        .eventually("the set says why it has no pods", async || {
            let status = stage.api(&set).get("web").await.unwrap().data["status"].clone();
            seen(status.to_string().contains("nobody knows which sidecars are wanted"), status.to_string())
        })
        .await;
    stage.sim().faults().heal();
    has_pods(&sandbox, 2).await;
    stage.sim().advance(Duration::from_secs(60)).await;
    assert_eq!(stage.unreadable_kinds(), [""; 0]);
    Ok(())
}
// Only there a server can be made to fail for one kind.
embedded_only!(pods_wait_for_sidecar_sets_that_cannot_be_read_and_nothing_else_does, []);

//! Pods to work on, and words to talk about them.

use k8s_openapi::api::core::v1::Pod;
use kruise_testkit::{
    Sandbox,
    cluster::REAL_NODES,
    pod,
    pod::summary,
    wait::{Look, seen},
};
use serde_json::{Value, json};

use crate::stage::Stage;

/// What a manager is started with.
pub(crate) const PLAIN: [&str; 0] = [];

pub(crate) async fn room(stage: &Stage, purpose: &str) -> Sandbox {
    stage.cluster.sandbox(purpose).await
}

/// A pod with the containers `app` and `sidecar`, once it runs and is ready.
pub(crate) async fn ready_pod(stage: &Stage, sandbox: &Sandbox, name: &str, gates: Value) -> Pod {
    let (image, (key, value)) = (stage.cluster.image("app:v1"), REAL_NODES);
    let object = json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"terminationGracePeriodSeconds": 5, "readinessGates": gates, "nodeSelector": {key: value}, "containers": [
            {"name": "app", "image": image, "ports": [{"name": "web", "containerPort": 8080}]},
            {"name": "sidecar", "image": image, "env": [{"name": "PORT", "value": "8081"}]},
        ]},
    });
    let _: Pod = sandbox.create(object).await;
    sandbox
        .eventually("the pod is ready", async || {
            let found: Pod = sandbox.get(name).await;
            if pod::is_ready(&found) { Look::Yes(found) } else { Look::No(summary(&found)) }
        })
        .await
}

/// Waits until a pod is as it should be.
pub(crate) async fn until(sandbox: &Sandbox, name: &str, what: &str, is_so: impl Fn(&Pod) -> bool) -> Pod {
    sandbox
        .eventually(what, async || {
            let found: Pod = sandbox.get(name).await;
            if is_so(&found) { Look::Yes(found) } else { Look::No(format!("{:?}", found.status)) }
        })
        .await
}

/// Waits until something in the namespace is so.
pub(crate) async fn until_so(sandbox: &Sandbox, what: &str, mut look: impl AsyncFnMut() -> (bool, String)) {
    sandbox
        .eventually(what, async || {
            let (is_so, state) = look().await;
            seen(is_so, state)
        })
        .await;
}

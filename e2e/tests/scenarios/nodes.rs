//! The ground that everything else stands on: kubelets do with containers what we think they do.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kruise_testkit::{
    Cluster, Outcome,
    cluster::{HOLLOW_NODES, REAL_NODES},
    pod, scenario,
    wait::seen,
};
use serde_json::json;

/// An image change of one container restarts that container alone: in-place update rests on this.
async fn one_changed_image_restarts_that_container_alone(cluster: Cluster) -> Outcome {
    cluster.require_nodes(REAL_NODES).await?;
    let sandbox = cluster.sandbox("in-place").await;
    let (old, new) = (cluster.image("app:v1"), cluster.image("app:v2"));
    // Both serve on the port they are told, so that two can share a pod.
    let env = |port: &str| json!([{ "name": "PORT", "value": port }]);
    let both = json!([
        { "name": "changes", "image": old, "env": env("8080") },
        { "name": "stays", "image": old, "env": env("8081") },
    ]);
    let made: Pod = sandbox.create(pod::named("web").on_nodes(REAL_NODES).spec("containers", both)).await;
    let before = sandbox
        .eventually("both containers are ready", async || {
            let pod: Pod = sandbox.get("web").await;
            if pod::is_ready(&pod) { kruise_testkit::wait::Look::Yes(pod) } else { no(&pod) }
        })
        .await;

    let image = json!({ "spec": { "containers": [{ "name": "changes", "image": new }] } });
    sandbox.strategic::<Pod>("web", image).await;

    let after = sandbox
        .eventually("the changed container runs again", async || {
            let pod: Pod = sandbox.get("web").await;
            let restarted = pod::container(&pod, "changes").is_some_and(|c| c.restart_count == 1 && c.ready);
            if restarted && pod::is_ready(&pod) { kruise_testkit::wait::Look::Yes(pod) } else { no(&pod) }
        })
        .await;

    let ip = |pod: &Pod| pod.status.as_ref().and_then(|status| status.pod_ip.clone());
    let id = |pod: &Pod, name: &str| pod::container(pod, name).and_then(|status| status.container_id.clone());
    assert_eq!(after.metadata.uid, made.metadata.uid, "the pod is the same");
    assert!(ip(&after).is_some() && ip(&after) == ip(&before), "the address stays");
    assert_ne!(id(&after, "changes"), id(&before, "changes"), "the changed container is a new one");
    assert_eq!(id(&after, "stays"), id(&before, "stays"), "the other container is untouched");
    assert_eq!(pod::container(&after, "stays").map(|status| status.restart_count), Some(0));
    sandbox
        .always("the other container is never restarted", Duration::from_secs(3), async || {
            let pod: Pod = sandbox.get("web").await;
            seen(
                pod::container(&pod, "stays").is_some_and(|status| status.restart_count == 0),
                pod::summary(&pod),
            )
        })
        .await;
    Ok(())
}
scenario!(one_changed_image_restarts_that_container_alone);

/// Hollow nodes run as many pods as a scenario about numbers needs.
async fn hollow_nodes_run_a_deployment(cluster: Cluster) -> Outcome {
    cluster.require_nodes(HOLLOW_NODES).await?;
    let sandbox = cluster.sandbox("hollow").await;
    let template =
        pod::named("-").label("app", "many").container("app", "app:any").on_nodes(HOLLOW_NODES).template();
    sandbox
        .create::<Deployment>(json!({
            "metadata": { "name": "many" },
            "spec": { "replicas": 8, "selector": { "matchLabels": { "app": "many" } }, "template": template },
        }))
        .await;
    sandbox
        .eventually("eight pods are ready", async || {
            let deployment: Deployment = sandbox.get("many").await;
            let ready = deployment.status.as_ref().and_then(|status| status.ready_replicas);
            seen(ready == Some(8), format!("{:?}", deployment.status))
        })
        .await;
    let created = sandbox.events().await.iter().filter(|event| event.reason == "SuccessfulCreate").count();
    assert_eq!(created, 8, "each pod has its event");
    Ok(())
}
scenario!(hollow_nodes_run_a_deployment);

fn no(pod: &Pod) -> kruise_testkit::wait::Look<Pod> {
    kruise_testkit::wait::Look::No(pod::summary(pod))
}

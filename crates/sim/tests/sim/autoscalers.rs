//! Metrics of pods and nodes, and autoscalers that follow them.

use http_body_util::BodyExt as _;
use kruise_sim::Sim;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::{condition, create, events, get, list, patch, seconds};

async fn fetch(sim: &Sim, path: &str) -> Value {
    let request = http::Request::get(path).body(kruise_apiserver::body::ApiBody::empty()).unwrap();
    let response = sim.server().clone().oneshot(request).await.unwrap();
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

async fn deployment(sim: &Sim, replicas: u32, annotations: &Value) {
    let container = json!({
        "name": "app", "image": "app:1", "resources": {"requests": {"cpu": "200m", "memory": "64Mi"}},
    });
    let object = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": annotations},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
            },
        },
    });
    create(sim, "apps/deployments", object).await;
}

fn autoscaler(change: &Value) -> Value {
    let mut spec = json!({
        "minReplicas": 1, "maxReplicas": 10,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "metrics": [{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}],
    });
    spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    json!({"metadata": {"name": "web"}, "spec": spec})
}

fn replicas(sim: &Sim) -> u64 {
    get(sim, "apps/deployments", "web")["spec"]["replicas"].as_u64().unwrap()
}

fn scaler(sim: &Sim) -> Value {
    get(sim, "autoscaling/horizontalpodautoscalers", "web")
}

#[tokio::test(start_paused = true)]
async fn pods_and_nodes_use_what_the_model_says() {
    let sim = Sim::builder().nodes(2).start();
    deployment(&sim, 2, &json!({"sim.kruise.io/cpu": "80%", "sim.kruise.io/memory": "48Mi"})).await;
    seconds(&sim, 30).await;
    let all =
        fetch(&sim, "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods?labelSelector=app%3Dweb").await;
    assert_eq!(all["kind"], "PodMetricsList", "{all}");
    assert_eq!(all["items"].as_array().unwrap().len(), 2);
    let one = &all["items"][0];
    assert_eq!(
        one["containers"],
        json!([{"name": "app", "usage": {"cpu": "160000000n", "memory": "49152Ki"}}])
    );
    let name = one["metadata"]["name"].as_str().unwrap();
    let same = fetch(&sim, &format!("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/{name}")).await;
    assert_eq!(same["containers"], one["containers"]);
    let none = fetch(&sim, "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/none").await;
    assert_eq!(none["message"], "podmetrics.metrics.k8s.io \"default/none\" not found");
    let nodes = fetch(&sim, "/apis/metrics.k8s.io/v1beta1/nodes").await;
    let cpu: Vec<&str> =
        nodes["items"].as_array().unwrap().iter().map(|n| n["usage"]["cpu"].as_str().unwrap()).collect();
    assert_eq!(cpu, ["280000000n", "280000000n"], "a pod and the node itself");
    assert_eq!(fetch(&sim, "/apis/metrics.k8s.io/v1beta1").await["resources"][0]["kind"], "NodeMetrics");
}

#[tokio::test(start_paused = true)]
async fn load_that_pods_share_settles_at_the_right_number() {
    let sim = Sim::builder().nodes(3).start();
    // 900m shared; 100m for each pod are wanted: nine.
    deployment(&sim, 2, &json!({"sim.kruise.io/shared-cpu": "900m"})).await;
    seconds(&sim, 60).await;
    create(&sim, "autoscaling/horizontalpodautoscalers", autoscaler(&json!({}))).await;
    seconds(&sim, 1).await;
    assert_eq!(replicas(&sim), 4, "it may at most double, or grow to four");
    seconds(&sim, 300).await;
    assert_eq!(replicas(&sim), 9);
    let status = scaler(&sim)["status"].clone();
    assert_eq!(status["currentReplicas"], 9);
    assert_eq!(
        status["currentMetrics"][0]["resource"]["current"],
        json!({"averageUtilization": 50, "averageValue": "100m"})
    );
    for (kind, expected) in [
        ("AbleToScale", "True ReadyForNewScale"),
        ("ScalingActive", "True ValidMetricFound"),
        ("ScalingLimited", "False DesiredWithinRange"),
    ] {
        assert_eq!(condition(&scaler(&sim), kind), expected);
    }
    let said = events(&sim, "web");
    let expected = "SuccessfulRescale: New size: 4; reason: cpu resource utilization (percentage of request) above target";
    assert!(said.contains(&expected.to_owned()), "{said:#?}");

    // Nothing changes, nothing is written.
    seconds(&sim, 600).await;
    let mut history = sim.history();
    history.take();
    seconds(&sim, 600).await;
    let written: Vec<String> = history
        .take()
        .into_iter()
        .map(|(table, _)| table.to_string())
        .filter(|table| !matches!(table.as_str(), "coordination.k8s.io/leases" | "/nodes"))
        .collect();
    assert!(written.is_empty(), "{written:?}");

    // Less load: five minutes later there are fewer.
    for pod in list(&sim, "pods") {
        let less = json!({"metadata": {"annotations": {"sim.kruise.io/shared-cpu": "300m"}}});
        patch(&sim, "pods", pod["metadata"]["name"].as_str().unwrap(), None, less).await;
    }
    seconds(&sim, 240).await;
    assert_eq!(replicas(&sim), 9, "it waits");
    assert_eq!(condition(&scaler(&sim), "AbleToScale"), "True ScaleDownStabilized");
    seconds(&sim, 90).await;
    assert_eq!(replicas(&sim), 3);
}

#[tokio::test(start_paused = true)]
async fn bounds_and_mistakes_are_told() {
    let sim = Sim::builder().start();
    let missing = json!({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}});
    create(&sim, "autoscaling/horizontalpodautoscalers", autoscaler(&missing)).await;
    seconds(&sim, 1).await;
    assert_eq!(condition(&scaler(&sim), "AbleToScale"), "False FailedGetScale");
    let expected = "FailedGetScale: deployments.apps \"none\" not found";
    assert!(events(&sim, "web").contains(&expected.to_owned()), "{:?}", events(&sim, "web"));

    deployment(&sim, 1, &json!({"sim.kruise.io/cpu": "10%"})).await;
    let fixed = json!({"spec": {"minReplicas": 3, "scaleTargetRef": {"name": "web"}}});
    patch(&sim, "autoscaling/horizontalpodautoscalers", "web", None, fixed).await;
    seconds(&sim, 2).await;
    assert_eq!(replicas(&sim), 3);
    seconds(&sim, 400).await;
    assert_eq!(condition(&scaler(&sim), "ScalingLimited"), "True TooFewReplicas");
    // A target at rest stays there.
    patch(&sim, "apps/deployments", "web", None, json!({"spec": {"replicas": 0}})).await;
    seconds(&sim, 60).await;
    assert_eq!(replicas(&sim), 0);
    assert_eq!(condition(&scaler(&sim), "ScalingActive"), "False ScalingDisabled");
}

#[tokio::test(start_paused = true)]
async fn without_requests_there_is_no_utilization_but_an_average_amount_works() {
    let sim = Sim::builder().start();
    deployment(&sim, 1, &json!({"sim.kruise.io/cpu": "300m"})).await;
    let none = json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": null}}}]}}}});
    patch(&sim, "apps/deployments", "web", None, none).await;
    seconds(&sim, 60).await;
    create(&sim, "autoscaling/horizontalpodautoscalers", autoscaler(&json!({}))).await;
    seconds(&sim, 1).await;
    assert_eq!(condition(&scaler(&sim), "ScalingActive"), "False FailedGetResourceMetric");
    let pod = list(&sim, "pods")[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let why = format!("failed to get cpu utilization: missing request for cpu in container app of Pod {pod}");
    assert!(
        events(&sim, "web").contains(&format!("FailedGetResourceMetric: {why}")),
        "{:#?}",
        events(&sim, "web")
    );
    let average = json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "100m"}}}]);
    patch(&sim, "autoscaling/horizontalpodautoscalers", "web", None, json!({"spec": {"metrics": average}}))
        .await;
    seconds(&sim, 2).await;
    assert_eq!(replicas(&sim), 3);
    assert_eq!(
        scaler(&sim)["status"]["currentMetrics"][0]["resource"]["current"],
        json!({"averageValue": "300m"})
    );
}

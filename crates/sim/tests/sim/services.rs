//! Services: the addresses behind them.

use kruise_sim::Sim;
use serde_json::{Value, json};

use super::{create, create_pod, delete, get, list, patch, seconds};

fn service(name: &str, change: &Value) -> Value {
    let mut spec = json!({
        "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
    });
    spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    json!({"metadata": {"name": name, "labels": {"team": "a"}}, "spec": spec})
}

async fn serving_pod(sim: &Sim, name: &str, image: &str) {
    create_pod(sim, name, image, |pod| {
        pod["spec"]["containers"][0]["ports"] = json!([{"name": "http", "containerPort": 8080}]);
    })
    .await;
}

/// `pod:ready,serving,terminating` of the slices of a service.
fn endpoints(sim: &Sim, service: &str) -> Vec<String> {
    let slices = list(sim, "discovery.k8s.io/endpointslices");
    let own =
        slices.iter().filter(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == service);
    let mut all: Vec<String> = own
        .flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default())
        .map(|endpoint| {
            let conditions = &endpoint["conditions"];
            let pod = endpoint["targetRef"]["name"].as_str().unwrap();
            format!("{pod}:{},{},{}", conditions["ready"], conditions["serving"], conditions["terminating"])
        })
        .collect();
    all.sort();
    all
}

#[tokio::test(start_paused = true)]
async fn a_service_shows_its_ready_pods_and_is_silent_then() {
    let sim = Sim::builder().nodes(2).start();
    create(&sim, "services", service("web", &json!({}))).await;
    seconds(&sim, 2).await;
    let slices = list(&sim, "discovery.k8s.io/endpointslices");
    assert_eq!(slices.len(), 1, "one slice that says that there is nothing");
    assert_eq!((&slices[0]["endpoints"], &slices[0]["ports"]), (&Value::Null, &Value::Null));
    assert_eq!(get(&sim, "endpoints", "web")["subsets"], Value::Null);

    serving_pod(&sim, "a", "app:1").await;
    serving_pod(&sim, "b", "crash:1").await;
    seconds(&sim, 30).await;
    assert_eq!(endpoints(&sim, "web"), ["a:true,true,false", "b:false,false,false"]);
    let slice = &list(&sim, "discovery.k8s.io/endpointslices")[0];
    assert_eq!(slice["addressType"], "IPv4");
    assert_eq!(slice["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
    assert_eq!(slice["metadata"]["ownerReferences"][0]["kind"], "Service");
    let labels = &slice["metadata"]["labels"];
    assert_eq!(labels["endpointslice.kubernetes.io/managed-by"], "endpointslice-controller.k8s.io");
    assert_eq!(labels["team"], "a");
    let shown = get(&sim, "endpoints", "web");
    let pod = get(&sim, "pods", "a");
    assert_eq!(shown["subsets"][0]["addresses"][0]["ip"], pod["status"]["podIP"]);
    assert_eq!(shown["subsets"][0]["addresses"][0]["nodeName"], pod["spec"]["nodeName"]);
    assert_eq!(shown["subsets"][0]["notReadyAddresses"][0]["targetRef"]["name"], "b");
    assert_eq!(shown["subsets"][0]["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
    delete(&sim, "pods", "b").await;
    seconds(&sim, 60).await;

    let mut history = sim.history();
    history.take();
    // A change of a pod that services do not care about.
    patch(&sim, "pods", "a", None, json!({"metadata": {"annotations": {"note": "x"}}})).await;
    seconds(&sim, 60).await;
    let tables: Vec<String> = history.take().into_iter().map(|(table, _)| table.to_string()).collect();
    assert!(!tables.iter().any(|table| table.contains("endpoint")), "{tables:?}");

    delete(&sim, "services", "web").await;
    seconds(&sim, 5).await;
    assert_eq!(get(&sim, "endpoints", "web"), Value::Null);
    assert!(list(&sim, "discovery.k8s.io/endpointslices").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_leaves_still_serves_but_is_not_ready() {
    let sim = Sim::builder().start();
    create(&sim, "services", service("web", &json!({}))).await;
    serving_pod(&sim, "a", "linger10:1").await;
    seconds(&sim, 20).await;
    delete(&sim, "pods", "a").await;
    seconds(&sim, 2).await;
    assert_eq!(endpoints(&sim, "web"), ["a:false,true,true"]);
    assert_eq!(get(&sim, "endpoints", "web")["subsets"], Value::Null);
    seconds(&sim, 30).await;
    assert_eq!(endpoints(&sim, "web"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_headless_service_names_its_pods_and_may_publish_those_that_are_not_ready() {
    let sim = Sim::builder().start();
    let change = json!({"clusterIP": "None", "publishNotReadyAddresses": true});
    create(&sim, "services", service("peers", &change)).await;
    create_pod(&sim, "one", "crash:1", |pod| {
        pod["spec"]["hostname"] = json!("one");
        pod["spec"]["subdomain"] = json!("peers");
        pod["spec"]["containers"][0]["ports"] = json!([{"name": "http", "containerPort": 8080}]);
    })
    .await;
    seconds(&sim, 30).await;
    assert_eq!(endpoints(&sim, "peers"), ["one:true,false,false"]);
    let slice = &list(&sim, "discovery.k8s.io/endpointslices")[0];
    assert_eq!(slice["endpoints"][0]["hostname"], "one");
    assert_eq!(slice["metadata"]["labels"]["service.kubernetes.io/headless"], "");
    assert_eq!(get(&sim, "endpoints", "peers")["subsets"][0]["addresses"][0]["hostname"], "one");
    // Another selector, other pods; what somebody deleted comes back.
    patch(&sim, "services", "peers", None, json!({"spec": {"selector": {"app": "other"}}})).await;
    seconds(&sim, 2).await;
    assert_eq!(endpoints(&sim, "peers"), [""; 0]);
    delete(&sim, "endpoints", "peers").await;
    seconds(&sim, 2).await;
    assert_eq!(get(&sim, "endpoints", "peers")["metadata"]["name"], "peers");
}

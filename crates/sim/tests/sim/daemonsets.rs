//! DaemonSets: a pod on every node that fits, through updates, taints and nodes that come and go.

use kruise_apiserver::rest::DeleteOptions;
use kruise_sim::{Node, Sim};
use serde_json::{Value, json};

use super::{create, delete, get, list, patch, seconds};

fn set(strategy: &Value, spec: &Value) -> Value {
    let mut pod = json!({"containers": [{"name": "agent", "image": "agent:1"}]});
    pod.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    json!({
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}}, "updateStrategy": strategy,
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": pod},
        },
    })
}

fn rolling(unavailable: u32, surge: u32) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}})
}

/// `node image` of the pods that stay, sorted.
fn places(sim: &Sim) -> Vec<String> {
    let pods = list(sim, "pods").into_iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    let mut places: Vec<String> = pods
        .map(|pod| {
            let image = pod["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
            format!("{} {image}", pod["spec"]["nodeName"].as_str().unwrap_or("nowhere"))
        })
        .collect();
    places.sort();
    places
}

fn image(version: u32) -> Value {
    let container = json!({"name": "agent", "image": format!("agent:{version}")});
    json!({"spec": {"template": {"spec": {"containers": [container]}}}})
}

/// Pods that serve: running, ready and not on their way out.
fn serving(sim: &Sim) -> usize {
    let pods = list(sim, "pods");
    let serves = |pod: &&Value| {
        pod["metadata"]["deletionTimestamp"].is_null() && super::condition(pod, "Ready") == "True"
    };
    pods.iter().filter(serves).count()
}

async fn node(sim: &Sim, name: &str, change: Value) {
    patch(sim, "nodes", name, None, change).await;
}

#[tokio::test(start_paused = true)]
async fn every_node_has_one_pod_with_the_tolerations_of_a_daemon() {
    let sim = Sim::builder().nodes(3).start();
    create(&sim, "apps/daemonsets", set(&rolling(1, 0), &json!({}))).await;
    seconds(&sim, 30).await;
    assert_eq!(places(&sim), ["node-1 agent:1", "node-2 agent:1", "node-3 agent:1"]);
    let daemons = get(&sim, "apps/daemonsets", "agent");
    assert_eq!(
        daemons["status"],
        json!({
            "currentNumberScheduled": 3, "desiredNumberScheduled": 3, "numberMisscheduled": 0, "numberReady": 3,
            "numberAvailable": 3, "updatedNumberScheduled": 3, "observedGeneration": 1,
        })
    );
    assert_eq!(daemons["metadata"]["annotations"]["deprecated.daemonset.template.generation"], "1");
    let pod = &list(&sim, "pods")[0];
    let tolerated: Vec<&str> = pod["spec"]["tolerations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|toleration| toleration["key"].as_str().unwrap().rsplit('/').next().unwrap())
        .collect();
    assert_eq!(
        tolerated,
        ["not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"]
    );
    assert_eq!(pod["metadata"]["labels"]["pod-template-generation"], "1");
    assert!(pod["metadata"]["labels"]["controller-revision-hash"].is_string());

    // A cordon does not concern daemons; a node that comes gets one, a node that goes takes its own along.
    node(&sim, "node-1", json!({"spec": {"unschedulable": true}})).await;
    sim.add_node(Node::named("node-4"));
    seconds(&sim, 30).await;
    assert_eq!(places(&sim).len(), 4);
    sim.stop_node("node-4");
    let nodes = sim.server().local().resource("", "nodes").unwrap();
    sim.server().local().delete(&nodes, "", "node-4", &DeleteOptions::default()).await.unwrap();
    seconds(&sim, 120).await;
    assert_eq!(places(&sim), ["node-1 agent:1", "node-2 agent:1", "node-3 agent:1"]);
    assert_eq!(get(&sim, "apps/daemonsets", "agent")["status"]["desiredNumberScheduled"], 3);

    let mut history = sim.history();
    history.take();
    let quiet = |(table, _): &(std::sync::Arc<str>, _)| {
        !matches!(table.as_ref(), "coordination.k8s.io/leases" | "/nodes")
    };
    seconds(&sim, 600).await;
    let written: Vec<_> = history.take().into_iter().filter(quiet).map(|(table, _)| table).collect();
    assert!(written.is_empty(), "a settled cluster is silent: {written:?}");
}

#[tokio::test(start_paused = true)]
async fn taints_and_labels_say_where_daemons_run() {
    let sim = Sim::builder().nodes(3).start();
    create(&sim, "apps/daemonsets", set(&rolling(1, 0), &json!({"nodeSelector": {"disk": "ssd"}}))).await;
    seconds(&sim, 10).await;
    assert_eq!(places(&sim), [""; 0]);
    for name in ["node-1", "node-2"] {
        node(&sim, name, json!({"metadata": {"labels": {"disk": "ssd"}}})).await;
    }
    seconds(&sim, 30).await;
    assert_eq!(places(&sim), ["node-1 agent:1", "node-2 agent:1"]);
    // A taint that only keeps away lets the pod stay, and the node no longer counts.
    node(&sim, "node-1", json!({"spec": {"taints": [{"key": "full", "effect": "NoSchedule"}]}})).await;
    seconds(&sim, 10).await;
    let status = get(&sim, "apps/daemonsets", "agent")["status"].clone();
    assert_eq!((&status["desiredNumberScheduled"], &status["numberMisscheduled"]), (&json!(1), &json!(1)));
    assert_eq!(places(&sim).len(), 2);
    node(&sim, "node-1", json!({"spec": {"taints": [{"key": "full", "effect": "NoExecute"}]}})).await;
    node(&sim, "node-2", json!({"metadata": {"labels": {"disk": null}}})).await;
    seconds(&sim, 60).await;
    assert_eq!(places(&sim), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_update_takes_one_node_after_the_other_and_goes_back_by_its_revision() {
    let sim = Sim::builder().nodes(4).start();
    create(&sim, "apps/daemonsets", set(&rolling(1, 0), &json!({"terminationGracePeriodSeconds": 1}))).await;
    seconds(&sim, 30).await;
    patch(&sim, "apps/daemonsets", "agent", None, image(2)).await;
    let mut fewest = 4;
    for _ in 0..120 {
        seconds(&sim, 1).await;
        fewest = fewest.min(serving(&sim));
    }
    assert_eq!(fewest, 3, "one may be down at a time");
    assert!(places(&sim).iter().all(|place| place.ends_with("agent:2")), "{:?}", places(&sim));
    let revisions = |sim: &Sim| -> Vec<(i64, String)> {
        let mut all: Vec<(i64, String)> = list(sim, "apps/controllerrevisions")
            .into_iter()
            .map(|one| {
                let image = &one["data"]["spec"]["template"]["spec"]["containers"][0]["image"];
                (one["revision"].as_i64().unwrap(), image.as_str().unwrap().to_owned())
            })
            .collect();
        all.sort();
        all
    };
    assert_eq!(revisions(&sim), [(1, "agent:1".to_owned()), (2, "agent:2".to_owned())]);
    // `kubectl rollout undo` sends what the old revision holds.
    let old = list(&sim, "apps/controllerrevisions").into_iter().find(|one| one["revision"] == 1).unwrap();
    patch(&sim, "apps/daemonsets", "agent", None, old["data"].clone()).await;
    seconds(&sim, 120).await;
    assert!(places(&sim).iter().all(|place| place.ends_with("agent:1")), "{:?}", places(&sim));
    assert_eq!(revisions(&sim), [(2, "agent:2".to_owned()), (3, "agent:1".to_owned())]);
    let annotations = &get(&sim, "apps/daemonsets", "agent")["metadata"]["annotations"];
    assert_eq!(annotations["deprecated.daemonset.template.generation"], "3");
}

#[tokio::test(start_paused = true)]
async fn with_a_surge_no_node_is_ever_without_a_serving_pod() {
    let sim = Sim::builder().nodes(3).start();
    let mut daemons = set(&rolling(0, 1), &json!({"terminationGracePeriodSeconds": 1}));
    daemons["spec"]["minReadySeconds"] = json!(5);
    create(&sim, "apps/daemonsets", daemons).await;
    seconds(&sim, 30).await;
    patch(&sim, "apps/daemonsets", "agent", None, image(2)).await;
    let (mut fewest, mut most) = (3, 3);
    for _ in 0..120 {
        seconds(&sim, 1).await;
        fewest = fewest.min(serving(&sim));
        most = most.max(places(&sim).len());
    }
    assert_eq!((fewest, most), (3, 4));
    assert_eq!(places(&sim), ["node-1 agent:2", "node-2 agent:2", "node-3 agent:2"]);
}

#[tokio::test(start_paused = true)]
async fn on_delete_a_pod_gets_the_new_template_when_somebody_deletes_it() {
    let sim = Sim::builder().nodes(2).start();
    create(&sim, "apps/daemonsets", set(&json!({"type": "OnDelete"}), &json!({}))).await;
    seconds(&sim, 30).await;
    patch(&sim, "apps/daemonsets", "agent", None, image(2)).await;
    seconds(&sim, 60).await;
    assert_eq!(places(&sim), ["node-1 agent:1", "node-2 agent:1"]);
    let first = list(&sim, "pods").into_iter().find(|pod| pod["spec"]["nodeName"] == "node-1").unwrap();
    delete(&sim, "pods", first["metadata"]["name"].as_str().unwrap()).await;
    seconds(&sim, 60).await;
    assert_eq!(places(&sim), ["node-1 agent:2", "node-2 agent:1"]);
    assert_eq!(get(&sim, "apps/daemonsets", "agent")["status"]["updatedNumberScheduled"], 1);
}

//! Where pods go, and what they say when they cannot go anywhere.

use std::collections::BTreeMap;

use kruise_sim::{Node, Sim};
use serde_json::json;

use super::{condition, create_pod, delete, events, get, list, patch, seconds};

#[tokio::test(start_paused = true)]
async fn pods_without_wishes_spread_over_the_nodes() {
    let sim = Sim::builder().nodes(3).start();
    for n in 0..9 {
        create_pod(&sim, &format!("web-{n}"), "app:1", |_| {}).await;
    }
    seconds(&sim, 5).await;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for pod in list(&sim, "pods") {
        *counts.entry(pod["spec"]["nodeName"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [3, 3, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fits_nowhere_says_why_and_goes_when_there_is_room() {
    let sim = Sim::builder().nodes(3).start();
    for n in 0..4 {
        create_pod(&sim, &format!("big-{n}"), "app:1", |pod| {
            pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "10"}});
        })
        .await;
        seconds(&sim, 2).await;
    }
    let pod = get(&sim, "pods", "big-3");
    assert_eq!(condition(&pod, "PodScheduled"), "False Unschedulable");
    let message = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption \
                   victims found for incoming pod.";
    assert_eq!(pod["status"]["conditions"][0]["message"], message);
    assert_eq!(events(&sim, "big-3"), [format!("FailedScheduling: {message}")]);
    delete(&sim, "pods", "big-0").await;
    seconds(&sim, 10).await;
    let pod = get(&sim, "pods", "big-3");
    assert_eq!(condition(&pod, "Ready"), "True");
    assert_eq!(condition(&pod, "PodScheduled"), "True");
}

#[tokio::test(start_paused = true)]
async fn selectors_affinity_taints_and_cordons_are_obeyed() {
    let nodes = ["a", "b", "c"].map(|name| Node {
        labels: BTreeMap::from([("disk".to_owned(), if name == "b" { "ssd" } else { "hdd" }.to_owned())]),
        ..Node::named(name)
    });
    let sim = Sim::builder().with_nodes(nodes.to_vec()).start();
    seconds(&sim, 1).await;
    let local = sim.server().local();
    let resource = local.resource("", "nodes").unwrap();
    let change =
        |value: serde_json::Value| kruise_apiserver::patch::Patch::Merge(value.as_object().unwrap().clone());
    let taint =
        change(json!({"spec": {"taints": [{"key": "only", "value": "gpu", "effect": "NoSchedule"}]}}));
    local.patch(&resource, "", "a", None, &taint).await.unwrap();
    create_pod(&sim, "ssd", "app:1", |pod| pod["spec"]["nodeSelector"] = json!({"disk": "ssd"})).await;
    create_pod(&sim, "gpu", "app:1", |pod| {
        pod["spec"]["tolerations"] = json!([{"key": "only", "operator": "Exists"}]);
        pod["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]}}});
    })
    .await;
    seconds(&sim, 2).await;
    assert_eq!(get(&sim, "pods", "ssd")["spec"]["nodeName"], "b");
    assert_eq!(get(&sim, "pods", "gpu")["spec"]["nodeName"], "a");
    let cordon = change(json!({"spec": {"unschedulable": true}}));
    local.patch(&resource, "", "c", None, &cordon).await.unwrap();
    create_pod(&sim, "lost", "app:1", |pod| pod["spec"]["nodeSelector"] = json!({"disk": "hdd"})).await;
    seconds(&sim, 2).await;
    let lost = get(&sim, "pods", "lost");
    let message = lost["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(message.starts_with(
        "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint \
         {only: gpu}, 1 node(s) were unschedulable. preemption: 0/3 nodes are available: 3 Preemption is not helpful"
    ), "{message}");
    let uncordon = change(json!({"spec": {"unschedulable": null}}));
    local.patch(&resource, "", "c", None, &uncordon).await.unwrap();
    seconds(&sim, 2).await;
    assert_eq!(get(&sim, "pods", "lost")["spec"]["nodeName"], "c");
}

#[tokio::test(start_paused = true)]
async fn spread_constraints_and_anti_affinity_keep_pods_apart() {
    let sim = Sim::builder().nodes(6).start();
    for n in 0..6 {
        create_pod(&sim, &format!("even-{n}"), "app:1", |pod| {
            pod["spec"]["topologySpreadConstraints"] = json!([{
                "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}}}]);
            pod["spec"]["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]}});
        })
        .await;
    }
    create_pod(&sim, "even-7", "app:1", |_| {}).await;
    seconds(&sim, 5).await;
    let pods = list(&sim, "pods");
    let mut nodes: Vec<&str> = pods.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["node-1", "node-2", "node-3", "node-4", "node-5", "node-6"]);
    let last = get(&sim, "pods", "even-7");
    let message = last["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("6 node(s) didn't satisfy existing pods anti-affinity rules"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn gated_pods_wait_for_their_gates() {
    let sim = Sim::builder().start();
    create_pod(&sim, "web", "app:1", |pod| {
        pod["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    })
    .await;
    seconds(&sim, 10).await;
    assert!(get(&sim, "pods", "web")["spec"]["nodeName"].is_null());
    patch(&sim, "pods", "web", None, json!({"spec": {"schedulingGates": null}})).await;
    seconds(&sim, 10).await;
    assert_eq!(condition(&get(&sim, "pods", "web"), "Ready"), "True");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_pod_that_changes_is_tried_again() {
    let sim = Sim::builder().nodes(1).start();
    seconds(&sim, 1).await;
    let local = sim.server().local();
    let nodes = local.resource("", "nodes").unwrap();
    let taint = json!({"spec": {"taints": [{"key": "only", "value": "gpu", "effect": "NoSchedule"}]}});
    let taint = kruise_apiserver::patch::Patch::Merge(taint.as_object().unwrap().clone());
    local.patch(&nodes, "", "node-1", None, &taint).await.unwrap();
    create_pod(&sim, "web", "app:1", |_| {}).await;
    seconds(&sim, 5).await;
    assert_eq!(condition(&get(&sim, "pods", "web"), "PodScheduled"), "False Unschedulable");
    let tolerations = get(&sim, "pods", "web")["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    let tolerations: Vec<_> = tolerations.into_iter().chain([json!({"operator": "Exists"})]).collect();
    patch(&sim, "pods", "web", None, json!({"spec": {"tolerations": tolerations}})).await;
    seconds(&sim, 5).await;
    assert_eq!(condition(&get(&sim, "pods", "web"), "Ready"), "True");
}

#[tokio::test(start_paused = true)]
async fn a_pod_goes_where_all_resources_it_asks_for_are_left() {
    let sim = Sim::builder().nodes(2).start();
    seconds(&sim, 1).await;
    let ask = |name: &'static str, resources: serde_json::Value| {
        create_pod(&sim, name, "app:1", move |pod| {
            pod["spec"]["containers"][0]["resources"] = resources;
        })
    };
    ask("disk", json!({"requests": {"ephemeral-storage": "500Gi"}})).await;
    ask("one", json!({"limits": {"nvidia.com/gpu": "1"}})).await;
    seconds(&sim, 5).await;
    for (name, resource) in [("disk", "ephemeral-storage"), ("one", "nvidia.com/gpu")] {
        let message = get(&sim, "pods", name)["status"]["conditions"][0]["message"].clone();
        let expected = format!(
            "0/2 nodes are available: 2 Insufficient {resource}. preemption: 0/2 nodes are available: 2 Preemption is \
             not helpful for scheduling."
        );
        assert_eq!(message, expected);
    }
    let offer =
        json!({"status": {"allocatable": {"nvidia.com/gpu": "1"}, "capacity": {"nvidia.com/gpu": "1"}}});
    let local = sim.server().local();
    let nodes = local.resource("", "nodes").unwrap();
    let offer = kruise_apiserver::patch::Patch::Merge(offer.as_object().unwrap().clone());
    local.patch(&nodes, "", "node-2", Some("status"), &offer).await.unwrap();
    seconds(&sim, 5).await;
    assert_eq!(get(&sim, "pods", "one")["spec"]["nodeName"], "node-2");
    ask("two", json!({"limits": {"nvidia.com/gpu": "1"}})).await;
    seconds(&sim, 5).await;
    assert_eq!(condition(&get(&sim, "pods", "two"), "PodScheduled"), "False Unschedulable");
    delete(&sim, "pods", "one").await;
    seconds(&sim, 60).await;
    assert_eq!(get(&sim, "pods", "two")["spec"]["nodeName"], "node-2");
}

#[tokio::test(start_paused = true)]
async fn hundreds_of_nodes_take_a_thousand_pods_evenly() {
    let sim = Sim::builder().nodes(200).without_events().start();
    for n in 0..1000 {
        create_pod(&sim, &format!("web-{n}"), "app:1", |_| {}).await;
    }
    seconds(&sim, 10).await;
    let pods = list(&sim, "pods");
    assert!(pods.iter().all(|pod| condition(pod, "Ready") == "True"));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in &pods {
        *counts.entry(pod["spec"]["nodeName"].as_str().unwrap()).or_default() += 1;
    }
    assert_eq!(counts.len(), 200);
    assert!(counts.values().all(|count| (4..=6).contains(count)), "{counts:?}");
}

//! The cluster around the manager: three zones, and two StatefulSets of Kubernetes.

use std::time::Duration;

use kruise_api::{names, persistentpodstate};
use kruise_core::features::webhooks;
use kruise_sim::{Node, Sim};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const NOTED: &str = "kruise.io/persistent-pod-annotations";
pub(crate) const AUTO: &str = "kruise.io/auto-generate-persistent-pod-state";
pub(crate) const REQUIRED: &str = "kruise.io/required-persistent-topology";

/// A cluster of three zones.
pub(crate) fn start(seed: u64) -> Sim {
    let node = |number: usize| {
        let mut node = Node::named(format!("node-{number}"));
        node.zone = format!("zone-{}", number % 3);
        node
    };
    Sim::builder().seed(seed).with_nodes((1..=6).map(node).collect()).without_events().start()
}

pub(crate) fn api(sim: &Sim, group: &str, version: &str, kind: &str, namespaced: bool) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if namespaced {
        Api::namespaced_with(sim.client(), "default", &resource)
    } else {
        Api::all_with(sim.client(), &resource)
    }
}

pub(crate) async fn make(api: Api<DynamicObject>, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// The kind, the namespace of the manager and its webhooks.
pub(crate) async fn install(sim: &Sim) {
    let definitions = api(sim, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", false);
    make(definitions, persistentpodstate::CRD.object()).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names::NAMESPACE, "labels": {"control-plane": "openkruise"}}});
    make(api(sim, "", "v1", "Namespace", false), namespace).await;
    let gates = kruise_api::gates::Gates::default();
    for configuration in webhooks::configurations(&gates, &webhooks::Options::default()) {
        let kind = configuration["kind"].as_str().unwrap().to_owned();
        make(api(sim, "admissionregistration.k8s.io", "v1", &kind, false), configuration).await;
    }
    sim.advance(Duration::from_secs(2)).await;
}

pub(crate) fn sets(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "apps", "v1", "StatefulSet", true)
}

pub(crate) fn states(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "apps.kruise.io", "v1beta1", "PersistentPodState", true)
}

/// A StatefulSet of three pods.
pub(crate) fn set(name: &str, annotations: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name, "annotations": annotations},
        "spec": {"replicas": 3, "serviceName": name, "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}, "annotations": {"ip": "1.2.3.4"}},
                "spec": {"terminationGracePeriodSeconds": 2, "containers": [{"name": "main", "image": "app:v1"}]}}}})
}

/// `kept` with an object of a user, `made` with one that is generated.
pub(crate) async fn create(sim: &Sim) {
    let target = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "kept"});
    let spec = json!({"targetRef": target, "requiredPersistentTopology": {"keys": [ZONE]},
        "persistentPodStateRetentionPolicy": "WhenDeleted"});
    make(
        states(sim),
        json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "PersistentPodState",
        "metadata": {"name": "kept"}, "spec": spec}),
    )
    .await;
    make(sets(sim), set("kept", json!({}))).await;
    make(sets(sim), set("made", json!({AUTO: "true", REQUIRED: ZONE, NOTED: "ip"}))).await;
}

pub(crate) async fn change(sim: &Sim, set: &str, change: Value) {
    sets(sim).patch(set, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
}

pub(crate) async fn scale(sim: &Sim, set: &str, replicas: i64) {
    change(sim, set, json!({"spec": {"replicas": replicas}})).await;
}

pub(crate) async fn pods(sim: &Sim) -> Vec<Value> {
    let list = api(sim, "", "v1", "Pod", true).list(&ListParams::default()).await.unwrap();
    list.items.into_iter().map(|pod| serde_json::to_value(pod).unwrap()).collect()
}

pub(crate) async fn state(sim: &Sim, name: &str) -> Option<Value> {
    states(sim).get_opt(name).await.unwrap().map(|state| serde_json::to_value(state).unwrap())
}

/// Deletes a pod; the webhook may be away.
pub(crate) async fn delete(sim: &Sim, pod: &str, is_force: bool) -> Result<(), String> {
    let params = if is_force { DeleteParams::default().grace_period(0) } else { DeleteParams::default() };
    let answer = api(sim, "", "v1", "Pod", true).delete(pod, &params).await;
    answer.map(drop).map_err(|error| error.to_string())
}

pub(crate) fn name(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().unwrap()
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    pod["metadata"]["deletionTimestamp"].is_null()
        && conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// The zone of the node of a pod.
pub(crate) async fn zone_of(sim: &Sim, pod: &Value) -> Value {
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    let node = api(sim, "", "v1", "Node", false).get(node).await.unwrap();
    serde_json::to_value(node).unwrap()["metadata"]["labels"][ZONE].clone()
}

/// Waits until something is so, for so many seconds.
pub(crate) async fn until(
    sim: &Sim,
    within: u32,
    is_so: impl AsyncFn() -> Result<(), String>,
) -> Result<(), String> {
    let mut left = within;
    while let Err(problem) = is_so().await {
        if left == 0 {
            return Err(problem);
        }
        left -= 1;
        sim.advance(Duration::from_secs(1)).await;
    }
    Ok(())
}

//! A DaemonSet in a namespace of its own, and words to talk about it and its nodes.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::{Node, Pod};
use kruise_api::{daemonset::v1beta1::DaemonSet, labels};
use kruise_testkit::{Sandbox, wait::seen};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    film::Film,
    kit::{Demo, image_of, is_active, is_ready, label, merged, name},
    stage::Stage,
};

/// The DaemonSet `agent` of the scenarios: one container on every node.
pub(crate) struct Agent {
    pub(crate) demo: Demo,
    nodes: Api<Node>,
}

/// A patch of the update strategy.
pub(crate) fn rolling(members: Value) -> Value {
    json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": members}}})
}

/// The node that a pod is on or is bound to.
pub(crate) fn node_of(pod: &Pod) -> String {
    let pod: kruise_core::pod::Pod = serde_json::from_value(serde_json::to_value(pod).unwrap()).unwrap();
    pod.node().to_string()
}

impl Agent {
    /// A namespace for it, with nothing in it yet.
    pub(crate) async fn prepare(stage: &Stage, purpose: &str) -> Self {
        let demo = Demo::prepare(stage, purpose).await;
        Self { demo, nodes: Api::all(stage.cluster.client()) }
    }

    /// `agent`, changed by a merge patch, with all of its pods available.
    pub(crate) async fn start(stage: &Stage, purpose: &str, change: Value) -> Self {
        let agent = Self::prepare(stage, purpose).await;
        agent.create(change).await;
        agent.settled().await;
        agent
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.demo.sandbox
    }

    /// The default object, changed by a merge patch.
    pub(crate) fn object(&self, change: &Value) -> Value {
        let agent = json!({
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "DaemonSet",
            "metadata": {"name": "agent", "namespace": self.sandbox().namespace()},
            "spec": {
                "selector": {"matchLabels": {"app": "agent"}},
                "template": {
                    "metadata": {"labels": {"app": "agent"}},
                    "spec": {
                        "terminationGracePeriodSeconds": 1,
                        "containers": [{"name": "main", "image": self.demo.image("app:v1")}],
                    },
                },
            },
        });
        merged(agent, change)
    }

    pub(crate) async fn create(&self, change: Value) -> DaemonSet {
        self.sandbox().create(self.object(&change)).await
    }

    pub(crate) async fn set(&self) -> DaemonSet {
        self.sandbox().get("agent").await
    }

    pub(crate) async fn change(&self, patch: Value) -> DaemonSet {
        self.sandbox().merge("agent", patch).await
    }

    /// Changes it by a merge patch; the message of the refusal, if there is one.
    pub(crate) async fn try_change(&self, patch: Value) -> Result<DaemonSet, String> {
        let api: Api<DaemonSet> = self.sandbox().api();
        match api.patch("agent", &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(set) => Ok(set),
            Err(kube::Error::Api(status)) => Err(format!("{} {}", status.code, status.message)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Gives the container `main` another image.
    pub(crate) async fn set_image(&self, image: &str) -> DaemonSet {
        let containers = json!([{"name": "main", "image": self.demo.image(image)}]);
        self.change(json!({"spec": {"template": {"spec": {"containers": containers}}}})).await
    }

    /// The pods of each node that are not ending.
    pub(crate) async fn by_node(&self) -> BTreeMap<String, Vec<Pod>> {
        by_node(&self.demo.all_pods().await)
    }

    /// The image of each node's pods, without the name of the registry.
    pub(crate) async fn images(&self) -> BTreeMap<String, String> {
        images(&self.demo.all_pods().await)
    }

    /// The name of the one pod of a node.
    pub(crate) async fn pod_on(&self, node: &str) -> String {
        let pods = self.by_node().await;
        pods.get(node).and_then(|pods| pods.first()).map(name).unwrap_or_default()
    }

    /// The uid of the one pod of a node.
    pub(crate) async fn uid_on(&self, node: &str) -> String {
        let pods = self.by_node().await;
        let pod = pods.get(node).and_then(|pods| pods.first());
        pod.and_then(|pod| pod.metadata.uid.clone()).unwrap_or_default()
    }

    pub(crate) async fn film(&self) -> Film {
        Film::of(self.sandbox().api()).await
    }

    /// All nodes of the cluster, by name.
    pub(crate) async fn nodes(&self) -> Vec<String> {
        let nodes = self.nodes.list(&ListParams::default()).await.unwrap();
        let mut names: Vec<String> = nodes.items.into_iter().filter_map(|node| node.metadata.name).collect();
        names.sort();
        names
    }

    /// Sets a label of a node, or takes it away.
    pub(crate) async fn label_node(&self, node: &str, key: &str, value: Option<&str>) {
        self.patch_node(node, json!({"metadata": {"labels": {key: value}}})).await;
    }

    /// Adds a taint to a node.
    pub(crate) async fn taint(&self, node: &str, key: &str, effect: &str) {
        let mut taints = self.taints(node).await;
        taints.push(json!({"key": key, "value": "v", "effect": effect}));
        self.patch_node(node, json!({"spec": {"taints": taints}})).await;
    }

    /// Removes the taints with a key.
    pub(crate) async fn untaint(&self, node: &str, key: &str) {
        let mut taints = self.taints(node).await;
        taints.retain(|taint| taint["key"] != key);
        self.patch_node(node, json!({"spec": {"taints": taints}})).await;
    }

    pub(crate) async fn patch_node(&self, node: &str, change: Value) {
        self.nodes.patch(node, &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    }

    async fn taints(&self, node: &str) -> Vec<Value> {
        let node = serde_json::to_value(self.nodes.get(node).await.unwrap()).unwrap();
        node["spec"]["taints"].as_array().cloned().unwrap_or_default()
    }

    pub(crate) async fn delete_node(&self, node: &str) {
        self.nodes.delete(node, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until the set and its pods are as wanted.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&DaemonSet, &[Pod]) -> bool) {
        let look = async || {
            let (set, pods) = (self.set().await, self.demo.all_pods().await);
            seen(is_so(&set, &pods), describe(&set, &pods))
        };
        self.sandbox().eventually(what, look).await;
    }

    /// Checks over a time that the set and its pods stay as wanted.
    pub(crate) async fn always(
        &self,
        what: &str,
        during: Duration,
        holds: impl Fn(&DaemonSet, &[Pod]) -> bool,
    ) {
        let look = async || {
            let (set, pods) = (self.set().await, self.demo.all_pods().await);
            seen(holds(&set, &pods), describe(&set, &pods))
        };
        self.sandbox().always(what, during, look).await;
    }

    /// Waits until every node that fits has one pod that is available, and the status says so.
    pub(crate) async fn settled(&self) {
        self.until("all pods are available", is_settled).await;
    }

    /// The same, with all of them on the newest revision.
    pub(crate) async fn rolled_out(&self) {
        self.until("all pods are updated and available", |set, pods| {
            let status = set.status.clone().unwrap_or_default();
            is_settled(set, pods) && status.updated_number_scheduled == status.desired_number_scheduled
        })
        .await;
    }

    /// Waits until the nodes have these images and all pods are available.
    pub(crate) async fn at_rest(&self, expected: &BTreeMap<String, String>) {
        self.until(&format!("{expected:?}"), |set, pods| is_settled(set, pods) && images(pods) == *expected)
            .await;
    }
}

/// What every one of these nodes has.
pub(crate) fn all(nodes: &[String], image: &str) -> BTreeMap<String, String> {
    nodes.iter().map(|node| (node.clone(), image.to_owned())).collect()
}

pub(crate) fn is_settled(set: &DaemonSet, pods: &[Pod]) -> bool {
    let status = set.status.clone().unwrap_or_default();
    let wanted = status.desired_number_scheduled;
    status.observed_generation == set.metadata.generation
        && [status.current_number_scheduled, status.number_ready, status.number_available.unwrap_or(0)]
            == [wanted; 3]
        && i32::try_from(pods.len()).unwrap() == wanted + status.number_misscheduled
        && pods.iter().all(|pod| is_active(pod) && is_ready(pod))
}

fn by_node(pods: &[Pod]) -> BTreeMap<String, Vec<Pod>> {
    let mut nodes: BTreeMap<String, Vec<Pod>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| is_active(pod)) {
        nodes.entry(node_of(pod)).or_default().push(pod.clone());
    }
    nodes
}

fn images(pods: &[Pod]) -> BTreeMap<String, String> {
    let short = |pod: &Pod| image_of(pod, "main").rsplit('/').next().unwrap_or_default().to_owned();
    let text = |pods: Vec<Pod>| {
        let mut images: Vec<String> = pods.iter().map(short).collect();
        images.sort();
        images.join("+")
    };
    by_node(pods).into_iter().map(|(node, pods)| (node, text(pods))).collect()
}

fn describe(set: &DaemonSet, pods: &[Pod]) -> String {
    let status = serde_json::to_string(&set.status).unwrap_or_default();
    let pods: Vec<String> = pods
        .iter()
        .map(|pod| {
            let state = if is_ready(pod) { "ready" } else { "not ready" };
            let ending = if is_active(pod) { "" } else { ", ending" };
            let (node, image) = (node_of(pod), image_of(pod, "main"));
            let stage = label(pod, labels::LIFECYCLE_STATE);
            format!("{} on {node} ({state}{ending}, {image}, {stage})", name(pod))
        })
        .collect();
    format!("generation {:?}, status {status}, pods {}", set.metadata.generation, pods.join("; "))
}

//! What people do to a DaemonSet and to nodes, by chance.

use std::time::Duration;

use kruise_api::daemonset;
use kruise_sim::{Node, Sim};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::truth::Truth;

pub(crate) struct User {
    deeds: Vec<String>,
    /// Nodes that people added.
    added: Vec<String>,
}

fn kind(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

pub(crate) fn sets(sim: &Sim) -> Api<DynamicObject> {
    Api::namespaced_with(sim.client(), "default", &kind("apps.kruise.io", "v1beta1", "DaemonSet"))
}

fn pods(sim: &Sim) -> Api<DynamicObject> {
    Api::namespaced_with(sim.client(), "default", &kind("", "v1", "Pod"))
}

fn nodes(sim: &Sim) -> Api<DynamicObject> {
    Api::all_with(sim.client(), &kind("", "v1", "Node"))
}

fn containers(image: u64) -> Value {
    json!([{"name": "app", "image": format!("app:v{image}")}])
}

/// Makes the kind known.
pub(crate) async fn install(sim: &Sim) {
    let definition: DynamicObject = serde_json::from_value(daemonset::CRD.object()).unwrap();
    let definitions: Api<DynamicObject> =
        Api::all_with(sim.client(), &kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"));
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    sim.advance(Duration::from_secs(2)).await;
}

/// A set with this strategy.
pub(crate) async fn create(sim: &Sim, grace: u64, min_ready: u64, rolling: Value) {
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet", "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent", "hold": "yes"}},
                "spec": {"terminationGracePeriodSeconds": grace, "containers": containers(1)},
            },
            "minReadySeconds": min_ready,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        },
    });
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    sets(sim).create(&PostParams::default(), &object).await.unwrap();
}

pub(crate) async fn patch(sim: &Sim, patch: Value) {
    sets(sim).patch("agent", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

/// Gives the set another image.
pub(crate) async fn set_image(sim: &Sim, image: u64) {
    patch(sim, json!({"spec": {"template": {"spec": {"containers": containers(image)}}}})).await;
}

/// Gives a node these taints besides those that the cluster itself keeps.
pub(crate) async fn taint(sim: &Sim, node: &str, ours: Value) {
    let Some(stored) = nodes(sim).get_opt(node).await.unwrap() else { return };
    let mut taints = stored.data["spec"]["taints"].as_array().cloned().unwrap_or_default();
    taints.retain(|taint| taint["key"] != "test");
    taints.extend(ours.as_array().cloned().unwrap_or_default());
    let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
    nodes(sim).patch(node, &PatchParams::default(), &patch).await.unwrap();
}

impl User {
    pub(crate) async fn new(sim: &mut Sim) -> Self {
        install(sim).await;
        let surge = sim.pick(0..3) == 0;
        let rolling = if surge {
            json!({"rollingUpdateType": "Standard", "maxUnavailable": 0, "maxSurge": sim.pick(1..3)})
        } else {
            let kind = *sim.pick_one(&["Standard", "InPlaceIfPossible"]).unwrap();
            json!({"rollingUpdateType": kind, "maxUnavailable": sim.pick(1..3), "maxSurge": 0})
        };
        let (grace, min_ready) = (sim.pick(0..20), [0, 0, 0, 5][usize::try_from(sim.pick(0..4)).unwrap()]);
        let mut user = Self { deeds: Vec::new(), added: Vec::new() };
        user.note(sim, format!("creates {rolling}, grace {grace}, minReadySeconds {min_ready}"));
        create(sim, grace, min_ready, rolling).await;
        user
    }

    /// Everything that was done, for the message of a failure.
    pub(crate) fn deeds(&self) -> String {
        self.deeds.join("\n")
    }

    fn note(&mut self, sim: &Sim, deed: String) {
        self.deeds.push(format!("{} {deed}", sim.clock().now()));
    }

    async fn rolling(&mut self, sim: &Sim, change: Value) {
        self.note(sim, format!("sets {change}"));
        patch(sim, json!({"spec": {"updateStrategy": {"rollingUpdate": change}}})).await;
    }

    /// One of the things people do.
    pub(crate) async fn act(&mut self, sim: &mut Sim, truth: &mut Truth) {
        match sim.pick(0..18) {
            0..4 => {
                let image = sim.pick(1..4);
                self.note(sim, format!("sets image {image}"));
                set_image(sim, image).await;
            }
            4 => {
                let paused = sim.pick(0..2) == 0;
                self.rolling(sim, json!({"paused": paused})).await;
            }
            5 => {
                let partition = sim.pick(0..4);
                self.rolling(sim, json!({"partition": partition})).await;
            }
            6 | 7 => {
                let effect = *sim.pick_one(&["NoSchedule", "NoExecute"]).unwrap();
                self.taint(sim, truth, Some(effect)).await;
            }
            8 => self.taint(sim, truth, None).await,
            9 => {
                let name = format!("extra-{}", self.added.len());
                self.note(sim, format!("adds node {name}"));
                truth.node_is_touched(sim, &name);
                sim.add_node(Node::named(name.clone()));
                self.added.push(name);
            }
            10 => self.remove_node(sim, truth).await,
            11 => {
                let burst = *sim.pick_one(&[1, 2, 250]).unwrap();
                self.edit(sim, json!({"burstReplicas": burst})).await;
            }
            12 => {
                let partitioned = sim.pick(0..2) == 0;
                self.edit(sim, json!({"scaleStrategy": {"partitionedScaling": partitioned}})).await;
            }
            13 => {
                let selected = format!("node-{}", sim.pick(1..5));
                let selector = json!({"matchLabels": {"kubernetes.io/hostname": selected}});
                let selector = if sim.pick(0..2) == 0 { selector } else { Value::Null };
                self.rolling(sim, json!({"selector": selector})).await;
            }
            14 => {
                let kind = *sim.pick_one(&["OnDelete", "RollingUpdate"]).unwrap();
                self.edit(sim, json!({"updateStrategy": {"type": kind}})).await;
            }
            15 => {
                let hook = json!({"preDelete": {"labelsHandler": {"hold": "yes"}}});
                let hook = if sim.pick(0..3) == 0 { Value::Null } else { hook };
                if hook.is_null() {
                    Self::held(sim, truth).await;
                }
                self.edit(sim, json!({"lifecycle": hook})).await;
            }
            16 => self.answer_hooks(sim, truth).await,
            _ => self.delete_pod(sim, truth).await,
        }
    }

    async fn edit(&mut self, sim: &Sim, change: Value) {
        self.note(sim, format!("sets {change}"));
        patch(sim, json!({"spec": change})).await;
    }

    /// The pods that wait for their deletion. They are deleted when people let them go, whatever else is down then.
    async fn held(sim: &Sim, truth: &mut Truth) -> Vec<String> {
        let waiting = ListParams::default().labels("lifecycle.apps.kruise.io/state=PreparingDelete");
        let pods = pods(sim).list(&waiting).await.unwrap().items;
        let names: Vec<String> = pods.into_iter().filter_map(|pod| pod.metadata.name).collect();
        names.iter().for_each(|name| truth.others_take_down(sim, name));
        names
    }

    /// Lets the pods be deleted that wait for it.
    async fn answer_hooks(&mut self, sim: &Sim, truth: &mut Truth) {
        for name in Self::held(sim, truth).await {
            self.note(sim, format!("lets pod {name} be deleted"));
            let change = Patch::Merge(json!({"metadata": {"labels": {"hold": "no"}}}));
            if let Err(refusal) = pods(sim).patch(&name, &PatchParams::default(), &change).await {
                // Without the webhook for pods nobody can change one.
                let text = refusal.to_string();
                assert!(text.contains("failed calling webhook") || text.contains("not found"), "{text}");
            }
        }
    }

    async fn taint(&mut self, sim: &mut Sim, truth: &mut Truth, effect: Option<&str>) {
        let node = format!("node-{}", sim.pick(1..5));
        self.note(sim, format!("taints {node} {effect:?}"));
        truth.node_is_touched(sim, &node);
        let taints: Vec<Value> =
            effect.iter().map(|effect| json!({"key": "test", "effect": effect})).collect();
        taint(sim, &node, taints.into()).await;
    }

    async fn remove_node(&mut self, sim: &mut Sim, truth: &mut Truth) {
        let Some(name) = sim.pick_one(&self.added.clone()).cloned() else { return };
        if nodes(sim).get_opt(&name).await.unwrap().is_none() {
            return;
        }
        self.note(sim, format!("removes node {name}"));
        truth.node_is_touched(sim, &name);
        sim.stop_node(&name);
        nodes(sim).delete(&name, &DeleteParams::default()).await.unwrap();
    }

    async fn delete_pod(&mut self, sim: &mut Sim, truth: &mut Truth) {
        let all = pods(sim).list(&ListParams::default()).await.unwrap().items;
        let alive = all.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let names: Vec<String> = alive.filter_map(|pod| pod.metadata.name).collect();
        let Some(name) = sim.pick_one(&names).cloned() else { return };
        self.note(sim, format!("deletes pod {name}"));
        truth.others_take_down(sim, &name);
        if let Err(refusal) = pods(sim).delete(&name, &DeleteParams::default()).await {
            // Without the webhook for pods nobody can delete one.
            let text = refusal.to_string();
            assert!(text.contains("failed calling webhook") || text.contains("not found"), "{text}");
        }
    }

    /// Takes away what keeps the set from its goal.
    pub(crate) async fn resume(&mut self, sim: &mut Sim, truth: &mut Truth) {
        for number in 1..5 {
            let node = format!("node-{number}");
            truth.node_is_touched(sim, &node);
            taint(sim, &node, json!([])).await;
        }
        Self::held(sim, truth).await;
        self.edit(
            sim,
            json!({"lifecycle": null, "burstReplicas": 250, "updateStrategy": {"type": "RollingUpdate"}}),
        )
        .await;
        self.rolling(sim, json!({"paused": false, "partition": 0, "selector": null})).await;
    }
}

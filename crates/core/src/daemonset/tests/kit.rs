//! A model of a cluster, as small as possible: it carries out effects, and its nodes come, go and run pods.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    conditions::KRUISE_POD_READY,
    daemonset::v1beta1::{DaemonSet, Status},
    gates::{Gate, Gates},
    lifecycle::State,
};
use serde_json::{Value, json};

use crate::{
    daemonset::{Backoff, Observed, Purpose, Refused, decide, reference, status_write},
    effect::{Effect, Patch},
    in_place::Refusals,
    lifecycle,
    node::Node,
    patch_model::{merge, strategic},
    plan::{Plan, Purpose as _, WriteBudget},
    pod::{Metadata, Pod},
    pod_model,
    revision::Revision,
    waiting,
};

#[derive(Clone)]
pub(super) struct World {
    pub(super) set: Value,
    pub(super) nodes: BTreeMap<String, Value>,
    pub(super) pods: BTreeMap<String, Value>,
    pub(super) revisions: BTreeMap<String, Value>,
    pub(super) jobs: BTreeMap<String, Value>,
    pub(super) now: Timestamp,
    pub(super) gates: Gates,
    pub(super) events: Vec<String>,
    /// Images that cannot be run.
    pub(super) broken: BTreeSet<String>,
    /// Nodes whose pods never become ready.
    pub(super) bad_nodes: BTreeSet<String>,
    /// Nodes whose kubelet does nothing.
    pub(super) stuck: BTreeSet<String>,
    /// Nodes whose pods fail at once.
    pub(super) rejecting: BTreeSet<String>,
    /// How many pods may exist, as a quota says.
    pub(super) quota: usize,
    /// Whether pods that are deleted stay for a second.
    pub(super) slow_end: bool,
    /// While set, each reconcile dies after a part of its effects, and its status is not written.
    pub(super) crash: Option<u64>,
    pub(super) by_scheduler: bool,
    /// How much a pass may write.
    pub(super) room: WriteBudget,
    /// Whether somebody answers the hooks of pods.
    pub(super) answers: bool,
    /// Nodes on which the server refuses every new pod.
    pub(super) no_create: BTreeSet<String>,
    /// Nodes whose pod a budget does not let go for an update in place.
    pub(super) protected: BTreeSet<String>,
    /// Nodes on which the server refuses every deletion.
    pub(super) no_delete: BTreeSet<String>,
    refused: Refused,
    backoff: Backoff,
    seed: u64,
    serial: u64,
}

pub(super) fn time() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

pub(super) fn node(name: &str, labels: &Value) -> Value {
    let mut node = json!({"metadata": {"name": name, "uid": format!("uid-{name}"), "labels": {"kubernetes.io/hostname": name}},
        "spec": {"taints": []}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    merge(&mut node["metadata"]["labels"], labels);
    node
}

impl World {
    /// A DaemonSet `agent` with one container on the nodes `n1` and so on; `spec` is merged over it.
    pub(super) fn new(nodes: usize, spec: Value) -> Self {
        let mut set = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet",
            "metadata": {"name": "agent", "namespace": "default", "uid": "set-uid", "generation": 1, "resourceVersion": "1"},
            "spec": {
                "selector": {"matchLabels": {"app": "agent"}},
                "template": {"metadata": {"labels": {"app": "agent"}},
                    "spec": {"containers": [{"name": "main", "image": "app:v1"}]}},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            },
        });
        merge(&mut set["spec"], &spec);
        let names = (1..=nodes).map(|number| format!("n{number}"));
        Self {
            set,
            nodes: names.map(|name| (name.clone(), node(&name, &json!({})))).collect(),
            pods: BTreeMap::new(),
            revisions: BTreeMap::new(),
            jobs: BTreeMap::new(),
            now: time(),
            gates: Gates::default(),
            events: Vec::new(),
            broken: BTreeSet::new(),
            bad_nodes: BTreeSet::new(),
            stuck: BTreeSet::new(),
            rejecting: BTreeSet::new(),
            quota: usize::MAX,
            slow_end: false,
            crash: None,
            by_scheduler: true,
            room: WriteBudget::default(),
            answers: false,
            no_create: BTreeSet::new(),
            protected: BTreeSet::new(),
            no_delete: BTreeSet::new(),
            refused: Refused::default(),
            backoff: Backoff::default(),
            seed: 7,
            serial: 0,
        }
    }

    /// The same, at rest.
    pub(super) fn resting(nodes: usize, spec: Value) -> Self {
        let mut world = Self::new(nodes, spec);
        world.rest();
        world.events.clear();
        world
    }

    pub(super) fn with_gate(mut self, gate: Gate) -> Self {
        self.gates = self.gates.with(gate);
        self
    }

    pub(super) fn edit(&mut self, spec: Value) {
        merge(&mut self.set["spec"], &spec);
        let generation = self.set["metadata"]["generation"].as_i64().unwrap();
        self.set["metadata"]["generation"] = (generation + 1).into();
    }

    pub(super) fn rolling(&mut self, rolling: Value) {
        self.edit(json!({"updateStrategy": {"rollingUpdate": rolling}}));
    }

    pub(super) fn image(&mut self, image: &str) {
        self.edit(json!({"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}));
    }

    pub(super) fn taint(&mut self, node: &str, key: &str, effect: &str) {
        let taints = self.nodes.get_mut(node).unwrap()["spec"]["taints"].as_array_mut().unwrap();
        taints.push(json!({"key": key, "effect": effect}));
    }

    pub(super) fn untaint(&mut self, node: &str) {
        self.nodes.get_mut(node).unwrap()["spec"]["taints"] = json!([]);
    }

    pub(super) fn label_node(&mut self, node: &str, key: &str, value: &str) {
        self.nodes.get_mut(node).unwrap()["metadata"]["labels"][key] = value.into();
    }

    pub(super) fn seen(&self) -> Observed {
        let read =
            |value: &Value| Arc::new(serde_json::from_value::<Metadata>(value["metadata"].clone()).unwrap());
        Observed {
            set: Arc::new(serde_json::from_value::<DaemonSet>(self.set.clone()).unwrap()),
            pods: self
                .pods
                .values()
                .map(|pod| Arc::new(serde_json::from_value::<Pod>(pod.clone()).unwrap()))
                .collect(),
            nodes: self
                .nodes
                .values()
                .map(|node| Arc::new(serde_json::from_value::<Node>(node.clone()).unwrap()))
                .collect(),
            revisions: self.revisions.values().map(|one| Arc::new(Revision::read(one).unwrap())).collect(),
            jobs: self.jobs.values().map(read).collect(),
            now: self.now,
            gates: Arc::new(self.gates.clone()),
            assign_by_scheduler: self.by_scheduler,
            resize_subresource: true,
            refusals: Refusals::default(),
            backoff: self.backoff.clone(),
            refused: self.refused.clone(),
            write_budget: self.room,
            seed: self.seed,
        }
    }

    /// One reconcile: plan, act, status. Each effect fails or not on its own.
    pub(super) fn pass(&mut self) -> Plan<Purpose> {
        let seen = self.seen();
        let (plan, standing) = decide(&seen);
        let mut is_complete = plan.failures.is_empty();
        let reference = reference(&seen.set);
        let (mut all_made, mut goes_on) = (true, true);
        self.refused.keep(&seen);
        for (index, step) in plan.steps.iter().enumerate() {
            // A process that dies half-way has done any part of its plan.
            if self.crash.is_some_and(|crash| (index as u64 * 7 + crash).is_multiple_of(3)) {
                continue;
            }
            let is_protected = step.purpose.takes_down().is_some_and(|pod| {
                self.protected.iter().any(|node| self.on(node).contains(&pod.to_string()))
            });
            if is_protected {
                self.refused.hold(&step.purpose);
                is_complete = false;
                continue;
            }
            let is_new_pod = matches!(step.purpose, Purpose::CreatePod { .. });
            // The first new pod that is refused is the last one that is tried.
            if is_new_pod && !goes_on {
                (all_made, is_complete) = (false, false);
                continue;
            }
            let result = self.act(&step.effect);
            goes_on &= !is_new_pod || result.is_ok();
            self.refused.note(&step.purpose, result.is_ok());
            let events = match &result {
                Ok(()) => step.purpose.done(&reference),
                Err(error) => step.purpose.failed(&reference, error).into_iter().collect(),
            };
            self.events.extend(events.iter().map(|event| format!("{} {}", event.reason, event.message)));
            is_complete &= result.is_ok();
            if is_new_pod {
                all_made &= result.is_ok();
            }
            if let (Ok(()), Purpose::DeleteEnded { node, .. }) = (&result, &step.purpose) {
                self.backoff.deleted(seen.set.metadata.generation, node, seen.now);
            }
        }
        if all_made {
            self.seed += 1;
        }
        if let Some(crash) = &mut self.crash {
            *crash += 1;
            self.seed += 1;
            return plan;
        }
        let status = standing.status(&seen, is_complete, &plan.waits);
        let conditions = seen.set.status.clone().unwrap_or_default().conditions;
        let others = Status { conditions: conditions.clone(), ..status.clone() };
        let is_alone = status_write(&seen.set, &others).is_none();
        let is_silent = is_alone && waiting::is_taken_over(&conditions, &plan.waits);
        if let Some(effect) = status_write(&seen.set, &status).filter(|_| !is_silent) {
            self.act(&effect).unwrap();
        }
        plan
    }

    fn act(&mut self, effect: &Effect) -> Result<(), String> {
        match effect {
            Effect::Create { resource, object, .. } => {
                self.serial += 1;
                let mut object = object.clone();
                object["metadata"]["uid"] = format!("uid-{}", self.serial).into();
                object["metadata"]["creationTimestamp"] = self.now.to_string().into();
                object["metadata"]["resourceVersion"] = "1".into();
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                if resource.kind == "Pod" && self.pods.len() >= self.quota {
                    return Err("exceeded quota".to_owned());
                }
                if resource.kind == "Pod" {
                    let pod: Pod = serde_json::from_value(object.clone()).unwrap();
                    if self.no_create.contains(pod.node().as_str()) {
                        return Err("no new pod there".to_owned());
                    }
                }
                let table = self.table(resource.kind);
                if table.contains_key(&name) {
                    return Err(format!("{name} already exists"));
                }
                table.insert(name, object);
            }
            Effect::Patch { target, patch: Patch::Merge(patch) | Patch::Strategic(patch), .. } => {
                if target.resource.kind == "DaemonSet" {
                    merge(&mut self.set, patch);
                } else if let Some(object) =
                    self.table(target.resource.kind).get_mut(target.key.name.as_str())
                {
                    assert_eq!(object["metadata"]["uid"].as_str(), target.uid.as_deref());
                    strategic(object, patch);
                }
            }
            Effect::Delete { target, .. }
                if self.no_delete.iter().any(|node| self.on(node).contains(&target.key.name.to_string())) =>
            {
                return Err("no deletion there".to_owned());
            }
            Effect::Delete { target, .. } => self.end(target.resource.kind, &target.key.name.clone()),
            Effect::Ask { .. } => {}
            Effect::Event(event) => self.events.push(format!("{} {}", event.reason, event.message)),
            Effect::Patch { patch: Patch::Json(_), .. } => panic!("not used"),
        }
        Ok(())
    }

    fn end(&mut self, kind: &str, name: &str) {
        if kind == "Pod" && self.slow_end {
            let now = self.now.to_string();
            if let Some(pod) = self.pods.get_mut(name) {
                pod["metadata"]["deletionTimestamp"] = now.into();
            }
        } else {
            self.table(kind).remove(name);
        }
    }

    fn table(&mut self, kind: &str) -> &mut BTreeMap<String, Value> {
        match kind {
            "Pod" => &mut self.pods,
            "ControllerRevision" => &mut self.revisions,
            "ImagePullJob" => &mut self.jobs,
            other => panic!("{other}"),
        }
    }

    /// The pod of a node.
    pub(super) fn pod_on(&self, node: &str) -> String {
        self.on(node).first().cloned().unwrap_or_default()
    }

    /// The pods of a node, by age.
    pub(super) fn on(&self, node: &str) -> Vec<String> {
        let is_there = |pod: &Value| {
            let read: Pod = serde_json::from_value(pod.clone()).unwrap();
            *read.node() == *node
        };
        let mut found: Vec<(&String, &Value)> = self.pods.iter().filter(|(_, pod)| is_there(pod)).collect();
        found.sort_by_key(|(name, pod)| (pod["metadata"]["creationTimestamp"].to_string(), (*name).clone()));
        found.into_iter().map(|(name, _)| name.clone()).collect()
    }

    /// A person deletes the pod of a node.
    pub(super) fn delete_pod(&mut self, node: &str) {
        let name = self.pod_on(node);
        self.end("Pod", &name);
    }

    pub(super) fn remove_node(&mut self, node: &str) {
        self.nodes.remove(node);
        // The garbage collector of pods.
        self.pods.retain(|_, pod| pod["spec"]["nodeName"] != node);
    }

    pub(super) fn add_node(&mut self, name: &str) {
        self.nodes.insert(name.to_owned(), node(name, &json!({})));
    }

    /// What scheduler and nodes do in a second.
    pub(super) fn tick(&mut self) {
        self.now += SignedDuration::from_secs(1);
        self.pods.retain(|_, pod| pod["metadata"]["deletionTimestamp"].is_null());
        for pod in self.pods.values_mut() {
            let read: Pod = serde_json::from_value(pod.clone()).unwrap();
            let node = read.node().to_string();
            if self.answers && lifecycle::is(&read, &State::PreparingDelete) {
                pod["metadata"]["labels"]["hold"] = "no".into();
            }
            // The controller of readiness gates.
            if read.has_readiness_gate(KRUISE_POD_READY) && read.condition(KRUISE_POD_READY).is_none() {
                let condition = json!({"type": KRUISE_POD_READY, "status": "True"});
                strategic(pod, &json!({"status": {"conditions": [condition]}}));
            }
            if !self.nodes.contains_key(&node)
                || self.stuck.contains(&node)
                || matches!(read.status.phase.as_str(), "Failed" | "Succeeded")
            {
                continue;
            }
            pod["spec"]["nodeName"] = node.as_str().into();
            if self.rejecting.contains(&node) {
                pod["status"]["phase"] = "Failed".into();
                continue;
            }
            let broken = &self.broken;
            let is_bad = self.bad_nodes.contains(&node);
            let works = |container: &Value| !is_bad && !broken.contains(container["image"].as_str().unwrap());
            pod_model::run(pod, &works, self.now);
        }
    }

    /// Reconciles until nothing is left to do. Panics if that never happens.
    pub(super) fn rest(&mut self) -> usize {
        self.rest_while(&mut |_| {})
    }

    pub(super) fn rest_while(&mut self, look: &mut dyn FnMut(&Self)) -> usize {
        let mut quiet = 0;
        for pass in 0..400 {
            let before = self.set["status"].clone();
            let plan = self.pass();
            look(self);
            self.tick();
            look(self);
            let is_quiet = plan.wake_after.is_none() && plan.waits.wake_after().is_none();
            let rests = plan.steps.is_empty() && before == self.set["status"] && is_quiet;
            quiet = if rests { quiet + 1 } else { 0 };
            if quiet >= 2 {
                return pass;
            }
        }
        panic!("no rest: {:?} {}", self.pass().reasons, self.summary());
    }

    pub(super) fn passes(&mut self, count: usize) {
        for _ in 0..count {
            self.pass();
            self.tick();
        }
    }

    /// The image of each node's pods, such as `n1=app:v1 n2=app:v1+app:v2`.
    pub(super) fn images(&self) -> String {
        let mut nodes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for pod in self.pods.values() {
            let read: Pod = serde_json::from_value(pod.clone()).unwrap();
            let image = pod["spec"]["containers"][0]["image"].as_str().unwrap();
            nodes.entry(read.node().to_string()).or_default().push(image.trim_start_matches("app:"));
        }
        let mut texts = Vec::new();
        for (node, mut images) in nodes {
            images.sort_unstable();
            texts.push(format!("{node}={}", images.join("+")));
        }
        texts.join(" ")
    }

    pub(super) fn uids(&self) -> Vec<&str> {
        let mut uids: Vec<&str> =
            self.pods.values().map(|pod| pod["metadata"]["uid"].as_str().unwrap()).collect();
        uids.sort_unstable();
        uids
    }

    pub(super) fn label(&mut self, node: &str, key: &str, value: &str) {
        let name = self.pod_on(node);
        self.pods.get_mut(&name).unwrap()["metadata"]["labels"][key] = value.into();
    }

    pub(super) fn phase(&mut self, node: &str, phase: &str) {
        let name = self.pod_on(node);
        self.pods.get_mut(&name).unwrap()["status"]["phase"] = phase.into();
    }

    /// The life-cycle state of the pod of a node.
    pub(super) fn state(&self, node: &str) -> String {
        let labels = &self.pods[&self.pod_on(node)]["metadata"]["labels"];
        labels["lifecycle.apps.kruise.io/state"].as_str().unwrap_or("-").to_owned()
    }

    /// A number of the status.
    pub(super) fn number(&self, field: &str) -> i64 {
        self.set["status"][field].as_i64().unwrap_or(0)
    }

    /// Nodes that fit and have no pod that is ready.
    pub(super) fn down(&self) -> usize {
        let is_up = |node: &String| {
            self.on(node).iter().any(|pod| {
                let pod = &self.pods[pod];
                pod_model::has_condition(pod, "Ready") && pod["metadata"]["deletionTimestamp"].is_null()
            })
        };
        self.nodes.keys().filter(|node| !is_up(node)).count()
    }

    pub(super) fn count(&self, event: &str) -> usize {
        self.events.iter().filter(|known| known.starts_with(event)).count()
    }

    fn summary(&self) -> String {
        let pods =
            self.pods.iter().map(|(name, pod)| format!("{name}: {} {}\n", pod["metadata"], pod["status"]));
        pods.collect::<String>() + &self.set["status"].to_string()
    }
}

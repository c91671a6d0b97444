//! A job, its pods and nodes as JSON: plans are carried out on them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use kruise_api::broadcastjob::v1beta1::BroadcastJob;
use serde_json::{Value, json};

use super::super::{BROADCAST_JOB, Observed, Plan, Purpose, plan, reference, status_write};
use crate::{
    effect::{Effect, Event, Patch},
    node::Node,
    patch_model,
    pod::Pod,
    waiting::set_condition,
};

pub(super) struct World {
    pub(super) job: Option<Value>,
    pub(super) pods: BTreeMap<String, Value>,
    pub(super) nodes: BTreeMap<String, Value>,
    pub(super) now: i64,
    pub(super) made: usize,
    pub(super) events: Vec<String>,
    told: BTreeSet<String>,
    pub(super) room: usize,
    pub(super) seed: u64,
    pub(super) assign_by_scheduler: bool,
    /// How many of the next deletions the server refuses.
    pub(super) refuse_deletes: usize,
    /// The process dies before it writes the status.
    pub(super) dies: bool,
    pub(super) unreadable: bool,
}

/// The node of a pod.
pub(super) fn bound_to(pod: &Value) -> String {
    serde_json::from_value::<Pod>(pod.clone()).unwrap().node().to_string()
}

impl World {
    pub(super) fn new(nodes: usize, spec: Value) -> Self {
        let mut job = json!({
            "metadata": {"name": "job", "namespace": "ns", "uid": "job-uid"},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"image": "job:v1"}]}}},
        });
        patch_model::merge(&mut job["spec"], &spec);
        let mut world = Self {
            job: Some(job),
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            now: 1_700_000_000,
            made: 0,
            events: Vec::new(),
            told: BTreeSet::new(),
            room: usize::MAX,
            seed: 1,
            assign_by_scheduler: true,
            refuse_deletes: 0,
            dies: false,
            unreadable: false,
        };
        (0..nodes).for_each(|number| world.add_node(&format!("n{number}")));
        world
    }

    pub(super) fn add_node(&mut self, name: &str) {
        let node = json!({"metadata": {"name": name, "labels": {}}, "spec": {},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2023-01-01T00:00:00Z"}]}});
        self.nodes.insert(name.to_owned(), node);
    }

    pub(super) fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    pub(super) fn label(&mut self, node: &str, key: &str, value: &str) {
        self.nodes.get_mut(node).unwrap()["metadata"]["labels"][key] = json!(value);
    }

    pub(super) fn taint(&mut self, node: &str, key: &str, effect: &str) {
        self.nodes.get_mut(node).unwrap()["spec"]["taints"] = json!([{"key": key, "effect": effect}]);
    }

    pub(super) fn cordon(&mut self, node: &str, cordoned: bool) {
        self.nodes.get_mut(node).unwrap()["spec"]["unschedulable"] = json!(cordoned);
    }

    pub(super) fn read(&self) -> Arc<BroadcastJob> {
        Arc::new(serde_json::from_value(self.job.clone().unwrap()).unwrap())
    }

    pub(super) fn seen(&self) -> Observed {
        let pods = self.pods.values().map(|pod| {
            let mut pod: Pod = serde_json::from_value(pod.clone()).unwrap();
            pod.metadata.unreadable = self.unreadable;
            Arc::new(pod)
        });
        let nodes = self.nodes.values();
        Observed {
            job: self.read(),
            // The order of what is seen must not matter.
            pods: pods.rev().collect(),
            nodes: nodes
                .rev()
                .map(|node| Arc::new(serde_json::from_value::<Node>(node.clone()).unwrap()))
                .collect(),
            now: Timestamp::from_second(self.now).unwrap(),
            assign_by_scheduler: self.assign_by_scheduler,
            room: self.room,
            seed: self.seed,
        }
    }

    pub(super) fn plan(&self) -> Plan {
        plan(&self.seen())
    }

    /// Whether nothing more is to be done.
    pub(super) fn is_calm(&self) -> bool {
        let plan = self.plan();
        let write = plan.report.and_then(|mut report| {
            let now = Timestamp::from_second(self.now).unwrap();
            set_condition(&mut report.status.conditions, &plan.waits, now);
            status_write(&self.read(), &report.status)
        });
        plan.effects.is_empty() && write.is_none()
    }

    fn tell(&mut self, event: &Event) {
        self.events.push(format!("{}: {}", event.reason, event.message));
    }

    pub(super) fn pass(&mut self) {
        let Some(_) = &self.job else { return };
        let (plan, own, before) = (self.plan(), reference(&self.read()), self.read());
        let now: BTreeSet<String> = plan.notices.iter().map(|event| event.message.clone()).collect();
        for event in plan.notices.iter().filter(|event| !self.told.contains(&event.message)) {
            self.events.push(format!("{}: {}", event.reason, event.message));
        }
        self.told = now;
        let (mut created, mut all) = (0, true);
        for (effect, purpose) in plan.effects.iter().zip(&plan.purposes) {
            if matches!(purpose, Purpose::Delete(_)) && self.refuse_deletes > 0 {
                self.refuse_deletes -= 1;
                all = false;
                continue;
            }
            created += usize::from(matches!(purpose, Purpose::Create(_)));
            self.apply(effect);
            if let Some(event) = purpose.done(&own) {
                self.tell(&event);
            }
        }
        let Some(report) = plan.report.filter(|report| !self.dies && (all || !report.needs_all)) else {
            return;
        };
        let mut report = report.counting(created);
        let now = Timestamp::from_second(self.now).unwrap();
        set_condition(&mut report.status.conditions, &plan.waits, now);
        if let Some(write) = status_write(&before, &report.status) {
            self.apply(&write);
            report.events.iter().for_each(|event| self.tell(event));
        }
    }

    fn apply(&mut self, effect: &Effect) {
        match effect {
            Effect::Create { object, .. } => {
                let mut object = object.clone();
                self.made += 1;
                object["metadata"]["uid"] = json!(format!("pod-{}", self.made));
                object["metadata"]["creationTimestamp"] =
                    json!(Timestamp::from_second(self.now).unwrap().to_string());
                object["status"] = json!({"phase": "Running"});
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                assert!(self.pods.insert(name, object).is_none(), "the name is taken");
            }
            Effect::Delete { target, .. } if target.resource == BROADCAST_JOB => self.job = None,
            Effect::Delete { target, .. } => {
                let pod = self.pods.get_mut(target.key.name.as_str()).unwrap();
                pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            Effect::Patch { patch: Patch::Merge(change), .. } => {
                patch_model::merge(self.job.as_mut().unwrap(), change);
            }
            other => panic!("unexpected {other:?}"),
        }
    }

    pub(super) fn change(&mut self, change: Value) {
        patch_model::merge(self.job.as_mut().unwrap(), &change);
    }

    fn on(&mut self, node: &str) -> &mut Value {
        self.pods.values_mut().find(|pod| bound_to(pod) == node).unwrap()
    }

    pub(super) fn end(&mut self, node: &str, phase: &str) {
        self.on(node)["status"]["phase"] = json!(phase);
    }

    /// All pods that run end.
    pub(super) fn end_all(&mut self, phase: &str) {
        for pod in self.pods.values_mut().filter(|pod| pod["status"]["phase"] == "Running") {
            pod["status"]["phase"] = json!(phase);
        }
    }

    pub(super) fn restarts(&mut self, node: &str, count: i32) {
        self.on(node)["status"]["containerStatuses"] = json!([{"name": "main", "restartCount": count}]);
    }

    /// The kubelet or the scheduler reports this about the pod of a node.
    pub(super) fn trouble(&mut self, node: &str, status: Value) {
        self.on(node)["status"] = status;
    }

    /// The node is not ready any more.
    pub(super) fn unready(&mut self, node: &str) {
        let ready =
            json!({"type": "Ready", "status": "Unknown", "lastTransitionTime": "2023-11-14T22:13:20Z"});
        self.nodes.get_mut(node).unwrap()["status"]["conditions"] = json!([ready]);
    }

    pub(super) fn delete(&mut self, node: &str) {
        self.on(node)["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }

    /// Pods that are being deleted are gone.
    pub(super) fn gone(&mut self) {
        self.pods.retain(|_, pod| pod["metadata"].get("deletionTimestamp").is_none());
    }

    /// Everything runs to its end.
    pub(super) fn finish(&mut self) {
        for _ in 0..20 {
            self.pass();
            self.end_all("Succeeded");
        }
    }

    pub(super) fn active(&self) -> usize {
        let is_active = |pod: &&Value| {
            pod["status"]["phase"] == "Running" && pod["metadata"].get("deletionTimestamp").is_none()
        };
        self.pods.values().filter(is_active).count()
    }

    pub(super) fn status(&self) -> &Value {
        &self.job.as_ref().unwrap()["status"]
    }

    pub(super) fn spec(&self, field: &str) -> Value {
        self.job.as_ref().unwrap()["spec"][field].clone()
    }

    /// Phase, then desired/active/succeeded/failed.
    pub(super) fn told(&self) -> String {
        let status = self.status();
        let number = |field: &str| status[field].as_i64().unwrap();
        let numbers = ["desired", "active", "succeeded", "failed"].map(|field| number(field).to_string());
        format!("{} {}", status["phase"].as_str().unwrap(), numbers.join("/"))
    }

    fn find(&self, kind: &str) -> &Value {
        let conditions = self.status()["conditions"].as_array().unwrap();
        conditions.iter().find(|condition| condition["type"] == kind).unwrap()
    }

    pub(super) fn condition(&self, kind: &str) -> String {
        let condition = self.find(kind);
        assert_eq!((&condition["status"], &condition["reason"]), (&json!("True"), &json!(kind)));
        condition["message"].as_str().unwrap().to_owned()
    }

    pub(super) fn waiting(&self) -> String {
        let condition = self.find("Waiting");
        format!("{}: {}", condition["reason"].as_str().unwrap(), condition["message"].as_str().unwrap())
    }

    pub(super) fn count(&self, reason: &str) -> usize {
        self.events.iter().filter(|event| event.starts_with(&format!("{reason}: "))).count()
    }

    pub(super) fn last_event(&self) -> &str {
        self.events.last().unwrap()
    }
}

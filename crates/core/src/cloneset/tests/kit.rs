//! A model of a cluster, as small as possible: it carries out effects and has nodes on which every image works.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    cloneset::v1beta1::CloneSet,
    gates::{Gate, Gates},
};
use serde_json::{Value, json};

pub(super) use crate::patch_model::merge;
use crate::{
    cloneset::{Observed, Plan, Purpose, plan, reference, status},
    effect::{Effect, Patch},
    in_place::Refusals,
    patch_model::strategic,
    plan::{Failures, Part, Purpose as _, Step, WriteBudget},
    pod::{Metadata, Pod},
    pod_model,
    revision::Revision,
    waiting::Waits,
};

#[derive(Clone)]
pub(super) struct World {
    pub(super) set: Value,
    pub(super) pods: BTreeMap<String, Value>,
    pub(super) claims: BTreeMap<String, Value>,
    pub(super) revisions: BTreeMap<String, Value>,
    pub(super) jobs: BTreeMap<String, Value>,
    pub(super) now: Timestamp,
    pub(super) gates: Gates,
    pub(super) events: Vec<String>,
    /// Images that cannot be run.
    pub(super) broken: Vec<String>,
    /// How many pods may exist, as a quota says.
    pub(super) quota: usize,
    /// Whether pods that are deleted stay for a while.
    pub(super) slow_end: bool,
    /// While set, each pass dies after a part of its effects, and its status is not written.
    pub(super) crash: Option<u64>,
    /// Whether somebody answers the hooks of pods, each third second.
    pub(super) answers: bool,
    /// What the server refused.
    pub(super) refusals: Refusals,
    /// How much a pass may write.
    pub(super) room: WriteBudget,
    seed: u64,
    serial: u64,
}

pub(super) fn time() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

impl World {
    /// A CloneSet `web` with one container; `spec` is merged over it.
    pub(super) fn new(spec: Value) -> Self {
        let mut set = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
            "metadata": {"name": "web", "namespace": "default", "uid": "set-uid", "generation": 1, "resourceVersion": "1"},
            "spec": {
                "replicas": 5,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "main", "image": "app:v1"}]}},
                "updateStrategy": {"rollingUpdate": {}},
            },
        });
        merge(&mut set["spec"], &spec);
        Self {
            set,
            pods: BTreeMap::new(),
            claims: BTreeMap::new(),
            revisions: BTreeMap::new(),
            jobs: BTreeMap::new(),
            now: time(),
            gates: Gates::default(),
            events: Vec::new(),
            broken: Vec::new(),
            quota: usize::MAX,
            slow_end: false,
            crash: None,
            answers: false,
            refusals: Refusals::default(),
            room: WriteBudget::default(),
            seed: 7,
            serial: 0,
        }
    }

    /// The same, at rest.
    pub(super) fn resting(spec: Value) -> Self {
        let mut world = Self::new(spec);
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

    pub(super) fn seen(&self) -> Observed {
        let read =
            |value: &Value| Arc::new(serde_json::from_value::<Metadata>(value["metadata"].clone()).unwrap());
        Observed {
            set: Arc::new(serde_json::from_value::<CloneSet>(self.set.clone()).unwrap()),
            pods: self
                .pods
                .values()
                .filter(|pod| {
                    pod["metadata"]["ownerReferences"].as_array().is_some_and(|owners| !owners.is_empty())
                })
                .map(|pod| Arc::new(serde_json::from_value::<Pod>(pod.clone()).unwrap()))
                .collect(),
            claims: self
                .claims
                .values()
                .filter(|claim| claim["metadata"]["ownerReferences"][0]["kind"] == "CloneSet")
                .map(read)
                .collect(),
            revisions: self.revisions.values().map(|one| Arc::new(Revision::read(one).unwrap())).collect(),
            jobs: self.jobs.values().map(read).collect(),
            nodes: BTreeMap::new(),
            now: self.now,
            gates: Arc::new(self.gates.clone()),
            exclude_preparing_delete: false,
            refusals: self.refusals.clone(),
            write_budget: self.room,
            resize_subresource: true,
            seed: self.seed,
        }
    }

    /// One pass: plan, act, status. Each effect fails or not on its own.
    pub(super) fn pass(&mut self) -> Plan {
        let seen = self.seen();
        let plan = plan(&seen);
        let mut failures = Failures::of(&plan);
        // A process that dies half-way has done any part of its plan.
        let lost =
            |index: usize| self.crash.is_some_and(|crash| (index as u64 * 7 + crash).is_multiple_of(3));
        let lost: Vec<bool> = (0..plan.steps.len()).map(lost).collect();
        let mut happened = true;
        let (mut made, mut is_taken) = (Vec::new(), false);
        for (Step { effect, purpose, .. }, lost) in plan.steps.iter().zip(lost) {
            let follows = matches!(effect, Effect::Delete { follows: true, .. });
            if lost || (follows && !happened) {
                happened = false;
                continue;
            }
            let result = self.act(effect);
            happened = result.is_ok();
            if matches!(purpose, Purpose::CreatePod(_)) {
                made.push(result.is_ok());
                is_taken |= result.as_ref().is_err_and(|error| error.ends_with("already exists"));
            }
            let reference = reference(&seen.set);
            let event = match &result {
                Ok(()) => purpose.done(&reference),
                Err(error) => purpose.failed(&reference, error).into_iter().collect(),
            };
            self.events.extend(event.iter().map(|event| format!("{} {}", event.reason, event.message)));
            if let Err(error) = result {
                let slot = match purpose.part() {
                    Part::Scale => &mut failures.scale,
                    _ => &mut failures.update,
                };
                slot.get_or_insert(error);
            }
        }
        // As the controller does: the next pods get other ids once these were made, or where a stranger has the name.
        if is_taken || (!made.is_empty() && made.iter().all(|made| *made)) {
            self.seed += 1;
        }
        if let Some(crash) = &mut self.crash {
            *crash += 1;
            self.seed += 1;
            return plan;
        }
        let status = status(&seen, &failures, &Waits::default());
        self.set["status"] = serde_json::to_value(status).unwrap();
        plan
    }

    /// The status as it would be written now.
    pub(super) fn standing(&self) -> Value {
        serde_json::to_value(status(&self.seen(), &Failures::default(), &crate::waiting::Waits::default()))
            .unwrap()
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
                let table = self.table(resource.kind);
                if table.contains_key(&name) {
                    return Err(format!("{name} already exists"));
                }
                table.insert(name, object);
            }
            Effect::Patch { target, patch: Patch::Merge(patch) | Patch::Strategic(patch), .. } => {
                if target.resource.kind == "CloneSet" {
                    merge(&mut self.set, patch);
                } else if let Some(object) =
                    self.table(target.resource.kind).get_mut(target.key.name.as_str())
                {
                    assert_eq!(object["metadata"]["uid"].as_str(), target.uid.as_deref());
                    strategic(object, patch);
                }
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

    /// A person deletes a pod.
    pub(super) fn delete_pod(&mut self, name: &str) {
        self.end("Pod", name);
    }

    fn table(&mut self, kind: &str) -> &mut BTreeMap<String, Value> {
        match kind {
            "Pod" => &mut self.pods,
            "PersistentVolumeClaim" => &mut self.claims,
            "ControllerRevision" => &mut self.revisions,
            "ImagePullJob" => &mut self.jobs,
            other => panic!("{other}"),
        }
    }

    /// What nodes do in a second.
    pub(super) fn tick(&mut self) {
        self.now += SignedDuration::from_secs(1);
        self.pods.retain(|_, pod| pod["metadata"]["deletionTimestamp"].is_null());
        // The garbage collector: claims that were given to a pod go with it.
        let pods = &self.pods;
        self.claims.retain(|_, claim| {
            let owner = &claim["metadata"]["ownerReferences"][0];
            owner["kind"] != "Pod" || pods.contains_key(owner["name"].as_str().unwrap())
        });
        if self.answers && self.now.as_second() % 3 == 0 {
            self.answer();
        }
        for pod in self.pods.values_mut() {
            if pod["status"]["phase"] == "Failed" {
                continue;
            }
            pod["spec"]["nodeName"] = "n1".into();
            let broken = &self.broken;
            let works =
                |container: &Value| !broken.contains(&container["image"].as_str().unwrap().to_owned());
            pod_model::run(pod, &works, self.now);
        }
    }

    /// Lets pods through the hooks that wait for the labels `update` and `delete`.
    fn answer(&mut self) {
        for name in self.names() {
            match self.state(&name) {
                "PreparingUpdate" => self.label(&name, "update", "go"),
                "Updated" => self.label(&name, "update", "hold"),
                "PreparingDelete" => self.label(&name, "delete", "go"),
                _ => {}
            }
        }
    }

    /// Passes until nothing is left to do. Panics if that never happens.
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
            let rests = plan.steps.is_empty() && before == self.set["status"] && plan.wake_after.is_none();
            quiet = if rests { quiet + 1 } else { 0 };
            if quiet >= 2 {
                return pass;
            }
        }
        panic!("no rest: {:?} {}", self.pass().waits, self.summary());
    }

    pub(super) fn passes(&mut self, count: usize) {
        for _ in 0..count {
            self.pass();
            self.tick();
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.pods.keys().cloned().collect()
    }

    pub(super) fn images(&self) -> Vec<&str> {
        let mut images: Vec<&str> =
            self.pods.values().map(|pod| pod["spec"]["containers"][0]["image"].as_str().unwrap()).collect();
        images.sort_unstable();
        images
    }

    pub(super) fn uids(&self) -> Vec<&str> {
        let mut uids: Vec<&str> =
            self.pods.values().map(|pod| pod["metadata"]["uid"].as_str().unwrap()).collect();
        uids.sort_unstable();
        uids
    }

    pub(super) fn label(&mut self, pod: &str, key: &str, value: &str) {
        self.pods.get_mut(pod).unwrap()["metadata"]["labels"][key] = value.into();
    }

    pub(super) fn state(&self, pod: &str) -> &str {
        self.pods[pod]["metadata"]["labels"]["lifecycle.apps.kruise.io/state"].as_str().unwrap_or("-")
    }

    /// Pods that serve now.
    pub(super) fn available(&self) -> usize {
        self.standing()["availableReplicas"].as_u64().unwrap().try_into().unwrap()
    }

    pub(super) fn count(&self, event: &str) -> usize {
        self.events.iter().filter(|known| known.starts_with(event)).count()
    }

    pub(super) fn condition(&self, kind: &str) -> Value {
        let conditions = self.set["status"]["conditions"].as_array().into_iter().flatten();
        conditions.clone().find(|one| one["type"] == kind).cloned().unwrap_or_default()
    }

    fn summary(&self) -> String {
        self.pods
            .iter()
            .map(|(name, pod)| format!("{name}: {} {}\n", pod["metadata"], pod["status"]))
            .collect()
    }

    /// Changes a CloneSet through a hand-made plan: for tests that look at single effects.
    pub(super) fn purposes(&self) -> Vec<Purpose> {
        plan(&self.seen()).purposes()
    }
}

//! A model of a cluster, as small as possible: it injects a set into pods, carries out effects, and has nodes that take
//! their time to change an image.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

pub(super) use crate::patch_model::{merge, strategic};
use crate::{
    effect::{Effect, Patch},
    object::ObjectKey,
    plan::{Purpose as _, Step},
    pod::Pod,
    revision::Revision,
    sidecarset::{
        Seen, Set,
        control::{Held, Observed, Plan, decide, status_write},
        defaults, inject,
    },
};

pub(super) const EMPTY: &str = "empty:v1";

#[derive(Clone)]
pub(super) struct World {
    pub(super) set: Value,
    pub(super) pods: BTreeMap<String, Value>,
    pub(super) revisions: BTreeMap<String, Value>,
    pub(super) now: Timestamp,
    pub(super) held: BTreeMap<ObjectKey, Held>,
    pub(super) events: Vec<String>,
    /// Images that cannot be run.
    pub(super) broken: Vec<String>,
    /// How many ticks a node may wait before it begins to change an image.
    pub(super) lag: u64,
    /// While set, each pass dies after a part of its effects, and its status is not written.
    pub(super) crash: Option<u64>,
    /// How many writes of pods there were.
    pub(super) pod_writes: usize,
    /// The revisions as rules read them: that takes most of the time of a pass.
    read: BTreeMap<String, Arc<Revision>>,
    version: u64,
}

pub(super) fn time() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// A container that restarts with a new image.
pub(super) fn cold(name: &str, image: &str) -> Value {
    json!({"name": name, "image": image, "upgradeStrategy": {"upgradeType": "ColdUpgrade"}})
}

/// A container with a twin.
pub(super) fn hot(name: &str, image: &str) -> Value {
    json!({"name": name, "image": image, "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": EMPTY}})
}

impl World {
    /// A set `s` with one container; `spec` is merged over it.
    pub(super) fn new(container: Value, spec: Value) -> Self {
        let mut set = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet",
            "metadata": {"name": "s", "uid": "set-uid", "generation": 1, "resourceVersion": "100"},
            "spec": {
                "selector": {"matchLabels": {"app": "x"}}, "containers": [container],
                "updateStrategy": {"type": "RollingUpdate", "partition": 0, "maxUnavailable": 1},
            },
        });
        merge(&mut set["spec"], &spec);
        let mut world = Self {
            set,
            pods: BTreeMap::new(),
            revisions: BTreeMap::new(),
            now: time(),
            held: BTreeMap::new(),
            events: Vec::new(),
            broken: Vec::new(),
            lag: 0,
            crash: None,
            pod_writes: 0,
            read: BTreeMap::new(),
            version: 100,
        };
        world.hash();
        world
    }

    /// The same with pods `p-0`, `p-1` and so on, at rest.
    pub(super) fn resting(container: Value, spec: Value, pods: usize) -> Self {
        let mut world = Self::new(container, spec);
        world.rest();
        for index in 0..pods {
            world.inject(&format!("p-{index}"), json!({"app": "x"}));
            world.tick();
        }
        world.rest();
        world.events.clear();
        world.pod_writes = 0;
        world
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// What the webhook of sets does.
    fn hash(&mut self) {
        defaults::apply(&mut self.set, None);
    }

    pub(super) fn edit(&mut self, spec: Value) {
        merge(&mut self.set["spec"], &spec);
        let generation = self.set["metadata"]["generation"].as_i64().unwrap();
        self.set["metadata"]["generation"] = (generation + 1).into();
        self.set["metadata"]["resourceVersion"] = self.next_version().into();
        self.hash();
    }

    pub(super) fn strategy(&mut self, strategy: Value) {
        self.edit(json!({"updateStrategy": strategy}));
    }

    pub(super) fn image(&mut self, image: &str) {
        let mut containers = self.set["spec"]["containers"].clone();
        containers[0]["image"] = image.into();
        self.edit(json!({"containers": containers}));
    }

    pub(super) fn typed(&self) -> kruise_api::sidecarset::v1beta1::SidecarSet {
        serde::Deserialize::deserialize(&self.set).unwrap()
    }

    /// A new pod, as the webhook of pods lets it through.
    pub(super) fn inject(&mut self, name: &str, labels: Value) {
        let version = self.next_version();
        let mut pod = json!({
            "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}-{version}"), "labels": labels,
                "creationTimestamp": self.now.to_string(), "resourceVersion": version},
            "spec": {"nodeName": "n1", "containers": [{"name": "app", "image": "app:v1"}]}, "status": {"phase": "Pending"},
        });
        let revisions: Vec<Arc<Revision>> = self.read.values().cloned().collect();
        let set = Arc::new(Set::compile(&self.typed(), &revisions).unwrap());
        let seen = Seen {
            sets: &[&set],
            namespace: "default",
            namespace_labels: None,
            sorts_by_name: false,
            now: self.now,
            seed: version.parse().unwrap(),
        };
        assert!(inject(&mut pod, &seen).unwrap());
        self.pods.insert(name.to_owned(), pod);
    }

    pub(super) fn seen(&self) -> Observed {
        Observed {
            set: Arc::new(self.typed()),
            pods: self.pods.values().map(|pod| Arc::new(read(pod))).collect(),
            namespaces: BTreeMap::new(),
            revisions: self.read.values().cloned().collect(),
            manager_namespace: "kruise-system".into(),
            held: self.held.clone(),
            now: self.now,
        }
    }

    /// One pass: plan, act, status. Each effect fails or not on its own.
    pub(super) fn pass(&mut self) -> Plan {
        let seen = self.seen();
        let (plan, standing) = decide(&seen);
        let set = crate::sidecarset::reference(&seen.set);
        for (index, Step { effect, purpose, .. }) in plan.steps.iter().enumerate() {
            // A process that dies half-way has done any part of its plan.
            if self.crash.is_some_and(|crash| (index as u64 * 7 + crash).is_multiple_of(3)) {
                continue;
            }
            let event = match self.act(effect) {
                Ok(()) => purpose.done(&set),
                Err(error) => purpose.failed(&set, &error).into_iter().collect(),
            };
            self.events.extend(event.iter().map(|event| format!("{} {}", event.reason, event.message)));
        }
        if let Some(crash) = &mut self.crash {
            *crash += 1;
            return plan;
        }
        if let Some(write) = status_write(&seen.set, &standing) {
            self.act(&write).unwrap();
        }
        plan
    }

    fn act(&mut self, effect: &Effect) -> Result<(), String> {
        let version = self.next_version();
        match effect {
            Effect::Ask { .. } => panic!("a SidecarSet asks nothing"),
            Effect::Create { resource, object, namespace } => {
                assert_eq!((resource.kind, namespace.as_str()), ("ControllerRevision", "kruise-system"));
                let mut object = object.clone();
                object["metadata"]["uid"] = format!("uid-{version}").into();
                object["metadata"]["creationTimestamp"] = self.now.to_string().into();
                object["metadata"]["resourceVersion"] = version.into();
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                self.read.insert(name.clone(), Arc::new(Revision::read(&object).unwrap()));
                self.revisions.insert(name, object);
            }
            Effect::Patch { target, patch: Patch::Merge(patch) | Patch::Strategic(patch), subresource } => {
                let name = target.key.name.as_str();
                let object = match target.resource.kind {
                    "SidecarSet" => Some(&mut self.set),
                    "ControllerRevision" => self.revisions.get_mut(name),
                    _ => {
                        self.pod_writes += 1;
                        self.pods.get_mut(name)
                    }
                };
                let object = object.ok_or("not found")?;
                let metadata = &object["metadata"];
                assert_eq!(metadata["uid"].as_str(), target.uid.as_deref());
                if target.resource_version.as_deref().is_some_and(|seen| metadata["resourceVersion"] != seen)
                {
                    return Err("the object has been modified".to_owned());
                }
                assert_eq!(subresource.is_some(), patch.get("status").is_some(), "{patch}");
                strategic(object, patch);
                object["metadata"]["resourceVersion"] = version.into();
                if target.resource.kind == "ControllerRevision" {
                    self.read.insert(name.to_owned(), Arc::new(Revision::read(object).unwrap()));
                }
            }
            Effect::Delete { target, .. } => {
                self.revisions.remove(target.key.name.as_str()).expect("only what exists is deleted");
                self.read.remove(target.key.name.as_str());
            }
            Effect::Event(event) => self.events.push(format!("{} {}", event.reason, event.message)),
            Effect::Patch { patch: Patch::Json(_), .. } => panic!("not used"),
        }
        Ok(())
    }

    /// What nodes do in a second: a container whose image changed ends, and a second later runs the new one if it can.
    pub(super) fn tick(&mut self) {
        self.now += SignedDuration::from_secs(1);
        let now = self.now.to_string();
        let (broken, lag, second) = (self.broken.clone(), self.lag, self.now.as_second().unsigned_abs());
        let mut version = self.version;
        for (index, pod) in self.pods.values_mut().enumerate() {
            // Nodes are not equally quick.
            if lag > 0 && !(second + index as u64).is_multiple_of(lag + 1) {
                continue;
            }
            let before = pod["status"].clone();
            let containers = pod["spec"]["containers"].as_array().unwrap().clone();
            let statuses: Vec<Value> =
                containers.iter().map(|container| container_status(&before, container, &broken)).collect();
            let ready = statuses.iter().all(|status| status["ready"] == true);
            pod["status"]["phase"] = "Running".into();
            pod["status"]["containerStatuses"] = statuses.into();
            let text = if ready { "True" } else { "False" };
            if condition(pod, "Ready")["status"] != text {
                let condition = json!({"type": "Ready", "status": text, "lastTransitionTime": now});
                strategic(pod, &json!({"status": {"conditions": [condition]}}));
            }
            if pod["status"] != before {
                version += 1;
                pod["metadata"]["resourceVersion"] = version.to_string().into();
            }
        }
        self.version = version;
    }

    /// Passes until nothing is left to do. Panics if that never happens.
    pub(super) fn rest(&mut self) -> usize {
        self.rest_while(&mut |_| {})
    }

    pub(super) fn rest_while(&mut self, look: &mut dyn FnMut(&Self)) -> usize {
        let mut quiet = 0;
        for pass in 0..600 {
            let before = self.version;
            self.pass();
            look(self);
            self.tick();
            look(self);
            quiet = if self.version == before { quiet + 1 } else { 0 };
            if quiet > self.lag + 1 {
                return pass;
            }
        }
        panic!("no rest: {:?}\n{}", self.pass(), self.summary());
    }

    pub(super) fn passes(&mut self, count: usize) {
        for _ in 0..count {
            self.pass();
            self.tick();
        }
    }

    /// Matched, updated, ready, updated and ready.
    pub(super) fn counts(&self) -> [i64; 4] {
        let status = &self.set["status"];
        ["matchedPods", "updatedPods", "readyPods", "updatedReadyPods"]
            .map(|name| status[name].as_i64().unwrap_or(0))
    }

    /// The image of a container in a pod.
    pub(super) fn image_of(&self, pod: &str, container: &str) -> &str {
        let containers = self.pods[pod]["spec"]["containers"].as_array().unwrap();
        containers.iter().find(|one| one["name"] == container).unwrap()["image"].as_str().unwrap()
    }

    /// The images of a container in all pods.
    pub(super) fn images(&self, container: &str) -> Vec<&str> {
        self.pods.keys().map(|pod| self.image_of(pod, container)).collect()
    }

    pub(super) fn annotation(&self, pod: &str, key: &str) -> &str {
        self.pods[pod]["metadata"]["annotations"][key].as_str().unwrap_or("-")
    }

    pub(super) fn condition(&self, pod: &str, kind: &str) -> Value {
        condition(&self.pods[pod], kind)
    }

    pub(super) fn label(&mut self, pod: &str, key: &str, value: &str) {
        let version = self.next_version();
        let metadata = &mut self.pods.get_mut(pod).unwrap()["metadata"];
        metadata["labels"][key] = value.into();
        metadata["resourceVersion"] = version.into();
    }

    pub(super) fn is_ready(&self, pod: &str) -> bool {
        self.condition(pod, "Ready")["status"] == "True"
    }

    fn summary(&self) -> String {
        self.pods
            .iter()
            .map(|(name, pod)| format!("{name}: {} {} {}\n", pod["metadata"], pod["spec"], pod["status"]))
            .collect()
    }
}

pub(super) fn read(pod: &Value) -> Pod {
    serde::Deserialize::deserialize(pod).unwrap()
}

pub(super) fn condition(pod: &Value, kind: &str) -> Value {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|one| one["type"] == kind).cloned().unwrap_or_default()
}

pub(super) fn container_of(pod: &Value, name: &str) -> Value {
    let mut statuses = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    statuses.find(|one| one["name"] == name).cloned().unwrap_or_default()
}

/// One step of a node towards the image that a container should have. A container that is to have another image is not ready
/// for at least one step, also when it was not ready before. A node that has begun with an image ends that before it looks
/// whether another one is wanted by now.
fn container_status(status: &Value, container: &Value, broken: &[String]) -> Value {
    let (name, wanted) = (container["name"].as_str().unwrap(), container["image"].as_str().unwrap());
    let status = container_of(&json!({"status": status}), name);
    let can_run = |image: &str| !broken.iter().any(|broken| broken == image);
    let running = |image: &str, is_ready: bool| {
        let (reported, id) = (format!("docker.io/library/{image}"), format!("sha256:{image}"));
        json!({"name": name, "image": reported, "imageID": id, "starting": image, "ready": is_ready})
    };
    let changed = |changes: Value| {
        let mut status = status.clone();
        merge(&mut status, &changes);
        status
    };
    match status["starting"].as_str() {
        None => running(wanted, can_run(wanted)),
        Some(begun) if begun == wanted && can_run(wanted) => running(wanted, true),
        Some(begun) if begun == wanted => changed(json!({"ready": false})),
        Some(begun) if can_run(begun) && status["ready"] == false => running(begun, true),
        Some(_) => changed(json!({"starting": wanted, "ready": false})),
    }
}

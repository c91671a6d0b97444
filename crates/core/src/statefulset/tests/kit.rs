//! A model of a cluster, as small as possible: it carries out effects and has nodes on which every image works.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kruise_api::gates::{Gate, Gates};
use serde_json::{Value, json};

use crate::{
    effect::{Effect, Patch},
    in_place::Refusals,
    patch_model::{merge, strategic},
    plan::WriteBudget,
    revision::Revision,
    statefulset::{Failures, Observed, Plan, Purpose, decide},
};

/// A StatefulSet `web`, with what surrounds it.
#[derive(Clone)]
pub(super) struct World {
    pub(super) set: Value,
    pub(super) pods: BTreeMap<String, Value>,
    pub(super) claims: BTreeMap<String, Value>,
    pub(super) revisions: BTreeMap<String, Value>,
    pub(super) now: Timestamp,
    pub(super) gates: Gates,
    /// Images that cannot be run, or cannot on one pod: `app:v2 on web-3`.
    pub(super) broken: Vec<String>,
    /// How many pods may exist, as a quota says.
    pub(super) quota: usize,
    /// How much a pass may write.
    pub(super) room: WriteBudget,
    serial: u64,
}

impl World {
    pub(super) fn new(spec: Value) -> Self {
        let mut set = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet",
            "metadata": {"name": "web", "namespace": "default", "uid": "set-uid", "generation": 1},
            "spec": {
                "replicas": 5, "podManagementPolicy": "Parallel", "serviceName": "svc",
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
                    "readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
                    "containers": [{"name": "main", "image": "app:v1"}]}},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {}},
            },
        });
        merge(&mut set["spec"], &spec);
        Self {
            set,
            pods: BTreeMap::new(),
            claims: BTreeMap::new(),
            revisions: BTreeMap::new(),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            gates: Gates::default(),
            broken: Vec::new(),
            quota: usize::MAX,
            room: WriteBudget::default(),
            serial: 0,
        }
    }

    /// The same, at rest.
    pub(super) fn resting(spec: Value) -> Self {
        let mut world = Self::new(spec);
        world.rest();
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
        Observed {
            set: Arc::new(serde_json::from_value(self.set.clone()).unwrap()),
            pods: self
                .pods
                .values()
                .map(|pod| Arc::new(serde_json::from_value(pod.clone()).unwrap()))
                .collect(),
            taken: Default::default(),
            claims: self
                .claims
                .values()
                .map(|claim| Arc::new(serde_json::from_value(claim.clone()).unwrap()))
                .collect(),
            storage_classes: [(
                "fast".into(),
                Arc::new(
                    serde_json::from_value(
                        json!({"metadata": {"name": "fast"}, "allowVolumeExpansion": true}),
                    )
                    .unwrap(),
                ),
            )]
            .into(),
            revisions: self.revisions.values().map(|one| Arc::new(Revision::read(one).unwrap())).collect(),
            jobs: Vec::new(),
            now: self.now,
            gates: Arc::new(self.gates.clone()),
            resize_subresource: false,
            refusals: Refusals::default(),
            budget: self.room,
        }
    }

    /// One reconcile: its plan, after it was carried out.
    pub(super) fn pass(&mut self) -> Plan {
        let seen = self.seen();
        let (plan, standing) = decide(&seen);
        for step in &plan.steps {
            self.carry_out(&step.effect);
        }
        let status = standing.status(&seen, &Failures::default(), &plan.waits);
        self.set["status"] = serde_json::to_value(status).unwrap();
        plan
    }

    fn carry_out(&mut self, effect: &Effect) {
        self.serial += 1;
        let serial = self.serial.to_string();
        match effect {
            Effect::Create { resource, object, .. } => {
                let mut object = object.clone();
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                object["metadata"]["uid"] = format!("uid-{serial}").into();
                object["metadata"]["resourceVersion"] = serial.into();
                match resource.kind {
                    "Pod" if self.pods.len() >= self.quota => {}
                    "Pod" => {
                        object["status"] = json!({"phase": "Pending"});
                        object["spec"]["nodeName"] = "node".into();
                        assert!(self.pods.insert(name.clone(), object).is_none(), "two pods named {name}");
                    }
                    "PersistentVolumeClaim" => {
                        let size = object["spec"]["resources"]["requests"].clone();
                        object["status"] = json!({"phase": "Bound", "capacity": size});
                        assert!(self.claims.insert(name, object).is_none());
                    }
                    "ControllerRevision" => drop(self.revisions.insert(name, object)),
                    other => panic!("nobody creates a {other}"),
                }
            }
            Effect::Patch { target, patch, .. } => {
                let objects = match target.resource.kind {
                    "Pod" => &mut self.pods,
                    "PersistentVolumeClaim" => &mut self.claims,
                    "ControllerRevision" => &mut self.revisions,
                    other => panic!("nobody patches a {other}"),
                };
                let Some(object) = objects.get_mut(target.key.name.as_str()) else { return };
                match patch {
                    Patch::Strategic(patch) => strategic(object, patch),
                    Patch::Merge(patch) => merge(object, patch),
                    Patch::Json(_) => panic!("nobody sends this"),
                }
                object["metadata"]["resourceVersion"] = serial.into();
            }
            Effect::Delete { target, .. } => match target.resource.kind {
                "Pod" => {
                    if let Some(pod) = self.pods.get_mut(target.key.name.as_str()) {
                        pod["metadata"]["deletionTimestamp"] = self.now.to_string().into();
                    }
                }
                "ControllerRevision" => drop(self.revisions.remove(target.key.name.as_str())),
                other => panic!("nobody deletes a {other}"),
            },
            Effect::Ask { .. } | Effect::Event(_) => {}
        }
    }

    /// A second passes on all nodes: pods start and end.
    pub(super) fn tick(&mut self) {
        self.now = self.now.checked_add(SignedDuration::from_secs(1)).unwrap();
        let gone: Vec<String> = self
            .pods
            .iter()
            .filter(|(_, pod)| !pod["metadata"]["deletionTimestamp"].is_null())
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            let uid = self.pods.remove(&name).unwrap()["metadata"]["uid"].clone();
            self.claims.retain(|_, claim| {
                let owners = claim["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
                owners.is_empty() || owners.iter().any(|owner| owner["uid"] != uid)
            });
        }
        let now = self.now.to_string();
        for (name, pod) in &mut self.pods {
            let image = pod["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
            let runs =
                ![image.clone(), format!("{image} on {name}")].iter().any(|one| self.broken.contains(one));
            let condition = |kind: &str| {
                let all = pod["status"]["conditions"].as_array();
                all.and_then(|all| all.iter().find(|one| one["type"] == kind).cloned()).unwrap_or_default()
            };
            let gate = condition("InPlaceUpdateReady")["status"] == "True"
                && condition("KruisePodReady")["status"] != "False";
            let was = condition("Ready");
            let state = if runs && gate { "True" } else { "False" };
            let since = if was["status"] == state { was["lastTransitionTime"].clone() } else { json!(now) };
            let status = json!({
                "phase": if runs { "Running" } else { "Pending" },
                "conditions": [
                    {"type": "Ready", "status": state, "lastTransitionTime": since},
                    {"type": "ContainersReady", "status": if runs { "True" } else { "False" }},
                ],
                "containerStatuses": [{"name": "main", "image": image, "imageID": format!("id-{image}"), "ready": runs}],
            });
            strategic(&mut pod["status"], &status);
        }
    }

    /// Passes and seconds until nothing happens any more.
    pub(super) fn rest(&mut self) {
        for _ in 0..400 {
            let before = self.clone();
            let plan = self.pass();
            self.tick();
            if plan.steps.is_empty()
                && plan.wake_after.is_none()
                && (&before.pods, &before.claims, &before.set) == (&self.pods, &self.claims, &self.set)
            {
                return;
            }
        }
        panic!("no rest: {:?}", self.pass());
    }

    /// Whoever handles the hook of the label `hold` answers for all pods that wait. False if none does.
    pub(super) fn answer_hooks(&mut self) -> bool {
        let mut any = false;
        for pod in self.pods.values_mut() {
            let labels = pod["metadata"]["labels"].as_object_mut().unwrap();
            let state = labels["lifecycle.apps.kruise.io/state"].as_str().unwrap_or_default();
            let waits_for = match state {
                "PreparingDelete" | "PreparingUpdate" => None,
                "Updated" => Some(json!("yes")),
                _ => continue,
            };
            if labels.get("hold") != waits_for.as_ref() {
                any = true;
                match waits_for {
                    Some(held) => drop(labels.insert("hold".to_owned(), held)),
                    None => drop(labels.remove("hold")),
                }
            }
        }
        any
    }

    /// The pods as `0:v1 2:v2`.
    pub(super) fn shown(&self) -> String {
        let mut pods: Vec<(i64, String)> = self
            .pods
            .iter()
            .map(|(name, pod)| {
                let image = pod["spec"]["containers"][0]["image"].as_str().unwrap();
                let ordinal = crate::statefulset::parts(name).unwrap().1;
                (ordinal, format!("{ordinal}:{}", image.trim_start_matches("app:")))
            })
            .collect();
        pods.sort();
        pods.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn pod(&mut self, ordinal: i64) -> &mut Value {
        self.pods.get_mut(&format!("web-{ordinal}")).unwrap()
    }
}

/// What a plan does to pods and claims, in short.
pub(super) fn render(plan: &Plan) -> String {
    let texts = plan.steps.iter().filter_map(|step| match &step.purpose {
        Purpose::CreatePod(pod) => Some(format!("create {pod}")),
        Purpose::DeletePod(pod) => Some(format!("delete {pod}")),
        Purpose::CreateClaim { claim, .. } => Some(format!("claim {claim}")),
        Purpose::Own(claim) => Some(format!("own {claim}")),
        Purpose::ResizeClaim { claim, .. } => Some(format!("resize {claim}")),
        Purpose::UpdateInPlace { pod, .. } => Some(format!("update {pod}")),
        Purpose::PrepareInPlace { pod, .. } => Some(format!("prepare {pod}")),
        Purpose::RepairPod(pod) => Some(format!("repair {pod}")),
        Purpose::Adopt(name) => Some(format!("adopt {name}")),
        _ => None,
    });
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    texts.join(", ")
}

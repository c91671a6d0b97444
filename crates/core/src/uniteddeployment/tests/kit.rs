//! Objects of the tests, as caches would hold them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use kruise_api::labels::SUBSET_NAME;
use serde_json::{Value, json};

use crate::{
    effect::Effect,
    patch_model::merge,
    plan::Plan,
    pod::{Metadata, Pod},
    revision::Revision,
    uniteddeployment::{Child, Kind, Observed, Purpose, UnitedDeployment, decide},
    workload::Workload,
};

pub(super) fn time(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// A workload as a cache keeps it.
pub(super) fn child(kind: Kind, object: &Value) -> Child {
    let metadata: Metadata = serde_json::from_value(object["metadata"].clone()).unwrap();
    match kind {
        Kind::CloneSet => Child::of_clone_set(&metadata, &serde_json::from_value(object.clone()).unwrap()),
        Kind::AdvancedStatefulSet => {
            Child::of_stateful_set(&metadata, &serde_json::from_value(object.clone()).unwrap())
        }
        _ => Child::of_native(kind, &serde_json::from_value::<Workload>(object.clone()).unwrap()),
    }
}

/// What a reconcile sees. Pods belong to the workload of their subset.
pub(super) fn observed(
    object: &Value,
    kind: Kind,
    children: &[Value],
    pods: &[Value],
    revisions: &[Value],
    now: Timestamp,
) -> Observed {
    let mut of: BTreeMap<_, Vec<Arc<Pod>>> = BTreeMap::new();
    for owner in children {
        let name = &owner["metadata"]["labels"][SUBSET_NAME];
        let own = pods.iter().filter(|pod| pod["metadata"]["labels"][SUBSET_NAME] == *name);
        let own = own.map(|pod| Arc::new(serde_json::from_value(pod.clone()).unwrap())).collect();
        of.insert(owner["metadata"]["uid"].as_str().unwrap().into(), own);
    }
    Observed {
        object: Arc::new(serde_json::from_value::<UnitedDeployment>(object.clone()).unwrap()),
        children: children.iter().map(|object| child(kind, object)).collect(),
        pods: of,
        revisions: revisions.iter().map(|one| Arc::new(Revision::read(one).unwrap())).collect(),
        live: children
            .iter()
            .map(|object| (object["metadata"]["uid"].as_str().unwrap().into(), object.clone()))
            .collect(),
        unread: BTreeMap::new(),
        now,
        refused: BTreeSet::new(),
        timed_out: BTreeMap::new(),
        seed: 7,
    }
}

/// A cluster with one UnitedDeployment, whose workloads reach what they want at once.
pub(super) struct World {
    pub(super) object: Value,
    pub(super) kind: Kind,
    pub(super) children: Vec<Value>,
    pub(super) revisions: Vec<Value>,
    pub(super) now: Timestamp,
}

impl World {
    /// With a spec that is changed by a merge patch.
    pub(super) fn new(kind: Kind, change: Value) -> Self {
        let workload = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "app:v1"}]}}}});
        let mut object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "UnitedDeployment",
            "metadata": {"name": "web", "namespace": "default", "uid": "web-uid", "generation": 1},
            "spec": {"replicas": 6, "selector": {"matchLabels": {"app": "web"}}, "template": {kind.field(): workload},
                "topology": {"subsets": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}}});
        merge(&mut object["spec"], &change);
        Self { object, kind, children: Vec::new(), revisions: Vec::new(), now: time(0) }
    }

    pub(super) fn change(&mut self, spec: &Value) {
        merge(&mut self.object["spec"], spec);
        self.object["metadata"]["generation"] =
            json!(self.object["metadata"]["generation"].as_i64().unwrap() + 1);
    }

    pub(super) fn seen(&self) -> Observed {
        observed(&self.object, self.kind, &self.children, &[], &self.revisions, self.now)
    }

    /// Carries out one plan.
    pub(super) fn step(&mut self) -> Plan<Purpose> {
        let seen = self.seen();
        let (plan, standing) = decide(&seen);
        for effect in plan.effects() {
            self.carry_out(effect);
        }
        let failures = crate::plan::Failures::of(&plan);
        if let Some(status) = standing.status(&seen, &failures, &plan, &plan.waits) {
            self.object["status"] = serde_json::to_value(status).unwrap();
        }
        plan
    }

    fn carry_out(&mut self, effect: &Effect) {
        match effect {
            Effect::Create { object, .. } => {
                let mut object = object.clone();
                let count = self.children.len() + self.revisions.len();
                object["metadata"]["uid"] = json!(format!("uid-{count}"));
                object["metadata"]["resourceVersion"] = json!("1");
                object["metadata"]["creationTimestamp"] = json!(self.now.to_string());
                match object["kind"] == "ControllerRevision" {
                    true => self.revisions.push(object),
                    false => self.children.push(object),
                }
            }
            Effect::Patch { target, patch: crate::effect::Patch::Merge(change), .. } => {
                let all = self.children.iter_mut().chain(&mut self.revisions);
                let found =
                    all.into_iter().find(|one| one["metadata"]["uid"] == target.uid.as_deref().unwrap());
                merge(found.unwrap(), change);
            }
            Effect::Delete { target, .. } => {
                let is_it = |one: &Value| one["metadata"]["uid"] == target.uid.as_deref().unwrap();
                self.children.retain(|one| !is_it(one));
                self.revisions.retain(|one| !is_it(one));
            }
            _ => {}
        }
    }

    /// Carries out plans until nothing is left to do.
    pub(super) fn settle(&mut self) {
        for _ in 0..20 {
            if self.step().steps.is_empty() {
                return;
            }
        }
        panic!("plans do not end: {:?}", self.step());
    }

    /// Replicas and partitions by subset, such as `a 2/0 b 2/0`.
    pub(super) fn shown(&self) -> String {
        let mut all: Vec<String> = self
            .children
            .iter()
            .map(|one| {
                let subset = one["metadata"]["labels"][SUBSET_NAME].as_str().unwrap();
                let partition = one.pointer("/spec/updateStrategy/rollingUpdate/partition");
                let partition = partition.and_then(Value::as_i64).map(|partition| format!("/{partition}"));
                format!("{subset} {}{}", one["spec"]["replicas"], partition.unwrap_or_default())
            })
            .collect();
        all.sort();
        all.join(" ")
    }
}

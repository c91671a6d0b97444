//! Namespaces and objects as JSON: plans are carried out on them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use kruise_api::resourcedistribution::v1beta1::{ResourceDistribution, Status};
use serde_json::{Value, json};

use super::super::{
    Deed, Found, Ledger, Memory, Observed, Plan, Reading, Reports, Said, Source, Standing, Targets, hash_of,
    plan, reference, settle, status, waits,
};
use crate::{
    effect::{Effect, Event, Patch},
    patch_model,
    pod::Metadata,
};

pub(super) struct World {
    pub(super) object: Value,
    /// Namespaces with their labels, and whether they are on their way out.
    pub(super) namespaces: BTreeMap<String, (Value, bool)>,
    /// Objects of the distributed name, by namespace.
    pub(super) objects: BTreeMap<String, Value>,
    /// What the server says to writes in a namespace.
    pub(super) refusals: BTreeMap<String, (u16, String)>,
    /// Namespaces in which writes get no answer, although they happen.
    pub(super) silent: BTreeSet<String>,
    pub(super) unreadable: Option<String>,
    pub(super) memory: Memory,
    pub(super) reports: Reports,
    pub(super) events: Vec<String>,
    pub(super) room: usize,
    pub(super) now: i64,
    pub(super) writes: usize,
    version: u64,
}

pub(super) fn time(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

impl World {
    pub(super) fn new(resource: Value, targets: Value) -> Self {
        let object = json!({
            "metadata": {"name": "rd", "uid": "rd-uid", "generation": 1},
            "spec": {"resource": resource, "targets": targets},
        });
        Self {
            object,
            namespaces: BTreeMap::new(),
            objects: BTreeMap::new(),
            refusals: BTreeMap::new(),
            silent: BTreeSet::new(),
            unreadable: None,
            memory: Memory::default().at(1, time(0)),
            reports: Reports::default(),
            events: Vec::new(),
            room: usize::MAX,
            now: 0,
            writes: 0,
            version: 1,
        }
    }

    pub(super) fn namespace(&mut self, name: &str, labels: Value) {
        self.namespaces.insert(name.to_owned(), (labels, false));
    }

    pub(super) fn put(&mut self, namespace: &str, mut object: Value) {
        self.version += 1;
        let version = self.version;
        let metadata = &mut object["metadata"];
        metadata["namespace"] = json!(namespace);
        metadata["resourceVersion"] = json!(version.to_string());
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!("uid-{version}"));
        }
        self.objects.insert(namespace.to_owned(), object);
    }

    pub(super) fn typed(&self) -> ResourceDistribution {
        serde_json::from_value(self.object.clone()).unwrap()
    }

    pub(super) fn change(&mut self, change: Value) {
        patch_model::merge(&mut self.object["spec"], &change);
        let generation = self.object["metadata"]["generation"].as_i64().unwrap();
        self.object["metadata"]["generation"] = json!(generation + 1);
    }

    pub(super) fn restart(&mut self) {
        let object = self.typed();
        let generation = object.metadata.generation.unwrap();
        self.memory = Memory::of(object.status.as_ref(), generation, time(self.now));
        self.reports = Reports::of(object.status.as_ref());
    }

    pub(super) fn metadata(&self) -> Vec<Metadata> {
        let all = self.namespaces.iter().map(|(name, (labels, is_leaving))| {
            let deletion = is_leaving.then_some("2026-01-01T00:00:00Z");
            let value = json!({"name": name, "labels": labels, "deletionTimestamp": deletion});
            serde_json::from_value(value).unwrap()
        });
        all.collect()
    }

    pub(super) fn observe(&self) -> Observed {
        let object = self.typed();
        let found = self.objects.iter().map(|(namespace, object)| {
            let found: Found = serde_json::from_value(object.clone()).unwrap();
            (namespace.as_str().into(), Arc::new(found))
        });
        let generation = object.metadata.generation.unwrap();
        Observed {
            own: reference(&object),
            source: Source::parse(&object.spec.resource.0).unwrap(),
            hash: hash_of(&Value::Object(object.spec.resource.0.clone())).into(),
            namespaces: Targets::new(&object.spec.targets).unwrap().sort(&self.metadata()),
            reading: match &self.unreadable {
                None => Reading::Found(found.collect()),
                Some(text) => Reading::Failed { text: text.clone(), reason: None },
            },
            memory: self.memory.clone().at(generation, time(self.now)),
            room: self.room,
            now: time(self.now),
        }
    }

    /// One pass, as the controller makes it. Returns the plan and the status.
    pub(super) fn pass(&mut self) -> (Plan, Status) {
        let seen = self.observe();
        let plan = plan(&seen);
        assert!(plan.steps.len() <= self.room);
        let said: Vec<Said> =
            plan.steps.iter().map(|step| self.write(&step.namespace, &step.effect)).collect();
        let (ledger, memory, _) = settle(&seen, &plan, &said);
        self.memory = memory;
        let (events, _) = self.reports.news(&seen.own, &ledger, seen.now);
        self.events
            .extend(events.into_iter().map(|Event { reason, message, .. }| format!("{reason} {message}")));
        let status = self.status(&seen, &ledger);
        self.object["status"] = serde_json::to_value(&status).unwrap();
        (plan, status)
    }

    fn status(&self, seen: &Observed, ledger: &Ledger) -> Status {
        let (waits, affected) = waits(&seen.source, ledger);
        let standing = Standing { ledger: Some(ledger), waits: &waits, affected: &affected, now: seen.now };
        status(&self.typed(), standing)
    }

    fn write(&mut self, namespace: &str, effect: &Effect) -> Said {
        self.writes += 1;
        if let Some((code, message)) = self.refusals.get(namespace) {
            return Said::Refused { code: *code, message: message.clone() };
        }
        match effect {
            Effect::Create { namespace, object, .. } => {
                if self.objects.contains_key(namespace.as_str()) {
                    return Said::Refused { code: 409, message: "already exists".to_owned() };
                }
                self.put(namespace, object.clone());
            }
            Effect::Patch { target, patch: Patch::Merge(patch), .. } => {
                let mut object = self.objects[namespace].clone();
                assert_eq!(
                    target.resource_version.as_deref(),
                    object["metadata"]["resourceVersion"].as_str()
                );
                patch_model::merge(&mut object, patch);
                self.put(namespace, object);
            }
            Effect::Delete { target, .. } => {
                let object = self.objects.remove(namespace).unwrap();
                assert_eq!(target.uid.as_deref(), object["metadata"]["uid"].as_str());
            }
            other => panic!("{other:?}"),
        }
        if self.silent.contains(namespace) { Said::Unclear } else { Said::Done }
    }
}

/// The steps of a plan, as `create a, update b`.
pub(super) fn steps(plan: &Plan) -> String {
    let word = |deed: Deed| format!("{deed:?}").to_lowercase();
    let steps = plan.steps.iter().map(|step| format!("{} {}", word(step.deed), step.namespace));
    steps.collect::<Vec<_>>().join(", ")
}

/// The conditions that are True, as `Type: a b`.
pub(super) fn failing(status: &Status) -> Vec<String> {
    let failing = status.conditions.iter().filter(|one| one.status == "True");
    failing.map(|one| format!("{}: {}", one.kind, one.failed_namespaces.join(" "))).collect()
}

pub(super) fn counts(status: &Status) -> (i32, i32, i32) {
    (status.desired.unwrap(), status.succeeded.unwrap(), status.failed.unwrap())
}

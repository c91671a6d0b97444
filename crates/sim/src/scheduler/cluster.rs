//! Nodes, what is used on them, and counts of pods by rule and place.
//!
//! Everything is kept up to date as pods come and go, so that placing one pod never looks at all others.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use kruise_api::kubernetes::quantity::Quantity;
use serde_json::{Value, json};

use super::wants::{Taint, Term, Wants, amounts, strings};
use crate::json::{at, list, text};

/// More rules than this are forgotten and counted anew when they are needed.
const MOST_RULES: usize = 512;
/// How many different loads are remembered.
const REMEMBERED: usize = 32;

/// A node as a place for pods.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
    pub(super) unschedulable: bool,
    pub(super) cpu: i128,
    pub(super) memory: i128,
    pub(super) room: u64,
    pub(super) used_cpu: i128,
    pub(super) used_memory: i128,
    /// Everything but cpu and memory: what there is, and what of it is used.
    pub(super) others: BTreeMap<String, i128>,
    pub(super) used_others: BTreeMap<String, i128>,
    pub(super) pods: u64,
}

impl Place {
    fn read(node: &Value) -> Self {
        let amount = |name: &str| {
            at(node, &format!("/status/allocatable/{name}")).and_then(|q| Quantity::from_json(q).ok())
        };
        Self {
            labels: strings(at(node, "/metadata/labels")),
            taints: list(node, "/spec/taints")
                .iter()
                .map(|taint| Taint {
                    key: text(taint, "/key").to_owned(),
                    value: text(taint, "/value").to_owned(),
                    effect: text(taint, "/effect").to_owned(),
                })
                .collect(),
            unschedulable: at(node, "/spec/unschedulable") == Some(&json!(true)),
            cpu: amount("cpu").map_or(0, |q| q.millis()),
            memory: amount("memory").map_or(0, |q| q.value()),
            room: amount("pods").and_then(|q| u64::try_from(q.value()).ok()).unwrap_or(0),
            others: amounts(at(node, "/status/allocatable")),
            ..Self::default()
        }
    }

    /// A pod comes (1) or goes (-1).
    fn count(&mut self, pod: &Load, by: i64) {
        self.used_cpu += pod.cpu * i128::from(by);
        self.used_memory += pod.memory * i128::from(by);
        for (name, amount) in &pod.others {
            *self.used_others.entry(name.clone()).or_default() += amount * i128::from(by);
        }
        self.pods = self.pods.saturating_add_signed(by);
    }

    fn same_offer(&self, other: &Self) -> bool {
        self.labels == other.labels
            && self.taints == other.taints
            && self.unschedulable == other.unschedulable
            && (self.cpu, self.memory, self.room) == (other.cpu, other.memory, other.room)
            && self.others == other.others
    }
}

/// A pod that has a place.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) node: Box<str>,
    pub(super) load: Arc<Load>,
}

/// What a pod takes and who counts it: the same for all pods of a template, which share it.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) namespace: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) cpu: i128,
    pub(super) memory: i128,
    pub(super) others: BTreeMap<String, i128>,
    /// Which pods it keeps away.
    pub(super) apart: Vec<Term>,
}

impl Load {
    fn new(wants: &Wants) -> Self {
        Self {
            namespace: wants.namespace.clone(),
            labels: wants.labels.clone(),
            cpu: wants.cpu,
            memory: wants.memory,
            others: wants.others.clone(),
            apart: wants.apart.clone(),
        }
    }

    fn is_of(&self, wants: &Wants) -> bool {
        let Self { namespace, labels, cpu, memory, others, apart } = self;
        (cpu, memory) == (&wants.cpu, &wants.memory)
            && *namespace == wants.namespace
            && *labels == wants.labels
            && *others == wants.others
            && apart.iter().map(|term| &term.key).eq(wants.apart.iter().map(|term| &term.key))
    }
}

/// How many pods a rule counts, by the value of its node label.
#[derive(Debug)]
struct Counted {
    term: Term,
    by_value: BTreeMap<String, i64>,
}

impl Counted {
    fn add(&mut self, labels: &BTreeMap<String, String>, by: i64) {
        let Some(value) = labels.get(&self.term.topology) else { return };
        let count = self.by_value.entry(value.clone()).or_insert(0);
        *count += by;
        if *count <= 0 {
            self.by_value.remove(value);
        }
    }
}

/// The cluster as a scheduler sees it. Pods are known by their uid.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    pub(super) places: BTreeMap<String, Place>,
    pub(super) placed: BTreeMap<String, Placed>,
    /// Pods that a rule selects.
    selected: BTreeMap<String, Counted>,
    /// Pods that carry a rule to keep others away.
    repelling: BTreeMap<String, Counted>,
    /// Loads that were placed last.
    loads: VecDeque<Arc<Load>>,
}

impl Cluster {
    /// A node came or changed. Returns whether that may help a pod that waits.
    pub(super) fn node(&mut self, name: &str, node: &Value) -> bool {
        let mut place = Place::read(node);
        match self.places.get(name) {
            Some(old) if old.same_offer(&place) => return false,
            Some(old) => {
                place.used_cpu = old.used_cpu;
                place.used_memory = old.used_memory;
                place.used_others.clone_from(&old.used_others);
                place.pods = old.pods;
                let moved = old.labels != place.labels;
                self.places.insert(name.to_owned(), place);
                if moved {
                    self.recount();
                }
            }
            None => {
                for pod in self.placed.values().filter(|pod| *pod.node == *name) {
                    place.count(&pod.load, 1);
                }
                self.places.insert(name.to_owned(), place);
                if self.placed.values().any(|pod| *pod.node == *name) {
                    self.recount();
                }
            }
        }
        true
    }

    pub(super) fn node_gone(&mut self, name: &str) {
        if self.places.remove(name).is_some() {
            self.recount();
        }
    }

    /// A pod has its place.
    pub(super) fn put(&mut self, uid: &str, wants: &Wants, node: &str) {
        if self.placed.contains_key(uid) {
            self.take(uid);
        }
        let pod = Placed { node: node.into(), load: self.load(wants) };
        self.count(&pod, 1);
        self.placed.insert(uid.to_owned(), pod);
    }

    fn load(&mut self, wants: &Wants) -> Arc<Load> {
        if let Some(known) = self.loads.iter().find(|known| known.is_of(wants)) {
            return known.clone();
        }
        let load = Arc::new(Load::new(wants));
        self.loads.truncate(REMEMBERED - 1);
        self.loads.push_front(load.clone());
        load
    }

    /// A pod's place is free again. Returns whether it had one.
    pub(super) fn take(&mut self, uid: &str) -> bool {
        let Some(pod) = self.placed.remove(uid) else { return false };
        self.count(&pod, -1);
        true
    }

    fn count(&mut self, pod: &Placed, by: i64) {
        let Some(place) = self.places.get_mut(&*pod.node) else { return };
        let load = &pod.load;
        place.count(load, by);
        let labels = &place.labels;
        for counted in self.selected.values_mut() {
            if counted.term.counts(&load.namespace, &load.labels) {
                counted.add(labels, by);
            }
        }
        for term in &load.apart {
            let counted = self
                .repelling
                .entry(term.key.clone())
                .or_insert_with(|| Counted { term: term.clone(), by_value: BTreeMap::new() });
            counted.add(labels, by);
        }
        self.repelling.retain(|_, counted| !counted.by_value.is_empty());
    }

    fn recount(&mut self) {
        self.selected.clear();
        self.repelling.clear();
        for pod in self.placed.values() {
            let Some(place) = self.places.get(&*pod.node) else { continue };
            for term in &pod.load.apart {
                let counted = self
                    .repelling
                    .entry(term.key.clone())
                    .or_insert_with(|| Counted { term: term.clone(), by_value: BTreeMap::new() });
                counted.add(&place.labels, 1);
            }
        }
    }

    /// Makes sure that a rule is counted.
    pub(super) fn follow(&mut self, term: &Term) {
        if self.selected.contains_key(&term.key) {
            return;
        }
        if self.selected.len() >= MOST_RULES {
            self.selected.clear();
        }
        let mut counted = Counted { term: term.clone(), by_value: BTreeMap::new() };
        for pod in self.placed.values() {
            if let Some(place) = self.places.get(&*pod.node)
                && term.counts(&pod.load.namespace, &pod.load.labels)
            {
                counted.add(&place.labels, 1);
            }
        }
        self.selected.insert(term.key.clone(), counted);
    }

    /// The counts of a rule that is followed.
    pub(super) fn counts(&self, term: &Term) -> Option<&BTreeMap<String, i64>> {
        self.selected.get(&term.key).map(|counted| &counted.by_value)
    }

    /// Whether some pod on the same place (in its own sense) keeps this pod away.
    pub(super) fn repels(&self, wants: &Wants, labels: &BTreeMap<String, String>) -> bool {
        self.repelling.values().any(|counted| {
            labels.get(&counted.term.topology).is_some_and(|value| counted.by_value.contains_key(value))
                && counted.term.counts(&wants.namespace, &wants.labels)
        })
    }
}

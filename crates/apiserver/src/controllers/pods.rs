//! An index of pods with the few things that controllers ask about them, read once per change.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;

use super::graph::Owner;
use crate::store::{Event, EventKind, Record};

/// The finalizer of pods that their job has not counted yet.
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// A namespace and a name.
pub(super) type Name = (Arc<str>, Arc<str>);

/// How far a pod has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Pending,
    Unknown,
    Running,
    Succeeded,
    Failed,
}

/// One pod as controllers see it.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) record: Arc<Record>,
    /// Pods of one controller share it.
    pub(super) controller: Option<Arc<Owner>>,
    pub(super) node: Box<str>,
    pub(super) phase: Phase,
    /// Since when it is ready; `None` when it is not.
    pub(super) ready_since: Option<Timestamp>,
    pub(super) created: Timestamp,
    pub(super) restarts: i64,
    pub(super) deletion_cost: i64,
    /// Whether its job still has to count it.
    pub(super) tracked: bool,
}

impl Pod {
    pub(super) fn is_ready(&self) -> bool {
        self.ready_since.is_some()
    }

    pub(super) fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Neither finished nor on its way out.
    pub(super) fn is_active(&self) -> bool {
        !self.is_finished() && !self.record.deleting
    }

    /// Ready for at least so many seconds.
    pub(super) fn is_available(&self, min_ready_seconds: i64, now: Timestamp) -> bool {
        self.ready_since.is_some_and(|since| {
            min_ready_seconds == 0 || since.as_second().saturating_add(min_ready_seconds) <= now.as_second()
        })
    }

    /// Reads the record.
    pub(super) fn read(record: &Arc<Record>) -> Self {
        let json = record.json();
        let part: Part<'_> = serde_json::from_slice(&json).unwrap_or_default();
        let ready = part.status.conditions.iter().find(|c| c.kind == "Ready" && c.status == "True");
        let created = part.metadata.creation_timestamp.parse().unwrap_or(Timestamp::UNIX_EPOCH);
        let tracked = part.metadata.finalizers.iter().any(|name| name == TRACKING);
        let cost = part.metadata.annotations.as_ref().and_then(|marks| marks.get(DELETION_COST));
        Self {
            controller: part
                .metadata
                .owner_references
                .into_iter()
                .find(|owner| owner.controller == Some(true))
                .map(Arc::new),
            node: part.spec.node_name,
            phase: match &*part.status.phase {
                "Running" => Phase::Running,
                "Succeeded" => Phase::Succeeded,
                "Failed" => Phase::Failed,
                "Unknown" => Phase::Unknown,
                _ => Phase::Pending,
            },
            ready_since: ready
                .map(|c| c.last_transition_time.as_deref().and_then(|at| at.parse().ok()).unwrap_or(created)),
            created,
            restarts: part.status.container_statuses.iter().map(|c| c.restart_count).max().unwrap_or(0),
            deletion_cost: cost.and_then(|text| text.parse().ok()).unwrap_or(0),
            tracked,
            record: record.clone(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    metadata: MetaPart<'a>,
    spec: SpecPart,
    #[serde(borrow)]
    status: StatusPart<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MetaPart<'a> {
    #[serde(borrow)]
    creation_timestamp: Cow<'a, str>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Vec<Owner>,
    finalizers: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecPart {
    node_name: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StatusPart<'a> {
    #[serde(borrow)]
    phase: Cow<'a, str>,
    #[serde(borrow)]
    conditions: Vec<ConditionPart<'a>>,
    container_statuses: Vec<ContainerPart>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ConditionPart<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(borrow)]
    last_transition_time: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerPart {
    restart_count: i64,
}

/// All pods: by name, by controller, by node.
#[derive(Debug, Default)]
pub(super) struct Pods {
    all: BTreeMap<Name, Arc<Pod>>,
    /// By the controller's uid; those without a controller under the empty text.
    by_controller: BTreeMap<Box<str>, BTreeMap<Name, Arc<Pod>>>,
    by_node: BTreeMap<Box<str>, BTreeSet<Name>>,
}

impl Pods {
    /// Takes in an event; the pod before and after it.
    pub(super) fn observe(&mut self, event: &Event) -> (Option<Arc<Pod>>, Option<Arc<Pod>>) {
        let name: Name = (event.new.namespace.clone(), event.new.name.clone());
        let before = self.all.remove(&name);
        if let Some(pod) = &before {
            let uid = pod.controller.as_ref().map_or("", |owner| &owner.uid);
            if let Some(set) = self.by_controller.get_mut(uid) {
                set.remove(&name);
                if set.is_empty() {
                    self.by_controller.remove(uid);
                }
            }
            if let Some(set) = self.by_node.get_mut(&pod.node) {
                set.remove(&name);
                if set.is_empty() {
                    self.by_node.remove(&pod.node);
                }
            }
        }
        if event.kind == EventKind::Deleted {
            return (before, None);
        }
        let mut pod = Pod::read(&event.new);
        let uid: Box<str> = pod.controller.as_ref().map_or_else(|| "".into(), |owner| owner.uid.clone());
        let siblings = self.by_controller.entry(uid).or_default();
        if let Some((_, sibling)) = siblings.first_key_value()
            && sibling.controller == pod.controller
        {
            pod.controller.clone_from(&sibling.controller);
        }
        let pod = Arc::new(pod);
        siblings.insert(name.clone(), pod.clone());
        if !pod.node.is_empty() {
            self.by_node.entry(pod.node.clone()).or_default().insert(name.clone());
        }
        self.all.insert(name, pod.clone());
        (before, Some(pod))
    }

    /// One pod.
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        self.all.get(&(namespace.into(), name.into())).cloned()
    }

    /// The pods that a controller controls, by name.
    pub(super) fn controlled(&self, uid: &str) -> Vec<Arc<Pod>> {
        self.by_controller.get(uid).map(|set| set.values().cloned().collect()).unwrap_or_default()
    }

    /// The pods of a namespace that nobody controls.
    pub(super) fn uncontrolled(&self, namespace: &str) -> Vec<Arc<Pod>> {
        let from: Name = (namespace.into(), "".into());
        let Some(set) = self.by_controller.get("") else { return Vec::new() };
        set.range(from..).take_while(|((of, _), _)| &**of == namespace).map(|(_, pod)| pod.clone()).collect()
    }

    /// The pods of a namespace.
    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<Arc<Pod>> {
        let from: Name = (namespace.into(), "".into());
        self.all
            .range(from..)
            .take_while(|((of, _), _)| &**of == namespace)
            .map(|(_, pod)| pod.clone())
            .collect()
    }

    /// The pods on a node.
    pub(super) fn on_node(&self, node: &str) -> Vec<Arc<Pod>> {
        let names = self.by_node.get(node).into_iter().flatten();
        names.filter_map(|name| self.all.get(name).cloned()).collect()
    }
}

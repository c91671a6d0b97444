//! What is noted about the pods of a workload, and what is forgotten.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kruise_api::persistentpodstate::v1beta1::{PersistentPodState, PodState, RetentionPolicy, Spec, Status};

use super::status_write;
use crate::{
    effect::Effect,
    pod::{Condition, Pairs, Pod},
    statefulset::{ordinals::Ordinals, parts},
    text::Text,
};

/// The pods of a workload.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// The ordinals that it wants; nothing where its spec does not say.
    pub ordinals: Option<Ordinals>,
    /// The pods that it controls.
    pub pods: Vec<Arc<Pod>>,
}

/// Everything a pass may know. The order of lists does not matter.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The object.
    pub state: Arc<PersistentPodState>,
    /// The pods of its workload; nothing where it is gone or ends.
    pub members: Option<Members>,
    /// The labels of the [nodes that matter](wanted_nodes), without those that cannot be read.
    pub nodes: BTreeMap<Text, Pairs>,
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The write of the status, if something changed.
    pub status: Option<Effect>,
    /// Whether records are dropped. They do not come back.
    pub forgets: bool,
    /// The nodes that could not be read, sorted: their pods keep their records for now.
    pub unread: Vec<Text>,
    /// Records that stay because the name of their pod has no number, sorted.
    pub nameless: Vec<String>,
}

/// The nodes of the pods that are noted.
pub fn wanted_nodes(pods: &[Arc<Pod>]) -> BTreeSet<Text> {
    pods.iter().filter(|pod| is_notable(pod)).map(|pod| pod.spec.node_name.clone()).collect()
}

/// Decides.
pub fn decide(seen: &Observed) -> Plan {
    let state = &seen.state;
    let mut plan = Plan::default();
    let before = state.status.clone().unwrap_or_default().pod_states;
    let mut records = before.clone();
    match &seen.members {
        None => records.clear(),
        Some(members) => {
            note(seen, members, &mut records, &mut plan);
            if state.spec.persistent_pod_state_retention_policy != Some(RetentionPolicy::WhenDeleted) {
                forget(members, &mut records, &mut plan);
            }
        }
    }
    plan.forgets = before.keys().any(|pod| !records.contains_key(pod));
    let observed_generation = state.metadata.generation.unwrap_or(0);
    plan.status = status_write(state, &Status { observed_generation, pod_states: records });
    plan
}

/// Notes the pods that are ready.
fn note(seen: &Observed, members: &Members, records: &mut BTreeMap<String, PodState>, plan: &mut Plan) {
    let spec = &seen.state.spec;
    let labels = label_keys(spec);
    let annotations: BTreeSet<&str> =
        spec.persistent_pod_annotations.iter().map(|annotation| annotation.key.as_str()).collect();
    let mut unread = BTreeSet::new();
    for pod in members.pods.iter().filter(|pod| is_notable(pod)) {
        let node = &pod.spec.node_name;
        let Some(known) = seen.nodes.get(node) else {
            unread.insert(node.clone());
            continue;
        };
        let now = PodState {
            node_name: Some(node.to_string()),
            node_topology_labels: chosen(&labels, known),
            annotations: chosen(&annotations, &pod.metadata.annotations),
        };
        match records.get(pod.metadata.name.as_str()) {
            Some(before) if is_like(before, &now) => {}
            _ => {
                records.insert(pod.metadata.name.to_string(), now);
            }
        }
    }
    plan.unread = unread.into_iter().collect();
}

/// Forgets the pods that the workload does not want any more, once they are gone.
fn forget(members: &Members, records: &mut BTreeMap<String, PodState>, plan: &mut Plan) {
    let Some(ordinals) = &members.ordinals else { return };
    let active: BTreeSet<&str> =
        members.pods.iter().filter(|pod| pod.is_active()).map(|pod| pod.metadata.name.as_str()).collect();
    let nameless = &mut plan.nameless;
    records.retain(|name, _| match parts(name) {
        Some((_, ordinal)) => ordinals.contains(ordinal) || active.contains(name.as_str()),
        None => {
            nameless.push(name.clone());
            true
        }
    });
}

/// Whether it is noted where a pod is: only a pod that is ready has arrived.
fn is_notable(pod: &Pod) -> bool {
    pod.is_active()
        && !pod.metadata.unreadable
        && !pod.spec.node_name.is_empty()
        && pod.condition("Ready").is_some_and(Condition::is_true)
}

/// The node labels that are noted.
fn label_keys(spec: &Spec) -> BTreeSet<&str> {
    let required = spec.required_persistent_topology.iter().flat_map(|topology| &topology.keys);
    let preferred = spec.preferred_persistent_topology.iter().flat_map(|wish| &wish.preference.keys);
    required.chain(preferred).map(String::as_str).collect()
}

fn chosen(keys: &BTreeSet<&str>, pairs: &Pairs) -> BTreeMap<String, String> {
    let found = keys.iter().filter_map(|key| Some(((*key).to_owned(), pairs.text(key)?.to_owned())));
    found.collect()
}

/// Whether a record is about the same node and the same keys. Values are those of the time when the pod arrived.
fn is_like(before: &PodState, now: &PodState) -> bool {
    before.node_name == now.node_name
        && before.node_topology_labels.keys().eq(now.node_topology_labels.keys())
        && before.annotations.keys().eq(now.annotations.keys())
}

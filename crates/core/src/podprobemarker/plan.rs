//! The next step for one marker.

use std::{collections::BTreeMap, sync::Arc};

use kruise_api::{finalizers::POD_PROBE_MARKER as FINALIZER, podprobemarker::v1alpha1::PodProbeMarker};
use serde_json::json;

use super::{Marker, POD_PROBE_MARKER, by_conditions, is_probed};
use crate::{
    effect::{Effect, Patch, Target},
    node::Node,
    object::ObjectKey,
    pod::Pod,
    text::Text,
};

/// Everything a pass may know.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The marker.
    pub marker: Arc<PodProbeMarker>,
    /// The pods of its namespace, in the order of their names.
    pub pods: Vec<Arc<Pod>>,
    /// The nodes of those pods.
    pub nodes: BTreeMap<Text, Arc<Node>>,
    /// Whether a node still has a probe of it.
    pub is_listed: bool,
    /// Whether pods on nodes without a daemon are marked.
    pub serverless: bool,
}

/// What to do next, as data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes, in any order.
    pub effects: Vec<Effect>,
    /// What the marker waits for, if it waits.
    pub waits: Option<Waits>,
}

/// What a marker waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// It is to go, and nodes still have probes of it.
    ForNodes,
}

impl Waits {
    /// The reason in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ForNodes => "probes of the marker are still listed for nodes",
        }
    }
}

/// Decides the next step for a marker.
pub fn plan(seen: &Observed) -> Plan {
    let marker = seen.marker.as_ref();
    let has_finalizer = finalizers(marker).any(|finalizer| finalizer == FINALIZER);
    if marker.metadata.deletion_timestamp.is_some() {
        return match (has_finalizer, seen.is_listed) {
            (false, _) => Plan::default(),
            (true, true) => Plan { waits: Some(Waits::ForNodes), ..Plan::default() },
            (true, false) => {
                let without = finalizers(marker).filter(|finalizer| *finalizer != FINALIZER).collect();
                Plan { effects: vec![write_finalizers(marker, without)], waits: None }
            }
        };
    }
    if !has_finalizer {
        let with = finalizers(marker).chain([FINALIZER]).collect();
        return Plan { effects: vec![write_finalizers(marker, with)], waits: None };
    }
    let matched = matching(seen);
    let mut effects = Vec::new();
    if seen.serverless {
        let without_daemon =
            |pod: &&&Pod| seen.nodes.get(&pod.spec.node_name).is_some_and(|node| node.is_virtual());
        let pods = matched.iter().filter(without_daemon);
        effects.extend(pods.filter_map(|pod| by_conditions(pod, &marker.spec.probes)));
    }
    effects.extend(status(marker, matched.len()));
    Plan { effects, waits: None }
}

/// The pods that can be asked: chosen, alive, initialised, and on a node that exists.
fn matching(seen: &Observed) -> Vec<&Pod> {
    let chooser = Marker::new(key(&seen.marker), false, Some(seen.marker.clone()));
    let pods = seen.pods.iter().map(Arc::as_ref);
    pods.filter(|pod| is_probed(pod) && chooser.chooses(pod) && seen.nodes.contains_key(&pod.spec.node_name))
        .collect()
}

fn status(marker: &PodProbeMarker, matched: usize) -> Option<Effect> {
    let generation = marker.metadata.generation.unwrap_or_default();
    let matched = i64::try_from(matched).unwrap_or(i64::MAX);
    let is_told = marker.status.as_ref().is_some_and(|status| {
        status.observed_generation == generation && status.matched_pods == Some(matched)
    });
    (!is_told).then(|| Effect::Patch {
        target: target(marker),
        subresource: Some("status"),
        patch: Patch::Merge(json!({"status": {"observedGeneration": generation, "matchedPods": matched}})),
    })
}

fn finalizers(marker: &PodProbeMarker) -> impl Iterator<Item = &str> {
    marker.metadata.finalizers.iter().flatten().map(String::as_str)
}

/// The list is written as a whole, so only to the version that it was read from.
fn write_finalizers(marker: &PodProbeMarker, finalizers: Vec<&str>) -> Effect {
    let version = marker.metadata.resource_version.as_deref().unwrap_or_default();
    Effect::Patch {
        target: target(marker).at_version(version.into()),
        subresource: None,
        patch: Patch::Merge(json!({"metadata": {"finalizers": finalizers}})),
    }
}

fn key(marker: &PodProbeMarker) -> ObjectKey {
    let metadata = &marker.metadata;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    ObjectKey::new(namespace, metadata.name.as_deref().unwrap_or_default())
}

fn target(marker: &PodProbeMarker) -> Target {
    Target::with_uid(POD_PROBE_MARKER, key(marker), marker.metadata.uid.as_deref().unwrap_or_default().into())
}

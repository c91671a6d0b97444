//! The nodes of a set with their pods, sorted once for a reconcile.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kruise_api::{gates::Gate, labels, lifecycle::State};

use super::{Desired, Fit, Limits, Observed, reference, revisions::Revisions};
use crate::{availability, lifecycle, node::Node, object::ObjectRef, ownership, pod::Pod, text::Text};

/// What a reconcile works with: the spec, and the nodes with their pods.
pub(super) struct View<'a> {
    pub(super) seen: &'a Observed,
    pub(super) desired: &'a Desired,
    pub(super) set: ObjectRef,
    /// Pods that belong to the set, also those that end or have ended, by name.
    pub(super) pods: Vec<&'a Pod>,
    /// Pods that do not belong to the set any more, by name.
    pub(super) released: Vec<&'a Pod>,
    /// Pods without a controller that the selector matches, by name.
    pub(super) orphans: Vec<&'a Pod>,
    /// The nodes that exist or have pods, by name.
    pub(super) places: BTreeMap<&'a str, Place<'a>>,
    pub(super) limits: Limits,
    pub(super) revisions: Revisions<'a>,
}

/// A node with its pods.
pub(super) struct Place<'a> {
    pub(super) name: &'a str,
    /// The node, if it exists.
    pub(super) node: Option<&'a Node>,
    pub(super) fit: Fit,
    /// Its pods, the one that stands for the node first.
    pub(super) pods: Vec<&'a Pod>,
    /// A pod that is to be adopted is on the node.
    pub(super) has_orphan: bool,
}

impl<'a> View<'a> {
    pub(super) fn new(seen: &'a Observed, desired: &'a Desired) -> Self {
        let set = reference(&seen.set);
        let ownership::Pods { active, inactive, released, orphans } =
            ownership::sort(&seen.pods, &set, &desired.matcher);
        let mut pods: Vec<&Pod> = active.into_iter().chain(inactive).collect();
        pods.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
        let mut places: BTreeMap<&str, Place<'_>> = BTreeMap::new();
        for node in &seen.nodes {
            let name = node.metadata.name.as_str();
            let fit = desired.placement.fit(node);
            places.insert(name, Place { node: Some(node), fit, ..Place::nowhere(name) });
        }
        for pod in &pods {
            let name = pod.node().as_str();
            // A pod that is bound to no node is nobody's concern.
            if !name.is_empty() {
                places.entry(name).or_insert_with(|| Place::nowhere(name)).pods.push(pod);
            }
        }
        for pod in &orphans {
            if let Some(place) = places.get_mut(pod.node().as_str()) {
                place.has_orphan = true;
            }
        }
        places.values_mut().for_each(Place::sort);
        let wanted = places.values().filter(|place| place.fit.should_run).count();
        let revisions = Revisions::of(seen, desired, &set);
        Self {
            seen,
            desired,
            set,
            pods,
            released,
            orphans,
            places,
            limits: desired.limits(wanted),
            revisions,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.seen.now
    }

    pub(super) fn gate(&self, gate: Gate) -> bool {
        self.seen.gates.enabled(gate)
    }

    /// Whether new pods are made beside old ones.
    pub(super) fn surges(&self) -> bool {
        self.limits.max_surge > 0
    }

    /// Whether a pod is on the revision of the template.
    pub(super) fn is_updated(&self, pod: &Pod) -> bool {
        if pod.metadata.labels.contains(labels::CONTROLLER_REVISION_HASH) {
            return self.revisions.is_updated(pod);
        }
        // Pods that a native DaemonSet left behind know the generation of their template only.
        let generation = self.desired.template_generation.as_deref();
        generation.is_some() && pod.metadata.labels.text(labels::POD_TEMPLATE_GENERATION) == generation
    }

    /// Whether a pod serves, as far as updates are concerned.
    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        availability::is_available(pod, self.desired.min_ready, self.now())
    }
}

impl<'a> Place<'a> {
    fn nowhere(name: &'a str) -> Self {
        Self { name, node: None, fit: Fit::default(), pods: Vec::new(), has_orphan: false }
    }

    /// The pod that was scheduled, and of these the oldest, stands for the node.
    fn sort(&mut self) {
        self.pods.sort_by(|left, right| {
            let key = |pod: &Pod| {
                let created = pod.metadata.creation_timestamp.unwrap_or(Timestamp::MAX);
                (pod.spec.node_name.is_empty(), created)
            };
            key(left).cmp(&key(right)).then_with(|| left.metadata.name.cmp(&right.metadata.name))
        });
    }

    /// Something on the node cannot be read. Then nothing is done there.
    pub(super) fn is_unreadable(&self) -> bool {
        self.pods.iter().any(|pod| pod.metadata.unreadable)
    }
}

/// Pods by uid.
pub(super) type Uids<'a> = BTreeSet<&'a Text>;

/// Whether the deletion of a pod was begun. One that was made not ready for it does not have the state yet: it comes with the
/// next write, whatever the set wants by then, or nobody would make the pod ready again.
pub(super) fn is_preparing_delete(pod: &Pod) -> bool {
    lifecycle::is(pod, &State::PreparingDelete) || lifecycle::is_held(pod)
}

pub(super) fn has_failed(pod: &Pod) -> bool {
    pod.status.phase == "Failed"
}

pub(super) fn has_succeeded(pod: &Pod) -> bool {
    pod.status.phase == "Succeeded"
}

//! The next step for one node.

use std::sync::Arc;

use kruise_api::nodepodprobe::v1alpha1::{NodePodProbe, PodProbe, PodProbeStatus, ProbeState};
use serde_json::json;

use super::{NODE_POD_PROBE, desired};
use crate::{
    effect::{Effect, Event, Level, Patch, Target},
    node::Node,
    object::ObjectKey,
    pod::Pod,
    podprobemarker::{self, Marker, by_results, full_name},
    text::Text,
};

/// Everything a pass may know.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The name of the node, and of the object.
    pub name: Text,
    /// The node.
    pub node: Option<Arc<Node>>,
    /// The object.
    pub object: Option<Arc<NodePodProbe>>,
    /// The pods on the node.
    pub pods: Vec<Arc<Pod>>,
    /// The markers of the namespaces of those pods, in the order of their keys: where two of them write the same, the first
    /// one does.
    pub markers: Vec<Marker>,
    /// Whether liveness probes that were taken from the kubelet are listed.
    pub liveness: bool,
}

/// What to do next, as data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes, in any order.
    pub effects: Vec<Effect>,
    /// What was left out, and why. To be told once.
    pub notices: Vec<Event>,
}

/// Decides the next step for a node.
pub fn plan(seen: &Observed) -> Plan {
    let node = seen.node.as_deref().filter(|node| !node.metadata.is_deleting() && !node.is_virtual());
    let effects = match (node, seen.object.as_deref()) {
        (Some(node), None) if node.status.ready_since.is_some() => vec![create(seen)],
        (_, None) => Vec::new(),
        (_, Some(object)) if object.metadata.deletion_timestamp.is_some() => Vec::new(),
        // There is no daemon any more that would look at it.
        (None, Some(object)) => vec![delete(seen, object)],
        (Some(_), Some(object)) => {
            let mut effects: Vec<Effect> = list(seen, object).into_iter().collect();
            effects.extend(marks(seen, object));
            return Plan { effects, notices: notices(seen) };
        }
    };
    Plan { effects, notices: Vec::new() }
}

/// The pods that want probes and have no address that a probe can go to.
fn notices(seen: &Observed) -> Vec<Event> {
    let odd = seen.pods.iter().filter(|pod| pod.is_active() && !desired::has_usable_address(pod));
    let mut odd: Vec<&Arc<Pod>> =
        odd.filter(|pod| !desired::probes(pod, &seen.markers, seen.liveness).is_empty()).collect();
    odd.sort_by_key(|pod| pod.metadata.key());
    odd.into_iter()
        .map(|pod| Event {
            regarding: pod.reference(),
            level: Level::Warning,
            reason: "ProbesLeftOut".into(),
            message: format!(
                "status.podIP {:?} is not an address of a pod, so nobody probes it",
                pod.status.pod_ip
            ),
        })
        .collect()
}

fn create(seen: &Observed) -> Effect {
    let object = json!({"metadata": {"name": seen.name}, "spec": {}});
    Effect::Create { resource: NODE_POD_PROBE, namespace: Text::default(), object }
}

fn delete(seen: &Observed, object: &NodePodProbe) -> Effect {
    Effect::Delete { target: target(seen, object), grace: None, follows: false }
}

fn target(seen: &Observed, object: &NodePodProbe) -> Target {
    let uid = object.metadata.uid.as_deref().unwrap_or_default();
    Target::with_uid(NODE_POD_PROBE, ObjectKey::cluster(seen.name.clone()), uid.into())
}

/// The write of the list, if it is to change. It is replaced as a whole, so only in the version that was read.
fn list(seen: &Observed, object: &NodePodProbe) -> Option<Effect> {
    let pods: Vec<&Pod> = seen.pods.iter().map(Arc::as_ref).collect();
    let wanted: Vec<PodProbe> = desired::list(&object.spec.pod_probes, &pods, &seen.markers, seen.liveness);
    (wanted != object.spec.pod_probes).then(|| {
        let version = object.metadata.resource_version.as_deref().unwrap_or_default();
        Effect::Patch {
            target: target(seen, object).at_version(version.into()),
            subresource: None,
            patch: Patch::Merge(json!({"spec": {"podProbes": wanted}})),
        }
    })
}

/// What the results change in the pods.
fn marks(seen: &Observed, object: &NodePodProbe) -> Vec<Effect> {
    let statuses =
        object.status.as_ref().map(|status| status.pod_probe_statuses.as_slice()).unwrap_or_default();
    let mut pods: Vec<&Pod> = seen.pods.iter().map(Arc::as_ref).filter(|pod| pod.is_active()).collect();
    pods.sort_by_key(|pod| pod.metadata.key());
    pods.into_iter()
        .filter_map(|pod| {
            let status = statuses.iter().find(|status| is_about(status, pod))?;
            by_results(pod, &results(pod, status, &seen.markers))
        })
        .collect()
}

fn is_about(status: &PodProbeStatus, pod: &Pod) -> bool {
    *pod.metadata.uid == status.uid
        && *pod.metadata.name == status.name
        && *pod.metadata.namespace == status.namespace
}

/// The results of probes that the pod still has, in the order of the markers. What nobody asks any more, and what is no
/// probe of a marker, says nothing.
fn results<'a>(
    pod: &Pod,
    status: &'a PodProbeStatus,
    markers: &'a [Marker],
) -> Vec<podprobemarker::Result<'a>> {
    let chosen = markers.iter().filter(|marker| marker.chooses(pod));
    let probes = chosen.flat_map(|marker| marker.probes().iter().map(move |probe| (marker, probe)));
    probes
        .filter_map(|(marker, probe)| {
            let name = full_name(&marker.key.name, &probe.name);
            let state: &ProbeState = status.probe_states.iter().find(|state| state.name == name)?;
            Some(podprobemarker::Result {
                probe,
                state: state.state.clone(),
                message: state.message.as_deref().unwrap_or_default(),
                probed: state.last_probe_time,
                changed: state.last_transition_time,
            })
        })
        .collect()
}

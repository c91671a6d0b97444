//! NodePodProbe v1alpha1, the only version.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    names::APPS_GROUP,
    probe::{Probe, State},
    time::Time,
};

crate::kind! {
    /// The probes that one node runs in pods, and what they found.
    NodePodProbe { group: APPS_GROUP, version: "v1alpha1", plural: "nodepodprobes", scope: Cluster,
        spec: Spec, status: Status }
}

/// Which probes the node runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The pods on the node that have probes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pod_probes: Vec<PodProbe>,
}

/// The probes of one pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodProbe {
    /// The name of the pod.
    pub name: String,
    /// The namespace of the pod.
    pub namespace: String,
    /// The uid of the pod: a namesake made later is someone else.
    pub uid: String,
    /// The address that HTTP and TCP probes ask.
    #[serde(rename = "IP")]
    pub ip: String,
    /// The probes that run in its containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ContainerProbe>,
}

/// A probe of one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerProbe {
    /// The name of the PodProbeMarker and of its probe, with # between them.
    pub name: String,
    /// The container that is asked.
    pub container_name: String,
    /// What is asked, and how often.
    pub probe: Probe,
}

/// What the probes found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The pods on the node that have probes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pod_probe_statuses: Vec<PodProbeStatus>,
}

/// What the probes of one pod found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodProbeStatus {
    /// The name of the pod.
    pub name: String,
    /// The namespace of the pod.
    pub namespace: String,
    /// The uid of the pod.
    pub uid: String,
    /// What each probe found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probe_states: Vec<ProbeState>,
}

/// What one probe found.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbeState {
    /// The name of the probe, as in the spec.
    pub name: String,
    /// Succeeded, Failed or Unknown.
    pub state: State,
    /// When the probe last ran.
    pub last_probe_time: Option<Time>,
    /// When the state last changed.
    pub last_transition_time: Option<Time>,
    /// What the probe said, for instance the output of its command.
    pub message: Option<String>,
}

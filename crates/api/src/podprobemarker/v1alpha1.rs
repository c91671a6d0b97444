//! PodProbeMarker v1alpha1, the only version.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    names::APPS_GROUP,
    probe::{Probe, State},
    selector::LabelSelector,
};

crate::kind! {
    /// Runs probes in pods and marks the pods with what they found.
    PodProbeMarker { group: APPS_GROUP, version: "v1alpha1", plural: "podprobemarkers", scope: Namespaced,
        spec: Spec, status: Status }
}

/// Which pods are asked, and what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Chooses the pods in this namespace. It must not be empty and never changes.
    pub selector: LabelSelector,
    /// The probes, at least one.
    pub probes: Vec<PodContainerProbe>,
}

/// One probe of one container, and what its result does to the pod.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodContainerProbe {
    /// The name of the probe, once in this object and without #.
    pub name: String,
    /// The container that is asked.
    pub container_name: String,
    /// What is asked, and how often.
    pub probe: Probe,
    /// The labels and annotations that the pod gets for a result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marker_policy: Vec<MarkerPolicy>,
    /// The condition of the pod that says whether the probe succeeded. None is written unless given.
    pub pod_condition_type: Option<String>,
}

/// What a pod is marked with while a probe has one result. The marks go when the result changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarkerPolicy {
    /// The result: Succeeded or Failed.
    pub state: State,
    /// Labels that the pod gets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations that the pod gets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// What the controller last saw.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The generation of the spec that this status is about.
    pub observed_generation: i64,
    /// How many running pods the selector chooses.
    pub matched_pods: Option<i64>,
}

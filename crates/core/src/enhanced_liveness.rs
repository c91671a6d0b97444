//! Liveness probes that the daemon runs instead of the kubelet, with restarts that respect budgets.
//!
//! A pod that asks for it loses its liveness probes when it is [made](take::step); an annotation remembers them. The node of
//! the pod runs them like [other probes](crate::nodepodprobe), and what fails is restarted through a
//! ContainerRecreateRequest when [nothing stands against it](decide::decide).

pub mod budget;
pub mod decide;
pub mod pace;
pub mod take;
#[cfg(test)]
mod tests;

use kruise_api::{
    annotations::{CONTAINER_PROBE_CONTEXT, USING_ENHANCED_LIVENESS},
    nodepodprobe::v1alpha1::ContainerProbe,
    probe::Probe,
};
use serde::{Deserialize, Serialize};

use crate::pod::Pod;

/// What the annotation remembers of one container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taken {
    /// The container.
    pub name: String,
    /// Its probe.
    pub liveness_probe: Probe,
}

/// The probes that were taken from a pod, while it is not switched off.
pub fn taken(pod: &Pod) -> Vec<Taken> {
    let annotations = &pod.metadata.annotations;
    if annotations.text(USING_ENHANCED_LIVENESS) != Some("true") {
        return Vec::new();
    }
    let context = annotations.text(CONTAINER_PROBE_CONTEXT).unwrap_or_default();
    serde_json::from_str(context).unwrap_or_default()
}

/// What a node calls the probe of a container. It has no separator of markers, so none of them is meant.
pub fn probe_name(pod: &str, container: &str) -> String {
    format!("{pod}-{container}")
}

/// The probes that the node of a pod runs for it, with the numbers that the kubelet would have used.
pub fn probes(pod: &Pod) -> Vec<ContainerProbe> {
    let numbered = |probe: Probe| {
        let or = |number: Option<i32>, default| number.filter(|number| *number != 0).or(Some(default));
        Probe {
            period_seconds: or(probe.period_seconds, 10),
            timeout_seconds: or(probe.timeout_seconds, 1),
            success_threshold: or(probe.success_threshold, 1),
            failure_threshold: or(probe.failure_threshold, 3),
            ..probe
        }
    };
    let named = |Taken { name, liveness_probe }| ContainerProbe {
        name: probe_name(&pod.metadata.name, &name),
        container_name: name,
        probe: numbered(liveness_probe),
    };
    taken(pod).into_iter().map(named).collect()
}

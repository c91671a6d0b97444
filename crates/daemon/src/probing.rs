//! Probes on the node: questions that a NodePodProbe asks of containers, again and again.
//!
//! For every probe there is one [`Prober`]. It says when to ask, counts answers, and decides when an answer is worth
//! telling. Who asks and who writes is elsewhere.

mod ask;
mod prober;
mod results;
#[cfg(test)]
mod tests;

use std::time::Duration;

use kruise_api::{nodepodprobe::v1alpha1::Spec, probe::Probe};
use kruise_core::object::Resource;

pub use ask::{Answer, ask};
pub use prober::{Instance, Prober, Record, Turn};
pub use results::{Results, Written};

/// NodePodProbes, in the version that we read and write.
pub const NODE_POD_PROBE: Resource =
    Resource::cluster("apps.kruise.io", "v1alpha1", "NodePodProbe", "nodepodprobes");

/// Which probe of which container of which pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The uid of the pod.
    pub uid: String,
    /// The address of the pod.
    pub ip: String,
    /// The container.
    pub container: String,
    /// The name of the probe.
    pub probe: String,
}

/// All probes that are wanted.
pub fn wanted(spec: &Spec) -> Vec<(Id, Probe)> {
    let of_pod = |pod: &kruise_api::nodepodprobe::v1alpha1::PodProbe| {
        let pod = pod.clone();
        pod.probes.into_iter().map(move |one| {
            let id = Id {
                namespace: pod.namespace.clone(),
                pod: pod.name.clone(),
                uid: pod.uid.clone(),
                ip: pod.ip.clone(),
                container: one.container_name,
                probe: one.name,
            };
            (id, one.probe)
        })
    };
    spec.pod_probes.iter().flat_map(of_pod).collect()
}

/// A number of a probe: nothing and zero mean one.
fn at_least_one(number: Option<i32>) -> u32 {
    u32::try_from(number.unwrap_or(1)).unwrap_or(1).max(1)
}

/// The time between two questions.
pub fn period(probe: &Probe) -> Duration {
    Duration::from_secs(at_least_one(probe.period_seconds).into())
}

/// How long an answer may take.
pub fn patience(probe: &Probe) -> Duration {
    Duration::from_secs(at_least_one(probe.timeout_seconds).into())
}

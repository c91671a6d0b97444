//! NodePodProbe: which probes one node runs in which pods, and what they found.
//!
//! There is one for each node that has a daemon. A [pass](plan()) is about one node: it compares what all markers want of
//! the pods there with what the object lists, and writes what the probes found to the pods. Nobody else writes the list, so
//! nothing has to be cleaned up after markers, pods or selectors that have changed: what is not wanted any more is not there
//! after the next pass.

mod desired;
mod plan;
#[cfg(test)]
mod tests;
pub mod validate;

pub use plan::{Observed, Plan, plan};

use kruise_api::nodepodprobe::v1alpha1::NodePodProbe;

use crate::{object::Resource, podprobemarker};

/// NodePodProbes.
pub const NODE_POD_PROBE: Resource =
    Resource::cluster("apps.kruise.io", "v1alpha1", "NodePodProbe", "nodepodprobes");

/// The markers, as `namespace/name`, of the probes that a node lists. Some may come more than once.
pub fn listed_markers(object: &NodePodProbe) -> impl Iterator<Item = String> {
    object.spec.pod_probes.iter().flat_map(|pod| {
        let markers = pod.probes.iter().filter_map(|probe| podprobemarker::parts(&probe.name));
        markers.map(|(marker, _)| format!("{}/{marker}", pod.namespace))
    })
}

//! PodProbeMarkers: probes of users' own, whose results become conditions, labels and annotations of pods.
//!
//! What a node has to ask is decided [for the node](crate::nodepodprobe), from all markers at once. What is decided here for
//! one marker is the rest: how many pods it has, that it does not go before its probes are gone from all nodes, and the
//! marks of pods on nodes without a daemon, whose provider asks the questions itself.

mod chosen;
mod mark;
mod plan;
pub mod serverless;
#[cfg(test)]
mod tests;
pub mod validate;

pub use chosen::{Marker, Standing, is_probed};
pub use mark::{Result, by_conditions, by_results};
pub use plan::{Observed, Plan, Waits, plan};

use kruise_api::conditions::{IN_PLACE_UPDATE_READY, KRUISE_POD_READY};

use crate::object::Resource;

/// PodProbeMarkers.
pub const POD_PROBE_MARKER: Resource =
    Resource::namespaced("apps.kruise.io", "v1alpha1", "PodProbeMarker", "podprobemarkers");

/// Between the name of a marker and that of its probe.
const SEPARATOR: char = '#';

/// Conditions that others write. No probe may be called so, nor write one of them.
const RESERVED: [&str; 6] =
    ["PodScheduled", "Initialized", "Ready", "ContainersReady", KRUISE_POD_READY, IN_PLACE_UPDATE_READY];

/// What nodes call a probe of a marker.
pub fn full_name(marker: &str, probe: &str) -> String {
    format!("{marker}{SEPARATOR}{probe}")
}

/// The marker and the probe that a node means. Nothing for probes that belong to no marker.
pub fn parts(full: &str) -> Option<(&str, &str)> {
    full.split_once(SEPARATOR)
}

//! NodePodProbe: which probes one node runs in which pods, and what they found. Made and kept by the manager, one
//! for each node that has such pods.

pub mod v1alpha1;

use crate::{
    crd::{Conversion, Crd, Scope, Version},
    names::APPS_GROUP,
};

/// The CRD.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "NodePodProbe",
    plural: "nodepodprobes",
    short_names: &[],
    scope: Scope::Cluster,
    versions: &[Version::of::<v1alpha1::NodePodProbe>(&[], false)],
    conversion: Conversion::None,
    // Only the manager writes this kind, and it writes everything.
    defaults: |_| {},
    about: "The probes that one node runs in pods, and what they found. Made by the manager.",
};

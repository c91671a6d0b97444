//! PodProbeMarker: probes of the user's own, whose results become conditions, labels and annotations of the pod.

pub mod v1alpha1;

use crate::{
    crd::{Conversion, Crd, Scope, Version},
    names::APPS_GROUP,
};

/// The CRD.
pub const CRD: Crd = Crd {
    group: APPS_GROUP,
    kind: "PodProbeMarker",
    plural: "podprobemarkers",
    short_names: &[],
    scope: Scope::Namespaced,
    versions: &[Version::of::<v1alpha1::PodProbeMarker>(&[], false)],
    conversion: Conversion::None,
    // There is no mutating webhook for this kind: absent numbers get their value when a probe runs.
    defaults: |_| {},
    about: "Runs probes in pods and marks the pods with what they found.",
};

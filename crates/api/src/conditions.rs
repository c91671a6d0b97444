//! Conditions of pods that we write. A PodProbeMarker adds conditions with names of its user's own.

/// Also a readiness gate: false while someone holds the pod not ready. Its message is a sorted JSON list of those
/// who do; it is true when the list is empty.
pub const KRUISE_POD_READY: &str = "KruisePodReady";
/// Also a readiness gate: false while the pod is updated in place.
pub const IN_PLACE_UPDATE_READY: &str = "InPlaceUpdateReady";
/// Whether all SidecarSets of the pod can be upgraded in place.
pub const SIDECARSET_UPGRADABLE: &str = "SidecarSetUpgradable";
/// True when the sidecars of a finished job were ended.
pub const SIDECAR_TERMINATED: &str = "SidecarTerminated";

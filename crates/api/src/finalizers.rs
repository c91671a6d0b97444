//! Finalizers that we set. A tool that uninstalls must be able to take every one of them away.

/// On an ImagePullJob, until its copies of pull secrets are gone.
pub const IMAGE_PULL_JOB: &str = "apps.kruise.io/deletion-protection";
/// On an EphemeralJob, until its pods are released.
pub const EPHEMERAL_JOB: &str = "apps.kruise.io/ephemeralcontainers-cleanup";
/// On a PodProbeMarker, until its probes are gone from all nodes.
pub const POD_PROBE_MARKER: &str = "kruise.io/node-pod-probe-cleanup";
/// On a ContainerRecreateRequest, until the pod is no longer held not ready.
pub const CONTAINER_RECREATE_REQUEST: &str = "crr.apps.kruise.io/unready-acquired";

/// All of them.
pub const ALL: &[&str] = &[IMAGE_PULL_JOB, EPHEMERAL_JOB, POD_PROBE_MARKER, CONTAINER_RECREATE_REQUEST];

//! Annotations that users, our controllers and other programs know by name.

/// On a workload: on how many nodes new images are pulled at once before an update.
pub const IMAGE_PREDOWNLOAD_PARALLELISM: &str = "apps.kruise.io/image-predownload-parallelism";
/// On a workload: seconds after which one pull ahead of an update counts as failed.
pub const IMAGE_PREDOWNLOAD_TIMEOUT_SECONDS: &str = "apps.kruise.io/image-predownload-timeout-seconds";
/// On a workload: how many updated pods must be ready before images are pulled ahead.
pub const IMAGE_PREDOWNLOAD_MIN_UPDATED_READY_PODS: &str =
    "apps.kruise.io/image-predownload-min-updated-ready-pods";

/// On a DaemonSet, v1alpha1: `"true"` lets the partition of the update hold back new pods too.
pub const DAEMONSET_PROGRESSIVE_CREATE_POD: &str = "daemonset.kruise.io/progressive-create-pod";

/// Annotations that conversion between versions moves into fields and back.
pub const CONVERTED: &[&str] = &[
    IMAGE_PREDOWNLOAD_PARALLELISM,
    IMAGE_PREDOWNLOAD_TIMEOUT_SECONDS,
    IMAGE_PREDOWNLOAD_MIN_UPDATED_READY_PODS,
    DAEMONSET_PROGRESSIVE_CREATE_POD,
];

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

/// On a PodUnavailableBudget, v1alpha1: the protected operations, separated by commas.
pub const PUB_PROTECT_OPERATIONS: &str = "kruise.io/pub-protect-operations";
/// On a PodUnavailableBudget, v1alpha1: the number of pods that percentages refer to.
pub const PUB_PROTECT_TOTAL_REPLICAS: &str = "pub.kruise.io/protect-total-replicas";

/// On a ContainerRecreateRequest, v1alpha1: the new containers of the pod as JSON, written by the manager.
pub const CRR_SYNC_CONTAINER_STATUSES: &str = "crr.apps.kruise.io/sync-container-statuses";
/// On a ContainerRecreateRequest, v1alpha1: since when the pod is held not ready.
pub const CRR_UNREADY_ACQUIRED: &str = "crr.apps.kruise.io/unready-acquired";

/// Annotations that conversion between versions moves into fields and back.
pub const CONVERTED: &[&str] = &[
    IMAGE_PREDOWNLOAD_PARALLELISM,
    IMAGE_PREDOWNLOAD_TIMEOUT_SECONDS,
    IMAGE_PREDOWNLOAD_MIN_UPDATED_READY_PODS,
    DAEMONSET_PROGRESSIVE_CREATE_POD,
    PUB_PROTECT_OPERATIONS,
    PUB_PROTECT_TOTAL_REPLICAS,
    CRR_SYNC_CONTAINER_STATUSES,
    CRR_UNREADY_ACQUIRED,
];

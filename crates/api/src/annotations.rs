//! Annotations that users, our controllers and other programs know by name.
//!
//! Each name stands here once, whoever writes it. The first words of a comment say on which object the annotation is.

// Updates in place and the life of a pod.

/// On a pod: what the last update in place did and still has to do, as JSON.
pub const IN_PLACE_UPDATE_STATE: &str = "apps.kruise.io/inplace-update-state";
/// On a pod: the older name of [`IN_PLACE_UPDATE_STATE`]. Read when the newer one is absent, never written.
pub const IN_PLACE_UPDATE_STATE_OLD: &str = "inplace-update-state";
/// On a pod: the update that is held back while the grace period runs, as JSON.
pub const IN_PLACE_UPDATE_GRACE: &str = "apps.kruise.io/inplace-update-grace";
/// On a pod: the older name of [`IN_PLACE_UPDATE_GRACE`]. Read when the newer one is absent, never written.
pub const IN_PLACE_UPDATE_GRACE_OLD: &str = "inplace-update-grace";
/// On a pod: names, ids, restart counts and hashes of its containers as JSON, written by the node daemon.
pub const RUNTIME_CONTAINERS_META: &str = "apps.kruise.io/runtime-containers-meta";
/// On a pod: when its [state](crate::labels::LIFECYCLE_STATE) last changed, in RFC 3339.
pub const LIFECYCLE_TIMESTAMP: &str = "lifecycle.apps.kruise.io/timestamp";
/// On a pod: a whole number. Pods with smaller numbers are deleted first when a workload shrinks.
pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

// Order of starting containers.

/// On a pod: `Ordered` starts its containers one after the other, in the order of the list.
pub const CONTAINER_LAUNCH_PRIORITY: &str = "apps.kruise.io/container-launch-priority";
/// On a pod: `"true"` when all its containers have started in order.
pub const CONTAINER_LAUNCH_PRIORITY_COMPLETED: &str = "apps.kruise.io/container-launch-priority-completed";

// Pulling images ahead of their use.

/// On a workload: on how many nodes new images are pulled at once before an update.
pub const IMAGE_PREDOWNLOAD_PARALLELISM: &str = "apps.kruise.io/image-predownload-parallelism";
/// On a workload: seconds after which one pull ahead of an update counts as failed.
pub const IMAGE_PREDOWNLOAD_TIMEOUT_SECONDS: &str = "apps.kruise.io/image-predownload-timeout-seconds";
/// On a workload: how many updated pods must be ready before images are pulled ahead.
pub const IMAGE_PREDOWNLOAD_MIN_UPDATED_READY_PODS: &str =
    "apps.kruise.io/image-predownload-min-updated-ready-pods";
/// On the copy of a pull secret: the secret that it was copied from, as `namespace/name`.
pub const PULL_SECRET_SOURCE_KEY: &str = "imagepulljobs.kruise.io/source-key";
/// On the copy of a pull secret: the jobs that use it, as `namespace/name`, sorted, separated by commas.
pub const PULL_SECRET_REFERENCES: &str = "imagepulljobs.kruise.io/references";
/// On the copy of a pull secret: how long NodeImages keep the reference to it. See [`PULL_SECRET_MODE_BATCH`].
pub const PULL_SECRET_MODE: &str = "imagepulljobs.kruise.io/mode";
/// Value of [`PULL_SECRET_MODE`]: as long as the image is in the list.
pub const PULL_SECRET_MODE_BATCH: &str = "batch";
/// On the sandbox of a pull, for plugins of the runtime: who pulls. See [`PULLING_IMAGE_BY_DAEMON`].
pub const PULLING_IMAGE_BY: &str = "apps.kruise.io/pulling-image-by";
/// Value of [`PULLING_IMAGE_BY`] for our node daemon.
pub const PULLING_IMAGE_BY_DAEMON: &str = "kruise-daemon";

// Workloads.

/// On a ControllerRevision of a CloneSet: the hash of its volume claim templates.
pub const CLONESET_VOLUME_CLAIM_TEMPLATE_HASH: &str = "kruise.io/cloneset-volumeclaimtemplate-hash";
/// On a volume claim: the StatefulSet that it belongs to.
pub const OWNED_BY_STATEFULSET: &str = "apps.kruise.io/owned-by-asts";
/// On a child of a UnitedDeployment: the patch of its subset.
pub const SUBSET_PATCH: &str = "apps.kruise.io/subset-patch";
/// On a DaemonSet, v1alpha1: `"true"` lets the partition of the update hold back new pods too.
pub const DAEMONSET_PROGRESSIVE_CREATE_POD: &str = "daemonset.kruise.io/progressive-create-pod";
/// On a DaemonSet whose manifest was exported from the built-in kind: the generation of its template. Has no effect.
pub const DAEMONSET_TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
/// On a BroadcastJob that pauses when pods fail: how many failed pods its user has seen when they let it go on.
pub const BROADCASTJOB_ACKNOWLEDGED_FAILED: &str = "apps.kruise.io/broadcastjob-acknowledged-failed";
/// On an object that an AdvancedCronJob made: the time it was due, in RFC 3339.
pub const SCHEDULED_AT: &str = "apps.kruise.io/scheduled-at";

// SidecarSet.

/// On a SidecarSet: the hash of its sidecars. On a pod: for each SidecarSet the hash it was injected with, as JSON.
pub const SIDECARSET_HASH: &str = "kruise.io/sidecarset-hash";
/// Like [`SIDECARSET_HASH`], but without the images, which can be changed in place.
pub const SIDECARSET_HASH_WITHOUT_IMAGE: &str = "kruise.io/sidecarset-hash-without-image";
/// On a pod: the names of the SidecarSets that were injected, separated by commas.
pub const SIDECARSET_INJECTED_LIST: &str = "kruise.io/sidecarset-injected-list";
/// On a pod: for each SidecarSet what its last update in place did, as JSON.
pub const SIDECARSET_IN_PLACE_UPDATE_STATE: &str = "kruise.io/sidecarset-inplace-update-state";
/// On a pod: for each sidecar that is upgraded hot the container that works now, as JSON.
pub const SIDECARSET_WORKING_HOT_UPGRADE_CONTAINER: &str =
    "kruise.io/sidecarset-working-hotupgrade-container";
/// On a pod, before the name of a container: its counter of hot upgrades.
pub const SIDECARSET_VERSION_PREFIX: &str = "version.sidecarset.kruise.io/";
/// On a pod, before the name of a container: the counter of its twin.
pub const SIDECARSET_VERSION_ALT_PREFIX: &str = "versionalt.sidecarset.kruise.io/";
/// On a SidecarSet: `"true"` when it is the trial of another one.
pub const SIDECARSET_CANARY: &str = "apps.kruise.io/sidecarset-canary";
/// On a SidecarSet that is a trial: the name of the other one. Never changes.
pub const SIDECARSET_BASE: &str = "apps.kruise.io/sidecarset-base";

// WorkloadSpread.

/// On a pod: the WorkloadSpread and the subset that it counts for, as JSON.
pub const MATCHED_WORKLOADSPREAD: &str = "apps.kruise.io/matched-workloadspread";
/// On a WorkloadSpread: does not compare the patches of subsets with pods that exist already.
pub const WORKLOADSPREAD_IGNORE_PATCH_METADATA: &str =
    "workloadspread.kruise.io/ignore-patch-existing-pods-metadata";

// PodUnavailableBudget.

/// On a PodUnavailableBudget, v1alpha1: the protected operations, separated by commas.
pub const PUB_PROTECT_OPERATIONS: &str = "kruise.io/pub-protect-operations";
/// On a PodUnavailableBudget, v1alpha1: the number of pods that percentages refer to.
pub const PUB_PROTECT_TOTAL_REPLICAS: &str = "pub.kruise.io/protect-total-replicas";
/// On a PodUnavailableBudget: announced by the reference and never read there.
pub const PUB_DISABLE_FETCH_REPLICAS: &str = "pub.kruise.io/disable-fetch-replicas-from-workload";
/// On a pod: true takes it out of every budget.
pub const PUB_NO_PROTECT: &str = "pub.kruise.io/no-protect";
/// On a pod: the budget that it belongs to.
pub const RELATED_PUB: &str = "pub.kruise.io/related-pub";
/// On a pod: the older name of [`RELATED_PUB`]. Both are written; the newer one is believed.
pub const RELATED_PUB_OLD: &str = "kruise.io/related-pub";

// PersistentPodState.

/// On a pod: the PersistentPodState that chose its node.
pub const INJECTED_PERSISTENT_POD_STATE: &str = "kruise.io/injected-persistent-pod-state";
/// On a StatefulSet: `"true"` makes a PersistentPodState for it.
pub const AUTO_GENERATE_PERSISTENT_POD_STATE: &str = "kruise.io/auto-generate-persistent-pod-state";
/// On a StatefulSet: node labels that a pod must find again, separated by commas.
pub const REQUIRED_PERSISTENT_TOPOLOGY: &str = "kruise.io/required-persistent-topology";
/// On a StatefulSet: node labels that a pod should find again, separated by commas.
pub const PREFERRED_PERSISTENT_TOPOLOGY: &str = "kruise.io/preferred-persistent-topology";
/// On a StatefulSet: annotations that a pod gets again, separated by commas.
pub const PERSISTENT_POD_ANNOTATIONS: &str = "kruise.io/persistent-pod-annotations";

// Probes.

/// On a pod for a node without daemon: the probes that the provider of the node runs, as JSON.
pub const POD_PROBE: &str = "kruise.io/podprobe";
/// On a pod for a node without daemon: the PodProbeMarkers of its probes, separated by commas.
pub const POD_PROBE_MARKER_LIST: &str = "kruise.io/podprobemarker-list";
/// On a pod: `"true"` gives its liveness probes to us instead of the kubelet.
pub const USING_ENHANCED_LIVENESS: &str = "apps.kruise.io/using-enhanced-liveness";
/// On a pod: the liveness probes that were taken out of it, as JSON.
pub const CONTAINER_PROBE_CONTEXT: &str = "apps.kruise.io/container-probe-context";

// ContainerRecreateRequest.

/// On a ContainerRecreateRequest, v1alpha1: the new containers of the pod as JSON, written by the manager.
pub const CRR_SYNC_CONTAINER_STATUSES: &str = "crr.apps.kruise.io/sync-container-statuses";
/// On a ContainerRecreateRequest, v1alpha1: since when the pod is held not ready.
pub const CRR_UNREADY_ACQUIRED: &str = "crr.apps.kruise.io/unready-acquired";

// ResourceDistribution.

/// On a distributed object: the hash of what it was made from.
pub const RESOURCE_DISTRIBUTION_HASH: &str = "kruise.io/resourcedistribution.resource.hashcode";
/// On a distributed object: the ResourceDistribution that made it.
pub const RESOURCE_DISTRIBUTION_FROM: &str = "kruise.io/resourcedistribution.resource.from";

// The installation and other programs.

/// On a webhook configuration: its whole list of webhooks as JSON, so that one that was left out can come back.
pub const WEBHOOK_TEMPLATE: &str = "template";
/// On any object: what `kubectl apply` sent last. Never copied to another object.
pub const LAST_APPLIED_CONFIGURATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// On a workload and its revisions: why it was changed, in the words of whoever did it.
pub const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";
/// On a pod template: when someone asked for a restart, in RFC 3339.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

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

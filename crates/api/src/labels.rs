//! Labels that users, our controllers and other programs know by name.
//!
//! Each name stands here once, whoever writes it. The first words of a comment say on which object the label is.

// Protection.

/// On a namespace, CRD, workload, Service or Ingress: refuses its deletion, see [`DELETE_PROTECTION_ALWAYS`] and
/// [`DELETE_PROTECTION_CASCADING`]. Other values have no effect.
pub const DELETE_PROTECTION: &str = "policy.kruise.io/delete-protection";
/// Value of [`DELETE_PROTECTION`]: the object is never deleted.
pub const DELETE_PROTECTION_ALWAYS: &str = "Always";
/// Value of [`DELETE_PROTECTION`]: the object is not deleted while something is in it or belongs to it. Not for
/// Services and Ingresses.
pub const DELETE_PROTECTION_CASCADING: &str = "Cascading";
/// On a pod, as the beginning of a label: while one is there, the pod counts as unavailable although it is ready.
pub const UNAVAILABLE_POD_PREFIX: &str = "unavailable-pod.kruise.io/";

// Pods of workloads.

/// On a pod: any value makes its workload delete or replace this pod first.
pub const SPECIFIED_DELETE: &str = "apps.kruise.io/specified-delete";
/// On a pod: its revision, as the name of the revision or only its hash. Also on an ImageListPullJob and its
/// children: the hash of the template.
pub const CONTROLLER_REVISION_HASH: &str = "controller-revision-hash";
/// On a pod of a CloneSet: the hash of its revision, without the name.
pub const POD_TEMPLATE_HASH: &str = "pod-template-hash";
/// On a pod of a built-in DaemonSet: the generation of its template. Read for take-over only.
pub const POD_TEMPLATE_GENERATION: &str = "pod-template-generation";
/// On a pod: where it stands between its hooks, a [`State`](crate::lifecycle::State).
pub const LIFECYCLE_STATE: &str = "lifecycle.apps.kruise.io/state";
/// On a ControllerRevision or ImagePullJob: the short hash of the revision.
pub const REVISION_HASH: &str = "controller.kubernetes.io/hash";

// CloneSet.

/// On a pod or volume claim of a CloneSet: the random id that a pod and its claims share.
pub const CLONESET_INSTANCE_ID: &str = "apps.kruise.io/cloneset-instance-id";
/// On a CloneSet, v1alpha1: `"true"` keeps pods that wait for their deletion out of the count while scaling.
pub const CLONESET_SCALING_EXCLUDE_PREPARING_DELETE: &str =
    "apps.kruise.io/cloneset-scaling-exclude-preparing-delete";

// StatefulSet.

/// On a pod of a StatefulSet: its own name, so that a Service can choose one pod.
pub const STATEFULSET_POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// On a pod of a StatefulSet: its ordinal.
pub const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

// UnitedDeployment.

/// On a child of a UnitedDeployment and on its pods: the name of the revision.
pub const UNITED_DEPLOYMENT_REVISION: &str = "apps.kruise.io/controller-revision-hash";
/// On a child of a UnitedDeployment and on its pods: the subset.
pub const SUBSET_NAME: &str = "apps.kruise.io/subset-name";
/// On a pod of a UnitedDeployment: `"true"` while it waits in a subset for a place, `"false"` after that.
pub const UNITED_DEPLOYMENT_RESERVED_POD: &str = "apps.kruise.io/united-deployment-reserved-pod";

// Pulling images ahead of an update.

/// On a ControllerRevision: `"true"` when the jobs that pull its images were made. The spelling is what clusters have.
pub const PRE_PREDOWNLOAD_CREATED: &str = "apps.kruise.io/pre-predownload-created";
/// On a ControllerRevision: `"true"` when its images need not be pulled ahead.
pub const IMAGE_PREDOWNLOAD_IGNORED: &str = "apps.kruise.io/image-predownload-ignored";
/// On the copy of a pull secret: the uid of the source. Written by old versions only; ignored.
pub const PULL_SECRET_SOURCE_UID: &str = "imagepulljobs.kruise.io/source-uid";
/// On a NodeImage: any value keeps it although there is no such node.
pub const FAKE_NODE_IMAGE: &str = "apps.kruise.io/fake-nodeimage";

// SidecarSet.

/// On a SidecarSet, v1alpha1, and on its ControllerRevisions: the name its author gives to this state of the
/// sidecars.
pub const SIDECARSET_CUSTOM_VERSION: &str = "apps.kruise.io/sidecarset-custom-version";
/// On a ControllerRevision: the SidecarSet that it belongs to.
pub const SIDECARSET_NAME: &str = "kruise.io/sidecarset-name";

// BroadcastJob.

/// On a pod of a BroadcastJob: the name of the job. Refused in the templates of users.
pub const BROADCASTJOB_NAME: &str = "broadcastjob-name";
/// On a pod of a BroadcastJob: the uid of the job. Refused in the templates of users.
pub const BROADCASTJOB_CONTROLLER_UID: &str = "broadcastjob-controller-uid";

// ContainerRecreateRequest.

/// On a ContainerRecreateRequest: the uid of the pod. Never changes.
pub const CRR_POD_UID: &str = "crr.apps.kruise.io/pod-uid";
/// On a ContainerRecreateRequest that stands for a failed liveness probe: the name of the pod.
pub const CRR_POD_NAME: &str = "crr.apps.kruise.io/pod-name";
/// On a ContainerRecreateRequest: the node of the pod, by which its daemon finds the request. Never changes.
pub const CRR_NODE_NAME: &str = "crr.apps.kruise.io/node-name";
/// On a ContainerRecreateRequest: `"true"` until it is completed.
pub const CRR_ACTIVE: &str = "crr.apps.kruise.io/active";

// Namespaces, nodes and other programs.

/// On every namespace: its name, written by the API server.
pub const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// On the namespace of an installation, and on our own pods: what part of it they are. See [`CONTROL_PLANE_VALUE`].
pub const CONTROL_PLANE: &str = "control-plane";
/// Value of [`CONTROL_PLANE`] on a namespace whose pods our webhooks leave alone, so that we can always start.
pub const CONTROL_PLANE_VALUE: &str = "openkruise";
/// On a node: what kind of node it is. See [`VIRTUAL_KUBELET`].
pub const NODE_TYPE: &str = "type";
/// Value of [`NODE_TYPE`]: a node without a node daemon.
pub const VIRTUAL_KUBELET: &str = "virtual-kubelet";
/// On a workload, as the beginning of a label or annotation: belongs to Kruise Rollouts and is never taken away.
pub const ROLLOUTS_PREFIX: &str = "rollouts.kruise.io/";

/// Labels that conversion between versions moves into fields and back.
pub const CONVERTED: &[&str] = &[CLONESET_SCALING_EXCLUDE_PREPARING_DELETE, SIDECARSET_CUSTOM_VERSION];

//! Who says an event: the component in `kubectl describe`.

/// CloneSet.
pub const CLONESET: &str = "cloneset-controller";
/// Our StatefulSet. The built-in one has the same name.
pub const STATEFULSET: &str = "statefulset-controller";
/// Our DaemonSet. The built-in one has the same name.
pub const DAEMONSET: &str = "daemonset-controller";
/// BroadcastJob.
pub const BROADCASTJOB: &str = "broadcastjob-controller";
/// AdvancedCronJob.
pub const ADVANCEDCRONJOB: &str = "advancedcronjob-controller";
/// SidecarSet.
pub const SIDECARSET: &str = "sidecarset-controller";
/// UnitedDeployment.
pub const UNITEDDEPLOYMENT: &str = "uniteddeployment-controller";
/// WorkloadSpread.
pub const WORKLOADSPREAD: &str = "workloadspread-controller";
/// PodUnavailableBudget, for events about the budget.
pub const PODUNAVAILABLEBUDGET: &str = "podunavailablebudget-controller";
/// PodUnavailableBudget, for events about pods.
pub const PUB: &str = "pub-controller";
/// NodeImage.
pub const NODEIMAGE: &str = "nodeimage-controller";
/// ImageListPullJob.
pub const IMAGELISTPULLJOB: &str = "imagelistpulljob-controller";
/// EphemeralJob.
pub const EPHEMERALJOB: &str = "ephemeraljob-controller";
/// The one that ends sidecars of finished jobs.
pub const SIDECAR_TERMINATOR: &str = "sidecarterminator-controller";
/// The one that starts containers in order.
pub const CONTAINER_LAUNCH_PRIORITY: &str = "container-launch-priority-controller";

/// The part of the node daemon that pulls images. The host of its events, like that of the next three, is the node.
pub const DAEMON_IMAGE_PULLER: &str = "kruise-daemon-imagepuller";
/// The part of the node daemon that recreates containers.
pub const DAEMON_CONTAINER_RECREATE: &str = "kruise-daemon-crr";
/// The part of the node daemon that reports the hashes of containers.
pub const DAEMON_CONTAINER_META: &str = "kruise-daemon-containermeta";
/// The part of the node daemon that runs probes.
pub const DAEMON_POD_PROBE: &str = "kruise-daemon-podprobe";

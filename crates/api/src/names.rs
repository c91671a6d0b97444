//! Names of things that an installation consists of.

/// API group of the workloads and operations.
pub const APPS_GROUP: &str = "apps.kruise.io";
/// API group of the protection policies.
pub const POLICY_GROUP: &str = "policy.kruise.io";

/// Namespace of manager and daemon unless configured otherwise.
pub const NAMESPACE: &str = "kruise-system";
/// Namespace of the copies of pull secrets unless configured otherwise. The daemon reads secrets only here.
pub const DAEMON_CONFIG_NAMESPACE: &str = "kruise-daemon-config";
/// Namespace that pod webhooks never touch.
pub const KUBE_SYSTEM: &str = "kube-system";
/// The namespace of what everybody may read.
pub const KUBE_PUBLIC: &str = "kube-public";

/// Service in front of the webhooks.
pub const WEBHOOK_SERVICE: &str = "kruise-webhook-service";
/// Secret with the certificates of the webhooks.
pub const WEBHOOK_SECRET: &str = "kruise-webhook-certs";
/// The MutatingWebhookConfiguration.
pub const MUTATING_WEBHOOK_CONFIGURATION: &str = "kruise-mutating-webhook-configuration";
/// The ValidatingWebhookConfiguration.
pub const VALIDATING_WEBHOOK_CONFIGURATION: &str = "kruise-validating-webhook-configuration";
/// Lease by which one manager leads.
pub const LEASE: &str = "kruise-manager";
/// Service account and DaemonSet of the node daemon, and the name by which its client introduces itself.
pub const DAEMON: &str = "kruise-daemon";

/// ConfigMap with settings that need no restart, in the namespace of the manager.
pub const CONFIGURATION: &str = "kruise-configuration";
/// Key of [`CONFIGURATION`]: the pod annotations that SidecarSets may patch, as JSON.
pub const SIDECARSET_PATCH_WHITE_LIST: &str = "SidecarSet_PatchPodMetadata_WhiteList";
/// Key of [`CONFIGURATION`]: the kinds of workloads besides StatefulSet for PersistentPodState, as JSON.
pub const PERSISTENT_POD_STATE_WHITE_LIST: &str = "PPS_Watch_Custom_Workload_WhiteList";
/// Key of [`CONFIGURATION`]: the kinds of workloads besides the known ones for WorkloadSpread, as JSON.
pub const WORKLOADSPREAD_WHITE_LIST: &str = "WorkloadSpread_Watch_Custom_Workload_WhiteList";

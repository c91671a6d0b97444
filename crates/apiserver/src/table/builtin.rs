//! Which columns each built-in kind has, as data.

use super::{Column, cluster, config, pod, workload};
use jiff::Timestamp;
use serde_json::Value;

/// A kind with its columns and the function that fills a row.
#[derive(Debug)]
pub(super) struct Kind {
    group: &'static str,
    pub(super) kind: &'static str,
    pub(super) columns: &'static [Column],
    pub(super) cells: fn(&Value, Timestamp) -> Vec<Value>,
}

/// The kind, or the one for kinds without columns of their own.
pub(super) fn find(group: &str, kind: &str) -> &'static Kind {
    KINDS.iter().find(|row| row.group == group && row.kind == kind).unwrap_or(&OTHER)
}

const NAME: Column = text("Name");
const AGE: Column = text("Age");
const CONTAINERS: Column = wide("Containers");
const IMAGES: Column = wide("Images");
const SELECTOR: Column = wide("Selector");

const fn text(name: &'static str) -> Column {
    Column::new(name, "string", 0)
}

const fn wide(name: &'static str) -> Column {
    Column::new(name, "string", 1)
}

const fn integer(name: &'static str) -> Column {
    Column::new(name, "integer", 0)
}

const fn boolean(name: &'static str) -> Column {
    Column::new(name, "boolean", 0)
}

static OTHER: Kind = Kind {
    group: "",
    kind: "",
    columns: &[NAME, Column::new("Created At", "date", 0)],
    cells: cluster::created_at,
};

const WEBHOOKS: &[Column] = &[NAME, integer("Webhooks"), AGE];
const BINDING: &[Column] = &[NAME, text("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")];
const EVENT: &[Column] = &[
    text("Last Seen"),
    text("Type"),
    text("Reason"),
    text("Object"),
    wide("Subobject"),
    wide("Source"),
    text("Message"),
    wide("First Seen"),
    wide("Count"),
    wide("Name"),
];
const USAGE: &[Column] = &[NAME, text("cpu"), text("memory"), text("Window")];
const METRICS: &str = "metrics.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

#[rustfmt::skip]
static KINDS: &[Kind] = &[
    Kind { group: "", kind: "Pod", cells: pod::cells, columns: &[
        NAME, text("Ready"), text("Status"), text("Restarts"), AGE, wide("IP"), wide("Node"), wide("Nominated Node"),
        wide("Readiness Gates")] },
    Kind { group: "", kind: "PodTemplate", cells: config::pod_template, columns: &[
        NAME, text("Containers"), text("Images"), text("Pod Labels")] },
    Kind { group: "", kind: "ReplicationController", cells: workload::replica_set, columns: &[
        NAME, integer("Desired"), integer("Current"), integer("Ready"), AGE, CONTAINERS, IMAGES, SELECTOR] },
    Kind { group: "", kind: "Service", cells: cluster::service, columns: &[
        NAME, text("Type"), text("Cluster-IP"), text("External-IP"), text("Port(s)"), AGE, SELECTOR] },
    Kind { group: "", kind: "Endpoints", cells: cluster::endpoints, columns: &[NAME, text("Endpoints"), AGE] },
    Kind { group: "", kind: "Node", cells: cluster::node, columns: &[
        NAME, text("Status"), text("Roles"), AGE, text("Version"), wide("Internal-IP"), wide("External-IP"),
        wide("OS-Image"), wide("Kernel-Version"), wide("Container-Runtime")] },
    Kind { group: "", kind: "Event", cells: cluster::event, columns: EVENT },
    Kind { group: "events.k8s.io", kind: "Event", cells: cluster::event, columns: EVENT },
    Kind { group: "", kind: "Namespace", cells: config::namespace, columns: &[NAME, text("Status"), AGE] },
    Kind { group: "", kind: "Secret", cells: config::secret, columns: &[NAME, text("Type"), text("Data"), AGE] },
    Kind { group: "", kind: "ConfigMap", cells: cluster::config_map, columns: &[NAME, text("Data"), AGE] },
    Kind { group: "", kind: "ServiceAccount", cells: config::service_account, columns: &[NAME, AGE] },
    Kind { group: "", kind: "PersistentVolume", cells: cluster::persistent_volume, columns: &[
        NAME, text("Capacity"), text("Access Modes"), text("Reclaim Policy"), text("Status"), text("Claim"),
        text("StorageClass"), text("VolumeAttributesClass"), text("Reason"), AGE, wide("VolumeMode")] },
    Kind { group: "", kind: "PersistentVolumeClaim", cells: cluster::persistent_volume_claim, columns: &[
        NAME, text("Status"), text("Volume"), text("Capacity"), text("Access Modes"), text("StorageClass"),
        text("VolumeAttributesClass"), AGE, wide("VolumeMode")] },
    Kind { group: "", kind: "ResourceQuota", cells: cluster::resource_quota, columns: &[
        NAME, text("Request"), text("Limit"), AGE] },
    Kind { group: "apps", kind: "Deployment", cells: workload::deployment, columns: &[
        NAME, text("Ready"), text("Up-to-date"), text("Available"), AGE, CONTAINERS, IMAGES, SELECTOR] },
    Kind { group: "apps", kind: "ReplicaSet", cells: workload::replica_set, columns: &[
        NAME, integer("Desired"), integer("Current"), integer("Ready"), AGE, CONTAINERS, IMAGES, SELECTOR] },
    Kind { group: "apps", kind: "StatefulSet", cells: workload::stateful_set, columns: &[
        NAME, text("Ready"), AGE, CONTAINERS, IMAGES] },
    Kind { group: "apps", kind: "DaemonSet", cells: workload::daemon_set, columns: &[
        NAME, integer("Desired"), integer("Current"), integer("Ready"), integer("Up-to-date"), integer("Available"),
        text("Node Selector"), AGE, CONTAINERS, IMAGES, SELECTOR] },
    Kind { group: "apps", kind: "ControllerRevision", cells: workload::controller_revision, columns: &[
        NAME, text("Controller"), text("Revision"), AGE] },
    Kind { group: "batch", kind: "Job", cells: workload::job, columns: &[
        NAME, text("Status"), text("Completions"), text("Duration"), AGE, CONTAINERS, IMAGES, SELECTOR] },
    Kind { group: "batch", kind: "CronJob", cells: workload::cron_job, columns: &[
        NAME, text("Schedule"), text("Timezone"), boolean("Suspend"), integer("Active"), text("Last Schedule"), AGE,
        CONTAINERS, IMAGES, SELECTOR] },
    Kind { group: "policy", kind: "PodDisruptionBudget", cells: workload::disruption_budget, columns: &[
        NAME, text("Min Available"), text("Max Unavailable"), integer("Allowed Disruptions"), AGE] },
    Kind { group: "autoscaling", kind: "HorizontalPodAutoscaler", cells: workload::autoscaler, columns: &[
        NAME, text("Reference"), text("Targets"), text("MinPods"), text("MaxPods"), text("Replicas"), AGE] },
    Kind { group: "autoscaling", kind: "Scale", cells: workload::scale, columns: &[
        NAME, integer("Desired"), integer("Available"), AGE] },
    Kind { group: "networking.k8s.io", kind: "Ingress", cells: cluster::ingress, columns: &[
        NAME, text("Class"), text("Hosts"), text("Address"), text("Ports"), AGE] },
    Kind { group: "networking.k8s.io", kind: "NetworkPolicy", cells: config::network_policy, columns: &[
        NAME, text("Pod-Selector"), AGE] },
    Kind { group: "networking.k8s.io", kind: "IngressClass", cells: cluster::ingress_class, columns: &[
        NAME, text("Controller"), text("Parameters"), AGE] },
    Kind { group: "node.k8s.io", kind: "RuntimeClass", cells: config::runtime_class, columns: &[
        NAME, text("Handler"), AGE] },
    Kind { group: "discovery.k8s.io", kind: "EndpointSlice", cells: cluster::endpoint_slice, columns: &[
        NAME, text("AddressType"), text("Ports"), text("Endpoints"), AGE] },
    Kind { group: "coordination.k8s.io", kind: "Lease", cells: cluster::lease, columns: &[NAME, text("Holder"), AGE] },
    Kind { group: "storage.k8s.io", kind: "StorageClass", cells: cluster::storage_class_row, columns: &[
        NAME, text("Provisioner"), text("ReclaimPolicy"), text("VolumeBindingMode"), text("AllowVolumeExpansion"), AGE] },
    Kind { group: "storage.k8s.io", kind: "VolumeAttachment", cells: cluster::volume_attachment, columns: &[
        NAME, text("Attacher"), text("PV"), text("Node"), boolean("Attached"), AGE] },
    Kind { group: "storage.k8s.io", kind: "VolumeAttributesClass", cells: config::volume_attributes_class, columns: &[
        NAME, text("DriverName"), AGE] },
    Kind { group: "storage.k8s.io", kind: "CSIStorageCapacity", cells: config::storage_capacity, columns: &[
        NAME, text("StorageClassName"), text("Capacity")] },
    Kind { group: "storage.k8s.io", kind: "CSIDriver", cells: config::storage_driver, columns: &[
        NAME, boolean("AttachRequired"), boolean("PodInfoOnMount"), boolean("StorageCapacity"), text("TokenRequests"),
        boolean("RequiresRepublish"), text("Modes"), AGE] },
    Kind { group: "storage.k8s.io", kind: "CSINode", cells: cluster::csi_node, columns: &[NAME, integer("Drivers"), AGE] },
    Kind { group: "scheduling.k8s.io", kind: "PriorityClass", cells: config::priority_class, columns: &[
        NAME, integer("Value"), boolean("Global-Default"), AGE, text("PreemptionPolicy")] },
    Kind { group: METRICS, kind: "NodeMetrics", cells: cluster::metrics, columns: USAGE },
    Kind { group: METRICS, kind: "PodMetrics", cells: cluster::metrics, columns: USAGE },
    Kind { group: RBAC, kind: "RoleBinding", cells: config::role_binding, columns: BINDING },
    Kind { group: RBAC, kind: "ClusterRoleBinding", cells: config::role_binding, columns: BINDING },
    Kind { group: ADMISSION, kind: "MutatingWebhookConfiguration", cells: cluster::webhooks, columns: WEBHOOKS },
    Kind { group: ADMISSION, kind: "ValidatingAdmissionPolicy", cells: cluster::admission_policy, columns: &[
        NAME, integer("Validations"), text("ParamKind"), AGE] },
    Kind { group: ADMISSION, kind: "ValidatingAdmissionPolicyBinding", cells: cluster::policy_binding, columns: &[
        NAME, text("PolicyName"), text("ParamRef"), AGE] },
    Kind { group: ADMISSION, kind: "ValidatingWebhookConfiguration", cells: cluster::webhooks, columns: WEBHOOKS },
];

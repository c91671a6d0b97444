//! The built-in resources, as a table.
//!
//! Names, short names, categories, verbs and subresources are those of a Kubernetes 1.35 server's discovery,
//! for the resources that this server has.

use std::sync::Arc;

use super::{BuiltIn, Resource, ScalePaths, StatusPart, Subresource, Text, Verb};
use crate::crd::DefinitionRules;
use crate::table::Printer;

const ALL: &[Verb] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Namespaces are too dear to be deleted by the dozen.
const NO_COLLECTION: &[Verb] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const CREATE: &[Verb] = &["create"];
const GET: &[Verb] = &["get"];
const CONNECT: &[Verb] = &["create", "get"];
const CHANGE: &[Verb] = &["get", "patch", "update"];
const UPDATE: &[Verb] = &["update"];

const SCALE: Sub =
    Sub { name: "scale", kind: Some("Scale"), group_version: Some(("autoscaling", "v1")), verbs: CHANGE };
const STATUS: Sub = Sub { name: "status", kind: None, group_version: None, verbs: CHANGE };

const TOKEN: Sub = Sub {
    name: "token",
    kind: Some("TokenRequest"),
    group_version: Some(("authentication.k8s.io", "v1")),
    verbs: CREATE,
};

/// A subresource in the table. Without a kind it is about the resource's own kind.
#[derive(Clone, Copy)]
struct Sub {
    name: &'static str,
    kind: Option<&'static str>,
    group_version: Option<(&'static str, &'static str)>,
    verbs: &'static [Verb],
}

/// One line of the table.
#[derive(Clone, Copy)]
struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    short: &'static [&'static str],
    categories: &'static [&'static str],
    namespaced: bool,
    verbs: &'static [Verb],
    subs: &'static [Sub],
    /// The table in the store, when it is not `group/plural`.
    table: Option<(&'static str, &'static str)>,
    status: StatusPart,
    generation: bool,
    create_on_update: bool,
    unconditional_update: bool,
    returns_deleted: bool,
    selectable: &'static [&'static str],
    deprecation: Option<&'static str>,
}

/// What most lines have in common.
const NAMESPACED: Row = Row {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    singular: "",
    short: &[],
    categories: &[],
    namespaced: true,
    verbs: ALL,
    subs: &[],
    table: None,
    status: StatusPart::None,
    generation: false,
    create_on_update: false,
    unconditional_update: true,
    returns_deleted: false,
    selectable: &[],
    deprecation: None,
};
const CLUSTER: Row = Row { namespaced: false, ..NAMESPACED };
/// A question that is answered and not stored.
const REVIEW: Row = Row { group: "authorization.k8s.io", verbs: CREATE, ..CLUSTER };
/// A workload: status apart, generation counted.
const WORKLOAD: Row = Row { status: StatusPart::Separate, generation: true, subs: &[STATUS], ..NAMESPACED };
const APPS: Row = Row { group: "apps", categories: &["all"], subs: &[SCALE, STATUS], ..WORKLOAD };

const EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];
const POD_FIELDS: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];

const POD_SUBS: &[Sub] = &[
    Sub { name: "attach", kind: Some("PodAttachOptions"), group_version: None, verbs: CONNECT },
    Sub { name: "binding", kind: Some("Binding"), group_version: None, verbs: CREATE },
    Sub { name: "ephemeralcontainers", kind: None, group_version: None, verbs: CHANGE },
    Sub { name: "eviction", kind: Some("Eviction"), group_version: Some(("policy", "v1")), verbs: CREATE },
    Sub { name: "exec", kind: Some("PodExecOptions"), group_version: None, verbs: CONNECT },
    Sub { name: "log", kind: None, group_version: None, verbs: GET },
    Sub { name: "portforward", kind: Some("PodPortForwardOptions"), group_version: None, verbs: CONNECT },
    Sub { name: "resize", kind: None, group_version: None, verbs: CHANGE },
    STATUS,
];
const NAMESPACE_SUBS: &[Sub] =
    &[Sub { name: "finalize", kind: None, group_version: None, verbs: UPDATE }, STATUS];

#[rustfmt::skip]
const ROWS: &[Row] = &[
    // Core.
    Row { kind: "Binding", plural: "bindings", singular: "binding", verbs: CREATE, ..NAMESPACED },
    Row { kind: "ConfigMap", plural: "configmaps", singular: "configmap", short: &["cm"], ..NAMESPACED },
    Row { kind: "Endpoints", plural: "endpoints", singular: "endpoints", short: &["ep"], create_on_update: true, deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"), ..NAMESPACED },
    Row { kind: "Event", plural: "events", singular: "event", short: &["ev"], create_on_update: true, selectable: EVENT_FIELDS, ..NAMESPACED },
    Row { kind: "LimitRange", plural: "limitranges", singular: "limitrange", short: &["limits"], create_on_update: true, ..NAMESPACED },
    Row { kind: "Namespace", plural: "namespaces", singular: "namespace", short: &["ns"], verbs: NO_COLLECTION, subs: NAMESPACE_SUBS, status: StatusPart::Separate, selectable: &["status.phase"], ..CLUSTER },
    Row { kind: "Node", plural: "nodes", singular: "node", short: &["no"], subs: &[STATUS], status: StatusPart::KeptOnCreate, selectable: &["spec.unschedulable"], ..CLUSTER },
    Row { kind: "PersistentVolumeClaim", plural: "persistentvolumeclaims", singular: "persistentvolumeclaim", short: &["pvc"], subs: &[STATUS], status: StatusPart::Separate, returns_deleted: true, ..NAMESPACED },
    Row { kind: "PersistentVolume", plural: "persistentvolumes", singular: "persistentvolume", short: &["pv"], subs: &[STATUS], status: StatusPart::Separate, returns_deleted: true, ..CLUSTER },
    Row { kind: "Pod", plural: "pods", singular: "pod", short: &["po"], categories: &["all"], subs: POD_SUBS, status: StatusPart::Separate, generation: true, returns_deleted: true, selectable: POD_FIELDS, ..NAMESPACED },
    Row { kind: "PodTemplate", plural: "podtemplates", singular: "podtemplate", generation: true, returns_deleted: true, ..NAMESPACED },
    Row { kind: "ReplicationController", plural: "replicationcontrollers", singular: "replicationcontroller", short: &["rc"], categories: &["all"], subs: &[SCALE, STATUS], selectable: &["status.replicas"], ..WORKLOAD },
    Row { kind: "ResourceQuota", plural: "resourcequotas", singular: "resourcequota", short: &["quota"], subs: &[STATUS], status: StatusPart::Separate, returns_deleted: true, ..NAMESPACED },
    Row { kind: "Secret", plural: "secrets", singular: "secret", selectable: &["type"], ..NAMESPACED },
    Row { kind: "ServiceAccount", plural: "serviceaccounts", singular: "serviceaccount", short: &["sa"], subs: &[TOKEN], returns_deleted: true, ..NAMESPACED },
    Row { kind: "Service", plural: "services", singular: "service", short: &["svc"], categories: &["all"], subs: &[STATUS], status: StatusPart::Separate, create_on_update: true, selectable: &["spec.clusterIP", "spec.type"], ..NAMESPACED },
    // Admission and extension.
    Row { kind: "MutatingWebhookConfiguration", plural: "mutatingwebhookconfigurations", singular: "mutatingwebhookconfiguration", group: "admissionregistration.k8s.io", categories: &["api-extensions"], generation: true, unconditional_update: false, ..CLUSTER },
    Row { kind: "ValidatingAdmissionPolicy", plural: "validatingadmissionpolicies", singular: "validatingadmissionpolicy", group: "admissionregistration.k8s.io", categories: &["api-extensions"], subs: &[STATUS], status: StatusPart::Separate, generation: true, unconditional_update: false, ..CLUSTER },
    Row { kind: "ValidatingAdmissionPolicyBinding", plural: "validatingadmissionpolicybindings", singular: "validatingadmissionpolicybinding", group: "admissionregistration.k8s.io", categories: &["api-extensions"], generation: true, unconditional_update: false, ..CLUSTER },
    Row { kind: "ValidatingWebhookConfiguration", plural: "validatingwebhookconfigurations", singular: "validatingwebhookconfiguration", group: "admissionregistration.k8s.io", categories: &["api-extensions"], generation: true, unconditional_update: false, ..CLUSTER },
    Row { kind: "CustomResourceDefinition", plural: "customresourcedefinitions", singular: "customresourcedefinition", short: &["crd", "crds"], group: "apiextensions.k8s.io", categories: &["api-extensions"], subs: &[STATUS], status: StatusPart::Separate, generation: true, unconditional_update: false, ..CLUSTER },
    // Reviews.
    Row { kind: "SelfSubjectReview", plural: "selfsubjectreviews", singular: "selfsubjectreview", group: "authentication.k8s.io", ..REVIEW },
    Row { kind: "TokenReview", plural: "tokenreviews", singular: "tokenreview", group: "authentication.k8s.io", ..REVIEW },
    Row { kind: "LocalSubjectAccessReview", plural: "localsubjectaccessreviews", singular: "localsubjectaccessreview", namespaced: true, ..REVIEW },
    Row { kind: "SelfSubjectAccessReview", plural: "selfsubjectaccessreviews", singular: "selfsubjectaccessreview", ..REVIEW },
    Row { kind: "SelfSubjectRulesReview", plural: "selfsubjectrulesreviews", singular: "selfsubjectrulesreview", ..REVIEW },
    Row { kind: "SubjectAccessReview", plural: "subjectaccessreviews", singular: "subjectaccessreview", ..REVIEW },
    // Workloads.
    Row { kind: "ControllerRevision", plural: "controllerrevisions", singular: "controllerrevision", categories: &[], subs: &[], status: StatusPart::None, generation: false, ..APPS },
    Row { kind: "DaemonSet", plural: "daemonsets", singular: "daemonset", short: &["ds"], subs: &[STATUS], ..APPS },
    Row { kind: "Deployment", plural: "deployments", singular: "deployment", short: &["deploy"], ..APPS },
    Row { kind: "ReplicaSet", plural: "replicasets", singular: "replicaset", short: &["rs"], ..APPS },
    Row { kind: "StatefulSet", plural: "statefulsets", singular: "statefulset", short: &["sts"], ..APPS },
    Row { kind: "HorizontalPodAutoscaler", plural: "horizontalpodautoscalers", singular: "horizontalpodautoscaler", short: &["hpa"], group: "autoscaling", version: "v1", categories: &["all"], generation: false, table: Some(("autoscaling/horizontalpodautoscalers", "autoscaling/v2")), ..WORKLOAD },
    Row { kind: "HorizontalPodAutoscaler", plural: "horizontalpodautoscalers", singular: "horizontalpodautoscaler", short: &["hpa"], group: "autoscaling", version: "v2", categories: &["all"], generation: false, table: Some(("autoscaling/horizontalpodautoscalers", "autoscaling/v2")), ..WORKLOAD },
    Row { kind: "CronJob", plural: "cronjobs", singular: "cronjob", short: &["cj"], group: "batch", categories: &["all"], ..WORKLOAD },
    Row { kind: "Job", plural: "jobs", singular: "job", group: "batch", categories: &["all"], selectable: &["status.successful"], ..WORKLOAD },
    Row { kind: "PodDisruptionBudget", plural: "poddisruptionbudgets", singular: "poddisruptionbudget", short: &["pdb"], group: "policy", unconditional_update: false, ..WORKLOAD },
    // The rest.
    Row { kind: "Lease", plural: "leases", singular: "lease", group: "coordination.k8s.io", create_on_update: true, unconditional_update: false, ..NAMESPACED },
    Row { kind: "EndpointSlice", plural: "endpointslices", singular: "endpointslice", group: "discovery.k8s.io", generation: true, ..NAMESPACED },
    Row { kind: "Event", plural: "events", singular: "event", short: &["ev"], group: "events.k8s.io", create_on_update: true, selectable: EVENT_FIELDS, table: Some(("/events", "v1")), ..NAMESPACED },
    Row { kind: "Ingress", plural: "ingresses", singular: "ingress", short: &["ing"], group: "networking.k8s.io", ..WORKLOAD },
    Row { kind: "IngressClass", plural: "ingressclasses", singular: "ingressclass", group: "networking.k8s.io", generation: true, ..CLUSTER },
    Row { kind: "NetworkPolicy", plural: "networkpolicies", singular: "networkpolicy", short: &["netpol"], group: "networking.k8s.io", generation: true, ..NAMESPACED },
    Row { kind: "RuntimeClass", plural: "runtimeclasses", singular: "runtimeclass", group: "node.k8s.io", unconditional_update: false, ..CLUSTER },
    Row { kind: "ClusterRoleBinding", plural: "clusterrolebindings", singular: "clusterrolebinding", group: "rbac.authorization.k8s.io", create_on_update: true, ..CLUSTER },
    Row { kind: "ClusterRole", plural: "clusterroles", singular: "clusterrole", group: "rbac.authorization.k8s.io", create_on_update: true, ..CLUSTER },
    Row { kind: "RoleBinding", plural: "rolebindings", singular: "rolebinding", group: "rbac.authorization.k8s.io", create_on_update: true, ..NAMESPACED },
    Row { kind: "Role", plural: "roles", singular: "role", group: "rbac.authorization.k8s.io", create_on_update: true, ..NAMESPACED },
    Row { kind: "PriorityClass", plural: "priorityclasses", singular: "priorityclass", short: &["pc"], group: "scheduling.k8s.io", generation: true, ..CLUSTER },
    Row { kind: "CSIDriver", plural: "csidrivers", singular: "csidriver", group: "storage.k8s.io", generation: true, unconditional_update: false, returns_deleted: true, ..CLUSTER },
    Row { kind: "CSINode", plural: "csinodes", singular: "csinode", group: "storage.k8s.io", unconditional_update: false, returns_deleted: true, ..CLUSTER },
    Row { kind: "CSIStorageCapacity", plural: "csistoragecapacities", singular: "csistoragecapacity", group: "storage.k8s.io", unconditional_update: false, ..NAMESPACED },
    Row { kind: "VolumeAttachment", plural: "volumeattachments", singular: "volumeattachment", group: "storage.k8s.io", subs: &[STATUS], status: StatusPart::Separate, unconditional_update: false, returns_deleted: true, ..CLUSTER },
    Row { kind: "VolumeAttributesClass", plural: "volumeattributesclasses", singular: "volumeattributesclass", short: &["vac"], group: "storage.k8s.io", returns_deleted: true, ..CLUSTER },
    Row { kind: "StorageClass", plural: "storageclasses", singular: "storageclass", short: &["sc"], group: "storage.k8s.io", returns_deleted: true, ..CLUSTER },
];

/// All built-in resources.
pub fn resources() -> impl Iterator<Item = Resource> {
    ROWS.iter().map(resource)
}

fn resource(row: &Row) -> Resource {
    let texts = |words: &[&'static str]| words.iter().map(|word| Text::from(*word)).collect();
    let own = super::api_version(row.group, row.version);
    let (table, storage_api_version) = match row.table {
        Some((table, api_version)) => (Arc::from(table), Text::from(api_version)),
        None => (Arc::from(format!("{}/{}", row.group, row.plural)), Text::from(own)),
    };
    Resource {
        group: row.group.into(),
        version: row.version.into(),
        kind: row.kind.into(),
        list_kind: format!("{}List", row.kind).into(),
        plural: row.plural.into(),
        singular: row.singular.into(),
        short_names: texts(row.short),
        categories: texts(row.categories),
        namespaced: row.namespaced,
        verbs: row.verbs.to_vec(),
        subresources: row.subs.iter().map(|sub| subresource(row, sub)).collect(),
        table,
        storage_api_version,
        status: row.status,
        generation: row.generation,
        create_on_update: row.create_on_update,
        unconditional_update: row.unconditional_update,
        returns_deleted: row.returns_deleted,
        scale: row.subs.iter().any(|sub| sub.name == "scale").then(|| ScalePaths {
            spec_replicas: ".spec.replicas".into(),
            status_replicas: ".status.replicas".into(),
            selector: Some(".spec.selector".into()),
        }),
        deprecation: row.deprecation.map(Text::from),
        selectable: row.selectable.iter().map(|label| Arc::from(*label)).collect(),
        custom: false,
        printer: Printer::built_in(row.group, row.kind),
        schema: None,
        rules: match row.kind {
            "CustomResourceDefinition" => Arc::new(DefinitionRules),
            _ => Arc::new(BuiltIn),
        },
    }
}

fn subresource(row: &Row, sub: &Sub) -> Subresource {
    Subresource {
        name: sub.name.into(),
        kind: sub.kind.unwrap_or(row.kind).into(),
        group_version: sub.group_version.map(|(group, version)| (group.into(), version.into())),
        verbs: sub.verbs.to_vec(),
    }
}

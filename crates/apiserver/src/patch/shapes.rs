//! Where the lists of the built-in kinds merge, and by which key.
//!
//! Only the ways that lead to something special are written down: a field that is not listed merges when it is
//! an object and is replaced as a whole when it is a list (tolerations, taints, readinessGates, ...).

use crate::status::GroupKind;

/// What is special about the fields of an object.
pub type Shape = [(&'static str, Field)];

/// How a field merges.
#[derive(Clone, Copy, Debug)]
pub enum Field {
    /// An object that has special fields itself.
    Object(&'static Shape),
    /// An object that is replaced as a whole.
    Replace,
    /// A list of objects with a key.
    Keyed(&'static str, &'static Shape),
    /// A list of scalars that is treated as a set.
    Set,
}

use Field::{Keyed, Object, Replace, Set};

/// Finds a field of a shape.
pub fn field(shape: &Shape, name: &str) -> Option<Field> {
    shape.iter().find(|(field, _)| *field == name).map(|(_, field)| *field)
}

/// The shape of a built-in kind.
pub fn of(kind: GroupKind<'_>) -> &'static Shape {
    match (kind.group, kind.kind) {
        ("", "Pod") => POD,
        ("", "PodTemplate") => POD_TEMPLATE_OBJECT,
        ("", "Node") => NODE,
        ("", "Service") => SERVICE,
        ("", "ServiceAccount") => SERVICE_ACCOUNT,
        ("", "ComponentStatus") => COMPONENT_STATUS,
        ("", "Namespace" | "PersistentVolumeClaim")
        | ("autoscaling", "HorizontalPodAutoscaler")
        | ("flowcontrol.apiserver.k8s.io", _)
        | ("networking.k8s.io", "ServiceCIDR")
        | ("apiregistration.k8s.io", "APIService") => WITH_CONDITIONS,
        ("", "ReplicationController")
        | ("apps", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet")
        | ("batch", "Job") => WORKLOAD,
        ("batch", "CronJob") => CRON_JOB,
        ("policy", "PodDisruptionBudget") => PDB,
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => WEBHOOKS,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy") => {
            ADMISSION_POLICY
        }
        ("storage.k8s.io", "CSINode") => CSI_NODE,
        ("resource.k8s.io", "ResourceClaim") => RESOURCE_CLAIM,
        ("resource.k8s.io", "ResourceClaimTemplate") => RESOURCE_CLAIM_TEMPLATE,
        _ => PLAIN,
    }
}

const NOTHING: &Shape = &[];

const META: &Shape = &[("finalizers", Set), ("ownerReferences", Keyed("uid", NOTHING))];

const CONDITIONS: &Shape = &[("conditions", Keyed("type", NOTHING))];

const PLAIN: &Shape = &[("metadata", Object(META))];

const WITH_CONDITIONS: &Shape = &[("metadata", Object(META)), ("status", Object(CONDITIONS))];

const CONTAINER: &Shape = &[
    ("env", Keyed("name", NOTHING)),
    ("ports", Keyed("containerPort", NOTHING)),
    ("volumeDevices", Keyed("devicePath", NOTHING)),
    ("volumeMounts", Keyed("mountPath", NOTHING)),
];

const CLAIM_TEMPLATE: &Shape = &[("volumeClaimTemplate", Object(PLAIN))];

const POD_SPEC: &Shape = &[
    ("containers", Keyed("name", CONTAINER)),
    ("ephemeralContainers", Keyed("name", CONTAINER)),
    ("hostAliases", Keyed("ip", NOTHING)),
    ("imagePullSecrets", Keyed("name", NOTHING)),
    ("initContainers", Keyed("name", CONTAINER)),
    ("resourceClaims", Keyed("name", NOTHING)),
    ("schedulingGates", Keyed("name", NOTHING)),
    ("topologySpreadConstraints", Keyed("topologyKey", NOTHING)),
    ("volumes", Keyed("name", &[("ephemeral", Object(CLAIM_TEMPLATE))])),
];

const POD_STATUS: &Shape = &[
    ("conditions", Keyed("type", NOTHING)),
    ("hostIPs", Keyed("ip", NOTHING)),
    ("podIPs", Keyed("ip", NOTHING)),
    ("resourceClaimStatuses", Keyed("name", NOTHING)),
];

const POD_TEMPLATE: &Shape = &[("metadata", Object(META)), ("spec", Object(POD_SPEC))];

const POD: &Shape = &[("metadata", Object(META)), ("spec", Object(POD_SPEC)), ("status", Object(POD_STATUS))];

const POD_TEMPLATE_OBJECT: &Shape = &[("metadata", Object(META)), ("template", Object(POD_TEMPLATE))];

const WORKLOAD_SPEC: &Shape = &[("template", Object(POD_TEMPLATE))];

const WORKLOAD: &Shape =
    &[("metadata", Object(META)), ("spec", Object(WORKLOAD_SPEC)), ("status", Object(CONDITIONS))];

const JOB_TEMPLATE: &Shape = &[("metadata", Object(META)), ("spec", Object(WORKLOAD_SPEC))];

const CRON_JOB: &Shape =
    &[("metadata", Object(META)), ("spec", Object(&[("jobTemplate", Object(JOB_TEMPLATE))]))];

const NODE: &Shape = &[
    ("metadata", Object(META)),
    ("spec", Object(&[("podCIDRs", Set)])),
    ("status", Object(&[("addresses", Keyed("type", NOTHING)), ("conditions", Keyed("type", NOTHING))])),
];

const SERVICE: &Shape = &[
    ("metadata", Object(META)),
    ("spec", Object(&[("ports", Keyed("port", NOTHING))])),
    ("status", Object(CONDITIONS)),
];

const SERVICE_ACCOUNT: &Shape = &[("metadata", Object(META)), ("secrets", Keyed("name", NOTHING))];

const COMPONENT_STATUS: &Shape = &[("metadata", Object(META)), ("conditions", Keyed("type", NOTHING))];

const PDB: &Shape =
    &[("metadata", Object(META)), ("spec", Object(&[("selector", Replace)])), ("status", Object(CONDITIONS))];

const WEBHOOKS: &Shape = &[
    ("metadata", Object(META)),
    ("webhooks", Keyed("name", &[("matchConditions", Keyed("name", NOTHING))])),
];

const ADMISSION_POLICY: &Shape = &[
    ("metadata", Object(META)),
    ("spec", Object(&[("matchConditions", Keyed("name", NOTHING)), ("variables", Keyed("name", NOTHING))])),
];

const CSI_NODE: &Shape =
    &[("metadata", Object(META)), ("spec", Object(&[("drivers", Keyed("name", NOTHING))]))];

const RESOURCE_CLAIM: &Shape =
    &[("metadata", Object(META)), ("status", Object(&[("reservedFor", Keyed("uid", NOTHING))]))];

const RESOURCE_CLAIM_TEMPLATE: &Shape = &[("metadata", Object(META)), ("spec", Object(PLAIN))];

//! The rules of the built-in kinds: what a server fills in, what it refuses, and how it writes objects down.
//!
//! Pure functions on JSON. A kind that is not listed has no rules of its own: the rest of the server checks its metadata,
//! and its content is taken as it is. In the order of a write: [`canonical`], [`defaults()`], [`prepare_create`] for new
//! objects, admission, then [`validate_create`] or [`validate_update`].

mod admission_policy;
mod autoscaling;
mod batch;
mod classes;
mod config;
mod create;
mod defaults;
mod networking;
mod node;
mod object;
mod pod;
mod policy;
mod rbac;
mod service;
mod storage;
mod warnings;
mod webhook;
mod workload;

use crate::field::{Error, ErrorKind};
use kruise_api::kubernetes::shape;
use kruise_api::kubernetes::validation::{Kind, Violation};
use serde_json::Value;

pub use create::{admit_pod, prepare_create};
pub use defaults::defaults;
pub(crate) use warnings::warnings;

/// Rewrites an object as a typed server would encode it: unknown and empty optional members go, required ones come,
/// quantities become canonical. Returns the paths of the unknown members.
///
/// The error is the text that stands behind `cannot be handled as a Pod: `. Kinds of unknown shape stay as they are.
pub fn canonical(group: &str, version: &str, kind: &str, object: &mut Value) -> Result<Vec<String>, String> {
    match shape::type_of(group, version, kind) {
        Some(name) => {
            let unknown =
                shape::canonical(name, object, shape::Unknown::Drop).map_err(|error| error.to_string())?;
            drop_missing_births(object);
            Ok(unknown)
        }
        None => Ok(Vec::new()),
    }
}

/// Servers since 1.34 leave a time of creation out where older ones write `null`: in templates, of pods and claims.
fn drop_missing_births(object: &mut Value) {
    let Some(map) = object.as_object_mut() else { return };
    for (key, value) in map {
        match (key.as_str(), value) {
            ("metadata", Value::Object(meta))
                if meta.get("creationTimestamp").is_some_and(Value::is_null) =>
            {
                meta.remove("creationTimestamp");
            }
            ("spec" | "template" | "jobTemplate" | "ephemeral" | "volumeClaimTemplate", value) => {
                drop_missing_births(value);
            }
            ("volumes" | "volumeClaimTemplates", Value::Array(items)) => {
                items.iter_mut().for_each(drop_missing_births);
            }
            _ => {}
        }
    }
}

/// What is wrong with a new object, besides its metadata.
pub fn validate_create(group: &str, kind: &str, object: &Value) -> Vec<Error> {
    match (group, kind) {
        ("", "Pod") => pod::validate_create(object),
        ("", "PodTemplate") => pod::validate_template(object, "template"),
        ("", "ConfigMap") => config::validate_config_map(object),
        ("", "Secret") => config::validate_secret(object),
        ("", "Service") => service::validate(object),
        ("", "Node") => node::validate(object),
        ("", "PersistentVolumeClaim") => storage::validate_claim(object),
        ("", "PersistentVolume") => storage::validate_volume(object),
        ("", "ReplicationController") => {
            let mut found = classes::validate_replication(object);
            found.extend(workload::validate_replication_template(object));
            found
        }
        ("networking.k8s.io", "IngressClass") => classes::validate_ingress_class(object),
        ("node.k8s.io", "RuntimeClass") => classes::validate_runtime_class(object),
        ("apps", "Deployment") => workload::validate_deployment(object),
        ("apps", "ReplicaSet") => workload::validate_replica_set(object),
        ("apps", "StatefulSet") => workload::validate_stateful_set(object),
        ("apps", "DaemonSet") => workload::validate_daemon_set(object),
        ("apps", "ControllerRevision") => workload::validate_revision(object),
        ("batch", "Job") => batch::validate_job(object),
        ("batch", "CronJob") => batch::validate_cron_job(object),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::validate(object),
        ("policy", "PodDisruptionBudget") => policy::validate_budget(object),
        ("networking.k8s.io", "Ingress") => networking::validate_ingress(object),
        ("scheduling.k8s.io", "PriorityClass") => policy::validate_priority_class(object),
        ("coordination.k8s.io", "Lease") => policy::validate_lease(object),
        ("storage.k8s.io", "StorageClass") => storage::validate_class(object),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => rbac::validate_role(object, kind == "Role"),
        ("rbac.authorization.k8s.io", _) => rbac::validate_binding(object, kind == "RoleBinding"),
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => webhook::validate(object),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => admission_policy::validate(object),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
            admission_policy::validate_binding(object)
        }
        _ => Vec::new(),
    }
}

/// What is wrong with a changed object, besides its metadata. `subresource` is the part that was written:
/// `None` for the object itself, else for example `status` or `resize`.
pub fn validate_update(
    group: &str,
    kind: &str,
    object: &Value,
    old: &Value,
    subresource: Option<&str>,
) -> Vec<Error> {
    match (group, kind, subresource) {
        ("", "Pod", subresource) => pod::validate_update(object, old, subresource),
        ("apps", _, Some("status")) => workload::validate_status(kind, object, old),
        (_, _, Some("status")) => Vec::new(),
        ("", "ConfigMap" | "Secret", _) => config::validate_update(kind, object, old),
        ("", "Service", _) => service::validate_update(object, old),
        ("", "Node", _) => node::validate_update(object, old),
        ("", "PersistentVolumeClaim", _) => storage::validate_claim_update(object, old),
        ("", "PersistentVolume", _) => storage::validate_volume_update(object, old),
        ("apps", _, _) => workload::validate_update(kind, object, old),
        ("networking.k8s.io", "IngressClass", _) => classes::validate_ingress_class_update(object, old),
        ("node.k8s.io", "RuntimeClass", _) => classes::validate_runtime_class_update(object, old),
        ("batch", "Job", _) => batch::validate_job_update(object, old),
        ("batch", "CronJob", _) => batch::validate_cron_job_update(object, old),
        ("scheduling.k8s.io", "PriorityClass", _) => policy::validate_priority_class_update(object, old),
        ("storage.k8s.io", "StorageClass", _) => storage::validate_class_update(object, old),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding", _) => {
            rbac::validate_binding_update(object, old, kind == "RoleBinding")
        }
        _ => validate_create(group, kind, object),
    }
}

fn errors(violations: Vec<Violation>) -> Vec<Error> {
    violations.into_iter().map(error).collect()
}

fn error(violation: Violation) -> Error {
    let Violation { kind, path, value, detail } = violation;
    let kind = match kind {
        Kind::Required => ErrorKind::Required,
        Kind::Invalid => ErrorKind::Invalid,
        Kind::NotSupported => ErrorKind::NotSupported,
        Kind::Duplicate => ErrorKind::Duplicate,
        Kind::Forbidden => ErrorKind::Forbidden,
        Kind::NotFound => ErrorKind::NotFound,
        // No rule of pods says so.
        Kind::Internal => ErrorKind::Invalid,
    };
    Error::new(kind, path, value, detail)
}

/// A number that may not be negative.
fn not_negative(found: &mut Vec<Error>, owner: &Value, member: &str, path: &str) {
    if let Some(number) = object::integer(owner, member).filter(|number| *number < 0) {
        found.push(Error::invalid(format!("{path}.{member}"), number, "must be greater than or equal to 0"));
    }
}

/// A member that keeps its value.
fn immutable(found: &mut Vec<Error>, new: &Value, old: &Value, member: &str, path: &str) {
    if !object::same(new, old, member) {
        let value = new.get(member).cloned().unwrap_or_default();
        let path = if path.is_empty() { member.to_owned() } else { format!("{path}.{member}") };
        found.push(Error::invalid(path, value, "field is immutable"));
    }
}

#[cfg(test)]
mod tests;

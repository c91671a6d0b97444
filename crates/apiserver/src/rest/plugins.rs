//! The admission that every Kubernetes server has built in, as far as nodes and controllers see its marks.
//!
//! Of the ServiceAccount plugin only the name is set; no token volume is mounted, since nothing here checks
//! tokens. The plugins run before the hooks of [`crate::admission`].

use kruise_api::json::pointer as at;
use serde_json::{Value, json};

use super::{Target, limits};
use crate::admission::{Attributes, Operation};
use crate::kinds;
use crate::registry::Resource;
use crate::server::ApiServer;
use crate::status::{GroupResource, Status};

/// Namespaces that may not be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];
const NAMESPACES: GroupResource<'_> = GroupResource::new("", "namespaces");
/// What a pod's priority does to others, unless its class says otherwise.
const PREEMPT: &str = "PreemptLowerPriority";

/// The life cycle of namespaces: nothing is created in one that is absent or on its way out.
pub(super) fn namespace_lifecycle(
    server: &ApiServer,
    target: &Target,
    operation: Operation,
    name: &str,
) -> Result<(), Status> {
    let resource = &target.resource;
    if operation == Operation::Delete && resource.group.is_empty() && resource.plural == "namespaces" {
        return if IMMORTAL.contains(&name) {
            Err(Status::forbidden(NAMESPACES, name, "this namespace may not be deleted"))
        } else {
            Ok(())
        };
    }
    if operation != Operation::Create || !resource.namespaced {
        return Ok(());
    }
    let namespace = &target.namespace;
    let Some(record) = server.store().get("/namespaces", "", namespace) else {
        return Err(Status::not_found(NAMESPACES, namespace));
    };
    if record.deleting {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let cause = format!("namespace {namespace} is being terminated");
        return Err(Status::forbidden(resource.group_resource(), name, why).with_cause(
            "NamespaceTerminating",
            cause,
            "metadata.namespace",
        ));
    }
    Ok(())
}

/// The mutating plugins. They run before the webhooks, and once more when a webhook changed something.
pub(crate) fn mutate(attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
    let Attributes { server, resource, namespace, .. } = *attributes;
    if attributes.operation != Operation::Create || attributes.subresource.is_some() {
        return Ok(());
    }
    match resource.table.as_ref() {
        "/persistentvolumeclaims" => storage_class(server, object),
        "/pods" => {
            let (value, preemption) = priority(server, resource, object)?;
            kinds::admit_pod(object, value, &preemption);
            service_account(server, resource, namespace, object)?;
            limits::fill(server, namespace, object);
            let node = at(object, "/spec/nodeName").and_then(Value::as_str).unwrap_or_default().to_owned();
            topology_labels(server, &node, object);
        }
        _ => {}
    }
    Ok(())
}

/// Labels of a node that say where it stands.
const TOPOLOGY: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

/// A pod, or the binding that brings a pod to its node, says where the node stands.
pub(super) fn topology_labels(server: &ApiServer, node: &str, object: &mut Value) {
    let Some(node) = server.store().get("/nodes", "", node) else { return };
    for key in TOPOLOGY {
        let Some(value) = node.label(key) else { continue };
        let Some(map) = object.as_object_mut() else { return };
        let meta = map.entry("metadata").or_insert_with(|| json!({}));
        let labels = meta.as_object_mut().map(|meta| meta.entry("labels").or_insert_with(|| json!({})));
        if let Some(labels) = labels.and_then(Value::as_object_mut) {
            labels.insert(key.to_owned(), json!(value));
        }
    }
}

/// The account must exist.
fn service_account(
    server: &ApiServer,
    resource: &Resource,
    namespace: &str,
    pod: &Value,
) -> Result<(), Status> {
    let text = |path: &str| at(pod, path).and_then(Value::as_str).unwrap_or_default();
    let name = text("/spec/serviceAccountName");
    if server.store().get("/serviceaccounts", namespace, name).is_some() {
        return Ok(());
    }
    let why =
        format!("error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found");
    Err(Status::forbidden(resource.group_resource(), text("/metadata/name"), why))
}

/// A claim without a class gets the default class, the newest if there are several.
fn storage_class(server: &ApiServer, claim: &mut Value) {
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if spec.contains_key("storageClassName") {
        return;
    }
    let (_, classes) = server.store().list("storage.k8s.io/storageclasses", None);
    let default = classes
        .iter()
        .map(|class| class.value())
        .filter(|class| {
            let marks = at(class, "/metadata/annotations");
            let mark = marks.and_then(|marks| marks.get("storageclass.kubernetes.io/is-default-class"));
            mark.and_then(Value::as_str) == Some("true")
        })
        .max_by(|a, b| {
            let age = |class: &Value| {
                at(class, "/metadata/creationTimestamp")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            age(a).cmp(&age(b))
        });
    if let Some(name) = default.as_ref().and_then(|class| at(class, "/metadata/name")) {
        spec.insert("storageClassName".to_owned(), name.clone());
    }
}

/// Resolves `priorityClassName` (or the global default class) to a number.
fn priority(server: &ApiServer, resource: &Resource, pod: &mut Value) -> Result<(i32, String), Status> {
    const CLASSES: &str = "scheduling.k8s.io/priorityclasses";
    let name = at(pod, "/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else {
        return Ok((0, PREEMPT.to_owned()));
    };
    let asked = spec.get("priorityClassName").and_then(Value::as_str).unwrap_or_default().to_owned();
    let class = if asked.is_empty() {
        let (_, classes) = server.store().list(CLASSES, None);
        classes
            .iter()
            .map(|class| class.value())
            .find(|class| class.get("globalDefault") == Some(&json!(true)))
    } else {
        match server.store().get(CLASSES, "", &asked) {
            Some(class) => Some(class.value()),
            None => {
                let why = format!("no PriorityClass with name {asked} was found");
                return Err(Status::forbidden(resource.group_resource(), &name, why));
            }
        }
    };
    let value = class.as_ref().and_then(|class| class.get("value")).and_then(Value::as_i64).unwrap_or(0);
    let policy = class.as_ref().and_then(|class| class.get("preemptionPolicy")).and_then(Value::as_str);
    let policy = policy.unwrap_or(PREEMPT).to_owned();
    if let Some(class) = class.as_ref().and_then(|class| at(class, "/metadata/name")).cloned() {
        spec.insert("priorityClassName".to_owned(), class);
    }
    if spec.get("priority").and_then(Value::as_i64).is_some_and(|given| given != value) {
        let why = format!(
            "the integer value of priority ({}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name",
            spec.get("priority").cloned().unwrap_or_default()
        );
        return Err(Status::forbidden(resource.group_resource(), &name, why));
    }
    Ok((i32::try_from(value).unwrap_or(0), policy))
}

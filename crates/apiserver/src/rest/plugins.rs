//! The admission that every Kubernetes server has built in, as far as nodes and controllers see its marks.
//!
//! Of the ServiceAccount plugin only the name is set; no token volume is mounted, since nothing here checks
//! tokens. The plugins run before the hooks of [`crate::admission`].

use serde_json::{Value, json};

use super::Target;
use crate::admission::Operation;
use crate::server::ApiServer;
use crate::status::{GroupResource, Status};

/// Namespaces that may not be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];
const NAMESPACES: GroupResource<'_> = GroupResource::new("", "namespaces");
/// How long a pod stays on a node that is not ready or not reachable, unless it says otherwise.
const TOLERATION_SECONDS: i64 = 300;

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

/// The mutating plugins.
pub(super) fn mutate(
    server: &ApiServer,
    target: &Target,
    operation: Operation,
    object: &mut Value,
) -> Result<(), Status> {
    let resource = &target.resource;
    let is_pod = resource.group.is_empty() && resource.plural == "pods" && target.subresource.is_none();
    if !is_pod {
        return Ok(());
    }
    if operation == Operation::Create {
        service_account(server, target, object)?;
        priority(server, target, object)?;
    }
    if matches!(operation, Operation::Create | Operation::Update) {
        tolerations(object);
    }
    Ok(())
}

fn service_account(server: &ApiServer, target: &Target, pod: &mut Value) -> Result<(), Status> {
    let pod_name = pod.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(()) };
    let named = spec.get("serviceAccountName").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    if !named {
        spec.insert("serviceAccountName".to_owned(), json!("default"));
    }
    let name = spec.get("serviceAccountName").and_then(Value::as_str).unwrap_or_default().to_owned();
    if server.store().get("/serviceaccounts", &target.namespace, &name).is_none() {
        let why = format!(
            "error looking up service account {}/{name}: serviceaccount \"{name}\" not found",
            target.namespace
        );
        return Err(Status::forbidden(target.resource.group_resource(), &pod_name, why));
    }
    // The old name of the field is always written along.
    spec.insert("serviceAccount".to_owned(), Value::String(name));
    Ok(())
}

/// Resolves `priorityClassName` (or the global default class) to a number.
fn priority(server: &ApiServer, target: &Target, pod: &mut Value) -> Result<(), Status> {
    const CLASSES: &str = "scheduling.k8s.io/priorityclasses";
    let name = pod.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(()) };
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
                return Err(Status::forbidden(target.resource.group_resource(), &name, why));
            }
        }
    };
    let value = class.as_ref().and_then(|class| class.get("value")).and_then(Value::as_i64).unwrap_or(0);
    let policy = class.as_ref().and_then(|class| class.get("preemptionPolicy")).and_then(Value::as_str);
    let policy = policy.unwrap_or("PreemptLowerPriority").to_owned();
    if let Some(class) = class.as_ref().and_then(|class| class.pointer("/metadata/name")).cloned() {
        spec.insert("priorityClassName".to_owned(), class);
    }
    if spec.get("priority").and_then(Value::as_i64).is_some_and(|given| given != value) {
        let why = format!(
            "the integer value of priority ({}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name",
            spec.get("priority").cloned().unwrap_or_default()
        );
        return Err(Status::forbidden(target.resource.group_resource(), &name, why));
    }
    spec.insert("priority".to_owned(), json!(value));
    spec.entry("preemptionPolicy").or_insert(json!(policy));
    Ok(())
}

/// Pods leave nodes that are not ready or not reachable after five minutes.
fn tolerations(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let Some(list) = spec.entry("tolerations").or_insert_with(|| json!([])).as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = list.iter().any(|toleration| {
            let text = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
            let key_matches = text("key") == key || text("key").is_empty();
            key_matches && (text("effect") == "NoExecute" || text("effect").is_empty())
        });
        if !tolerated {
            list.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS
            }));
        }
    }
}

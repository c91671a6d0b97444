//! What nodes may do: their own node, lease and pods, and what those pods refer to.

use serde_json::Value;

use super::index::RoleRef;
use super::{Decision, Question, What};
use crate::server::ApiServer;

/// Where nodes keep their leases.
const LEASES: &str = "kube-node-lease";

/// Decides for nodes; has no opinion about others.
pub(super) fn decide(server: &ApiServer, question: &Question<'_>) -> Decision {
    let user = question.user;
    let Some(node) = user.name.strip_prefix("system:node:") else { return Decision::default() };
    if !user.groups.iter().any(|group| group == "system:nodes") {
        return Decision::default();
    }
    let found = match question.what {
        What::Path(_) => None,
        What::Resource { group, resource, subresource, namespace, name } => {
            let place = Place { verb: question.verb, subresource, namespace, name };
            special(server, node, group, resource, &place)
        }
    };
    let found = found.unwrap_or_else(|| {
        let role = RoleRef { kind: "ClusterRole".to_owned(), name: "system:node".to_owned() };
        let rules = server.rules_of(&role, "").ok();
        match rules.is_some_and(|rules| rules.iter().any(|rule| rule.allows(question))) {
            true => Ok(()),
            false => Err(String::new()),
        }
    });
    match found {
        Ok(()) => Decision { allowed: true, reason: String::new() },
        Err(reason) => Decision { allowed: false, reason },
    }
}

struct Place<'a> {
    verb: &'a str,
    subresource: &'a str,
    namespace: &'a str,
    name: &'a str,
}

/// Resources where it matters which object is meant.
fn special(
    server: &ApiServer,
    node: &str,
    group: &str,
    resource: &str,
    place: &Place<'_>,
) -> Option<Result<(), String>> {
    let verb = place.verb;
    let reads = matches!(verb, "get" | "list" | "watch");
    Some(match (group, resource) {
        ("", "secrets" | "configmaps") => {
            if !reads {
                Err("can only read resources of this type".to_owned())
            } else if !place.subresource.is_empty() {
                Err("cannot read subresource".to_owned())
            } else if place.namespace.is_empty() {
                Err("can only read namespaced object of this type".to_owned())
            } else if place.name.is_empty() {
                Err("No Object name found".to_owned())
            } else {
                related(server, node, resource, place)
            }
        }
        ("", "serviceaccounts") if place.subresource == "token" => {
            if verb != "create" || place.name.is_empty() {
                Err("can only create tokens for individual service accounts".to_owned())
            } else {
                related(server, node, resource, place)
            }
        }
        ("", "persistentvolumeclaims") if place.subresource.is_empty() => {
            if verb != "get" {
                Err("can only get individual resources of this type".to_owned())
            } else {
                related(server, node, resource, place)
            }
        }
        ("coordination.k8s.io", "leases") => {
            if !matches!(verb, "get" | "create" | "update" | "patch" | "delete") {
                Err("can only get, create, update, patch, or delete a node lease".to_owned())
            } else if place.namespace != LEASES {
                Err(format!("can only access leases in the \"{LEASES}\" system namespace"))
            } else if verb != "create" && place.name != node {
                Err("can only access node lease with the same name as the requesting node".to_owned())
            } else {
                Ok(())
            }
        }
        ("", "nodes") => match verb {
            "create" if place.subresource.is_empty() => Ok(()),
            "get" | "list" | "watch" | "update" | "patch" if place.name != node => {
                Err(format!("node '{node}' cannot read '{}', only its own Node object", place.name))
            }
            _ => return None,
        },
        ("", "pods") if !reads && !place.name.is_empty() => {
            let pod = server.store().get("/pods", place.namespace, place.name);
            match pod.is_none_or(|pod| pod.field("spec.nodeName") == node) {
                true => return None,
                false => Err(unrelated(node)),
            }
        }
        _ => return None,
    })
}

fn unrelated(node: &str) -> String {
    format!("no relationship found between node '{node}' and this object")
}

/// Whether a pod of the node refers to the object.
fn related(server: &ApiServer, node: &str, resource: &str, place: &Place<'_>) -> Result<(), String> {
    let (_, pods) = server.store().list("/pods", Some(place.namespace));
    let mut own = pods.iter().filter(|pod| pod.field("spec.nodeName") == node);
    let keys: &[&str] = match resource {
        "secrets" => &["secretName", "secretRef", "secretKeyRef", "imagePullSecrets", "secret"],
        "configmaps" => &["configMap", "configMapRef", "configMapKeyRef"],
        "serviceaccounts" => &["serviceAccountName"],
        _ => &["persistentVolumeClaim"],
    };
    match own.any(|pod| pod.value().get("spec").is_some_and(|spec| refers(spec, keys, place.name))) {
        true => Ok(()),
        false => Err(unrelated(node)),
    }
}

/// Whether something below one of these members has the name.
fn refers(value: &Value, keys: &[&str], name: &str) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(key, member)| {
            (keys.contains(&key.as_str()) && names(member, name)) || refers(member, keys, name)
        }),
        Value::Array(list) => list.iter().any(|member| refers(member, keys, name)),
        _ => false,
    }
}

fn names(member: &Value, name: &str) -> bool {
    match member {
        Value::String(text) => text == name,
        Value::Object(map) => ["name", "claimName", "secretName"]
            .iter()
            .any(|key| map.get(*key).and_then(Value::as_str) == Some(name)),
        Value::Array(list) => list.iter().any(|member| names(member, name)),
        _ => false,
    }
}

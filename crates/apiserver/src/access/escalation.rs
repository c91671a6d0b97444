//! Nobody gives away more than they have: what is checked when a role or a binding is written.

use serde_json::Value;

use super::index::RoleRef;
use super::rules::{Rule, missing, quoted_list, told};
use super::{Question, What};
use crate::admission::User;
use crate::field::quote;
use crate::rest::Target;
use crate::server::ApiServer;
use crate::status::Status;

pub(super) fn check(
    server: &ApiServer,
    user: &User,
    target: &Target,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    if old.is_some_and(|old| changes_only_what_collects(object, old)) {
        return Ok(());
    }
    match target.resource.plural.as_ref() {
        "roles" | "clusterroles" => check_role(server, user, target, object, old),
        "rolebindings" | "clusterrolebindings" => check_binding(server, user, target, object),
        _ => Ok(()),
    }
}

/// Whether finalizers and owners are all that changes, as the garbage collector changes them.
fn changes_only_what_collects(object: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for key in ["finalizers", "ownerReferences", "managedFields"] {
                meta.remove(key);
            }
        }
        object
    };
    rest(object) == rest(old)
}

fn check_role(
    server: &ApiServer,
    user: &User,
    target: &Target,
    role: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let (group, resource) = (target.resource.group.as_ref(), target.resource.plural.as_ref());
    let (namespace, name) = (target.namespace.as_str(), target.name.as_str());
    let what = What::Resource { group, resource, subresource: "", namespace, name };
    if server.may(&Question { user, verb: "escalate", what }).allowed {
        return Ok(());
    }
    let own = name_of(role);
    let refuse = |why: String| Status::forbidden(target.resource.group_resource(), own, why);
    has_all(server, user, namespace, &Rule::all_of(role)).map_err(refuse)?;
    if gathers(role) || old.is_some_and(gathers) {
        let all = || vec!["*".to_owned()];
        let everything = [
            Rule { verbs: all(), groups: all(), resources: all(), ..Rule::default() },
            Rule { verbs: all(), urls: all(), ..Rule::default() },
        ];
        has_all(server, user, namespace, &everything).map_err(|_| {
            refuse("must have cluster-admin privileges to use the aggregationRule".to_owned())
        })?;
    }
    Ok(())
}

fn gathers(role: &Value) -> bool {
    let selectors = role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array);
    selectors.is_some_and(|selectors| !selectors.is_empty())
}

fn check_binding(server: &ApiServer, user: &User, target: &Target, binding: &Value) -> Result<(), Status> {
    let role = RoleRef::of(binding);
    let namespace = target.namespace.as_str();
    let resource = match role.kind.as_str() {
        "ClusterRole" => Some("clusterroles"),
        "Role" => Some("roles"),
        _ => None,
    };
    if let Some(resource) = resource {
        let group = binding.pointer("/roleRef/apiGroup").and_then(Value::as_str).unwrap_or_default();
        let what = What::Resource { group, resource, subresource: "", namespace, name: &role.name };
        if server.may(&Question { user, verb: "bind", what }).allowed {
            return Ok(());
        }
    }
    let rules = server.rules_of(&role, namespace)?;
    has_all(server, user, namespace, &rules)
        .map_err(|why| Status::forbidden(target.resource.group_resource(), name_of(binding), why))
}

fn name_of(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// Whether a user has all these rights; the error says which not.
fn has_all(server: &ApiServer, user: &User, namespace: &str, wanted: &[Rule]) -> Result<(), String> {
    let (owned, problems) = server.rules_for(user, namespace);
    let missing = missing(&owned, wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let mut why = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        quote(&user.name),
        quoted_list(&user.groups),
        told(&missing)
    );
    if let Some(problem) = super::together(&problems) {
        why.push_str(&format!("; resolution errors: [{problem}]"));
    }
    Err(why)
}

//! Whether a webhook wants to see a request, and in which version.

use std::sync::Arc;

use serde_json::Value;

use super::hook::{Hook, Rule};
use crate::admission::{Attributes, Operation};
use crate::registry::{Registry, Resource};
use crate::status::{GroupResource, Status};

/// What is asked of rules: the request as one version of its resource sees it.
struct Asked<'a> {
    operation: Operation,
    resource: &'a Resource,
    subresource: &'a str,
}

/// The namespace of a request. A namespace counts as being in itself, except while it is created.
pub(super) fn namespace<'a>(attributes: &Attributes<'a>) -> &'a str {
    if is_namespace(attributes.resource) && attributes.operation != Operation::Create {
        attributes.name
    } else {
        attributes.namespace
    }
}

/// Configurations of webhooks are never sent to webhooks, or nobody could repair a broken one.
pub(super) fn is_exempt(resource: &Resource) -> bool {
    resource.group == "admissionregistration.k8s.io"
}

/// Whether a webhook whose rules name the request wants to see it.
pub(super) fn wants(
    hook: &Hook,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> Result<bool, Status> {
    if !by_namespace(hook, attributes, object)? || !by_object(hook, attributes, object) {
        return Ok(false);
    }
    if hook.conditions {
        let what = format!("matchConditions of admission webhook \"{}\"", hook.name);
        return Err(Status::not_implemented(what));
    }
    Ok(true)
}

/// The version of the resource in which the rules of the webhook name the request; `None` if they do not.
pub(super) fn by_rules(
    hook: &Hook,
    registry: &Registry,
    operation: Operation,
    own: &Arc<Resource>,
    subresource: Option<&str>,
) -> Option<Arc<Resource>> {
    let matched = |rule: &Rule, resource: &Resource| {
        matches(rule, &Asked { operation, resource, subresource: subresource.unwrap_or_default() })
    };
    if hook.rules.iter().any(|rule| matched(rule, own)) {
        return Some(own.clone());
    }
    if hook.exact {
        return None;
    }
    let all = registry.all();
    let others: Vec<&Arc<Resource>> = all
        .iter()
        .filter(|other| {
            other.table == own.table && (&other.group, &other.version) != (&own.group, &own.version)
        })
        .filter(|other| subresource.is_none_or(|sub| other.subresource(sub).is_some()))
        .collect();
    hook.rules.iter().find_map(|rule| others.iter().find(|other| matched(rule, other)).map(|r| (*r).clone()))
}

fn matches(rule: &Rule, asked: &Asked<'_>) -> bool {
    let among = |list: &[String], value: &str| list.iter().any(|item| item == "*" || item == value);
    // Namespaces are of cluster scope too, although each is in itself.
    let Asked { operation, resource, subresource } = *asked;
    let scope = match rule.scope.as_str() {
        "Namespaced" => resource.namespaced,
        "Cluster" => !resource.namespaced,
        _ => true,
    };
    scope
        && among(&rule.operations, operation.as_str())
        && among(&rule.groups, &resource.group)
        && among(&rule.versions, &resource.version)
        && rule.resources.iter().any(|wanted| {
            let (plural, sub) = wanted.split_once('/').unwrap_or((wanted, ""));
            (plural == "*" || plural == resource.plural) && (sub == "*" || sub == subresource)
        })
}

fn by_namespace(hook: &Hook, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<bool, Status> {
    let name = namespace(attributes);
    let about_namespace = is_namespace(attributes.resource);
    // Whatever is in no namespace is not exempt by the namespace's labels.
    if hook.namespaces.is_everything() || (name.is_empty() && !about_namespace) {
        return Ok(true);
    }
    let written = matches!(attributes.operation, Operation::Create | Operation::Update);
    if about_namespace && attributes.subresource.is_none() && written {
        return Ok(hook.namespaces.matches_json(labels(object)));
    }
    match attributes.server.store().get("/namespaces", "", name) {
        Some(record) => Ok(hook.namespaces.matches_by(|key| record.label(key))),
        None => Err(Status::not_found(GroupResource::new("", "namespaces"), name)),
    }
}

/// The object before or after must be selected.
fn by_object(hook: &Hook, attributes: &Attributes<'_>, object: Option<&Value>) -> bool {
    hook.objects.is_everything()
        || [object, attributes.old].into_iter().flatten().any(|o| hook.objects.matches_json(labels(Some(o))))
}

fn labels(object: Option<&Value>) -> Option<&serde_json::Map<String, Value>> {
    object?.pointer("/metadata/labels")?.as_object()
}

fn is_namespace(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "namespaces"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(resources: &[&str], scope: &str, resource: &str, subresource: &str, expected: bool) {
        let registry = Registry::built_in();
        let group = if resource == "deployments" { "apps" } else { "" };
        let served = registry.find_any_version(group, resource).unwrap();
        let all = || vec!["*".to_owned()];
        let rule = Rule {
            operations: vec!["CREATE".to_owned()],
            groups: all(),
            versions: all(),
            resources: resources.iter().map(|r| (*r).to_owned()).collect(),
            scope: scope.to_owned(),
        };
        let asked = Asked { operation: Operation::Create, resource: &served, subresource };
        assert_eq!(matches(&rule, &asked), expected, "{resources:?} {scope} {resource}/{subresource}");
    }

    #[test]
    fn rules_tell_resources_from_subresources() {
        check(&["*"], "*", "pods", "", true);
        check(&["*"], "*", "pods", "eviction", false);
        check(&["pods/eviction"], "*", "pods", "eviction", true);
        check(&["pods/eviction"], "*", "pods", "", false);
        check(&["pods/*"], "*", "pods", "eviction", true);
        check(&["pods/*"], "*", "services", "status", false);
        check(&["*/*"], "*", "services", "status", true);
        check(&["*/scale"], "*", "deployments", "scale", true);
    }

    #[test]
    fn namespaces_are_of_cluster_scope_although_they_are_in_themselves() {
        check(&["*"], "Namespaced", "namespaces", "", false);
        check(&["*"], "Cluster", "namespaces", "", true);
        check(&["*"], "Namespaced", "pods", "", true);
        check(&["*"], "Cluster", "pods", "", false);
        check(&["*"], "Cluster", "nodes", "", true);
    }
}

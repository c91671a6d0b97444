//! Whether a webhook wants to see a request, and in which version.

use std::sync::Arc;

use serde_json::Value;

use super::hook::{Hook, Rule};
use crate::admission::{Attributes, Operation};
use crate::registry::Resource;
use crate::status::{GroupResource, Status};

/// What is asked of rules: the request as one version of its resource sees it.
struct Asked<'a> {
    operation: Operation,
    group: &'a str,
    version: &'a str,
    resource: &'a str,
    subresource: &'a str,
    namespace: &'a str,
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

/// The version of the resource in which the webhook wants the request; `None` if it does not want it.
pub(super) fn wanted(
    hook: &Hook,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> Result<Option<Arc<Resource>>, Status> {
    let Some(resource) = by_rules(hook, attributes) else { return Ok(None) };
    if !by_namespace(hook, attributes, object)? || !by_object(hook, attributes, object) {
        return Ok(None);
    }
    if hook.conditions {
        let what = format!("matchConditions of admission webhook \"{}\"", hook.name);
        return Err(Status::not_implemented(what));
    }
    Ok(Some(resource))
}

fn by_rules(hook: &Hook, attributes: &Attributes<'_>) -> Option<Arc<Resource>> {
    let own = attributes.resource;
    let matched = |rule: &Rule, resource: &Resource| {
        matches(
            rule,
            &Asked {
                operation: attributes.operation,
                group: &resource.group,
                version: &resource.version,
                resource: &resource.plural,
                subresource: attributes.subresource.unwrap_or_default(),
                namespace: namespace(attributes),
            },
        )
    };
    if hook.rules.iter().any(|rule| matched(rule, own)) {
        return Some(own.clone());
    }
    if hook.exact {
        return None;
    }
    let all = attributes.server.registry().all();
    let others: Vec<&Arc<Resource>> = all
        .iter()
        .filter(|other| {
            other.table == own.table && (&other.group, &other.version) != (&own.group, &own.version)
        })
        .filter(|other| attributes.subresource.is_none_or(|sub| other.subresource(sub).is_some()))
        .collect();
    hook.rules.iter().find_map(|rule| others.iter().find(|other| matched(rule, other)).map(|r| (*r).clone()))
}

fn matches(rule: &Rule, asked: &Asked<'_>) -> bool {
    let among = |list: &[String], value: &str| list.iter().any(|item| item == "*" || item == value);
    let cluster = asked.namespace.is_empty() || (asked.group.is_empty() && asked.resource == "namespaces");
    let scope = match rule.scope.as_str() {
        "Namespaced" => !cluster,
        "Cluster" => cluster,
        _ => true,
    };
    scope
        && among(&rule.operations, asked.operation.as_str())
        && among(&rule.groups, asked.group)
        && among(&rule.versions, asked.version)
        && rule.resources.iter().any(|wanted| {
            let (resource, subresource) = wanted.split_once('/').unwrap_or((wanted, ""));
            (resource == "*" || resource == asked.resource)
                && (subresource == "*" || subresource == asked.subresource)
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
    fn check(
        resources: &[&str],
        scope: &str,
        resource: &str,
        subresource: &str,
        namespace: &str,
        expected: bool,
    ) {
        let all = || vec!["*".to_owned()];
        let rule = Rule {
            operations: vec!["CREATE".to_owned()],
            groups: all(),
            versions: all(),
            resources: resources.iter().map(|r| (*r).to_owned()).collect(),
            scope: scope.to_owned(),
        };
        let asked = Asked {
            operation: Operation::Create,
            group: "",
            version: "v1",
            resource,
            subresource,
            namespace,
        };
        assert_eq!(matches(&rule, &asked), expected, "{resources:?} {scope} {resource}/{subresource}");
    }

    #[test]
    fn rules_tell_resources_from_subresources() {
        check(&["*"], "*", "pods", "", "a", true);
        check(&["*"], "*", "pods", "eviction", "a", false);
        check(&["pods/eviction"], "*", "pods", "eviction", "a", true);
        check(&["pods/eviction"], "*", "pods", "", "a", false);
        check(&["pods/*"], "*", "pods", "eviction", "a", true);
        check(&["pods/*"], "*", "services", "status", "a", false);
        check(&["*/*"], "*", "services", "status", "a", true);
        check(&["*/scale"], "*", "deployments", "scale", "a", true);
    }

    #[test]
    fn namespaces_are_of_cluster_scope_although_they_are_in_themselves() {
        check(&["*"], "Namespaced", "namespaces", "", "a", false);
        check(&["*"], "Cluster", "namespaces", "", "a", true);
        check(&["*"], "Namespaced", "pods", "", "a", true);
        check(&["*"], "Cluster", "pods", "", "a", false);
        check(&["*"], "Cluster", "nodes", "", "", true);
    }
}

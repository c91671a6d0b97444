//! Which requests a webhook or a policy is about, and in which version it wants to see them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Attributes, Operation};
use crate::registry::{Registry, Resource};
use crate::selector::Labels;
use crate::status::{GroupResource, Status};

/// What a rule asks for.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) operations: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) versions: Vec<String>,
    /// `pods`, `pods/eviction`, `*`, `pods/*` or `*/*`.
    pub(crate) resources: Vec<String>,
    pub(crate) scope: String,
    /// Only objects of these names; all if there are none. Rules of webhooks have none.
    pub(crate) names: Vec<String>,
}

impl Rule {
    pub(crate) fn parse(rule: &Value) -> Self {
        let texts = |key: &str| {
            let list = rule.get(key).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources"),
            scope: rule.get("scope").and_then(Value::as_str).unwrap_or("*").to_owned(),
            names: texts("resourceNames"),
        }
    }
}

/// The rules and selectors of a webhook, a policy or a binding.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) rules: Vec<Rule>,
    /// Whether only the rules' own versions count.
    pub(crate) exact: bool,
    namespaces: Labels,
    objects: Labels,
}

impl Scope {
    /// Reads it from an object whose rules are the member `rules`.
    pub(crate) fn parse(owner: &Value, rules: &str) -> Self {
        let everything = json!({});
        let selector = |key: &str| {
            let selector = owner.get(key).filter(|selector| !selector.is_null()).unwrap_or(&everything);
            Labels::from_object(Some(selector)).unwrap_or_else(|_| Labels::nothing())
        };
        let list = owner.get(rules).and_then(Value::as_array);
        Self {
            rules: list.into_iter().flatten().map(Rule::parse).collect(),
            exact: owner.get("matchPolicy").and_then(Value::as_str) == Some("Exact"),
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
        }
    }

    /// Whether the selectors want a request that the rules name.
    pub(crate) fn selects(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<bool, Status> {
        Ok(self.by_namespace(attributes, object)? && self.by_object(attributes, object))
    }

    fn by_namespace(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<bool, Status> {
        let name = namespace(attributes);
        let about_namespace = is_namespace(attributes.resource);
        // Whatever is in no namespace is not exempt by the namespace's labels.
        if self.namespaces.is_everything() || (name.is_empty() && !about_namespace) {
            return Ok(true);
        }
        let written = matches!(attributes.operation, Operation::Create | Operation::Update);
        if about_namespace && attributes.subresource.is_none() && written {
            return Ok(self.namespaces.matches_json(labels(object)));
        }
        match attributes.server.store().get("/namespaces", "", name) {
            Some(record) => Ok(self.namespaces.matches_by(|key| record.label(key))),
            None => Err(Status::not_found(GroupResource::new("", "namespaces"), name)),
        }
    }

    /// The object before or after must be selected. Something without metadata, such as the options of a connection, is
    /// selected only where everything is: it does not even lack a label.
    fn by_object(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> bool {
        let has_labels = attributes.operation != Operation::Connect;
        self.objects.is_everything()
            || [object, attributes.old]
                .into_iter()
                .flatten()
                .any(|object| has_labels && self.objects.matches_json(labels(Some(object))))
    }
}

/// What is asked of rules: the request as one version of its resource sees it.
struct Asked<'a> {
    operation: Operation,
    resource: &'a Resource,
    subresource: &'a str,
}

/// The namespace of a request. A namespace counts as being in itself, except while it is created.
pub(crate) fn namespace<'a>(attributes: &Attributes<'a>) -> &'a str {
    if is_namespace(attributes.resource) && attributes.operation != Operation::Create {
        attributes.name
    } else {
        attributes.namespace
    }
}

/// Webhooks and policies are never asked about webhooks and policies, or nobody could repair a broken one.
pub(crate) fn is_exempt(resource: &Resource) -> bool {
    resource.group == "admissionregistration.k8s.io"
}

/// The version of the resource in which the rules name the request; `None` if they do not. `name` is that of the
/// object, if it counts.
pub(crate) fn by_rules(
    rules: &[Rule],
    exact: bool,
    registry: &Registry,
    operation: Operation,
    own: &Arc<Resource>,
    subresource: Option<&str>,
    name: Option<&str>,
) -> Option<Arc<Resource>> {
    let matched = |rule: &Rule, resource: &Resource| {
        let asked = Asked { operation, resource, subresource: subresource.unwrap_or_default() };
        let named = |name: &str| rule.names.is_empty() || rule.names.iter().any(|wanted| wanted == name);
        matches(rule, &asked) && name.is_none_or(named)
    };
    if rules.iter().any(|rule| matched(rule, own)) {
        return Some(own.clone());
    }
    if exact {
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
    rules.iter().find_map(|rule| others.iter().find(|other| matched(rule, other)).map(|r| (*r).clone()))
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
            names: Vec::new(),
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

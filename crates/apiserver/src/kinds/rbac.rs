//! Roles and bindings.

use serde_json::Value;

use super::object::{list, same, text};
use crate::field::{Error, Path};
use crate::selector;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn validate_role(role: &Value, namespaced: bool) -> Vec<Error> {
    let mut found = Vec::new();
    for (at, rule) in list(role, "rules").iter().enumerate() {
        validate_rule(&mut found, rule, namespaced, &format!("rules[{at}]"));
    }
    let Some(aggregation) = role.get("aggregationRule").filter(|rule| rule.is_object()) else { return found };
    let selectors = list(aggregation, "clusterRoleSelectors");
    let path = "aggregationRule.clusterRoleSelectors";
    if selectors.is_empty() {
        found.push(Error::required(
            path,
            "at least one clusterRoleSelector required if aggregationRule is non-nil",
        ));
    }
    for (at, one) in selectors.iter().enumerate() {
        let path = format!("{path}[{at}]");
        found.extend(selector::validate(one, &Path::new(&path)));
    }
    found
}

fn validate_rule(found: &mut Vec<Error>, rule: &Value, namespaced: bool, path: &str) {
    let is_empty = |key: &str| list(rule, key).is_empty();
    if is_empty("verbs") {
        found.push(Error::required(format!("{path}.verbs"), "verbs must contain at least one value"));
    }
    if !is_empty("nonResourceURLs") {
        let mut refuse = |why: &str| {
            let urls = rule.get("nonResourceURLs").cloned().unwrap_or_default();
            found.push(Error::invalid(format!("{path}.nonResourceURLs"), urls, why));
        };
        if namespaced {
            refuse("namespaced rules cannot apply to non-resource URLs");
        }
        if !["apiGroups", "resources", "resourceNames"].into_iter().all(is_empty) {
            refuse("rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    if is_empty("apiGroups") {
        let why = "resource rules must supply at least one api group";
        found.push(Error::required(format!("{path}.apiGroups"), why));
    }
    if is_empty("resources") {
        let why = "resource rules must supply at least one resource";
        found.push(Error::required(format!("{path}.resources"), why));
    }
}

pub(super) fn validate_binding(binding: &Value, namespaced: bool) -> Vec<Error> {
    let mut found = Vec::new();
    let role = binding.get("roleRef").cloned().unwrap_or_default();
    if text(&role, "apiGroup") != GROUP {
        found.push(Error::not_supported("roleRef.apiGroup", text(&role, "apiGroup"), &[GROUP]));
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&text(&role, "kind")) {
        found.push(Error::not_supported("roleRef.kind", text(&role, "kind"), kinds));
    }
    match text(&role, "name") {
        "" => found.push(Error::required("roleRef.name", "")),
        name => {
            let rules = crate::rest::path_segment(name).into_iter();
            found.extend(rules.map(|rule| Error::invalid("roleRef.name", name, rule)));
        }
    }
    for (at, subject) in list(binding, "subjects").iter().enumerate() {
        validate_subject(&mut found, subject, namespaced, &format!("subjects[{at}]"));
    }
    found
}

fn validate_subject(found: &mut Vec<Error>, subject: &Value, namespaced: bool, path: &str) {
    let (kind, group, name) = (text(subject, "kind"), text(subject, "apiGroup"), text(subject, "name"));
    if name.is_empty() {
        found.push(Error::required(format!("{path}.name"), ""));
    }
    match kind {
        "ServiceAccount" => {
            if !name.is_empty() {
                let rules = selector::syntax::dns_subdomain(name).into_iter();
                found.extend(rules.map(|rule| Error::invalid(format!("{path}.name"), name, rule)));
            }
            if !group.is_empty() {
                found.push(Error::not_supported(format!("{path}.apiGroup"), group, &[""]));
            }
            if !namespaced && text(subject, "namespace").is_empty() {
                found.push(Error::required(format!("{path}.namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                found.push(Error::not_supported(format!("{path}.apiGroup"), group, &[GROUP]));
            }
        }
        _ => found.push(Error::not_supported(
            format!("{path}.kind"),
            kind,
            &["ServiceAccount", "User", "Group"],
        )),
    }
}

pub(super) fn validate_binding_update(binding: &Value, old: &Value, namespaced: bool) -> Vec<Error> {
    let mut found = validate_binding(binding, namespaced);
    if !same(binding, old, "roleRef") {
        let role = binding.get("roleRef").cloned().unwrap_or_default();
        found.push(Error::invalid("roleRef", role, "cannot change roleRef"));
    }
    found
}

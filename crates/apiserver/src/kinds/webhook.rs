//! Configurations of admission webhooks.

use super::object::{get, integer, list, text};
use crate::admission::conditions;
use crate::field::{Error, Path};
use crate::selector;
use kruise_api::kubernetes::validation::names;
use serde_json::Value;
use std::collections::BTreeSet;

const NULL: &Value = &Value::Null;
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

pub(super) fn validate(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, webhook) in list(object, "webhooks").iter().enumerate() {
        let path = format!("webhooks[{index}]");
        validate_webhook(&mut found, webhook, &path);
        if !seen.insert(text(webhook, "name")) {
            found.push(Error::duplicate(format!("{path}.name"), text(webhook, "name")));
        }
    }
    found
}

fn validate_webhook(found: &mut Vec<Error>, webhook: &Value, path: &str) {
    let name = text(webhook, "name");
    if name.is_empty() {
        found.push(Error::required(format!("{path}.name"), ""));
    } else {
        let rules = names::dns_subdomain(name).into_iter();
        found.extend(rules.map(|rule| Error::invalid(format!("{path}.name"), name, rule)));
        if name.split('.').count() < 3 {
            let detail = "should be a domain with at least three segments separated by dots";
            found.push(Error::invalid(format!("{path}.name"), name, detail));
        }
    }
    let versions = list(webhook, "admissionReviewVersions");
    if versions.is_empty() {
        let detail = "must specify one of v1, v1beta1";
        found.push(Error::required(format!("{path}.admissionReviewVersions"), detail));
    } else if !versions.iter().any(|version| version == "v1" || version == "v1beta1") {
        let detail = "must include at least one of v1, v1beta1";
        found.push(Error::invalid(
            format!("{path}.admissionReviewVersions"),
            Value::Array(versions.to_vec()),
            detail,
        ));
    }
    for (index, rule) in list(webhook, "rules").iter().enumerate() {
        validate_rule(found, rule, &format!("{path}.rules[{index}]"));
    }
    known(found, webhook, "failurePolicy", &["Fail", "Ignore"], path);
    known(found, webhook, "matchPolicy", &["Equivalent", "Exact"], path);
    known(found, webhook, "reinvocationPolicy", &["IfNeeded", "Never"], path);
    if get(webhook, "sideEffects").is_none() {
        let detail = "must specify one of None, NoneOnDryRun";
        found.push(Error::required(format!("{path}.sideEffects"), detail));
    } else {
        known(found, webhook, "sideEffects", &["None", "NoneOnDryRun"], path);
    }
    if let Some(timeout) = integer(webhook, "timeoutSeconds").filter(|seconds| !(1..=30).contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        found.push(Error::invalid(format!("{path}.timeoutSeconds"), timeout, detail));
    }
    for member in ["namespaceSelector", "objectSelector"] {
        if let Some(labels) = get(webhook, member) {
            let path = format!("{path}.{member}");
            found.extend(selector::validate(labels, &Path::new(&path)));
        }
    }
    let client = webhook.get("clientConfig").unwrap_or(NULL);
    match (get(client, "url"), get(client, "service")) {
        (None, None) | (Some(_), Some(_)) => {
            let detail = "exactly one of url or service is required";
            found.push(Error::required(format!("{path}.clientConfig"), detail));
        }
        (Some(url), None) => {
            validate_url(found, url.as_str().unwrap_or_default(), &format!("{path}.clientConfig.url"));
        }
        (None, Some(service)) => {
            for member in ["name", "namespace"] {
                if text(service, member).is_empty() {
                    let detail = format!("service {member} is required");
                    found.push(Error::required(format!("{path}.clientConfig.service.{member}"), detail));
                }
            }
        }
    }
    let conditions = format!("{path}.matchConditions");
    found.extend(conditions::errors(list(webhook, "matchConditions"), false, &Path::new(&conditions)));
}

pub(super) fn known(found: &mut Vec<Error>, webhook: &Value, member: &str, allowed: &[&str], path: &str) {
    if let Some(value) = get(webhook, member).and_then(Value::as_str)
        && !allowed.contains(&value)
    {
        found.push(Error::not_supported(format!("{path}.{member}"), value, allowed));
    }
}

pub(super) fn validate_rule(found: &mut Vec<Error>, rule: &Value, path: &str) {
    let operations = list(rule, "operations");
    if operations.is_empty() {
        found.push(Error::required(format!("{path}.operations"), ""));
    }
    let all = |list: &[Value]| list.len() > 1 && list.iter().any(|item| item == "*");
    if all(operations) {
        let detail = "if '*' is present, must not specify other operations";
        found.push(Error::invalid(format!("{path}.operations"), Value::Array(operations.to_vec()), detail));
    }
    for (index, operation) in operations.iter().filter_map(Value::as_str).enumerate() {
        if !OPERATIONS.contains(&operation) {
            found.push(Error::not_supported(format!("{path}.operations[{index}]"), operation, &OPERATIONS));
        }
    }
    for (member, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let values = list(rule, member);
        if values.is_empty() {
            found.push(Error::required(format!("{path}.{member}"), ""));
        } else if all(values) {
            let detail = format!("if '*' is present, must not specify other {what}");
            found.push(Error::invalid(format!("{path}.{member}"), Value::Array(values.to_vec()), detail));
        }
    }
    if list(rule, "resources").is_empty() {
        found.push(Error::required(format!("{path}.resources"), ""));
    }
    known(found, rule, "scope", &["*", "Cluster", "Namespaced"], path);
}

fn validate_url(found: &mut Vec<Error>, url: &str, path: &str) {
    let form = "desired format: https://host[/path]";
    let Some(rest) = url.strip_prefix("https://") else {
        let scheme = url.split("://").next().filter(|_| url.contains("://")).unwrap_or_default();
        let detail = format!("'https' is the only allowed URL scheme; {form}");
        found.push(Error::invalid(path, scheme, detail));
        return;
    };
    if rest.is_empty() || rest.starts_with('/') {
        found.push(Error::invalid(path, "", format!("host must be specified; {form}")));
    }
    for (mark, what) in [
        ('#', "fragments are not permitted in the URL"),
        ('?', "query parameters are not permitted in the URL"),
    ] {
        if rest.contains(mark) {
            found.push(Error::invalid(path, url, what));
        }
    }
}

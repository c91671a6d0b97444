//! ValidatingAdmissionPolicies and their bindings.

use std::collections::BTreeSet;

use super::object::{get, list, text};
use super::webhook::{known, validate_rule};
use crate::admission::conditions;
use crate::admission::expressions::Expression;
use crate::admission::policies::decide;
use crate::cel::RESERVED;
use crate::field::{Error, Path};
use crate::selector::{self, syntax};
use serde_json::Value;

const NULL: &Value = &Value::Null;
/// How many values for the log of audits a policy may have, and how long their expressions may be.
const MOST_ANNOTATIONS: usize = 20;
const LONGEST_ANNOTATION: usize = 5 * 1024;

pub(super) fn validate(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = object.get("spec").unwrap_or(NULL);
    if get(spec, "failurePolicy").is_none() {
        found.push(Error::required("spec.failurePolicy", ""));
    }
    known(&mut found, spec, "failurePolicy", &["Fail", "Ignore"], "spec");
    let params = get(spec, "paramKind");
    if let Some(kind) = params {
        validate_param_kind(&mut found, kind);
    }
    match get(spec, "matchConstraints") {
        None => found.push(Error::required("spec.matchConstraints", "")),
        Some(resources) => {
            validate_resources(&mut found, resources, "spec.matchConstraints");
            if list(resources, "resourceRules").is_empty() {
                found.push(Error::required("spec.matchConstraints.resourceRules", ""));
            }
        }
    }
    let conditions = Path::new("spec.matchConditions");
    found.extend(conditions::errors(list(spec, "matchConditions"), params.is_some(), &conditions));
    validate_expressions(&mut found, spec, text(object.get("metadata").unwrap_or(NULL), "name"));
    found
}

/// Variables, rules and values for audits.
fn validate_expressions(found: &mut Vec<Error>, spec: &Value, name: &str) {
    let (variables, around) = decide::variables(spec, get(spec, "paramKind").is_some());
    let count = list(spec, "variables").len();
    if count > decide::MOST_VARIABLES {
        found.push(Error::too_many("spec.variables", count as u64, decide::MOST_VARIABLES as u64));
    }
    for (i, (variable, (name, expression))) in list(spec, "variables").iter().zip(&variables).enumerate() {
        let path = format!("spec.variables[{i}]");
        if name.trim().is_empty() {
            found.push(Error::required(format!("{path}.name"), "name is not specified"));
        } else if !is_identifier(name) {
            let why = "must be a valid CEL identifier";
            found.push(Error::invalid(format!("{path}.name"), name.as_str(), why));
        }
        required(found, variable, "expression", &path, expression);
    }
    let (rules, annotations) = (list(spec, "validations"), list(spec, "auditAnnotations"));
    if rules.is_empty() && annotations.is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        found.push(Error::required("spec.validations", why));
        found.push(Error::required("spec.auditAnnotations", why));
        return;
    }
    for (i, rule) in rules.iter().enumerate() {
        let path = format!("spec.validations[{i}]");
        required(found, rule, "expression", &path, &decide::rule(text(rule, "expression"), &around));
        let source = text(rule, "messageExpression");
        if !source.trim().is_empty() {
            compiles(found, source, &format!("{path}.messageExpression"), &decide::message(source, &around));
        } else if !source.is_empty() {
            let why = "must be non-empty if specified";
            found.push(Error::invalid(format!("{path}.messageExpression"), source, why));
        }
        let message = text(rule, "message");
        if !message.is_empty() && message.trim().is_empty() {
            found.push(Error::invalid(format!("{path}.message"), message, "must be non-empty if specified"));
        } else if message.trim().contains(['\n', '\r']) {
            found.push(Error::invalid(format!("{path}.message"), message, "must not contain line breaks"));
        }
        known(found, rule, "reason", &["Forbidden", "Invalid", "RequestEntityTooLarge"], &path);
    }
    if annotations.len() > MOST_ANNOTATIONS {
        let why = format!("must not have more than {MOST_ANNOTATIONS} auditAnnotations");
        found.push(Error::invalid("spec.auditAnnotations", Value::Array(annotations.to_vec()), why));
    }
    let mut seen = BTreeSet::new();
    for (i, annotation) in annotations.iter().enumerate() {
        let path = format!("spec.auditAnnotations[{i}]");
        let key = text(annotation, "key");
        let whole = format!("{name}/{key}");
        let faults = syntax::qualified_name(&whole).into_iter();
        found.extend(faults.map(|why| Error::invalid(format!("{path}.key"), whole.as_str(), why)));
        let source = text(annotation, "valueExpression");
        if source.trim().is_empty() {
            let why = "valueExpression is not specified";
            found.push(Error::required(format!("{path}.valueExpression"), why));
        } else if source.trim().len() > LONGEST_ANNOTATION {
            let why = format!("must not exceed {LONGEST_ANNOTATION} bytes in length");
            found.push(Error::required(format!("{path}.valueExpression"), why));
        } else {
            let compiled = decide::annotation(source, &around);
            compiles(found, source, &format!("{path}.valueExpression"), &compiled);
        }
        if !seen.insert(key) {
            found.push(Error::duplicate(format!("{path}.key"), key));
        }
    }
}

fn required(found: &mut Vec<Error>, owner: &Value, member: &str, path: &str, compiled: &Expression) {
    let source = text(owner, member);
    let path = format!("{path}.{member}");
    if source.trim().is_empty() {
        found.push(Error::required(path, format!("{member} is not specified")));
    } else {
        compiles(found, source, &path, compiled);
    }
}

fn compiles(found: &mut Vec<Error>, source: &str, path: &str, compiled: &Expression) {
    found.extend(compiled.error().map(|why| Error::invalid(path, source, why)));
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !RESERVED.contains(&name)
}

fn validate_param_kind(found: &mut Vec<Error>, params: &Value) {
    let (api_version, kind) = (text(params, "apiVersion"), text(params, "kind"));
    let path = "spec.paramKind.apiVersion";
    let parts: Vec<&str> = api_version.split('/').collect();
    let (group, version) = match parts.as_slice() {
        [version] => ("", *version),
        [group, version] => (*group, *version),
        _ => {
            let why = format!("unexpected GroupVersion string: {api_version}");
            found.push(Error::invalid(path, api_version, why));
            ("", "v1")
        }
    };
    if api_version.is_empty() {
        found.push(Error::required(path, ""));
    } else {
        let faults = if group.is_empty() { Vec::new() } else { syntax::dns_subdomain(group) };
        if !faults.is_empty() {
            found.push(Error::invalid(path, group, faults.join(",")));
        }
        let faults = syntax::dns_1035_label(version);
        if version.is_empty() {
            found.push(Error::invalid(path, api_version, "version must be specified"));
        } else if !faults.is_empty() {
            found.push(Error::invalid(path, version, faults.join(",")));
        }
    }
    let faults = syntax::dns_1035_label(&kind.to_lowercase());
    if kind.is_empty() {
        found.push(Error::required("spec.paramKind.kind", ""));
    } else if !faults.is_empty() {
        let why = format!("may have mixed case, but should otherwise match: {}", faults.join(","));
        found.push(Error::invalid("spec.paramKind.kind", kind, why));
    }
}

fn validate_resources(found: &mut Vec<Error>, resources: &Value, path: &str) {
    if get(resources, "matchPolicy").is_none() {
        found.push(Error::required(format!("{path}.matchPolicy"), ""));
    }
    known(found, resources, "matchPolicy", &["Equivalent", "Exact"], path);
    for member in ["namespaceSelector", "objectSelector"] {
        let path = format!("{path}.{member}");
        match get(resources, member) {
            None => found.push(Error::required(path, "")),
            Some(labels) => found.extend(selector::validate(labels, &Path::new(&path))),
        }
    }
    for member in ["resourceRules", "excludeResourceRules"] {
        for (i, rule) in list(resources, member).iter().enumerate() {
            let path = format!("{path}.{member}[{i}]");
            let mut seen = BTreeSet::new();
            for (j, name) in list(rule, "resourceNames").iter().filter_map(Value::as_str).enumerate() {
                if !seen.insert(name) {
                    found.push(Error::duplicate(format!("{path}.resourceNames[{j}]"), name));
                }
            }
            validate_rule(found, rule, &path);
        }
    }
}

pub(super) fn validate_binding(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = object.get("spec").unwrap_or(NULL);
    let policy = text(spec, "policyName");
    if policy.is_empty() {
        found.push(Error::required("spec.policyName", ""));
    } else {
        let faults = syntax::dns_subdomain(policy).into_iter();
        found.extend(faults.map(|why| Error::invalid("spec.policyName", policy, why)));
    }
    if let Some(params) = get(spec, "paramRef") {
        validate_param_ref(&mut found, params);
    }
    if let Some(resources) = get(spec, "matchResources") {
        validate_resources(&mut found, resources, "spec.matchResources");
    }
    validate_actions(&mut found, list(spec, "validationActions"));
    found
}

fn validate_param_ref(found: &mut Vec<Error>, params: &Value) {
    let path = "spec.paramRef";
    let exclusive = "name and selector are mutually exclusive";
    match (text(params, "name"), get(params, "selector")) {
        ("", None) => found.push(Error::required(path, "one of name or selector must be specified")),
        (name, Some(labels)) => {
            if !name.is_empty() {
                found.push(Error::forbidden(format!("{path}.name"), exclusive));
            }
            let own = format!("{path}.selector");
            found.extend(selector::validate(labels, &Path::new(&own)));
            if !name.is_empty() {
                found.push(Error::forbidden(own, exclusive));
            }
        }
        _ => {}
    }
    if text(params, "parameterNotFoundAction").is_empty() {
        found.push(Error::required(format!("{path}.parameterNotFoundAction"), ""));
    } else {
        known(found, params, "parameterNotFoundAction", &["Deny", "Allow"], path);
    }
}

fn validate_actions(found: &mut Vec<Error>, actions: &[Value]) {
    let path = "spec.validationActions";
    let mut seen = BTreeSet::new();
    for (i, action) in actions.iter().filter_map(Value::as_str).enumerate() {
        if !["Audit", "Deny", "Warn"].contains(&action) {
            found.push(Error::not_supported(format!("{path}[{i}]"), action, &["Audit", "Deny", "Warn"]));
        }
        if !seen.insert(action) {
            found.push(Error::duplicate(format!("{path}[{i}]"), action));
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                   response and headers serves no purpose)";
        found.push(Error::invalid(path, Value::Array(actions.to_vec()), why));
    }
    if seen.is_empty() {
        found.push(Error::required(path, "at least one validation action is required"));
    }
}

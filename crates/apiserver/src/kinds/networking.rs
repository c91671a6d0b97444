//! Ingresses.

use super::object::{get, integer, list, text};
use crate::field::Error;
use crate::selector::syntax;
use kruise_api::kubernetes::validation::names;
use serde_json::Value;

const NULL: &Value = &Value::Null;
const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];
/// What a path may hold nowhere, and what it may not end with: servers take such paths for others.
const NOT_IN_PATHS: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const NOT_AT_THE_END: [&str; 2] = ["/..", "/."];

pub(super) fn validate_ingress(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = object.get("spec").unwrap_or(NULL);
    let rules = list(spec, "rules");
    let backend = get(spec, "defaultBackend");
    if rules.is_empty() && backend.is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        found.push(Error::invalid("spec", spec.get("rules").cloned().unwrap_or_default(), detail));
    }
    if let Some(backend) = backend {
        validate_backend(&mut found, backend, "spec.defaultBackend");
    }
    for (index, rule) in rules.iter().enumerate() {
        let path = format!("spec.rules[{index}]");
        validate_host(&mut found, text(rule, "host"), &format!("{path}.host"));
        if let Some(http) = get(rule, "http") {
            validate_paths(&mut found, list(http, "paths"), &format!("{path}.http.paths"));
        }
    }
    for (index, tls) in list(spec, "tls").iter().enumerate() {
        for (at, host) in list(tls, "hosts").iter().enumerate() {
            let host = host.as_str().unwrap_or_default();
            let path = format!("spec.tls[{index}].hosts[{at}]");
            found.extend(host_rules(host).into_iter().map(|rule| Error::invalid(path.clone(), host, rule)));
        }
        let secret = text(tls, "secretName");
        if !secret.is_empty() {
            let rules = names::dns_subdomain(secret).into_iter();
            let path = format!("spec.tls[{index}].secretName");
            found.extend(rules.map(|rule| Error::invalid(path.clone(), secret, rule)));
        }
    }
    if let Some(class) = get(spec, "ingressClassName").and_then(Value::as_str) {
        let rules = names::dns_subdomain(class).into_iter();
        found.extend(rules.map(|rule| Error::invalid("spec.ingressClassName", class, rule)));
    }
    found
}

fn validate_host(found: &mut Vec<Error>, host: &str, path: &str) {
    if host.is_empty() {
        return;
    }
    if host.parse::<std::net::IpAddr>().is_ok() {
        found.push(Error::invalid(path, host, "must be a DNS name, not an IP address"));
    }
    found.extend(host_rules(host).into_iter().map(|rule| Error::invalid(path, host, rule)));
}

/// A name, or a name with a star for its first part.
fn host_rules(host: &str) -> Vec<String> {
    if !host.contains('*') {
        return names::dns_subdomain(host);
    }
    match host.strip_prefix("*.") {
        Some(rest) if syntax::dns_subdomain(rest).is_empty() => Vec::new(),
        _ => vec![syntax::regex_rule(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of \
             lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
            &["*.example.com"],
        )],
    }
}

fn validate_paths(found: &mut Vec<Error>, paths: &[Value], at: &str) {
    if paths.is_empty() {
        found.push(Error::required(at, ""));
    }
    for (index, path) in paths.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let Some(kind) = get(path, "pathType").and_then(Value::as_str) else {
            found.push(Error::required(format!("{at}.pathType"), "pathType must be specified"));
            continue;
        };
        let way = text(path, "path");
        let place = format!("{at}.path");
        match kind {
            "Exact" | "Prefix" => {
                if !way.starts_with('/') {
                    found.push(Error::invalid(place.clone(), way, "must be an absolute path"));
                }
                let parts = NOT_IN_PATHS.iter().filter(|part| way.contains(**part));
                found
                    .extend(parts.map(|part| {
                        Error::invalid(place.clone(), way, format!("must not contain '{part}'"))
                    }));
                let ends = NOT_AT_THE_END.iter().filter(|end| way.ends_with(**end));
                found.extend(
                    ends.map(|end| Error::invalid(place.clone(), way, format!("cannot end with '{end}'"))),
                );
            }
            "ImplementationSpecific" => {
                if !way.is_empty() && !way.starts_with('/') {
                    found.push(Error::invalid(place, way, "must be an absolute path"));
                }
            }
            other => found.push(Error::not_supported(format!("{at}.pathType"), other, &PATH_TYPES)),
        }
        validate_backend(found, path.get("backend").unwrap_or(NULL), &format!("{at}.backend"));
    }
}

fn validate_backend(found: &mut Vec<Error>, backend: &Value, at: &str) {
    match (get(backend, "resource"), get(backend, "service")) {
        (Some(_), Some(_)) => {
            found.push(Error::invalid(at, "", "cannot set both resource and service backends"));
        }
        (Some(resource), None) => {
            for member in ["kind", "name"] {
                if text(resource, member).is_empty() {
                    found.push(Error::required(format!("{at}.resource.{member}"), ""));
                }
            }
        }
        (None, Some(service)) => validate_service(found, service, at),
        (None, None) => found.push(Error::invalid(at, "", "resource or service backend is required")),
    }
}

fn validate_service(found: &mut Vec<Error>, service: &Value, at: &str) {
    let name = text(service, "name");
    if name.is_empty() {
        found.push(Error::required(format!("{at}.service.name"), ""));
    } else {
        let rules = syntax::dns_1035_label(name).into_iter();
        let path = format!("{at}.service.name");
        found.extend(rules.map(|rule| Error::invalid(path.clone(), name, rule)));
    }
    let port = service.get("port").unwrap_or(NULL);
    let (port_name, number) = (text(port, "name"), integer(port, "number").unwrap_or_default());
    match (port_name.is_empty(), number) {
        (false, 1..) => found.push(Error::invalid(at, "", "cannot set both port name & port number")),
        (true, 0) => found.push(Error::required(at, "port name or number is required")),
        (true, number) if !(1..=65535).contains(&number) => {
            let path = format!("{at}.service.port.number");
            found.push(Error::invalid(path, number, "must be between 1 and 65535, inclusive"));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(spec: Value, expected: &[&str]) {
        let found = validate_ingress(&json!({"metadata": {"name": "a"}, "spec": spec}));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    fn path(kind: &str, path: &str, backend: &Value) -> Value {
        json!({"rules": [{"http": {"paths": [{"pathType": kind, "path": path, "backend": backend}]}}]})
    }

    #[test]
    fn an_ingress_leads_somewhere() {
        let service = json!({"service": {"name": "web", "port": {"number": 80}}});
        check(json!({"defaultBackend": service}), &[]);
        check(path("Prefix", "/", &service), &[]);
        check(path("ImplementationSpecific", "", &service), &[]);
        check(
            json!({}),
            &["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"],
        );
        let at = "spec.rules[0].http.paths[0]";
        check(
            path("Prefix", "a", &service),
            &[&format!("{at}.path: Invalid value: \"a\": must be an absolute path")],
        );
        check(
            path("Exact", "/a//b/..", &service),
            &[
                &format!("{at}.path: Invalid value: \"/a//b/..\": must not contain '//'"),
                &format!("{at}.path: Invalid value: \"/a//b/..\": cannot end with '/..'"),
            ],
        );
        check(
            path("Some", "/", &service),
            &[&format!(
                "{at}.pathType: Unsupported value: \"Some\": supported values: \"Exact\", \"ImplementationSpecific\", \"Prefix\""
            )],
        );
        check(
            path("Prefix", "/", &json!({"service": {"name": "web"}})),
            &[&format!("{at}.backend: Required value: port name or number is required")],
        );
        check(
            path("Prefix", "/", &json!({})),
            &[&format!("{at}.backend: Invalid value: \"\": resource or service backend is required")],
        );
    }

    #[test]
    fn hosts_are_names() {
        let rule = |host: &str| json!({"rules": [{"host": host}]});
        check(rule("shop.example"), &[]);
        check(rule("*.example.com"), &[]);
        assert_eq!(validate_ingress(&json!({"spec": rule("10.0.0.1")})).len(), 1);
        assert_eq!(validate_ingress(&json!({"spec": rule("a.*.b")})).len(), 1);
        assert_eq!(validate_ingress(&json!({"spec": rule("A_b")})).len(), 1);
    }
}

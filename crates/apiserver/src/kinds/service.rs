//! Services.

use super::object::{get, integer, list, text};
use crate::field::Error;
use crate::selector::syntax;
use kruise_api::kubernetes::validation::names;
use serde_json::Value;
use std::collections::BTreeSet;

const NULL: &Value = &Value::Null;

pub(super) fn validate(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = object.get("spec").unwrap_or(NULL);
    let kind = text(spec, "type");
    let headless = text(spec, "clusterIP") == "None";
    let ports = list(spec, "ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        found.push(Error::required("spec.ports", ""));
    }
    let address = text(spec, "clusterIP");
    if !matches!(address, "" | "None") && address.parse::<std::net::IpAddr>().is_err() {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        found.push(Error::invalid("spec.clusterIPs[0]", address, detail));
    }
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let detail = format!("may not be set to 'None' for {kind} services");
            found.push(Error::invalid("spec.clusterIPs[0]", "None", detail));
        }
        "ExternalName" => {
            if !list(spec, "clusterIPs").is_empty() {
                found.push(Error::forbidden("spec.clusterIPs", "may not be set for ExternalName services"));
            }
            match text(spec, "externalName") {
                "" => found.push(Error::required("spec.externalName", "")),
                name => {
                    let rules = names::dns_subdomain(name).into_iter();
                    found.extend(rules.map(|rule| Error::invalid("spec.externalName", name, rule)));
                }
            }
        }
        "ClusterIP" | "LoadBalancer" | "NodePort" => {}
        "" => found.push(Error::required("spec.type", "")),
        other => {
            let allowed = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
            found.push(Error::not_supported("spec.type", other, &allowed));
        }
    }
    validate_ports(&mut found, ports, kind);
    for (key, value) in super::object::entries(spec, "selector") {
        let keys = syntax::qualified_name(key).into_iter();
        found.extend(keys.map(|rule| Error::invalid("spec.selector", key, rule)));
        let value = value.as_str().unwrap_or_default();
        let values = syntax::label_value(value).into_iter();
        found.extend(values.map(|rule| Error::invalid("spec.selector", value, rule)));
    }
    match text(spec, "sessionAffinity") {
        "None" | "ClientIP" => {}
        "" => found.push(Error::required("spec.sessionAffinity", "")),
        other => found.push(Error::not_supported("spec.sessionAffinity", other, &["ClientIP", "None"])),
    }
    found
}

fn validate_ports(found: &mut Vec<Error>, ports: &[Value], kind: &str) {
    let (mut names_seen, mut numbers_seen) = (BTreeSet::new(), BTreeSet::new());
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        let name = text(port, "name");
        if name.is_empty() {
            if ports.len() > 1 {
                found.push(Error::required(format!("{path}.name"), ""));
            }
        } else {
            let rules = names::dns_label(name).into_iter();
            found.extend(rules.map(|rule| Error::invalid(format!("{path}.name"), name, rule)));
            if !names_seen.insert(name) {
                found.push(Error::duplicate(format!("{path}.name"), name));
            }
        }
        let number = integer(port, "port").unwrap_or_default();
        found.extend(
            names::port_number(number).map(|rule| Error::invalid(format!("{path}.port"), number, rule)),
        );
        let protocol = text(port, "protocol");
        if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
            let allowed = ["SCTP", "TCP", "UDP"];
            found.push(Error::not_supported(format!("{path}.protocol"), protocol, &allowed));
        }
        match port.get("targetPort") {
            Some(Value::String(name)) => {
                let rules = names::port_name(name).into_iter();
                found.extend(
                    rules.map(|rule| Error::invalid(format!("{path}.targetPort"), name.as_str(), rule)),
                );
            }
            Some(Value::Number(_)) => {
                let target = integer(port, "targetPort").unwrap_or_default();
                let rule = names::port_number(target);
                found.extend(rule.map(|rule| Error::invalid(format!("{path}.targetPort"), target, rule)));
            }
            _ => {}
        }
        if kind == "ClusterIP" && integer(port, "nodePort").unwrap_or_default() != 0 {
            let detail = "may not be used when `type` is 'ClusterIP'";
            found.push(Error::forbidden(format!("{path}.nodePort"), detail));
        }
        if !numbers_seen.insert((protocol, number)) {
            let key = serde_json::json!({"protocol": protocol, "port": number});
            found.push(Error::duplicate(path, key));
        }
    }
}

pub(super) fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let mut found = validate(object);
    let (spec, old_spec) = (object.get("spec").unwrap_or(NULL), old.get("spec").unwrap_or(NULL));
    let before = text(old_spec, "clusterIP");
    let keeps = text(spec, "type") != "ExternalName" && text(old_spec, "type") != "ExternalName";
    if keeps && !before.is_empty() && text(spec, "clusterIP") != before {
        let now: Vec<Value> = match list(spec, "clusterIPs") {
            [] => get(spec, "clusterIP").cloned().into_iter().collect(),
            ips => ips.to_vec(),
        };
        let detail = "may not change once set";
        found.push(Error::invalid("spec.clusterIPs[0]", Value::Array(now), detail));
    }
    found
}

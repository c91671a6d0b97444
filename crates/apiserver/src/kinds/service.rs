//! Services.

use super::object::{get, integer, list, text};
use crate::field::Error;
use crate::selector::syntax;
use kruise_api::kubernetes::validation::names;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;

const NULL: &Value = &Value::Null;

pub(super) fn validate(object: &Value) -> Vec<Error> {
    let spec = object.get("spec").unwrap_or(NULL);
    let kind = text(spec, "type");
    // Whoever gives addresses looks at them first, and says nothing else.
    let found = if kind == "ExternalName" { Vec::new() } else { address_errors(spec) };
    if !found.is_empty() {
        return found;
    }
    let mut found = Vec::new();
    let headless = text(spec, "clusterIP") == "None";
    let ports = list(spec, "ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        found.push(Error::required("spec.ports", ""));
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
            // A dot at the end says that nothing is to be added.
            let name = text(spec, "externalName");
            match name.strip_suffix('.').unwrap_or(name) {
                "" => found.push(Error::required("spec.externalName", "")),
                name => {
                    let rules = names::dns_subdomain(name).into_iter();
                    found.extend(rules.map(|rule| Error::invalid("spec.externalName", name, rule)));
                }
            }
        }
        _ => {}
    }
    validate_ports(&mut found, ports);
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
    match kind {
        "ClusterIP" | "ExternalName" | "LoadBalancer" | "NodePort" => {}
        "" => found.push(Error::required("spec.type", "")),
        other => {
            let allowed = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
            found.push(Error::not_supported("spec.type", other, &allowed));
        }
    }
    validate_numbers(&mut found, ports, kind);
    found
}

/// The list of addresses, which begins with the one that older clients know. This cluster has addresses of one family.
fn address_errors(spec: &Value) -> Vec<Error> {
    let (address, all) = (text(spec, "clusterIP"), list(spec, "clusterIPs"));
    let about_all = |detail: &str| Error::invalid("spec.clusterIPs", all.to_vec(), detail);
    let mut found = Vec::new();
    match all.first() {
        Some(_) if address.is_empty() => {
            found.push(about_all("must be empty when `clusterIP` is not specified"));
        }
        Some(first) if first.as_str() != Some(address) => {
            found.push(about_all("first value must match `clusterIP`"));
        }
        _ => {}
    }
    let mut bad = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let one = one.as_str().unwrap_or_default();
        if index == 0 && one == "None" {
            bad.extend((all.len() > 1).then(|| about_all("'None' must be the first and only value")));
        } else if one.parse::<IpAddr>().is_err() {
            let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            bad.push(Error::invalid(format!("spec.clusterIPs[{index}]"), one, detail));
        }
    }
    let readable = bad.is_empty();
    found.append(&mut bad);
    if all.len() > 2 {
        found.push(about_all("may only hold up to 2 values"));
    }
    if !readable || all.len() < 2 {
        return found;
    }
    let is_v6 = |one: &Value| one.as_str().is_some_and(|one| one.contains(':'));
    if all.len() > 2 || all.iter().filter(|one| is_v6(one)).count() != 1 {
        found.push(about_all("may specify no more than one IP for each IP family"));
    }
    if found.is_empty() && text(spec, "ipFamilyPolicy") == "SingleStack" {
        let detail =
            "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified";
        found.push(Error::invalid("spec.ipFamilyPolicy", "SingleStack", detail));
    }
    found
}

fn validate_ports(found: &mut Vec<Error>, ports: &[Value]) {
    let mut names_seen = BTreeSet::new();
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
    }
}

/// Which numbers ports may have beside each other.
fn validate_numbers(found: &mut Vec<Error>, ports: &[Value], kind: &str) {
    let node_port = |port: &Value| integer(port, "nodePort").filter(|number| *number != 0);
    for (index, _) in
        ports.iter().enumerate().filter(|(_, port)| kind == "ClusterIP" && node_port(port).is_some())
    {
        let detail = "may not be used when `type` is 'ClusterIP'";
        found.push(Error::forbidden(format!("spec.ports[{index}].nodePort"), detail));
    }
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        if let Some(number) = node_port(port).filter(|number| !seen.insert((text(port, "protocol"), *number)))
        {
            found.push(Error::duplicate(format!("spec.ports[{index}].nodePort"), number));
        }
    }
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let (protocol, number) = (text(port, "protocol"), integer(port, "port").unwrap_or_default());
        if !seen.insert((protocol, number)) {
            let key = serde_json::json!({"protocol": protocol, "port": number});
            found.push(Error::duplicate(format!("spec.ports[{index}]"), key));
        }
    }
}

pub(super) fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let (spec, old_spec) = (object.get("spec").unwrap_or(NULL), old.get("spec").unwrap_or(NULL));
    let before = text(old_spec, "clusterIP");
    if text(spec, "type") != "ExternalName" {
        let found = address_errors(spec);
        if !found.is_empty() {
            return found;
        }
    }
    let mut found = Vec::new();
    let keeps = text(spec, "type") != "ExternalName" && text(old_spec, "type") != "ExternalName";
    if keeps && !before.is_empty() && text(spec, "clusterIP") != before {
        let now: Vec<Value> = match list(spec, "clusterIPs") {
            [] => get(spec, "clusterIP").cloned().into_iter().collect(),
            ips => ips.to_vec(),
        };
        let detail = "may not change once set";
        found.push(Error::invalid("spec.clusterIPs[0]", Value::Array(now), detail));
    }
    found.extend(validate(object));
    found
}

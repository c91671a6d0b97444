//! Rules of environment variables and of references to fields.

use super::names;
use super::{Violation, Violations, each, get, list, text};
use serde_json::Value;

const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const ENV_RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const ENV_SOURCES: [&str; 4] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"];

pub(super) fn check(found: &mut Violations, container: &Value, path: &str) {
    for (index, variable) in list(container, "env").iter().enumerate() {
        let path = format!("{path}.env[{index}]");
        match text(variable, "name") {
            "" => found.push(Violation::required(format!("{path}.name"), "")),
            name => each(found, &format!("{path}.name"), name, names::environment_variable(name)),
        }
        if let Some(source) = get(variable, "valueFrom") {
            value_from(found, source, !text(variable, "value").is_empty(), &format!("{path}.valueFrom"));
        }
    }
    let all = format!("{path}.envFrom");
    for (index, source) in list(container, "envFrom").iter().enumerate() {
        let path = format!("{all}[{index}]");
        let prefix = text(source, "prefix");
        each(found, &format!("{path}.prefix"), prefix, names::environment_variable(prefix));
        let sources = ["configMapRef", "secretRef"].into_iter().filter(|kind| get(source, kind).is_some());
        let sources: Vec<&str> = sources.collect();
        for kind in &sources {
            if get(source, kind).is_some_and(|reference| text(reference, "name").is_empty()) {
                found.push(Violation::required(format!("{path}.{kind}.name"), ""));
            }
        }
        match sources.len() {
            0 => found.push(Violation::invalid(
                all.as_str(),
                "",
                "must specify one of: `configMapRef` or `secretRef`",
            )),
            1 => {}
            _ => found.push(Violation::invalid(
                all.as_str(),
                "",
                "may not have more than one field specified at a time",
            )),
        }
    }
}

fn value_from(found: &mut Violations, source: &Value, has_value: bool, path: &str) {
    let count = ENV_SOURCES.iter().filter(|kind| get(source, kind).is_some()).count();
    if let Some(field) = get(source, "fieldRef") {
        field_ref(found, field, &ENV_FIELDS, &format!("{path}.fieldRef"));
    }
    if let Some(resource) = get(source, "resourceFieldRef") {
        resource_field_ref(found, resource, &format!("{path}.resourceFieldRef"));
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        let Some(reference) = get(source, kind) else { continue };
        if text(reference, "name").is_empty() {
            found.push(Violation::required(format!("{path}.{kind}.name"), ""));
        }
        match text(reference, "key") {
            "" => found.push(Violation::required(format!("{path}.{kind}.key"), "")),
            key => each(found, &format!("{path}.{kind}.key"), key, names::config_key(key)),
        }
    }
    if count == 0 {
        let detail =
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`";
        found.push(Violation::invalid(path, "", detail));
    } else if has_value {
        found.push(Violation::invalid(path, "", "may not be specified when `value` is not empty"));
    } else if count > 1 {
        found.push(Violation::invalid(path, "", "may not have more than one field specified at a time"));
    }
}

pub(super) fn field_ref(found: &mut Violations, reference: &Value, allowed: &[&str], path: &str) {
    if text(reference, "apiVersion").is_empty() {
        found.push(Violation::required(format!("{path}.apiVersion"), ""));
        return;
    }
    let field = text(reference, "fieldPath");
    if field.is_empty() {
        found.push(Violation::required(format!("{path}.fieldPath"), ""));
        return;
    }
    let subscript = field.strip_suffix("']").and_then(|rest| rest.split_once("['"));
    match subscript {
        Some(("metadata.annotations", key)) => {
            each(found, path, key, names::qualified_name(&key.to_lowercase()));
        }
        Some(("metadata.labels", key)) => each(found, path, key, names::qualified_name(key)),
        Some((owner, _)) => found.push(Violation::invalid(path, owner, "does not support subscript")),
        None if !allowed.contains(&field) && !matches!(field, "metadata.annotations" | "metadata.labels") => {
            let detail = format!("error converting fieldPath: field label not supported: {field}");
            let known = ENV_FIELDS.contains(&field);
            found.push(match known {
                true => Violation::not_supported(format!("{path}.fieldPath"), field, allowed),
                false => Violation::invalid(format!("{path}.fieldPath"), field, detail),
            });
        }
        None if !allowed.contains(&field) => {
            found.push(Violation::not_supported(format!("{path}.fieldPath"), field, allowed));
        }
        None => {}
    }
}

fn resource_field_ref(found: &mut Violations, reference: &Value, path: &str) {
    let resource = text(reference, "resource");
    let huge = resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-");
    if resource.is_empty() {
        found.push(Violation::required(format!("{path}.resource"), ""));
    } else if !huge && !ENV_RESOURCES.contains(&resource) {
        found.push(Violation::not_supported(format!("{path}.resource"), resource, &ENV_RESOURCES));
    }
}

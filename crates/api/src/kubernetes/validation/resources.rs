//! Rules of resource requirements, and the quality of service that follows from them.

use super::names;
use super::{Violation, Violations, entries, list};
use crate::kubernetes::quantity::Quantity;
use serde_json::Value;

const NOT_INTEGER: &str = "must be an integer";

/// What is wrong with the `resources` of a container.
pub fn resource_requirements(resources: &Value, path: &str) -> Violations {
    let mut found = Violations::new();
    for kind in ["limits", "requests"] {
        for (name, value) in entries(resources, kind) {
            let path = format!("{path}.{kind}[{name}]");
            resource_name(&mut found, name, &path);
            let Ok(quantity) = Quantity::from_json(value) else { continue };
            if quantity < Quantity::ZERO {
                let detail = "must be greater than or equal to 0";
                found.push(Violation::invalid(path.as_str(), quantity.to_string(), detail));
            }
            if name.contains('/') && quantity.nanos() % 1_000_000_000 != 0 {
                found.push(Violation::invalid(path, quantity.to_string(), NOT_INTEGER));
            }
        }
    }
    for (name, request) in entries(resources, "requests") {
        let limit = resources.get("limits").and_then(|limits| limits.get(name));
        let (limits, path) = (format!("{path}.limits"), format!("{path}.requests"));
        let (Ok(request), limit) = (Quantity::from_json(request), limit.map(Quantity::from_json)) else {
            continue;
        };
        match limit {
            Some(Ok(limit)) if !may_overcommit(name) && request != limit => {
                let detail = format!("must be equal to {name} limit of {limit}");
                found.push(Violation::invalid(path, request.to_string(), detail));
            }
            Some(Ok(limit)) if request > limit => {
                let detail = format!("must be less than or equal to {name} limit of {limit}");
                found.push(Violation::invalid(path, request.to_string(), detail));
            }
            None if !may_overcommit(name) => {
                found.push(Violation::required(limits, "Limit must be set for non overcommitable resources"));
            }
            _ => {}
        }
    }
    found
}

/// Resources of Kubernetes itself may be asked for below their limit; huge pages and extended ones may not.
fn may_overcommit(name: &str) -> bool {
    !name.contains('/') && !name.starts_with("hugepages-")
}

fn resource_name(found: &mut Violations, name: &str, path: &str) {
    let rules = names::qualified_name(name);
    if !rules.is_empty() {
        found.extend(rules.into_iter().map(|rule| Violation::invalid(path, name, rule)));
        return;
    }
    let standard = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if !name.contains('/') && !standard {
        found.push(Violation::invalid(path, name, "must be a standard resource type or fully qualified"));
        found.push(Violation::invalid(path, name, "must be a standard resource for containers"));
    }
}

/// Whether two pod specs have the same quality of service class.
pub fn is_qos_kept(new: &Value, old: &Value) -> bool {
    quality(new) == quality(old)
}

/// `Guaranteed`, `Burstable` or `BestEffort`.
pub fn quality(spec: &Value) -> &'static str {
    let amount = |container: &Value, kind: &str, name: &str| {
        let value = container.get("resources")?.get(kind)?.get(name)?;
        Quantity::from_json(value).ok().filter(|amount| !amount.is_zero())
    };
    let containers: Vec<&Value> =
        list(spec, "containers").iter().chain(list(spec, "initContainers")).collect();
    let has_any = containers.iter().any(|container| {
        ["requests", "limits"]
            .iter()
            .any(|kind| ["cpu", "memory"].iter().any(|name| amount(container, kind, name).is_some()))
    });
    if !has_any {
        return "BestEffort";
    }
    let guaranteed = containers.iter().all(|container| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = amount(container, "limits", name);
            // Requests default to limits.
            limit.is_some() && amount(container, "requests", name).or(limit) == limit
        })
    });
    if guaranteed { "Guaranteed" } else { "Burstable" }
}

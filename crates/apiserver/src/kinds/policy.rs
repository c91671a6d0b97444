//! Disruption budgets, priority classes and leases.

use super::object::{get, integer, text};
use super::workload::{at_most_all, int_or_percent};
use crate::field::{Error, Path};
use crate::selector;
use serde_json::Value;

const NULL: &Value = &Value::Null;

pub(super) fn validate_budget(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = object.get("spec").unwrap_or(NULL);
    if get(spec, "minAvailable").is_some() && get(spec, "maxUnavailable").is_some() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        found.push(Error::invalid("spec", spec.clone(), detail).shown_as(budget_text(spec)));
    }
    for member in ["minAvailable", "maxUnavailable"] {
        int_or_percent(&mut found, spec, member, "spec");
        at_most_all(&mut found, spec, member, "spec");
    }
    if let Some(policy) = get(spec, "unhealthyPodEvictionPolicy").and_then(Value::as_str)
        && !matches!(policy, "AlwaysAllow" | "IfHealthyBudget")
    {
        let allowed = ["AlwaysAllow", "IfHealthyBudget"];
        found.push(Error::not_supported("spec.unhealthyPodEvictionPolicy", policy, &allowed));
    }
    if let Some(labels) = get(spec, "selector") {
        found.extend(selector::validate(labels, &Path::new("spec.selector")));
    }
    found
}

/// A budget as the real server prints it: by the names of its inner type.
fn budget_text(spec: &Value) -> String {
    let fields = ["minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy"].map(|key| {
        let (first, rest) = key.split_at(1);
        format!("\"{}{rest}\":{}", first.to_uppercase(), spec.get(key).unwrap_or(NULL))
    });
    format!("{{{}}}", fields.join(","))
}

const HIGHEST_USER_PRIORITY: i64 = 1_000_000_000;

pub(super) fn validate_priority_class(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let value = integer(object, "value").unwrap_or_default();
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let system = matches!(name, "system-cluster-critical" | "system-node-critical");
    if name.starts_with("system-") && !system {
        let detail = "priority class names with 'system-' prefix are reserved for system use only. error: \
                      unknown system priority class";
        found.push(Error::forbidden("metadata.name", detail));
    } else if !system && value > HIGHEST_USER_PRIORITY {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}");
        found.push(Error::forbidden("value", detail));
    }
    let policy = text(object, "preemptionPolicy");
    if !matches!(policy, "" | "PreemptLowerPriority" | "Never") {
        let allowed = ["PreemptLowerPriority", "Never"];
        found.push(Error::not_supported("preemptionPolicy", policy, &allowed));
    }
    found
}

pub(super) fn validate_priority_class_update(object: &Value, old: &Value) -> Vec<Error> {
    let mut found = validate_priority_class(object);
    let value = |object: &Value| integer(object, "value").unwrap_or_default();
    if value(object) != value(old) {
        found.push(Error::forbidden("value", "may not be changed in an update."));
    }
    super::immutable(&mut found, object, old, "preemptionPolicy", "");
    found
}

pub(super) fn validate_lease(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = object.get("spec").unwrap_or(NULL);
    if let Some(seconds) = integer(spec, "leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        found.push(Error::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
    }
    if let Some(count) = integer(spec, "leaseTransitions").filter(|count| *count < 0) {
        let detail = "must be greater than or equal to 0";
        found.push(Error::invalid("spec.leaseTransitions", count, detail));
    }
    found
}

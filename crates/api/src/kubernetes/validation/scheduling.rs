//! Rules of where a pod may run: tolerations, affinity, spreading and gates.

use super::container::labels;
use super::names;
use super::{Violation, Violations, each, get, list, number, text};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn check(found: &mut Violations, spec: &Value, path: &str) {
    labels(found, spec, "nodeSelector", &format!("{path}.nodeSelector"));
    if let Some(affinity) = get(spec, "affinity") {
        check_affinity(found, affinity, &format!("{path}.affinity"));
    }
    for (index, gate) in list(spec, "readinessGates").iter().enumerate() {
        let kind = text(gate, "conditionType");
        each(
            found,
            &format!("{path}.readinessGates[{index}].conditionType"),
            kind,
            names::qualified_name(kind),
        );
    }
    let mut gates = BTreeSet::new();
    for (index, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let path = format!("{path}.schedulingGates[{index}]");
        let name = text(gate, "name");
        each(found, &path, name, names::qualified_name(name));
        if !gates.insert(name) {
            found.push(Violation::duplicate(path, name));
        }
    }
    spread(found, list(spec, "topologySpreadConstraints"), &format!("{path}.topologySpreadConstraints"));
}

pub(super) fn tolerations(found: &mut Violations, spec: &Value, path: &str) {
    for (index, toleration) in list(spec, "tolerations").iter().enumerate() {
        let path = format!("{path}.tolerations[{index}]");
        let member = |name: &str| text(toleration, name);
        let (key, operator, value, effect) =
            (member("key"), member("operator"), member("value"), member("effect"));
        if !key.is_empty() {
            each(found, &format!("{path}.key"), key, names::qualified_name(key));
        } else if operator != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            found.push(Violation::invalid(format!("{path}.operator"), operator, detail));
        }
        if get(toleration, "tolerationSeconds").is_some() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            found.push(Violation::invalid(format!("{path}.effect"), effect, detail));
        }
        match operator {
            "" | "Equal" => {
                let rules = names::label_value(value);
                if !rules.is_empty() {
                    found.push(Violation::invalid(format!("{path}.operator"), value, rules.join(";")));
                }
            }
            "Exists" if !value.is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                found.push(Violation::invalid(format!("{path}.operator"), value, detail));
            }
            "Exists" => {}
            other => {
                found.push(Violation::not_supported(format!("{path}.operator"), other, &["Equal", "Exists"]));
            }
        }
        if !matches!(effect, "" | "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
            let allowed = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            found.push(Violation::not_supported(format!("{path}.effect"), effect, &allowed));
        }
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn check_affinity(found: &mut Violations, affinity: &Value, path: &str) {
    if let Some(nodes) = get(affinity, "nodeAffinity") {
        if let Some(required) = get(nodes, REQUIRED) {
            let path = format!("{path}.nodeAffinity.{REQUIRED}.nodeSelectorTerms");
            let terms = list(required, "nodeSelectorTerms");
            if terms.is_empty() {
                found.push(Violation::required(path.as_str(), "must have at least one node selector term"));
            }
            for (index, term) in terms.iter().enumerate() {
                node_term(found, term, &format!("{path}[{index}]"));
            }
        }
        for (index, preferred) in list(nodes, PREFERRED).iter().enumerate() {
            let path = format!("{path}.nodeAffinity.{PREFERRED}[{index}]");
            preferred_term(found, preferred, &path);
        }
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = get(affinity, kind) else { continue };
        for (index, term) in list(pods, REQUIRED).iter().enumerate() {
            pod_term(found, term, &format!("{path}.{kind}.{REQUIRED}[{index}]"));
        }
        for (index, preferred) in list(pods, PREFERRED).iter().enumerate() {
            let path = format!("{path}.{kind}.{PREFERRED}[{index}]");
            weight(found, preferred, &path);
            if let Some(term) = get(preferred, "podAffinityTerm") {
                pod_term(found, term, &format!("{path}.podAffinityTerm"));
            }
        }
    }
}

pub(super) fn preferred_term(found: &mut Violations, preferred: &Value, path: &str) {
    weight(found, preferred, path);
    if let Some(term) = get(preferred, "preference") {
        node_term(found, term, &format!("{path}.preference"));
    }
}

fn weight(found: &mut Violations, preferred: &Value, path: &str) {
    let weight = number(preferred, "weight");
    if !(1..=100).contains(&weight) {
        found.push(Violation::invalid(format!("{path}.weight"), weight, "must be in the range 1-100"));
    }
}

pub(super) fn node_term(found: &mut Violations, term: &Value, path: &str) {
    for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let values = list(expression, "values");
        let operator = text(expression, "operator");
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                found.push(Violation::required(format!("{path}.values"), detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                found.push(Violation::forbidden(format!("{path}.values"), detail));
            }
            "Gt" | "Lt" if values.len() != 1 => {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                found.push(Violation::required(format!("{path}.values"), detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => {
                found.push(Violation::invalid(
                    format!("{path}.operator"),
                    other,
                    "not a valid selector operator",
                ));
            }
        }
        let key = text(expression, "key");
        each(found, &format!("{path}.key"), key, names::qualified_name(key));
    }
}

fn pod_term(found: &mut Violations, term: &Value, path: &str) {
    if let Some(selector) = get(term, "labelSelector") {
        label_selector(found, selector, &format!("{path}.labelSelector"));
    }
    for namespace in list(term, "namespaces").iter().filter_map(Value::as_str) {
        each(found, &format!("{path}.namespace"), namespace, names::dns_label(namespace));
    }
    match text(term, "topologyKey") {
        "" => {
            found.push(Violation::required(format!("{path}.topologyKey"), "can not be empty"));
            each(found, &format!("{path}.topologyKey"), "", names::qualified_name(""));
        }
        key => each(found, &format!("{path}.topologyKey"), key, names::qualified_name(key)),
    }
}

/// Rules of a label selector.
pub(super) fn label_selector(found: &mut Violations, selector: &Value, path: &str) {
    labels(found, selector, "matchLabels", &format!("{path}.matchLabels"));
    for (index, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let values = list(expression, "values");
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                found.push(Violation::required(format!("{path}.values"), detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                found.push(Violation::forbidden(format!("{path}.values"), detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                found.push(Violation::invalid(
                    format!("{path}.operator"),
                    other,
                    "not a valid selector operator",
                ));
            }
        }
        let key = text(expression, "key");
        each(found, &format!("{path}.key"), key, names::qualified_name(key));
    }
}

fn spread(found: &mut Violations, constraints: &[Value], path: &str) {
    for (index, constraint) in constraints.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let skew = number(constraint, "maxSkew");
        if skew <= 0 {
            found.push(Violation::invalid(format!("{path}.maxSkew"), skew, "must be greater than zero"));
        }
        let key = text(constraint, "topologyKey");
        if key.is_empty() {
            found.push(Violation::required(format!("{path}.topologyKey"), "can not be empty"));
        }
        let when = text(constraint, "whenUnsatisfiable");
        if !matches!(when, "DoNotSchedule" | "ScheduleAnyway") {
            let allowed = ["DoNotSchedule", "ScheduleAnyway"];
            found.push(Violation::not_supported(format!("{path}.whenUnsatisfiable"), when, &allowed));
        }
        let again = constraints
            .iter()
            .skip(index + 1)
            .any(|other| text(other, "topologyKey") == key && text(other, "whenUnsatisfiable") == when);
        if again {
            let path = format!("{path}.{{topologyKey, whenUnsatisfiable}}");
            found.push(Violation::duplicate(path, format!("{{{key}, {when}}}")));
        }
        if let Some(selector) = get(constraint, "labelSelector") {
            label_selector(found, selector, &format!("{path}.labelSelector"));
        }
    }
}

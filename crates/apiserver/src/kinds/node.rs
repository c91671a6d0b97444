//! Nodes.

use super::object::{list, text};
use crate::field::Error;
use crate::selector::syntax;
use serde_json::Value;
use std::collections::BTreeSet;

const NULL: &Value = &Value::Null;

pub(super) fn validate(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, taint) in list(object.get("spec").unwrap_or(NULL), "taints").iter().enumerate() {
        let path = format!("spec.taints[{index}]");
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        let rules = syntax::qualified_name(key).into_iter();
        found.extend(rules.map(|rule| Error::invalid(format!("{path}.key"), key, rule)));
        let rules = syntax::label_value(value);
        if !rules.is_empty() {
            found.push(Error::invalid(format!("{path}.value"), value, rules.join(";")));
        }
        match effect {
            "NoSchedule" | "PreferNoSchedule" | "NoExecute" => {}
            "" => found.push(Error::required(format!("{path}.effect"), "")),
            other => {
                let allowed = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
                found.push(Error::not_supported(format!("{path}.effect"), other, &allowed));
            }
        }
        if !seen.insert((key, effect)) {
            let mut error = Error::duplicate(path, taint.clone());
            "taints must be unique by key and effect pair".clone_into(&mut error.detail);
            found.push(error);
        }
    }
    found
}

pub(super) fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let mut found = validate(object);
    let (spec, old_spec) = (object.get("spec").unwrap_or(NULL), old.get("spec").unwrap_or(NULL));
    let provider = text(old_spec, "providerID");
    if !provider.is_empty() && text(spec, "providerID") != provider {
        let detail = "node updates may not change providerID except from \"\" to valid";
        found.push(Error::forbidden("spec.providerID", detail));
    }
    let ranges = list(old_spec, "podCIDRs");
    if !ranges.is_empty() && list(spec, "podCIDRs") != ranges {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        found.push(Error::forbidden("spec.podCIDRs", detail));
    }
    found
}

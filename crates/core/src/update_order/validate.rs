//! What the strategies must look like that say which pods are updated first.

use std::collections::BTreeSet;

use kruise_api::{
    json,
    kubernetes::validation::Violation,
    selector::{self, LabelSelector},
};
use serde_json::Value;

/// `priorityStrategy` of an update strategy.
pub fn priority(strategy: &Value, path: &str, found: &mut Vec<Violation>) {
    let list = |name: &str| {
        json::at(strategy, &["priorityStrategy", name]).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let (weights, keys) = (list("weightPriority"), list("orderPriority"));
    let mut problems: Vec<String> = Vec::new();
    if !weights.is_empty() && !keys.is_empty() {
        problems.push("only one of weightPriority and orderPriority can be used".to_owned());
    }
    for term in &weights {
        let weight = json::at(term, &["weight"]).and_then(Value::as_i64).unwrap_or(0);
        if !(0..=100).contains(&weight) {
            problems.push("weight must be valid number in the range 1-100".to_owned());
        }
        let selector = json::at(term, &["matchSelector"]).cloned().unwrap_or_default();
        let selector: LabelSelector = serde_json::from_value(selector).unwrap_or_default();
        if selector.is_empty() {
            problems.push("selector can not be empty".to_owned());
        } else if let Err(error) = selector.matcher() {
            problems.push(format!("invalid selector {}", selector_problem(&error)));
        }
    }
    if keys.iter().any(|key| json::text(key, &["orderedKey"]).unwrap_or_default().is_empty()) {
        problems.push("order key can not be empty".to_owned());
    }
    // One is enough: the others often follow from it.
    found.extend(problems.into_iter().next().map(|problem| Violation::required(path, problem)));
}

fn selector_problem(error: &selector::Error) -> String {
    match error {
        selector::Error::NoValues { .. } => {
            "values: Invalid value: []string(nil): for 'in', 'notin' operators, values set can't be empty"
                .to_owned()
        }
        other => other.to_string(),
    }
}

/// `scatterStrategy` of an update strategy.
pub fn scatter(strategy: &Value, path: &str, found: &mut Vec<Violation>) {
    let terms = json::at(strategy, &["scatterStrategy"]).and_then(Value::as_array);
    let mut known = BTreeSet::new();
    for term in terms.into_iter().flatten() {
        let text = |name| json::text(term, &[name]).unwrap_or_default();
        let (key, value) = (text("key"), text("value"));
        let problem = if key.is_empty() {
            "key should not be empty".to_owned()
        } else if !known.insert((key, value)) {
            format!("duplicated key={key} value={value}")
        } else {
            continue;
        };
        found.push(Violation::required(path, problem));
        return;
    }
}

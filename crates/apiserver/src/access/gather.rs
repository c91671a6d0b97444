//! Cluster roles that are made of others.

use serde_json::{Value, json};

use crate::selector::Labels;

/// The rules that a role with an aggregation rule has: those of the roles that its selectors choose, each once. `others` are
/// all cluster roles, in the order of their names. Nothing for a role that gathers none.
pub fn gathered(role: &Value, others: &[Value]) -> Option<Vec<Value>> {
    let selectors = role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array)?;
    let own = name(role);
    let mut rules: Vec<Value> = Vec::new();
    for selector in selectors {
        let Ok(selector) = Labels::from_object(Some(selector)) else { continue };
        for other in others.iter().filter(|other| name(other) != own) {
            let labels = other.pointer("/metadata/labels").and_then(Value::as_object);
            if !selector.matches_json(labels) {
                continue;
            }
            let found = other.get("rules").and_then(Value::as_array).into_iter().flatten();
            for rule in found {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    Some(rules)
}

fn name(role: &Value) -> &str {
    role.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// The role with these rules, if it has others now.
pub(crate) fn changed(role: &Value, rules: Vec<Value>) -> Option<Value> {
    let now = role.get("rules").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    (now != rules.as_slice()).then(|| json!({ "rules": rules }))
}

//! The fingerprint of volume claim templates. It is kept on each revision, because claims are no part of its data.

use kruise_api::kubernetes::shape::{self, Unknown};
use serde_json::{Value, json};

use crate::{canonical_json, hash};

/// The fingerprint of a list of claim templates: their names and specs, whatever their order. Empty for none.
pub fn hash(templates: &[Value]) -> String {
    if templates.is_empty() {
        return String::new();
    }
    let mut claims: Vec<(String, String)> = templates.iter().map(entry).collect();
    claims.sort();
    let texts: Vec<String> = claims.into_iter().map(|(_, text)| text).collect();
    hash::of_json(&format!("[{}]", texts.join(","))).to_string()
}

/// The name of a claim with its text. Members stand in the order of Go's struct, not of the alphabet.
fn entry(template: &Value) -> (String, String) {
    let mut claim = json!({"spec": template.get("spec").cloned().unwrap_or_else(|| json!({}))});
    let _ = shape::canonical("core.PersistentVolumeClaim", &mut claim, Unknown::Keep);
    let spec = claim.get("spec").cloned().unwrap_or_else(|| json!({}));
    let name = template.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let mut quoted = String::new();
    canonical_json::quote(name, &mut quoted);
    let text = format!(
        r#"{{"metadata":{{"name":{quoted},"creationTimestamp":null}},"spec":{},"status":{{}}}}"#,
        spec_text(&spec)
    );
    (name.to_owned(), text)
}

/// Members of a claim's spec in the order in which Go writes them; `resources` has its own order.
const MEMBERS: [&str; 9] = [
    "accessModes",
    "selector",
    "resources",
    "volumeName",
    "storageClassName",
    "volumeMode",
    "dataSource",
    "dataSourceRef",
    "volumeAttributesClassName",
];
const SELECTOR: [&str; 2] = ["matchLabels", "matchExpressions"];
const REQUIREMENT: [&str; 3] = ["key", "operator", "values"];
const REFERENCE: [&str; 4] = ["apiGroup", "kind", "name", "namespace"];

fn spec_text(spec: &Value) -> String {
    ordered(spec, &MEMBERS, &|name, value| match name {
        "selector" => ordered(value, &SELECTOR, &|name, value| match (name, value) {
            ("matchExpressions", Value::Array(items)) => {
                let items: Vec<String> = items
                    .iter()
                    .map(|item| ordered(item, &REQUIREMENT, &|_, value| canonical_json::text(value)))
                    .collect();
                format!("[{}]", items.join(","))
            }
            (_, value) => canonical_json::text(value),
        }),
        "dataSource" | "dataSourceRef" => ordered(value, &REFERENCE, &|_, value| canonical_json::text(value)),
        _ => canonical_json::text(value),
    })
}

/// An object with the known members first, in their order, then the others by name.
fn ordered(value: &Value, known: &[&str], write: &dyn Fn(&str, &Value) -> String) -> String {
    let Some(members) = value.as_object() else { return canonical_json::text(value) };
    let others = members.keys().map(String::as_str).filter(|name| !known.contains(name));
    let names = known.iter().copied().chain(others);
    let texts: Vec<String> = names
        .filter_map(|name| {
            let member = members.get(name)?;
            let mut text = String::new();
            canonical_json::quote(name, &mut text);
            Some(format!("{text}:{}", write(name, member)))
        })
        .collect();
    format!("{{{}}}", texts.join(","))
}

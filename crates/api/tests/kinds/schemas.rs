//! The schemas are complete and readable.

use kruise_api::catalogue::CRDS;
use serde_json::{Value, json};

fn undescribed(schema: &Value, path: &str, found: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        if field["description"].as_str().is_none_or(|text| text.trim().len() < 8) {
            found.push(path.clone());
        }
        undescribed(field, &path, found);
    }
    for inner in ["items", "additionalProperties"].into_iter().filter_map(|inner| schema.get(inner)) {
        undescribed(inner, &format!("{path}[]"), found);
    }
}

#[test]
fn every_field_has_a_description() {
    for crd in CRDS {
        for version in crd.versions {
            let schema = crd.schema(version);
            let mut found = Vec::new();
            for part in ["spec", "status"] {
                undescribed(&schema["properties"][part], &format!("{}.{part}", crd.kind), &mut found);
            }
            assert!(found.is_empty(), "{} without description: {found:#?}", version.name);
        }
    }
}

/// Kubernetes refuses the whole CRD otherwise: "must not specify anything other than name and generateName".
#[test]
fn metadata_is_left_to_the_api_server() {
    for crd in CRDS {
        for version in crd.versions {
            let schema = crd.schema(version);
            assert_eq!(schema["properties"]["metadata"], json!({"type": "object"}), "{}", crd.kind);
        }
    }
}

#[test]
fn kinds_are_sorted_and_named_once() {
    let names: Vec<(&str, &str)> = CRDS.iter().map(|crd| (crd.group, crd.plural)).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(names, sorted);
}

//! The types hold everything that the schemas allow.

use kruise_api::catalogue::CRDS;
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::Value;

use crate::arbitrary;

/// Empty lists and maps are written as absent, as Go does.
fn without_empties(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, value)| (key.clone(), without_empties(value)))
                .filter(|(_, value)| {
                    !value.is_null() && value != &serde_json::json!({}) && value != &serde_json::json!([])
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_empties).collect()),
        other => other.clone(),
    }
}

#[test]
fn reading_and_writing_an_object_loses_no_field() {
    for crd in CRDS {
        for version in crd.versions {
            let mut runner = TestRunner::new(ProptestConfig::with_cases(64));
            runner
                .run(&arbitrary::object(crd, version.name), |object| {
                    let written = (version.read_and_write)(object.clone()).map_err(|error| {
                        TestCaseError::fail(format!("{} {}: {error}", crd.kind, version.name))
                    })?;
                    prop_assert_eq!(without_empties(&written), without_empties(&object));
                    Ok(())
                })
                .unwrap_or_else(|error| panic!("{} {}: {error}", crd.kind, version.name));
        }
    }
}

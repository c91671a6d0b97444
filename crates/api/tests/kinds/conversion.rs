//! Conversion loses nothing, in either direction.

use kruise_api::{
    catalogue::CRDS,
    convert::{HUB_FIELDS, convert},
    crd::{Crd, Version},
};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::Value;

use crate::arbitrary;

/// Every kind with two versions, the older one first.
fn pairs() -> impl Iterator<Item = (&'static Crd, &'static Version, &'static Version)> {
    CRDS.iter().filter_map(|crd| match crd.versions {
        [old, hub] => Some((*crd, old, hub)),
        _ => None,
    })
}

fn for_all(crd: &'static Crd, version: &'static Version, check: impl Fn(Value) -> Result<(), TestCaseError>) {
    let mut runner = TestRunner::new(ProptestConfig::with_cases(256));
    runner
        .run(&arbitrary::object(crd, version.name), check)
        .unwrap_or_else(|error| panic!("{} {}: {error}", crd.kind, version.name));
}

fn api_version(crd: &Crd, version: &Version) -> String {
    format!("{}/{}", crd.group, version.name)
}

/// Whether the API server would cut something off that the schema does not name.
fn pruned(value: &Value, schema: &Value, path: &str, cut: &mut Vec<String>) {
    let open = schema["x-kubernetes-preserve-unknown-fields"] == true;
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let known = &schema["properties"][name];
                let rest = &schema["additionalProperties"];
                let path = format!("{path}.{name}");
                match (known.is_object(), rest.is_object()) {
                    (true, _) => pruned(field, known, &path, cut),
                    (false, true) => pruned(field, rest, &path, cut),
                    (false, false) if !open => cut.push(path),
                    _ => {}
                }
            }
        }
        Value::Array(items) if !open => {
            items.iter().for_each(|item| pruned(item, &schema["items"], path, cut));
        }
        _ => {}
    }
}

#[track_caller]
fn assert_fits(crd: &Crd, version: &Version, object: &Value) -> Result<(), TestCaseError> {
    let schema = crd.schema(version);
    let mut cut = Vec::new();
    for part in ["spec", "status"] {
        pruned(&object[part], &schema["properties"][part], part, &mut cut);
    }
    prop_assert!(cut.is_empty(), "{} {} has no room for {:?}", crd.kind, version.name, cut);
    Ok(())
}

#[test]
fn a_hub_object_comes_back_from_the_older_version_unchanged() {
    for (crd, old, hub) in pairs() {
        for_all(crd, hub, |object| {
            // A label or annotation that the older version uses for itself has no meaning in the hub.
            let down = match convert(object.clone(), &api_version(crd, old)) {
                Ok(down) => down,
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            };
            assert_fits(crd, old, &down)?;
            let up = convert(down, &api_version(crd, hub))
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(up, object);
            Ok(())
        });
    }
}

#[test]
fn an_older_object_means_the_same_after_the_hub() {
    for (crd, old, hub) in pairs() {
        for_all(crd, old, |object| {
            // A value that the hub refuses is an error with a path, never a loss.
            let Ok(up) = convert(object.clone(), &api_version(crd, hub)) else { return Ok(()) };
            prop_assert!(up["metadata"]["annotations"].get(HUB_FIELDS).is_none());
            assert_fits(crd, hub, &up)?;
            let down = convert(up.clone(), &api_version(crd, old)).unwrap();
            let again = convert(down, &api_version(crd, hub)).unwrap();
            prop_assert_eq!(again, up);
            Ok(())
        });
    }
}

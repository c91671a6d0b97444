//! Defaults fill gaps and touch nothing else.

use kruise_api::catalogue::CRDS;
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::Value;

use crate::arbitrary;

/// Everything that was set is still there; `null` counts as not set.
fn keeps(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Null, _) => true,
        (Value::Object(before), Value::Object(after)) => {
            before.iter().all(|(key, value)| after.get(key).map_or(value.is_null(), |now| keeps(value, now)))
        }
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len()
                && before.iter().zip(after).all(|(before, after)| keeps(before, after))
        }
        (before, after) => before == after,
    }
}

#[test]
fn defaults_are_idempotent_and_change_nothing_that_was_set() {
    for crd in CRDS {
        for version in crd.versions {
            let mut runner = TestRunner::new(ProptestConfig::with_cases(128));
            runner
                .run(&arbitrary::object(crd, version.name), |object| {
                    let mut once = object.clone();
                    (crd.defaults)(&mut once);
                    prop_assert!(keeps(&object, &once), "changed {object} to {once}");
                    let mut twice = once.clone();
                    (crd.defaults)(&mut twice);
                    prop_assert_eq!(twice, once);
                    Ok(())
                })
                .unwrap_or_else(|error| panic!("{} {}: {error}", crd.kind, version.name));
        }
    }
}

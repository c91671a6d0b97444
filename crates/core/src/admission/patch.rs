//! The difference between two objects as RFC 6902 operations.

use serde_json::Value;

/// The operations that turn one object into the other; none when they are equal.
pub fn between(original: &Value, changed: &Value) -> Option<Vec<Value>> {
    if original == changed {
        return None;
    }
    let operations = json_patch::diff(original, changed).0;
    let values = operations.iter().map(|operation| {
        serde_json::to_value(operation).expect("an operation is made of texts and JSON values")
    });
    Some(values.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn apply(object: &Value, operations: Vec<Value>) -> Value {
        let patch: json_patch::Patch = serde_json::from_value(Value::Array(operations)).unwrap();
        let mut object = object.clone();
        json_patch::patch(&mut object, &patch).unwrap();
        object
    }

    #[test]
    fn keys_with_slashes_and_tildes_are_escaped() {
        let original = json!({"metadata": {"annotations": {}}});
        let changed = json!({"metadata": {"annotations": {"kruise.io/a~b": "1"}}});
        let patch = between(&original, &changed).unwrap();
        assert_eq!(
            patch,
            [json!({"op": "add", "path": "/metadata/annotations/kruise.io~1a~0b", "value": "1"})]
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3_i64..3).prop_map(Value::from),
            "[a-c/~]{0,2}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c/~]{0,2}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_patch_turns_the_original_into_the_result(original in any_json(), changed in any_json()) {
            match between(&original, &changed) {
                None => prop_assert_eq!(original, changed),
                Some(patch) => prop_assert_eq!(apply(&original, patch), changed),
            }
        }
    }
}

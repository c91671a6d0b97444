//! The difference between two objects as RFC 6902 operations.
//!
//! Every new pod comes by here with sidecars before or behind its own containers. So lists are aligned at both ends, by the
//! names of their items where they have names: a sidecar in front is one operation, not one for every field of everything
//! that moved. What is new is moved into the patch, not copied.

use json_patch::{
    AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation,
    jsonptr::{PointerBuf, Token},
};
use serde_json::{Map, Value};

/// The operations that turn one object into the other; none when they are equal.
pub fn between(original: &Value, changed: Value) -> Option<Patch> {
    let mut difference = Difference::default();
    difference.of(original, changed);
    (!difference.operations.is_empty()).then_some(Patch(difference.operations))
}

#[derive(Default)]
struct Difference {
    path: PointerBuf,
    operations: Vec<PatchOperation>,
}

impl Difference {
    fn of(&mut self, old: &Value, new: Value) {
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => self.of_objects(old, new),
            (Value::Array(old), Value::Array(new)) => self.of_lists(old, new),
            (old, new) if *old == new => {}
            (_, value) => {
                let path = self.path.clone();
                self.operations.push(PatchOperation::Replace(ReplaceOperation { path, value }));
            }
        }
    }

    fn of_objects(&mut self, old: &Map<String, Value>, new: Map<String, Value>) {
        for key in old.keys().filter(|key| !new.contains_key(*key)) {
            self.remove(key.into());
        }
        for (key, value) in new {
            match old.get(&key) {
                Some(old) => self.at((&key).into(), old, value),
                None => self.add((&key).into(), value),
            }
        }
    }

    fn of_lists(&mut self, old: &[Value], mut new: Vec<Value>) {
        let head = old.iter().zip(&new).take_while(|(old, new)| are_alike(old, new)).count();
        let (old_rest, new_rest) = (old.iter().skip(head).rev(), new.iter().skip(head).rev());
        let tail = old_rest.zip(new_rest).take_while(|(old, new)| are_alike(old, new)).count();
        // What stands at the end is named by its place before anything is put in or taken out.
        let (old_end, new_end) = (old.len() - tail, new.len() - tail);
        for ((place, old), value) in old.iter().enumerate().skip(old_end).zip(new.split_off(new_end)) {
            self.at(place.into(), old, value);
        }
        let mut new = new.into_iter();
        for ((place, old), value) in old.iter().enumerate().take(old_end).zip(&mut new) {
            self.at(place.into(), old, value);
        }
        for place in (new_end..old_end).rev() {
            self.remove(place.into());
        }
        for (place, value) in (old_end..).zip(new) {
            self.add(place.into(), value);
        }
    }

    fn at(&mut self, token: Token<'_>, old: &Value, new: Value) {
        self.path.push_back(token);
        self.of(old, new);
        self.path.pop_back();
    }

    fn add(&mut self, token: Token<'_>, value: Value) {
        let mut path = self.path.clone();
        path.push_back(token);
        self.operations.push(PatchOperation::Add(AddOperation { path, value }));
    }

    fn remove(&mut self, token: Token<'_>) {
        let mut path = self.path.clone();
        path.push_back(token);
        self.operations.push(PatchOperation::Remove(RemoveOperation { path }));
    }
}

/// Whether two items of a list are the same thing, perhaps changed.
fn are_alike(old: &Value, new: &Value) -> bool {
    match (name(old), name(new)) {
        (None, None) => old == new,
        (old, new) => old == new,
    }
}

fn name(item: &Value) -> Option<&str> {
    item.get("name").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn apply(object: &Value, patch: &Patch) -> Value {
        let mut object = object.clone();
        json_patch::patch(&mut object, patch).unwrap();
        object
    }

    #[test]
    fn keys_with_slashes_and_tildes_are_escaped() {
        let original = json!({"metadata": {"annotations": {}}});
        let changed = json!({"metadata": {"annotations": {"kruise.io/a~b": "1"}}});
        check(
            &original,
            changed,
            json!([{"op": "add", "path": "/metadata/annotations/kruise.io~1a~0b", "value": "1"}]),
        );
    }

    #[track_caller]
    fn check(original: &Value, changed: Value, expected: Value) {
        let patch = between(original, changed).unwrap();
        assert_eq!(serde_json::to_value(patch).unwrap(), expected);
    }

    #[test]
    fn what_is_put_before_or_behind_is_one_operation_each_and_what_moved_is_still_compared() {
        let original = json!([{"name": "main", "image": "app:v1"}]);
        let changed = json!([{"name": "first"}, {"name": "main", "image": "app:v2"}]);
        check(
            &original,
            changed,
            json!([
                {"op": "replace", "path": "/0/image", "value": "app:v2"},
                {"op": "add", "path": "/0", "value": {"name": "first"}},
            ]),
        );
        let changed = json!([{"name": "main", "image": "app:v1"}, {"name": "last"}]);
        check(&original, changed, json!([{"op": "add", "path": "/1", "value": {"name": "last"}}]));
        check(&original, json!([]), json!([{"op": "remove", "path": "/0"}]));
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
                prop::collection::btree_map("[a-c/~]{0,2}|name", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_patch_turns_the_original_into_the_result(original in any_json(), changed in any_json()) {
            match between(&original, changed.clone()) {
                None => prop_assert_eq!(original, changed),
                Some(patch) => prop_assert_eq!(apply(&original, &patch), changed),
            }
        }
    }
}

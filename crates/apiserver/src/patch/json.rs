//! JSON patch (RFC 6902).
//!
//! A patch that cannot be carried out answers `422` without a word of why, as the real server does. Limits keep
//! a small patch from building a huge or very deep object.

use json_patch::jsonptr::{PointerBuf, resolve::Resolve as _};
use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchOperation, RemoveOperation, ReplaceOperation,
    TestOperation,
};
use serde_json::Value;

use super::{MAX_DEPTH, decoding, depth, depth_and_size, unmarshal_error};
use crate::status::Status;

/// The most operations that one patch may have.
pub const MAX_OPERATIONS: usize = 10_000;

/// The most bytes that all copies of one patch may make together.
pub const MAX_COPY_BYTES: usize = 3 * 1024 * 1024;

/// The most values that all moves and copies of one patch may have looked at together. Moving is cheap, but how deep the
/// moved part reaches is counted each time.
pub const MAX_VISITED: usize = 4_000_000;

/// Why a patch cannot be carried out; clients of the API see only `422`, webhook authors see this.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("operation {index} ({op} {path}): {why}")]
pub struct Error {
    /// The position of the operation that failed.
    pub index: usize,
    /// Its name.
    pub op: String,
    /// Its path.
    pub path: String,
    /// What went wrong.
    pub why: String,
}

/// The operations of a patch, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Operations {
    operations: Vec<Operation>,
    unknown: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
struct Operation {
    #[serde(default)]
    op: String,
    path: Option<String>,
    from: Option<String>,
    #[serde(default)]
    value: Value,
}

impl Operations {
    /// Decodes a body. Unknown operations and bad paths are found when the patch is applied.
    pub fn parse(body: &[u8]) -> Result<Self, Status> {
        let value: Value = serde_json::from_slice(body).map_err(|error| decoding(&error.to_string()))?;
        let Value::Array(items) = value else {
            return Err(decoding(&unmarshal_error(&value, "[]handlers.jsonPatchOp")));
        };
        if items.len() > MAX_OPERATIONS {
            return Err(Status::too_large(format!(
                "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
                items.len()
            )));
        }
        let mut operations = Vec::with_capacity(items.len());
        let mut unknown = Vec::new();
        for (i, item) in items.into_iter().enumerate() {
            let Value::Object(fields) = &item else {
                return Err(decoding(&unmarshal_error(&item, "handlers.jsonPatchOp")));
            };
            let is_unknown = |name: &&String| !matches!(name.as_str(), "op" | "path" | "from" | "value");
            unknown.extend(
                fields
                    .keys()
                    .filter(is_unknown)
                    .map(|name| format!("json patch unknown field \"[{i}].{name}\"")),
            );
            operations.push(serde_json::from_value(item).map_err(|error| decoding(&error.to_string()))?);
        }
        Ok(Self { operations, unknown })
    }

    /// Fields of operations that mean nothing, as `fieldValidation` reports them.
    pub fn unknown_fields(&self) -> &[String] {
        &self.unknown
    }

    /// Whether an operation reads or writes at or around this path.
    pub fn touch(&self, path: &str) -> bool {
        let near = |other: &str| path.starts_with(other) || other.starts_with(path);
        let paths = |operation: &Operation| [operation.path.clone(), operation.from.clone()];
        self.operations.iter().flat_map(paths).flatten().any(|other| near(&other))
    }

    /// Carries out all operations, or none.
    pub fn apply(&self, mut object: Value) -> Result<Value, Error> {
        let mut spent = Spent::default();
        for (index, operation) in self.operations.iter().enumerate() {
            operation.apply(&mut object, &mut spent).map_err(|why| Error {
                index,
                op: operation.op.clone(),
                path: operation.path.clone().unwrap_or_default(),
                why,
            })?;
        }
        Ok(object)
    }
}

/// What the operations of a patch have cost so far.
#[derive(Default)]
struct Spent {
    copied: usize,
    visited: usize,
}

impl Spent {
    /// Refuses what would become too deep, once the way there was not too long.
    fn within_depth(&mut self, path: &PointerBuf, value: &Value) -> Result<(), String> {
        let (depth, visited) = depth_and_size(value);
        self.visited += visited;
        if self.visited > MAX_VISITED {
            return Err(format!("the moves and copies look at more than {MAX_VISITED} values"));
        }
        check_levels(path.count() + depth)
    }
}

impl Operation {
    fn apply(&self, object: &mut Value, spent: &mut Spent) -> Result<(), String> {
        let is_added = matches!(self.op.as_str(), "add" | "move" | "copy");
        let path = counted_from_start(pointer(self.path.as_deref(), "path")?, object, is_added);
        let from =
            || Ok::<_, String>(counted_from_start(pointer(self.from.as_deref(), "from")?, object, false));
        let operation = match self.op.as_str() {
            "add" => {
                within_depth(&path, &self.value)?;
                PatchOperation::Add(AddOperation { path, value: self.value.clone() })
            }
            // The library behind the real server puts a field where there was none to replace.
            "replace" if lacks_field(object, &path) => {
                within_depth(&path, &self.value)?;
                PatchOperation::Add(AddOperation { path, value: self.value.clone() })
            }
            "replace" => {
                within_depth(&path, &self.value)?;
                PatchOperation::Replace(ReplaceOperation { path, value: self.value.clone() })
            }
            "remove" => PatchOperation::Remove(RemoveOperation { path }),
            // A test for null also holds where an object has no such field.
            "test" if self.value.is_null() && lacks_field(object, &path) => return Ok(()),
            "test" => PatchOperation::Test(TestOperation { path, value: self.value.clone() }),
            "move" => {
                let from = from()?;
                let source = object.resolve(&from).map_err(|error| error.to_string())?;
                // What does not go deeper need not be measured: thousands of moves of something large would take long.
                if path.count() > from.count() {
                    spent.within_depth(&path, source)?;
                }
                PatchOperation::Move(MoveOperation { from, path })
            }
            // As with a test, what an object lacks is null.
            "copy" if lacks_field(object, &from()?) => {
                within_depth(&path, &Value::Null)?;
                PatchOperation::Add(AddOperation { path, value: Value::Null })
            }
            "copy" => {
                let from = from()?;
                let source = object.resolve(&from).map_err(|error| error.to_string())?;
                spent.within_depth(&path, source)?;
                spent.copied += source.to_string().len();
                if spent.copied > MAX_COPY_BYTES {
                    return Err(format!("the copies have more than {MAX_COPY_BYTES} bytes"));
                }
                PatchOperation::Copy(CopyOperation { from, path })
            }
            _ => return Err("unknown operation".to_owned()),
        };
        json_patch::patch_unsafe(object, &[operation]).map_err(|error| error.kind.to_string())
    }
}

fn pointer(text: Option<&str>, field: &str) -> Result<PointerBuf, String> {
    let text = text.ok_or_else(|| format!("the operation has no {field}"))?;
    PointerBuf::parse(text).map_err(|error| format!("{field} is not a JSON pointer: {error}"))
}

/// Indexes below zero count from the end of a list, as the library behind the real server has it.
fn counted_from_start(path: PointerBuf, object: &Value, is_added: bool) -> PointerBuf {
    if !path.tokens().any(|token| token.decoded().starts_with('-')) {
        return path;
    }
    let last = path.count().saturating_sub(1);
    let mut found = Some(object);
    let mut counted = PointerBuf::new();
    for (at, token) in path.tokens().enumerate() {
        let name = token.decoded();
        let list = found.and_then(Value::as_array);
        let room = list.map_or(0, Vec::len) + usize::from(is_added && at == last);
        let index = name.parse::<i64>().ok().filter(|index| *index < 0 && list.is_some());
        let index = index.and_then(|index| room.checked_add_signed(isize::try_from(index).ok()?));
        let name = index.map_or_else(|| name.into_owned(), |index| index.to_string());
        found = found.and_then(|value| match value {
            Value::Array(items) => items.get(name.parse::<usize>().ok()?),
            Value::Object(fields) => fields.get(&name),
            _ => None,
        });
        counted.push_back(name);
    }
    counted
}

fn lacks_field(object: &Value, path: &PointerBuf) -> bool {
    let Some((parent, name)) = path.split_back() else { return false };
    let fields = object.resolve(parent).ok().and_then(Value::as_object);
    fields.is_some_and(|fields| !fields.contains_key(name.decoded().as_ref()))
}

fn within_depth(path: &PointerBuf, value: &Value) -> Result<(), String> {
    check_levels(path.count() + depth(value))
}

fn check_levels(levels: usize) -> Result<(), String> {
    match levels > MAX_DEPTH {
        true => Err(format!("the result would be nested more than {MAX_DEPTH} levels deep")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::patch::strategic::tests::any_json;

    fn apply(object: Value, patch: &Value) -> Result<Value, String> {
        let operations = Operations::parse(patch.to_string().as_bytes()).map_err(|status| status.message)?;
        operations.apply(object).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(object: Value, patch: Value, expected: Value) {
        assert_eq!(apply(object, &patch), Ok(expected));
    }

    #[test]
    fn operations_change_objects_and_lists() {
        check(json!({"a": 1}), json!([{"op": "add", "path": "/b", "value": 2}]), json!({"a": 1, "b": 2}));
        check(json!({"l": [1]}), json!([{"op": "add", "path": "/l/-", "value": 2}]), json!({"l": [1, 2]}));
        check(json!({"l": [1]}), json!([{"op": "add", "path": "/l/0", "value": 2}]), json!({"l": [2, 1]}));
        check(json!({"a": 1, "b": 2}), json!([{"op": "remove", "path": "/b"}]), json!({"a": 1}));
        check(json!({"a": 1}), json!([{"op": "move", "from": "/a", "path": "/b"}]), json!({"b": 1}));
        check(json!({"a": 1}), json!([{"op": "copy", "from": "/a", "path": "/b"}]), json!({"a": 1, "b": 1}));
        check(
            json!({"m": {}}),
            json!([{"op": "copy", "from": "/m/absent", "path": "/m/x"}]),
            json!({"m": {"x": null}}),
        );
        check(json!({"a/b": 1}), json!([{"op": "replace", "path": "/a~1b", "value": 2}]), json!({"a/b": 2}));
        check(json!({"a": 1}), json!([{"op": "test", "path": "/b", "value": null}]), json!({"a": 1}));
        check(json!({}), json!([{"op": "replace", "path": "/b", "value": 1}]), json!({"b": 1}));
    }

    #[test]
    fn indexes_below_zero_count_from_the_end() {
        check(json!({"l": [1, 2]}), json!([{"op": "remove", "path": "/l/-1"}]), json!({"l": [1]}));
        check(
            json!({"l": [1, 2]}),
            json!([{"op": "add", "path": "/l/-1", "value": 3}]),
            json!({"l": [1, 2, 3]}),
        );
        check(
            json!({"l": [1, 2]}),
            json!([{"op": "add", "path": "/l/-2", "value": 3}]),
            json!({"l": [1, 3, 2]}),
        );
        check(
            json!({"l": [1, 2]}),
            json!([{"op": "replace", "path": "/l/-2", "value": 3}]),
            json!({"l": [3, 2]}),
        );
        check(
            json!({"l": [{"a": 1}, {"a": 2}], "-1": 0}),
            json!([{"op": "add", "path": "/l/-1/a", "value": 3}, {"op": "remove", "path": "/-1"}]),
            json!({"l": [{"a": 1}, {"a": 3}]}),
        );
        assert!(apply(json!({"l": [1]}), &json!([{"op": "remove", "path": "/l/-2"}])).is_err());
    }

    #[test]
    fn unknown_fields_of_operations_are_named() {
        let body = json!([{"op": "test", "path": "/a", "valeu": 1}]).to_string();
        let operations = Operations::parse(body.as_bytes()).unwrap();
        assert_eq!(operations.unknown_fields(), ["json patch unknown field \"[0].valeu\""]);
    }

    #[test]
    fn operations_that_do_not_fit_fail() {
        for patch in [
            json!([{"op": "test", "path": "/a", "value": 2}]),
            json!([{"op": "remove", "path": "/b"}]),
            json!([{"op": "replace", "path": "/x/y", "value": 1}]),
            json!([{"op": "replace", "path": "/a/0", "value": 1}]),
            json!([{"op": "add", "path": "/x/y", "value": 1}]),
            json!([{"op": "add", "value": 1}]),
            json!([{"op": "jump", "path": "/a"}]),
            json!([{"op": "copy", "path": "/b"}]),
            json!([{"op": "add", "path": "b", "value": 1}]),
            json!([{"op": "test", "path": "/x/y", "value": null}]),
        ] {
            assert!(apply(json!({"a": 1}), &patch).is_err(), "{patch}");
        }
    }

    #[test]
    fn too_many_operations_are_too_large() {
        let one = json!({"op": "test", "path": "/a", "value": 1});
        let patch = Value::Array(vec![one; MAX_OPERATIONS + 1]);
        let status = Operations::parse(patch.to_string().as_bytes()).unwrap_err();
        assert_eq!(status.code, 413);
        assert_eq!(
            status.message,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
        );
    }

    #[test]
    fn copies_cannot_grow_without_bound() {
        let mut patch = vec![json!({"op": "add", "path": "/l", "value": ["x".repeat(1000)]})];
        patch.extend((0..100).map(|i| json!({"op": "copy", "from": "/l", "path": format!("/m{i}")})));
        patch.extend((0..100).map(|i| json!({"op": "copy", "from": "", "path": format!("/n{i}")})));
        let error = apply(json!({}), &Value::Array(patch)).unwrap_err();
        assert!(error.contains("copies have more than") || error.contains("nested more"), "{error}");
    }

    proptest::proptest! {
        #[test]
        fn no_patch_panics(object in any_json(), ops in proptest::collection::vec(
            ("add|remove|replace|move|copy|test", "(/[abc0-9-]{0,2}){0,3}", "(/[abc0-9-]{0,2}){0,3}", any_json()), 0..6)) {
            let ops = ops.into_iter().map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}));
            let _ = apply(json!({"a": object}), &Value::Array(ops.collect()));
        }
    }

    #[test]
    fn moves_cannot_look_at_values_without_bound() {
        let moves = |times: usize| {
            let there = json!({"op": "move", "from": "/a", "path": "/b/a"});
            let back = json!({"op": "move", "from": "/b/a", "path": "/a"});
            Value::from([there, back].into_iter().cycle().take(times * 2).collect::<Vec<_>>())
        };
        let object = json!({"a": vec![0; 9_999], "b": {}});
        assert_eq!(apply(object.clone(), &moves(400)), Ok(object.clone()));
        let error = apply(object, &moves(401)).unwrap_err();
        assert!(error.contains("look at more than 4000000 values"), "{error}");
    }

    #[test]
    fn nesting_cannot_grow_without_bound() {
        let patch = vec![json!({"op": "copy", "from": "", "path": "/a"}); 1000];
        let error = apply(json!({"a": {}}), &Value::Array(patch)).unwrap_err();
        assert!(error.contains("nested more than 120 levels"), "{error}");
    }
}

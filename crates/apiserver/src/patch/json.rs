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

use super::{MAX_DEPTH, decoding, depth, unmarshal_error};
use crate::status::Status;

/// The most operations that one patch may have.
pub const MAX_OPERATIONS: usize = 10_000;

/// The most bytes that all copies of one patch may make together.
pub const MAX_COPY_BYTES: usize = 3 * 1024 * 1024;

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
pub struct Operations(Vec<Operation>);

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
        for item in items {
            if !item.is_object() {
                return Err(decoding(&unmarshal_error(&item, "handlers.jsonPatchOp")));
            }
            operations.push(serde_json::from_value(item).map_err(|error| decoding(&error.to_string()))?);
        }
        Ok(Self(operations))
    }

    /// Carries out all operations, or none.
    pub fn apply(&self, mut object: Value) -> Result<Value, Error> {
        let mut copied = 0;
        for (index, operation) in self.0.iter().enumerate() {
            operation.apply(&mut object, &mut copied).map_err(|why| Error {
                index,
                op: operation.op.clone(),
                path: operation.path.clone().unwrap_or_default(),
                why,
            })?;
        }
        Ok(object)
    }
}

impl Operation {
    fn apply(&self, object: &mut Value, copied: &mut usize) -> Result<(), String> {
        let path = pointer(self.path.as_deref(), "path")?;
        let from = || pointer(self.from.as_deref(), "from");
        let operation = match self.op.as_str() {
            "add" => {
                within_depth(&path, &self.value)?;
                PatchOperation::Add(AddOperation { path, value: self.value.clone() })
            }
            "replace" => {
                within_depth(&path, &self.value)?;
                PatchOperation::Replace(ReplaceOperation { path, value: self.value.clone() })
            }
            "remove" => PatchOperation::Remove(RemoveOperation { path }),
            // A test for null also holds where nothing is.
            "test" if self.value.is_null() && object.resolve(&path).is_err() => return Ok(()),
            "test" => PatchOperation::Test(TestOperation { path, value: self.value.clone() }),
            "move" => {
                let from = from()?;
                within_depth(&path, object.resolve(&from).map_err(|error| error.to_string())?)?;
                PatchOperation::Move(MoveOperation { from, path })
            }
            "copy" => {
                let from = from()?;
                let source = object.resolve(&from).map_err(|error| error.to_string())?;
                within_depth(&path, source)?;
                *copied += source.to_string().len();
                if *copied > MAX_COPY_BYTES {
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

fn within_depth(path: &PointerBuf, value: &Value) -> Result<(), String> {
    if path.count() + depth(value) > MAX_DEPTH {
        return Err(format!("the result would be nested more than {MAX_DEPTH} levels deep"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        check(json!({"a/b": 1}), json!([{"op": "replace", "path": "/a~1b", "value": 2}]), json!({"a/b": 2}));
        check(json!({"a": 1}), json!([{"op": "test", "path": "/b", "value": null}]), json!({"a": 1}));
    }

    #[test]
    fn operations_that_do_not_fit_fail() {
        for patch in [
            json!([{"op": "test", "path": "/a", "value": 2}]),
            json!([{"op": "remove", "path": "/b"}]),
            json!([{"op": "replace", "path": "/b", "value": 1}]),
            json!([{"op": "add", "path": "/x/y", "value": 1}]),
            json!([{"op": "add", "value": 1}]),
            json!([{"op": "jump", "path": "/a"}]),
            json!([{"op": "copy", "path": "/b"}]),
            json!([{"op": "add", "path": "b", "value": 1}]),
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

    #[test]
    fn nesting_cannot_grow_without_bound() {
        let patch = vec![json!({"op": "copy", "from": "", "path": "/a"}); 1000];
        let error = apply(json!({"a": {}}), &Value::Array(patch)).unwrap_err();
        assert!(error.contains("nested more than 120 levels"), "{error}");
    }
}

//! JSON that is carried, not understood.
//!
//! Pod templates, patches and other embedded Kubernetes objects stay exactly as their author wrote them: a field
//! newer than this build survives every read and write, and a hash over it stays the same. Rules that need a part
//! of such an object read it through a view.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Any JSON value that passes through untouched. In a CRD: `x-kubernetes-preserve-unknown-fields`, no type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Raw(pub Value);

/// Like [`Raw`], but the CRD demands an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawObject(pub serde_json::Map<String, Value>);

impl Raw {
    /// The value at a path of object keys, if every step exists.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        crate::json::at(&self.0, path)
    }
}

impl From<Value> for Raw {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl JsonSchema for Raw {
    fn schema_name() -> Cow<'static, str> {
        "Raw".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
    }
}

impl JsonSchema for RawObject {
    fn schema_name() -> Cow<'static, str> {
        "RawObject".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }
}

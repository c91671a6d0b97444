//! One stored object: compact JSON and the few things the server asks without parsing it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::Draft;

/// A field that selectors may ask about, and its value.
pub type Field = (Arc<str>, Box<str>);

/// One version of one object. Never changes.
#[derive(Clone, Debug)]
pub struct Record {
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Box<str>,
    /// The uid.
    pub uid: Box<str>,
    /// The resource version.
    pub rv: u64,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// The labels, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// The non-empty fields for selectors, without name and namespace.
    pub fields: Box<[Field]>,
    /// `{"kind":…,"apiVersion":…,"metadata":…` and so on, compact.
    pub json: Bytes,
    layout: Layout,
}

/// Where the parts of a record's JSON are.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Where `"metadata"` begins.
    body: usize,
    /// Where the metadata ends.
    metadata_end: usize,
}

impl Record {
    /// Writes the object, under the version `rv` if there is one. A dry run stores nothing and has none.
    pub fn encode(draft: Draft, rv: Option<u64>) -> Result<Self, &'static str> {
        let Value::Object(mut object) = draft.value else { return Err("the object is not a JSON object") };
        let Some(Value::Object(meta)) = object.get_mut("metadata") else {
            return Err("the object has no metadata");
        };
        if let Some(rv) = rv {
            meta.insert("resourceVersion".to_owned(), Value::String(rv.to_string()));
        }
        let text = |key: &str| meta.get(key).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name, uid) = (text("namespace").into(), text("name").into(), text("uid").into());
        let deleting = meta.get("deletionTimestamp").is_some_and(|at| !at.is_null());
        let labels = meta
            .get("labels")
            .and_then(Value::as_object)
            .map(|labels| {
                labels
                    .iter()
                    .map(|(k, v)| (k.as_str().into(), v.as_str().unwrap_or_default().into()))
                    .collect()
            })
            .unwrap_or_default();
        let (json, layout) = write(&object);
        Ok(Self {
            namespace,
            name,
            uid,
            rv: rv.unwrap_or_default(),
            deleting,
            labels,
            fields: draft.fields.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
            json: json.into(),
            layout,
        })
    }

    /// The object as a JSON tree.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    /// The same object under another version: how a deletion is told.
    #[must_use]
    pub fn at_version(&self, rv: u64) -> Self {
        let mut object = match self.value() {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        if let Some(Value::Object(meta)) = object.get_mut("metadata") {
            meta.insert("resourceVersion".to_owned(), Value::String(rv.to_string()));
        }
        let (json, layout) = write(&object);
        Self { rv, json: json.into(), layout, ..self.clone() }
    }

    /// The part from `"metadata"` on, with the closing brace: what stands in a list of a built-in kind.
    pub fn body(&self) -> &[u8] {
        self.json.get(self.layout.body..).unwrap_or_default()
    }

    /// `"metadata":{…}`, without anything around it.
    pub fn metadata(&self) -> &[u8] {
        self.json.get(self.layout.body..self.layout.metadata_end).unwrap_or_default()
    }

    /// Whether the object is stored under this `apiVersion`.
    pub fn is_in(&self, api_version: &str) -> bool {
        let head = self.json.get(..self.layout.body).unwrap_or_default();
        let rest = head.strip_suffix(b"\",").and_then(|head| head.strip_suffix(api_version.as_bytes()));
        rest.is_some_and(|rest| rest.ends_with(b"\"apiVersion\":\""))
    }

    /// The value of one label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(k, _)| k.as_ref().cmp(key)).ok()?;
        self.labels.get(at).map(|(_, value)| value.as_ref())
    }

    /// The value of a field that selectors know; empty when it is not set.
    pub fn field(&self, name: &str) -> &str {
        match name {
            "metadata.name" => &self.name,
            "metadata.namespace" => &self.namespace,
            _ => self.fields.iter().find(|(known, _)| known.as_ref() == name).map_or("", |(_, value)| value),
        }
    }
}

/// Compact JSON with kind, apiVersion and metadata in front.
fn write(object: &Map<String, Value>) -> (Vec<u8>, Layout) {
    let mut out = Vec::with_capacity(1024);
    out.push(b'{');
    for key in ["kind", "apiVersion"] {
        if let Some(value) = object.get(key) {
            member(&mut out, key, value);
            out.push(b',');
        }
    }
    let body = out.len();
    if let Some(value) = object.get("metadata") {
        member(&mut out, "metadata", value);
    }
    let metadata_end = out.len();
    for (key, value) in object {
        if !matches!(key.as_str(), "kind" | "apiVersion" | "metadata") {
            out.push(b',');
            member(&mut out, key, value);
        }
    }
    out.push(b'}');
    out.shrink_to_fit();
    (out, Layout { body, metadata_end })
}

fn member(out: &mut Vec<u8>, key: &str, value: &Value) {
    // Writing JSON into memory cannot fail: keys are strings and there is no I/O.
    let _ = serde_json::to_writer(&mut *out, key);
    out.push(b':');
    let _ = serde_json::to_writer(&mut *out, value);
}

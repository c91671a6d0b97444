//! One stored object: compact JSON and the few things the server asks without parsing it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::Draft;
use crate::apply::Managed;

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
    /// `{"kind":…,"apiVersion":…,"metadata":…` and so on, compact. Without `managedFields`.
    pub json: Bytes,
    /// Who manages which fields; none if nobody keeps account.
    pub managed: Option<Arc<Managed>>,
    layout: Layout,
}

/// Where the parts of a record's JSON are.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Where `"metadata"` begins.
    body: usize,
    /// Where `managedFields` would begin.
    managed: usize,
    /// Where `metadata.resourceVersion` begins and ends; nowhere when there is none.
    version: (usize, usize),
    /// Where the metadata ends.
    metadata_end: usize,
    /// Where the status begins, or else the end of the object.
    status: usize,
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
            json,
            managed: draft.managed.filter(|managed| !managed.is_empty()),
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
        Self { rv, json, layout, ..self.clone() }
    }

    /// The whole object as clients see it.
    pub fn full(&self) -> Bytes {
        if self.managed.is_none() {
            return self.json.clone();
        }
        let mut out = Vec::with_capacity(self.json.len() + 2048);
        self.write_part(0, self.json.len(), &mut out);
        out.into()
    }

    /// Writes the part from `"metadata"` on, with the closing brace: what stands in a list of a built-in kind.
    pub fn write_body(&self, out: &mut Vec<u8>) {
        self.write_part(self.layout.body, self.json.len(), out);
    }

    /// Writes `"metadata":{…}`, without anything around it.
    pub fn write_metadata(&self, out: &mut Vec<u8>) {
        self.write_part(self.layout.body, self.layout.metadata_end, out);
    }

    fn write_part(&self, start: usize, end: usize, out: &mut Vec<u8>) {
        let Some(managed) = &self.managed else {
            out.extend_from_slice(self.json.get(start..end).unwrap_or_default());
            return;
        };
        let at = self.layout.managed;
        out.extend_from_slice(self.json.get(start..at).unwrap_or_default());
        let mut text = String::with_capacity(2048);
        text.push_str("\"managedFields\":");
        managed.write(&mut text);
        text.push(',');
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(self.json.get(at..end).unwrap_or_default());
    }

    /// How much memory the object takes, about.
    pub fn size(&self) -> usize {
        self.json.len() + if self.managed.is_some() { 512 } else { 0 }
    }

    /// The part from `"metadata"` on, without `managedFields`.
    pub fn body(&self) -> &[u8] {
        self.json.get(self.layout.body..).unwrap_or_default()
    }

    /// `"metadata":{…}`, without anything around it and without `managedFields`.
    pub fn metadata(&self) -> &[u8] {
        self.json.get(self.layout.body..self.layout.metadata_end).unwrap_or_default()
    }

    /// Whether the metadata of both is the same but for the version.
    pub fn has_metadata_of(&self, other: &Self) -> bool {
        self.around_version() == other.around_version()
    }

    /// The metadata before and behind the version.
    fn around_version(&self) -> (&[u8], &[u8]) {
        let Layout { body, version: (start, end), metadata_end, .. } = self.layout;
        (self.json.get(body..start).unwrap_or_default(), self.json.get(end..metadata_end).unwrap_or_default())
    }

    /// Whether everything between metadata and status is the same in both: the spec, for most kinds.
    pub fn has_spec_of(&self, other: &Self) -> bool {
        let spec = |record: &Self| record.layout.metadata_end..record.layout.status;
        let (own, others) = (self.json.get(spec(self)), other.json.get(spec(other)));
        own.is_some() && own == others
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

/// Compact JSON with kind, apiVersion and metadata in front, in exactly as much memory as it takes.
fn write(object: &Map<String, Value>) -> (Bytes, Layout) {
    let mut out = Vec::with_capacity(4096);
    out.push(b'{');
    for key in ["kind", "apiVersion"] {
        if let Some(value) = object.get(key) {
            member(&mut out, key, value);
            out.push(b',');
        }
    }
    let body = out.len();
    let (version, managed) = match object.get("metadata") {
        Some(Value::Object(meta)) => metadata(&mut out, meta),
        Some(other) => {
            member(&mut out, "metadata", other);
            ((out.len(), out.len()), out.len())
        }
        None => ((body, body), body),
    };
    let metadata_end = out.len();
    let mut status = None;
    for (key, value) in object {
        if !matches!(key.as_str(), "kind" | "apiVersion" | "metadata") {
            if key == "status" {
                status = Some(out.len());
            }
            out.push(b',');
            member(&mut out, key, value);
        }
    }
    let status = status.unwrap_or(out.len());
    out.push(b'}');
    (Bytes::copy_from_slice(&out), Layout { body, managed, version, metadata_end, status })
}

/// Writes the metadata; where the version stands in it, and where `managedFields` would. Every object has a name, before
/// which there is place for them.
fn metadata(out: &mut Vec<u8>, meta: &Map<String, Value>) -> ((usize, usize), usize) {
    out.extend_from_slice(b"\"metadata\":{");
    let (mut version, mut managed) = (None, None);
    for (index, (key, value)) in meta.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let start = out.len();
        if key.as_str() > "managedFields" {
            managed.get_or_insert(start);
        }
        member(out, key, value);
        if key == "resourceVersion" {
            version = Some((start, out.len()));
        }
    }
    out.push(b'}');
    (version.unwrap_or((out.len(), out.len())), managed.unwrap_or(out.len()))
}

fn member(out: &mut Vec<u8>, key: &str, value: &Value) {
    // Writing JSON into memory cannot fail: keys are strings and there is no I/O.
    let _ = serde_json::to_writer(&mut *out, key);
    out.push(b':');
    let _ = serde_json::to_writer(&mut *out, value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(value: Value, rv: u64) -> Record {
        Record::encode(Draft::new(value), Some(rv)).unwrap()
    }

    #[test]
    fn records_tell_what_changed_without_being_parsed() {
        let object = |labels: Value, image: &str, phase: &str| {
            json!({
                "kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "labels": labels, "uid": "u"},
                "spec": {"image": image}, "status": {"phase": phase},
            })
        };
        let first = record(object(json!({}), "v1", "Pending"), 9);
        for (other, metadata, spec) in [
            (object(json!({}), "v1", "Running"), true, true),
            (object(json!({}), "v2", "Pending"), true, false),
            (object(json!({"a": "b"}), "v1", "Pending"), false, true),
        ] {
            let other = record(other, 10_000);
            assert_eq!(first.has_metadata_of(&other), metadata, "{other:?}");
            assert_eq!(first.has_spec_of(&other), spec, "{other:?}");
        }
        assert_eq!(
            first.metadata(),
            br#""metadata":{"labels":{},"name":"a","resourceVersion":"9","uid":"u"}"#
        );
        assert!(!first.has_spec_of(&record(json!({"metadata": {"name": "a"}}), 1)));
    }
}

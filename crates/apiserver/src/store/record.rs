//! One stored object: compact JSON and the few things the server asks without parsing it.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::packed::Packed;
use super::{Draft, Fields};
use crate::apply::Managed;

/// Labels, sorted by key. Those of many objects are the same.
pub type Labels = Arc<[(Box<str>, Box<str>)]>;

/// One version of one object. Never changes.
#[derive(Clone, Debug)]
pub struct Record {
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
    /// The uid.
    pub uid: Arc<str>,
    /// The resource version.
    pub rv: u64,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// The labels, sorted by key.
    pub labels: Labels,
    /// The fields for selectors, without name and namespace.
    fields: Fields,
    /// `{"kind":…,"apiVersion":…,"metadata":…` and so on, compact. Without `managedFields`.
    pub(super) json: Packed,
    /// Who manages which fields; none if nobody keeps account.
    pub managed: Option<Arc<Managed>>,
    layout: Layout,
}

/// Where the parts of a record's JSON are.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Where `"metadata"` begins.
    body: Place,
    /// Where `managedFields` would begin.
    managed: Place,
    /// Where `metadata.resourceVersion` begins and ends; nowhere when there is none.
    version: (Place, Place),
    /// Where the metadata ends.
    metadata_end: Place,
    /// Where the status begins, or else the end of the object.
    status: Place,
}

/// A place in a text: there are many records, and none is longer than four gigabytes.
#[derive(Clone, Copy, Debug)]
struct Place(u32);

impl Place {
    fn end_of(text: &[u8]) -> Self {
        Self(u32::try_from(text.len()).unwrap_or(u32::MAX))
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A part of a text.
fn part(text: &[u8], from: Place, to: Place) -> &[u8] {
    text.get(from.index()..to.index()).unwrap_or_default()
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
            fields: draft.fields,
            json: Packed::whole(&json),
            managed: draft.managed.filter(|managed| !managed.is_empty()),
            layout,
        })
    }

    /// The same object with any JSON as its metadata and anything behind it, under another version: what no server would
    /// store, for tests of those who read it. What the server knows of the object beside its JSON stays as it was.
    #[must_use]
    pub(super) fn with_raw(&self, metadata: &str, rest: &str, rv: u64) -> Self {
        let mut out = self.between(Place(0), self.layout.body).into_owned();
        let body = Place::end_of(&out);
        out.extend_from_slice(b"\"metadata\":");
        let mut version = (Place::end_of(&out), Place::end_of(&out));
        match metadata.strip_prefix('{') {
            Some(members) => {
                out.push(b'{');
                version.0 = Place::end_of(&out);
                out.extend_from_slice(format!("\"resourceVersion\":\"{rv}\"").as_bytes());
                version.1 = Place::end_of(&out);
                if members.trim_start() != "}" {
                    out.push(b',');
                }
                out.extend_from_slice(members.as_bytes());
            }
            None => out.extend_from_slice(metadata.as_bytes()),
        }
        let metadata_end = Place::end_of(&out);
        out.extend_from_slice(rest.as_bytes());
        let status = Place::end_of(&out);
        out.push(b'}');
        let layout = Layout { body, managed: version.0, version, metadata_end, status };
        Self { rv, json: Packed::whole(&out), managed: None, layout, ..self.clone() }
    }

    /// The object as compact JSON, without `managedFields`.
    pub fn json(&self) -> Cow<'_, [u8]> {
        self.json.text()
    }

    /// The object as a JSON tree.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.json()).unwrap_or_default()
    }

    /// The same object under another version: how a deletion is told.
    #[must_use]
    pub fn at_version(&self, rv: u64) -> Self {
        let mut object = match self.value() {
            Value::Object(object) => object,
            // What is no tree was put here by a test: only its version changes.
            _ => return self.with_version(rv),
        };
        if let Some(Value::Object(meta)) = object.get_mut("metadata") {
            meta.insert("resourceVersion".to_owned(), Value::String(rv.to_string()));
        }
        let (json, layout) = write(&object);
        Self { rv, json: Packed::whole(&json), layout, ..self.clone() }
    }

    fn with_version(&self, rv: u64) -> Self {
        let (json, (start, end)) = (self.json(), self.layout.version);
        let mut out = part(&json, Place(0), start).to_vec();
        if start.0 < end.0 {
            out.extend_from_slice(format!("\"resourceVersion\":\"{rv}\"").as_bytes());
        }
        let version = (start, Place::end_of(&out));
        out.extend_from_slice(part(&json, end, Place::end_of(&json)));
        let moved = |place: Place| Place((place.0 + version.1.0).saturating_sub(end.0));
        let layout = Layout {
            version,
            managed: start,
            metadata_end: moved(self.layout.metadata_end),
            status: moved(self.layout.status),
            ..self.layout
        };
        Self { rv, json: Packed::whole(&out), layout, ..self.clone() }
    }

    /// The whole object as clients see it.
    pub fn full(&self) -> Bytes {
        let json = self.json();
        if self.managed.is_none() {
            return json.into_owned().into();
        }
        let mut out = Vec::with_capacity(json.len() + 2048);
        self.write_part(&json, Place(0), Place::end_of(&json), &mut out);
        out.into()
    }

    /// Writes the part from `"metadata"` on, with the closing brace: what stands in a list of a built-in kind.
    pub fn write_body(&self, out: &mut Vec<u8>) {
        let json = self.json();
        self.write_part(&json, self.layout.body, Place::end_of(&json), out);
    }

    /// Writes `"metadata":{…}`, without anything around it.
    pub fn write_metadata(&self, out: &mut Vec<u8>) {
        self.write_part(&self.json(), self.layout.body, self.layout.metadata_end, out);
    }

    fn write_part(&self, json: &[u8], start: Place, end: Place, out: &mut Vec<u8>) {
        let Some(managed) = &self.managed else {
            out.extend_from_slice(part(json, start, end));
            return;
        };
        let at = self.layout.managed;
        out.extend_from_slice(part(json, start, at));
        let mut text = String::with_capacity(2048);
        text.push_str("\"managedFields\":");
        managed.write(&mut text);
        text.push(',');
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(part(json, at, end));
    }

    /// How many bytes of JSON the object has, about, as clients see it.
    pub fn size(&self) -> usize {
        self.json.len() + if self.managed.is_some() { 512 } else { 0 }
    }

    /// How many bytes are kept for its JSON alone, beside a text that it may share with others.
    pub fn kept(&self) -> usize {
        self.json.kept()
    }

    /// The part from `"metadata"` on, without `managedFields`.
    pub fn body(&self) -> Cow<'_, [u8]> {
        self.between(self.layout.body, Place(u32::MAX))
    }

    /// `"metadata":{…}`, without anything around it and without `managedFields`.
    pub fn metadata(&self) -> Cow<'_, [u8]> {
        self.between(self.layout.body, self.layout.metadata_end)
    }

    fn between(&self, from: Place, to: Place) -> Cow<'_, [u8]> {
        let range = from.index()..to.index().min(self.json.len());
        match self.json() {
            Cow::Borrowed(json) => Cow::Borrowed(json.get(range).unwrap_or_default()),
            Cow::Owned(json) => Cow::Owned(json.get(range).unwrap_or_default().to_vec()),
        }
    }

    /// Whether the metadata of both is the same but for the version.
    pub fn has_metadata_of(&self, other: &Self) -> bool {
        self.layout.around_version(&self.json()) == other.layout.around_version(&other.json())
    }

    /// Whether everything between metadata and status is the same in both: the spec, for most kinds.
    pub fn has_spec_of(&self, other: &Self) -> bool {
        let (own, others) = (self.json(), other.json());
        let spec = |layout: Layout| layout.metadata_end.index()..layout.status.index();
        let (own, others) = (own.get(spec(self.layout)), others.get(spec(other.layout)));
        own.is_some() && own == others
    }

    /// Whether the object is stored under this `apiVersion`.
    pub fn is_in(&self, api_version: &str) -> bool {
        let head = self.between(Place(0), self.layout.body);
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
            _ => self.fields.get(name),
        }
    }
}

impl Layout {
    /// The metadata before and behind the version.
    fn around_version(self, json: &[u8]) -> (&[u8], &[u8]) {
        let Self { body, version: (start, end), metadata_end, .. } = self;
        (part(json, body, start), part(json, end, metadata_end))
    }
}

/// Compact JSON with kind, apiVersion and metadata in front.
fn write(object: &Map<String, Value>) -> (Vec<u8>, Layout) {
    let mut out = Vec::with_capacity(4096);
    out.push(b'{');
    for key in ["kind", "apiVersion"] {
        if let Some(value) = object.get(key) {
            member(&mut out, key, value);
            out.push(b',');
        }
    }
    let body = Place::end_of(&out);
    let (version, managed) = match object.get("metadata") {
        Some(Value::Object(meta)) => metadata(&mut out, meta),
        Some(other) => {
            member(&mut out, "metadata", other);
            let end = Place::end_of(&out);
            ((end, end), end)
        }
        None => ((body, body), body),
    };
    let metadata_end = Place::end_of(&out);
    let mut status = None;
    for (key, value) in object {
        if !matches!(key.as_str(), "kind" | "apiVersion" | "metadata") {
            if key == "status" {
                status = Some(Place::end_of(&out));
            }
            out.push(b',');
            member(&mut out, key, value);
        }
    }
    let status = status.unwrap_or(Place::end_of(&out));
    out.push(b'}');
    (out, Layout { body, managed, version, metadata_end, status })
}

/// Writes the metadata; where the version stands in it, and where `managedFields` would. Every object has a name, before
/// which there is place for them.
fn metadata(out: &mut Vec<u8>, meta: &Map<String, Value>) -> ((Place, Place), Place) {
    out.extend_from_slice(b"\"metadata\":{");
    let (mut version, mut managed) = (None, None);
    for (index, (key, value)) in meta.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let start = Place::end_of(out);
        if key.as_str() > "managedFields" {
            managed.get_or_insert(start);
        }
        member(out, key, value);
        if key == "resourceVersion" {
            version = Some((start, Place::end_of(out)));
        }
    }
    out.push(b'}');
    let end = Place::end_of(out);
    (version.unwrap_or((end, end)), managed.unwrap_or(end))
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
            first.metadata().as_ref(),
            br#""metadata":{"labels":{},"name":"a","resourceVersion":"9","uid":"u"}"#
        );
        assert!(!first.has_spec_of(&record(json!({"metadata": {"name": "a"}}), 1)));
    }
}

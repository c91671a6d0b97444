//! The Secret or ConfigMap of a spec, and the copies that are made of it.

use std::collections::BTreeMap;

use kruise_api::{
    annotations::{LAST_APPLIED_CONFIGURATION, RESOURCE_DISTRIBUTION_FROM, RESOURCE_DISTRIBUTION_HASH},
    json,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    content::{Content, Digest, Kind},
    copies::Found,
};
use crate::{canonical_json, object::ObjectRef, text::Text};

/// What keeps a resource from being distributed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is nothing.
    #[error("empty resource is not allowed")]
    Empty,
    /// It is no object of Kubernetes.
    #[error("failed to deserialize resource, please check your spec.resource, err {0}")]
    Unreadable(&'static str),
    /// It is of another kind.
    #[error("unknown or unsupported resource GroupKind, only support [Secret ConfigMap]")]
    Unsupported(String),
    /// It has no name.
    #[error("the resource has no name")]
    Nameless,
}

/// The Secret or ConfigMap of a spec.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// What it is.
    pub kind: Kind,
    /// Its name, and that of its copies.
    pub name: Text,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    content: Content,
    digest: Digest,
}

/// The hash that copies carry: of the bytes of `spec.resource` as the server sends them.
pub fn hash(text: &str) -> String {
    use std::fmt::Write as _;
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// The same where the bytes are not known any more: servers send JSON as Go writes it.
pub fn hash_of(resource: &Value) -> String {
    hash(&canonical_json::text(resource))
}

/// The group and the kind of an object, as `Kind.group`.
fn group_kind(resource: &Map<String, Value>) -> Result<(String, String), Problem> {
    let text = |member: &str| resource.get(member).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if kind.is_empty() {
        return Err(Problem::Unreadable("Object 'Kind' is missing"));
    }
    if version.is_empty() {
        return Err(Problem::Unreadable("Object 'apiVersion' is missing"));
    }
    Ok((version.split_once('/').map_or("", |(group, _)| group).to_owned(), kind.to_owned()))
}

impl Source {
    /// Reads the resource of a spec.
    pub fn parse(resource: &Map<String, Value>) -> Result<Self, Problem> {
        if resource.is_empty() {
            return Err(Problem::Empty);
        }
        let (group, kind) = group_kind(resource)?;
        let known = Kind::ALL.into_iter().find(|known| known.resource().kind == kind && group.is_empty());
        let Some(kind) = known else {
            let name = if group.is_empty() { kind } else { format!("{kind}.{group}") };
            return Err(Problem::Unsupported(name));
        };
        let metadata = resource.get("metadata").cloned().unwrap_or_default();
        let name =
            json::text(&metadata, &["name"]).filter(|name| !name.is_empty()).ok_or(Problem::Nameless)?;
        let pairs = |member: &str| -> BTreeMap<String, String> {
            let members = json::at(&metadata, &[member]).and_then(Value::as_object).into_iter().flatten();
            members.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
        };
        let mut annotations = pairs("annotations");
        annotations.remove(LAST_APPLIED_CONFIGURATION);
        let content = Content::written(kind, resource);
        let digest = content.digest();
        Ok(Self { kind, name: name.into(), labels: pairs("labels"), annotations, content, digest })
    }

    /// How many bytes a copy has, about.
    pub fn size(&self) -> usize {
        self.content.size()
    }

    fn annotations(&self, own: &ObjectRef, hash: &str) -> BTreeMap<String, String> {
        let mut annotations = self.annotations.clone();
        annotations.insert(RESOURCE_DISTRIBUTION_FROM.to_owned(), own.key.name.as_str().to_owned());
        annotations.insert(RESOURCE_DISTRIBUTION_HASH.to_owned(), hash.to_owned());
        annotations
    }

    /// The copy for a namespace.
    pub(super) fn copy(&self, own: &ObjectRef, hash: &str, namespace: &str) -> Value {
        let mut metadata = json!({
            "name": self.name,
            "namespace": namespace,
            "annotations": self.annotations(own, hash),
            "ownerReferences": [own.controller_reference()],
        });
        if !self.labels.is_empty() {
            json::set(&mut metadata, &["labels"], value(&self.labels));
        }
        let mut copy = json!({"apiVersion": "v1", "kind": self.kind.resource().kind, "metadata": metadata});
        for (member, value) in self.content.members() {
            json::set(&mut copy, &[member], value.clone());
        }
        copy
    }

    /// What is not as it should be on a copy; nothing where all is.
    pub(super) fn difference(&self, own: &ObjectRef, hash: &str, found: &Found) -> Option<&'static str> {
        let metadata = &found.metadata;
        let has = |pairs: &crate::pod::Pairs, wanted: &BTreeMap<String, String>| {
            wanted.iter().all(|(key, value)| pairs.text(key) == Some(value))
        };
        if found.digest != self.digest {
            Some("its content differs")
        } else if !has(&metadata.labels, &self.labels) {
            Some("its labels differ")
        } else if !has(&metadata.annotations, &self.annotations(own, hash)) {
            Some("its annotations differ")
        } else {
            None
        }
    }

    /// The merge patch that makes a copy as it should be. Labels and annotations of others stay.
    pub(super) fn correction(&self, own: &ObjectRef, hash: &str, found: &Found) -> Value {
        let mut patch = json!({"metadata": {
            "annotations": self.annotations(own, hash),
            "ownerReferences": [own.controller_reference()],
        }});
        if !self.labels.is_empty() {
            json::set(&mut patch, &["metadata", "labels"], value(&self.labels));
        }
        if found.digest == self.digest {
            return patch;
        }
        let members = self.content.members();
        for (member, keys) in [("data", &found.data_keys), ("binaryData", &found.binary_keys)] {
            let wanted = members.get(member).and_then(Value::as_object).cloned().unwrap_or_default();
            let gone = keys.iter().filter(|key| !wanted.contains_key(key.as_str()));
            let gone: Vec<_> = gone.map(|key| (key.as_str().to_owned(), Value::Null)).collect();
            let all: Map<String, Value> = wanted.into_iter().chain(gone).collect();
            if !all.is_empty() {
                json::set(&mut patch, &[member], all);
            }
        }
        if let Some(kind) = members.get("type") {
            json::set(&mut patch, &["type"], kind.clone());
        }
        if self.content.is_immutable() || found.is_immutable {
            let wanted = members.get("immutable").cloned().unwrap_or_default();
            json::set(&mut patch, &["immutable"], wanted);
        }
        patch
    }
}

fn value(of: impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

/// The object by which the server is asked whether it would take copies: the resource as its author wrote it, without what
/// ties it to another place.
pub(super) fn trial(resource: &Map<String, Value>, namespace: &str) -> Value {
    let mut trial = Value::Object(resource.clone());
    for member in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "selfLink",
        "generateName",
        "managedFields",
        "ownerReferences",
        "finalizers",
    ] {
        json::take(&mut trial, &["metadata", member]);
    }
    json::set(&mut trial, &["metadata", "namespace"], namespace);
    json::take(&mut trial, &["status"]);
    trial
}

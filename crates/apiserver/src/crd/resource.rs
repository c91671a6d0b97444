//! A definition, read: its resources and what it takes to serve them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::convert::Conversion;
use super::custom::{Custom, Schema};
use super::{list, text};
use crate::registry::{Registry, Resource, ScalePaths, StatusPart, Subresource, Text, Verb, api_version};
use crate::schema::Structural;
use crate::table::Printer;
use crate::webhook::Dispatcher;

const VERBS: [Verb; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const CHANGE: [Verb; 3] = ["get", "patch", "update"];

/// A served definition.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) uid: Box<str>,
    group: String,
    plural: String,
    /// The versions that are served.
    served: Vec<Arc<Resource>>,
    /// The version that is stored, served or not.
    pub(super) stored: Arc<Resource>,
    /// What the resources were made of, to see whether anything changed.
    source: Source,
    schemas: Arc<BTreeMap<String, Schema>>,
}

#[derive(Debug, PartialEq)]
struct Source {
    spec: Value,
    names: Value,
    terminating: bool,
}

impl Source {
    fn of(object: &Value) -> Self {
        let at = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
        Self { spec: at("/spec"), names: at("/status/acceptedNames"), terminating: is_terminating(object) }
    }
}

impl Definition {
    /// Reads an established definition. `since` is the version of the store from which on it holds.
    pub(super) fn new(
        object: &Value,
        before: Option<&Self>,
        since: u64,
        dispatcher: Arc<Dispatcher>,
    ) -> Self {
        let group = text(object, "/spec/group").to_owned();
        let source = Source::of(object);
        let same = before.filter(|before| before.source.spec.get("versions") == source.spec.get("versions"));
        let schemas = match same {
            Some(before) => before.schemas.clone(),
            None => Arc::new(schemas(object, &group, since)),
        };
        let conversion = Arc::new(Conversion::parse(object, dispatcher));
        let versions = list(object, "/spec/versions");
        let is = |version: &Value, key: &str| version.get(key).and_then(Value::as_bool) == Some(true);
        let storage = versions.iter().find(|version| is(version, "storage")).cloned().unwrap_or_default();
        let storage_name = text(&storage, "/name").to_owned();
        let make = |version: &Value| {
            let rules = Custom::new(object, version, schemas.clone(), conversion.clone(), source.terminating);
            Arc::new(resource(object, version, &storage_name, rules))
        };
        Self {
            uid: text(object, "/metadata/uid").into(),
            plural: text(object, "/status/acceptedNames/plural").to_owned(),
            served: versions.iter().filter(|version| is(version, "served")).map(make).collect(),
            stored: make(&storage),
            group,
            source,
            schemas: schemas.clone(),
        }
    }

    /// Whether the object says what this was made of.
    pub(super) fn is_of(&self, object: &Value) -> bool {
        *self.uid == *text(object, "/metadata/uid") && self.source == Source::of(object)
    }

    /// The names it holds.
    pub(super) fn accepted_names(&self) -> &Value {
        &self.source.names
    }

    /// Serves all versions. Built-in resources are never replaced.
    pub(super) fn serve(&self, registry: &Registry) {
        for resource in &self.served {
            let known = registry.find(&self.group, &resource.version, &self.plural);
            if known.is_none_or(|known| known.custom) {
                registry.insert(resource.clone());
            }
        }
    }

    /// Serves these versions instead of those of an earlier state of the definition.
    pub(super) fn replace(&self, before: &Self, registry: &Registry) {
        self.serve(registry);
        for old in &before.served {
            if before.plural != self.plural || !self.served.iter().any(|new| new.version == old.version) {
                before.remove(old, registry);
            }
        }
    }

    /// Serves none of the versions any more.
    pub(super) fn unserve(&self, registry: &Registry) {
        self.served.iter().for_each(|resource| self.remove(resource, registry));
    }

    fn remove(&self, resource: &Resource, registry: &Registry) {
        if registry.find(&self.group, &resource.version, &self.plural).is_some_and(|known| known.custom) {
            registry.remove(&self.group, &resource.version, &self.plural);
        }
    }
}

fn is_terminating(object: &Value) -> bool {
    super::names::is_true(object, "Terminating")
}

/// The schemas by `apiVersion`. The definition was validated, so they parse.
fn schemas(object: &Value, group: &str, since: u64) -> BTreeMap<String, Schema> {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    list(object, "/spec/versions")
        .iter()
        .filter_map(|version| {
            let schema = version.pointer("/schema/openAPIV3Schema").unwrap_or(&anything);
            let structural = Structural::parse(schema).ok()?;
            Some((api_version(group, text(version, "/name")), Schema { structural, since }))
        })
        .collect()
}

/// What the users of a version are told whose author calls it deprecated.
fn deprecation(version: &Value, group: &str, kind: &str) -> Option<Text> {
    let is_so = version.get("deprecated").and_then(Value::as_bool) == Some(true);
    let own = version.get("deprecationWarning").and_then(Value::as_str).map(str::to_owned);
    is_so.then(|| {
        own.unwrap_or_else(|| format!("{group}/{} {kind} is deprecated", text(version, "/name"))).into()
    })
}

fn resource(object: &Value, version: &Value, storage: &str, rules: Custom) -> Resource {
    let owned = |text: &str| Text::from(text.to_owned());
    let name = |key: &str| text(object, &format!("/status/acceptedNames/{key}"));
    let texts = |key: &str| -> Vec<Text> {
        let list = list(object, &format!("/status/acceptedNames/{key}"));
        list.iter().filter_map(Value::as_str).map(owned).collect()
    };
    let group = text(object, "/spec/group");
    let is_there = |pointer: &str| version.pointer(pointer).is_some_and(|value| !value.is_null());
    let mut subresources = Vec::new();
    if is_there("/subresources/status") {
        subresources.push(Subresource {
            name: "status".into(),
            kind: owned(name("kind")),
            group_version: None,
            verbs: CHANGE.to_vec(),
        });
    }
    let scale = version.pointer("/subresources/scale").filter(|scale| !scale.is_null()).map(|scale| {
        subresources.push(Subresource {
            name: "scale".into(),
            kind: "Scale".into(),
            group_version: Some(("autoscaling".into(), "v1".into())),
            verbs: CHANGE.to_vec(),
        });
        let selector = text(scale, "/labelSelectorPath");
        ScalePaths {
            spec_replicas: owned(text(scale, "/specReplicasPath")),
            status_replicas: owned(text(scale, "/statusReplicasPath")),
            selector: (!selector.is_empty()).then(|| owned(selector)),
        }
    });
    let selectable = list(version, "/selectableFields");
    Resource {
        group: owned(group),
        version: owned(text(version, "/name")),
        kind: owned(name("kind")),
        list_kind: owned(name("listKind")),
        plural: owned(name("plural")),
        singular: owned(name("singular")),
        short_names: texts("shortNames"),
        categories: texts("categories"),
        namespaced: text(object, "/spec/scope") == "Namespaced",
        verbs: VERBS.to_vec(),
        status: if is_there("/subresources/status") { StatusPart::Separate } else { StatusPart::None },
        subresources,
        table: Arc::from(format!("{group}/{}", name("plural"))),
        storage_api_version: api_version(group, storage).into(),
        generation: true,
        create_on_update: false,
        unconditional_update: false,
        returns_deleted: false,
        scale,
        deprecation: deprecation(version, group, name("kind")),
        selectable: selectable
            .iter()
            .map(|field| Arc::from(text(field, "/jsonPath").trim_start_matches('.')))
            .collect(),
        custom: true,
        printer: Printer::custom(list(version, "/additionalPrinterColumns")),
        schema: version.pointer("/schema/openAPIV3Schema").cloned().map(Arc::new),
        rules: Arc::new(rules),
    }
}

//! OpenAPI v3: one document for each group and version, and the index of them.
//!
//! kubectl reads these documents for `explain`, for building strategic merge patches, and to learn from the PATCH
//! operations whether the server checks unknown fields and supports dry run. The schemas of built-in kinds come from
//! their types, those of custom kinds from their definitions.

mod builtin;
mod custom;
mod operations;
mod patch_keys;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Where schemas stand in a document, as references write it.
const SCHEMAS: &str = "#/components/schemas/";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/// A group, version and kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gvk {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl Gvk {
    /// A group, version and kind.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    fn to_json(&self) -> Value {
        json!({"group": self.group, "kind": self.kind, "version": self.version})
    }

    /// The name of the schema: the group turned round, then version and kind.
    fn custom_schema_name(&self) -> String {
        let mut parts: Vec<&str> = self.group.split('.').filter(|part| !part.is_empty()).rev().collect();
        parts.push(&self.version);
        parts.push(&self.kind);
        parts.join(".")
    }
}

/// A path below objects.
#[derive(Debug, Clone)]
pub struct Subresource {
    /// The last part of the path.
    pub name: String,
    /// The kind that is read and written there.
    pub gvk: Gvk,
    /// The verbs.
    pub verbs: Vec<String>,
}

/// A resource to describe.
#[derive(Debug, Clone)]
pub struct Resource {
    /// What it is.
    pub gvk: Gvk,
    /// The plural name, as in paths.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The verbs.
    pub verbs: Vec<String>,
    /// The paths below objects.
    pub subresources: Vec<Subresource>,
    /// For custom kinds the `openAPIV3Schema` of the version; `None` for built-in kinds.
    pub custom_schema: Option<Value>,
}

/// The document of one group and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its place below `/openapi/v3/`: `api/v1` or `apis/apps/v1`.
    pub path: String,
    /// Changes with the content.
    pub hash: String,
    /// The document as JSON.
    pub json: Bytes,
}

impl Document {
    /// Where clients fetch it.
    pub fn url(&self) -> String {
        format!("/openapi/v3/{}?hash={}", self.path, self.hash)
    }
}

/// The documents of all groups and versions, by path.
pub fn documents(resources: &[Resource]) -> Vec<Document> {
    let mut by_path: BTreeMap<String, Vec<&Resource>> = BTreeMap::new();
    for resource in resources {
        by_path.entry(path_of(&resource.gvk.group, &resource.gvk.version)).or_default().push(resource);
    }
    by_path.into_iter().map(|(path, resources)| document(path, &resources)).collect()
}

/// The answer to `/openapi/v3`.
pub fn index(documents: &[Document]) -> Value {
    let paths: Map<String, Value> = documents
        .iter()
        .map(|document| (document.path.clone(), json!({ "serverRelativeURL": document.url() })))
        .collect();
    json!({ "paths": paths })
}

fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn document(path: String, resources: &[&Resource]) -> Document {
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for resource in resources {
        let schema_name = add_schemas(resource, &mut schemas);
        operations::add(&mut paths, &format!("/{path}"), resource, &schema_name);
    }
    for name in [OBJECT_META, LIST_META, DELETE_OPTIONS, STATUS, PATCH] {
        add_built_in(name, &mut schemas);
    }
    // Kinds of subresources, such as Scale, come with their operations.
    for resource in resources {
        for sub in &resource.subresources {
            if let Some(name) = schema_name_of(&sub.gvk) {
                add_built_in(&name, &mut schemas);
            }
        }
    }
    close(&mut schemas);
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"BearerToken": {
                "description": "Bearer Token authentication", "in": "header", "name": "authorization", "type": "apiKey"}},
        },
    });
    let json = document.to_string();
    Document { path, hash: hash(json.as_bytes()), json: Bytes::from(json) }
}

/// Adds the schemas of a resource and of its list. Returns the name of the first.
fn add_schemas(resource: &Resource, schemas: &mut Map<String, Value>) -> String {
    let gvk = &resource.gvk;
    let name = match &resource.custom_schema {
        Some(schema) => {
            let name = gvk.custom_schema_name();
            schemas.insert(name.clone(), custom::schema(gvk, schema));
            name
        }
        None => {
            let name = builtin::schema_name(gvk).unwrap_or_else(|| gvk.custom_schema_name());
            let schema = builtin::schema(&name).unwrap_or_else(|| json!({"type": "object"}));
            schemas.insert(name.clone(), with_gvk(schema, gvk));
            name
        }
    };
    let list = Gvk { kind: format!("{}List", gvk.kind), ..gvk.clone() };
    schemas.insert(format!("{name}List"), list_schema(&list, &name));
    name
}

fn schema_name_of(gvk: &Gvk) -> Option<String> {
    builtin::schema_name(gvk)
}

fn add_built_in(name: &str, schemas: &mut Map<String, Value>) {
    if !schemas.contains_key(name)
        && let Some(schema) = builtin::schema(name)
    {
        let schema = match builtin::kind_of(name) {
            Some(gvk) => with_gvk(schema, &gvk),
            None => schema,
        };
        schemas.insert(name.to_owned(), schema);
    }
}

/// Adds everything that the schemas refer to.
fn close(schemas: &mut Map<String, Value>) {
    let mut open: BTreeSet<String> = BTreeSet::new();
    schemas.values().for_each(|schema| references(schema, &mut open));
    while let Some(name) = open.pop_first() {
        if schemas.contains_key(&name) {
            continue;
        }
        add_built_in(&name, schemas);
        match schemas.get(&name) {
            Some(schema) => references(schema, &mut open),
            // A reference that leads nowhere would make the whole document unreadable.
            None => {
                schemas.insert(name, json!({"type": "object"}));
            }
        }
    }
}

fn references(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(name) =
                members.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix(SCHEMAS))
            {
                found.insert(name.to_owned());
            }
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn with_gvk(mut schema: Value, gvk: &Gvk) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("x-kubernetes-group-version-kind".to_owned(), json!([gvk.to_json()]));
    }
    schema
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{SCHEMAS}{name}") })
}

fn list_schema(gvk: &Gvk, item: &str) -> Value {
    let schema = json!({
        "description": format!("{} is a list of objects.", gvk.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": API_VERSION_DESCRIPTION},
            "kind": {"type": "string", "description": KIND_DESCRIPTION},
            "items": {"type": "array", "items": reference(item), "description": "The objects."},
            "metadata": {"allOf": [reference(LIST_META)], "default": {}, "description": "Metadata of the list."},
        },
    });
    with_gvk(schema, gvk)
}

const API_VERSION_DESCRIPTION: &str = "The group and version of the schema that this object follows.";
const KIND_DESCRIPTION: &str = "The kind of this object, in CamelCase. It cannot be changed.";

/// FNV-1a with 128 bits: documents are told apart, nobody needs to be kept out.
fn hash(bytes: &[u8]) -> String {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let hash = bytes.iter().fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME));
    format!("{hash:032X}")
}

#[cfg(test)]
mod tests;

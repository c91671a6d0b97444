//! CustomResourceDefinitions, made from the types.
//!
//! The types say what a field is and what it means; the [catalogue](crate::catalogue) says how a kind is called,
//! listed and stored. `cargo xtask generate` writes the result into the chart.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::convert::Steps;

/// What a schema needs to know of one version of a kind. Implemented by [`kind!`](crate::kind!).
pub trait KindVersion: Serialize + DeserializeOwned {
    /// `v1alpha1` or `v1beta1`.
    const VERSION: &'static str;
    /// What is wanted.
    type Spec: JsonSchema;
    /// What is.
    type Status: JsonSchema;
}

/// One kind with all its versions.
pub struct Crd {
    /// API group.
    pub group: &'static str,
    /// `CloneSet`.
    pub kind: &'static str,
    /// `clonesets`.
    pub plural: &'static str,
    /// What kubectl takes for short.
    pub short_names: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub scope: Scope,
    /// Oldest first; the last one is stored.
    pub versions: &'static [Version],
    /// Who converts between the versions.
    pub conversion: Conversion,
    /// Fills in what the author of an object of any version left out; what is set stays.
    pub defaults: fn(&mut Value),
    /// What the kind is for, in one sentence: the first line of `kubectl explain`.
    pub about: &'static str,
}

/// Where objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In the cluster as a whole.
    Cluster,
}

/// Who converts between the versions of a kind.
#[derive(Clone, Copy)]
pub enum Conversion {
    /// The versions have the same shape: the API server changes only `apiVersion`.
    None,
    /// Our manager, at `/convert`, by these steps.
    Webhook(Steps),
}

/// One version of a kind.
pub struct Version {
    /// `v1beta1`.
    pub name: &'static str,
    /// Makes the schemas of spec and status.
    pub schema: fn() -> Schemas,
    /// Reads an object into its type and writes it again: fails where the object does not fit the type.
    pub read_and_write: fn(Value) -> Result<Value, serde_json::Error>,
    /// What `kubectl get` shows.
    pub columns: &'static [Column],
    /// Whether `kubectl scale` and autoscalers work on it.
    pub scale: bool,
}

/// Schemas of the two halves of an object.
pub struct Schemas {
    spec: Value,
    status: Value,
}

/// One column of `kubectl get`.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The heading.
    pub name: &'static str,
    /// Where the value stands in the object.
    pub path: &'static str,
    /// How it is printed: `integer`, `string`, `boolean` or `date`.
    pub kind: &'static str,
    /// Shown only with `-o wide`.
    pub wide: bool,
    /// What the column tells.
    pub about: &'static str,
}

impl Version {
    /// The version of a kind that a type declares.
    pub const fn of<K: KindVersion>(columns: &'static [Column], scale: bool) -> Self {
        Self { name: K::VERSION, schema: schemas::<K>, read_and_write: read_and_write::<K>, columns, scale }
    }
}

impl Column {
    /// A number.
    pub const fn integer(name: &'static str, path: &'static str, about: &'static str) -> Self {
        Self { name, path, kind: "integer", wide: false, about }
    }

    /// A text.
    pub const fn text(name: &'static str, path: &'static str, about: &'static str) -> Self {
        Self { name, path, kind: "string", wide: false, about }
    }

    /// A time, printed as an age.
    pub const fn date(name: &'static str, path: &'static str, about: &'static str) -> Self {
        Self { name, path, kind: "date", wide: false, about }
    }

    /// A yes or no.
    pub const fn boolean(name: &'static str, path: &'static str, about: &'static str) -> Self {
        Self { name, path, kind: "boolean", wide: false, about }
    }

    /// The same, but only with `-o wide`.
    pub const fn wide(self) -> Self {
        Self { wide: true, ..self }
    }
}

impl Crd {
    /// `clonesets.apps.kruise.io`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// The version that is stored, which is also the hub of conversion.
    pub fn storage(&self) -> Option<&Version> {
        self.versions.last()
    }

    /// The object as it is shipped in a file.
    ///
    /// A manager outside of the cluster registers itself by `url` instead of our Service. Server-side apply leaves fields alone
    /// that a file does not name, so the server would find both and refuse; with an explicit null the file takes the URL away.
    pub fn manifest(&self) -> Value {
        let mut object = self.object();
        if let Conversion::Webhook(_) = self.conversion {
            let url = ["spec", "conversion", "webhook", "clientConfig", "url"];
            crate::json::set(&mut object, &url, Value::Null);
        }
        object
    }

    /// The whole object, as an API server takes it.
    ///
    /// Conversion by webhook names our Service and no CA: the manager fills in the CA when it has one.
    pub fn object(&self) -> Value {
        let mut names = json!({
            "kind": self.kind,
            "listKind": format!("{}List", self.kind),
            "plural": self.plural,
            "singular": self.kind.to_lowercase(),
        });
        if !self.short_names.is_empty() {
            crate::json::set(&mut names, &["shortNames"], self.short_names);
        }
        let scope = match self.scope {
            Scope::Namespaced => "Namespaced",
            Scope::Cluster => "Cluster",
        };
        let conversion = match self.conversion {
            Conversion::None => json!({ "strategy": "None" }),
            Conversion::Webhook(_) => json!({
                "strategy": "Webhook",
                "webhook": {
                    "conversionReviewVersions": ["v1", "v1beta1"],
                    "clientConfig": { "service": {
                        "namespace": crate::names::NAMESPACE,
                        "name": crate::names::WEBHOOK_SERVICE,
                        "path": "/convert",
                        "port": 443,
                    } },
                },
            }),
        };
        let stored = self.storage().map(|version| version.name);
        let versions: Vec<Value> =
            self.versions.iter().map(|version| self.version(version, stored == Some(version.name))).collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": self.name() },
            "spec": {
                "group": self.group,
                "names": names,
                "scope": scope,
                "conversion": conversion,
                "versions": versions,
            },
        })
    }

    /// The OpenAPI schema of one version.
    pub fn schema(&self, version: &Version) -> Value {
        let Schemas { spec, status } = (version.schema)();
        json!({
            "description": self.about,
            "type": "object",
            "properties": {
                "apiVersion": {
                    "description": "The group and version in which this object is written.",
                    "type": "string",
                },
                "kind": { "description": "The kind of this object.", "type": "string" },
                // An API server refuses a schema that says more about metadata than its type, even a description.
                "metadata": { "type": "object" },
                "spec": spec,
                "status": status,
            },
        })
    }

    fn version(&self, version: &Version, storage: bool) -> Value {
        let mut subresources = json!({ "status": {} });
        if version.scale {
            let scale = json!({
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.labelSelector",
            });
            crate::json::set(&mut subresources, &["scale"], scale);
        }
        let mut object = json!({
            "name": version.name,
            "served": true,
            "storage": storage,
            "schema": { "openAPIV3Schema": self.schema(version) },
            "subresources": subresources,
        });
        if !version.columns.is_empty() {
            let columns: Vec<Value> = version.columns.iter().map(Column::object).collect();
            crate::json::set(&mut object, &["additionalPrinterColumns"], columns);
        }
        object
    }
}

impl Column {
    fn object(&self) -> Value {
        let mut column =
            json!({ "name": self.name, "type": self.kind, "jsonPath": self.path, "description": self.about });
        if self.wide {
            crate::json::set(&mut column, &["priority"], 1);
        }
        column
    }
}

fn read_and_write<K: KindVersion>(object: Value) -> Result<Value, serde_json::Error> {
    serde_json::to_value(serde_json::from_value::<K>(object)?)
}

fn schemas<K: KindVersion>() -> Schemas {
    let describe = |mut schema: Value, about: &str| {
        crate::json::default_at(&mut schema, &["description"], about);
        schema
    };
    Schemas {
        spec: describe(schema_of::<K::Spec>(), "What is wanted."),
        status: describe(schema_of::<K::Status>(), "What the controller last saw."),
    }
}

/// The structural schema of a type: inlined, in the dialect of CRDs.
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    structural(&mut schema);
    schema
}

/// What JSON Schema may say and a structural schema may not: titles, null types, `nullable` for mere optionality.
fn structural(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    for noise in ["title", "$schema", "nullable", "components"] {
        object.remove(noise);
    }
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = unwrapped(text);
    }
    if object.contains_key("x-kubernetes-int-or-string") {
        return;
    }
    // An optional value may arrive as a choice between its schema and null. That it is optional is said elsewhere.
    for choice in ["allOf", "anyOf"] {
        if let Some(Value::Array(parts)) = object.remove(choice) {
            merge_parts(object, parts);
        }
    }
    if object.contains_key("x-kubernetes-int-or-string") {
        return;
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(structural);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(inner) {
            structural(inner);
        }
    }
    // Types that take unknown fields say so; the word `false` only repeats what pruning does.
    if object.get("additionalProperties").is_some_and(Value::is_boolean) {
        object.remove("additionalProperties");
    }
}

fn merge_parts(object: &mut Map<String, Value>, parts: Vec<Value>) {
    for part in parts {
        if let Value::Object(part) = part
            && part.get("enum") != Some(&json!([null]))
            && part.get("type") != Some(&json!("null"))
        {
            for (key, value) in part {
                object.entry(key).or_insert(value);
            }
        }
    }
}

/// Doc comments are wrapped for the source; in a description a paragraph is one line.
fn unwrapped(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let lines: Vec<&str> = paragraph.lines().map(str::trim).collect();
        let list = lines.iter().any(|line| line.starts_with("- "));
        lines.join(if list { "\n" } else { " " })
    });
    paragraphs.collect::<Vec<_>>().join("\n\n").trim().replace('`', "'")
}

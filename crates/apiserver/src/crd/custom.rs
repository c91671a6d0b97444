//! The rules of custom resources: what their schemas say.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use kruise_api::kubernetes::shape;
use serde_json::Value;

use super::convert::Conversion;
use super::text;
use crate::apply;
use crate::field::{self, Path};
use crate::registry::{Resource, Rules, api_version};
use crate::schema::Structural;
use crate::status::Status;
use crate::store::Record;

/// The schema of one version.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) structural: Structural,
    /// Objects stored after this version of the store were brought into the schema's form when they were written.
    pub(super) since: u64,
}

/// The rules of one version of a custom resource.
pub(super) struct Custom {
    api_version: String,
    /// Of all versions, by `apiVersion`: conversion needs the other ones too.
    schemas: Arc<BTreeMap<String, Schema>>,
    conversion: Arc<Conversion>,
    terminating: bool,
    /// How objects merge, read when first needed.
    typed: OnceLock<apply::Schema>,
}

impl Custom {
    pub(super) fn new(
        definition: &Value,
        version: &Value,
        schemas: Arc<BTreeMap<String, Schema>>,
        conversion: Arc<Conversion>,
        terminating: bool,
    ) -> Self {
        let api_version = api_version(text(definition, "/spec/group"), text(version, "/name"));
        Self { api_version, schemas, conversion, terminating, typed: OnceLock::new() }
    }

    fn schema(&self) -> Option<&Schema> {
        self.schemas.get(&self.api_version)
    }

    fn errors(&self, resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<field::Error> {
        let root = Path::root();
        let mut errors = match (self.schema(), old) {
            (None, _) => Vec::new(),
            (Some(schema), None) => schema.structural.validate(object, &root),
            (Some(schema), Some(old)) => schema.structural.validate_update(object, old, &root),
        };
        scale(resource, object, &mut errors);
        errors
    }
}

impl Rules for Custom {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        // What was stored may be in another version than the one that is asked for.
        if let Some(schema) = self.schemas.get(text(object, "/apiVersion")).or_else(|| self.schema()) {
            schema.structural.apply_defaults(object);
        }
    }

    fn canonical(&self, _resource: &Resource, object: &mut Value) -> Result<Vec<String>, String> {
        let mut unknown = Vec::new();
        if let Some(meta) = object.get_mut("metadata") {
            let found = shape::canonical("meta.ObjectMeta", meta, shape::Unknown::Drop);
            let found = found.map_err(|error| error.to_string())?;
            unknown.extend(found.into_iter().map(|path| format!("metadata.{path}")));
        }
        if let Some(schema) = self.schema() {
            unknown.extend(schema.structural.prune(object));
        }
        Ok(unknown)
    }

    fn typed(&self, resource: &Resource) -> apply::Typed<'_> {
        let schema = self
            .typed
            .get_or_init(|| apply::Schema::custom(resource.schema.as_deref().unwrap_or(&Value::Null)));
        schema.root()
    }

    fn validate_create(&self, resource: &Resource, object: &Value) -> Vec<field::Error> {
        self.errors(resource, object, None)
    }

    fn validate_update(
        &self,
        resource: &Resource,
        object: &Value,
        old: &Value,
        _subresource: Option<&str>,
    ) -> Vec<field::Error> {
        self.errors(resource, object, Some(old))
    }

    fn convert<'a>(
        &'a self,
        _resource: &'a Resource,
        objects: Vec<Value>,
        to_api_version: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Value>, Status>> {
        Box::pin(async move {
            let mut converted = self.conversion.convert(objects, to_api_version).await?;
            // What the other version does not know is not kept, whoever wrote it.
            if let Some(schema) = self.schemas.get(to_api_version) {
                for object in &mut converted {
                    schema.structural.prune(object);
                }
            }
            Ok(converted)
        })
    }

    fn same_schema(&self, _resource: &Resource) -> bool {
        false
    }

    fn is_as_stored(&self, _resource: &Resource, record: &Record) -> bool {
        record.is_in(&self.api_version) && self.schema().is_none_or(|schema| record.rv > schema.since)
    }

    fn takes_new(&self, resource: &Resource, name: &str) -> Result<(), Status> {
        if !self.terminating {
            return Ok(());
        }
        let why = "create not allowed while custom resource definition is terminating";
        Err(Status::forbidden(resource.group_resource(), name, why))
    }

    fn is_ending(&self) -> bool {
        self.terminating
    }
}

/// Where there is a scale subresource, its numbers must be numbers of replicas.
fn scale(resource: &Resource, object: &Value, errors: &mut Vec<field::Error>) {
    let Some(paths) = &resource.scale else { return };
    for path in [&paths.spec_replicas, &paths.status_replicas] {
        let mut parts = path.split('.').filter(|part| !part.is_empty());
        let Some(value) = parts.try_fold(object, |value, part| value.get(part)) else { continue };
        let path = path.to_string();
        match value.as_i64() {
            Some(number) if number < 0 => {
                errors.push(field::Error::invalid(path, number, "should be a non-negative integer"));
            }
            Some(number) if number > i64::from(i32::MAX) => {
                let why = format!("should be less than or equal to {}", i32::MAX);
                errors.push(field::Error::invalid(path, number, why));
            }
            _ => {}
        }
    }
}

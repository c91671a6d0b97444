//! What a resource does with its objects: the seam between the verbs and the pure rules.

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{Resource, convert};
use crate::apply::{Schema, Typed};
use crate::status::Status;
use crate::store::Record;
use crate::{field, kinds};

/// Rules of one resource. Built-in kinds and custom resources implement it; the verbs call it.
pub trait Rules: Send + Sync {
    /// Fills in defaults. Also called on what comes out of admission.
    fn default(&self, resource: &Resource, object: &mut Value);

    /// Brings an object into the form in which it is stored: unknown fields go, values become canonical.
    /// Returns the paths of the unknown fields; or, when the object is not of the kind's shape at all, the text
    /// behind `cannot be handled as a Pod: `.
    fn canonical(&self, _resource: &Resource, _object: &mut Value) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    /// How objects merge when they are applied.
    fn typed(&self, _resource: &Resource) -> Typed<'_> {
        Typed::anything()
    }

    /// An object of the kind in which nothing is set.
    fn nothing(&self, resource: &Resource) -> Value {
        let mut nothing = json!({});
        // An empty object is of every kind's shape.
        let _ = self.canonical(resource, &mut nothing);
        nothing
    }

    /// Writes what new objects begin with. Name, uid and the empty status are set already.
    fn prepare_create(&self, _resource: &Resource, _object: &mut Value) {}

    /// What is wrong with a new object, besides its metadata.
    fn validate_create(&self, resource: &Resource, object: &Value) -> Vec<field::Error>;

    /// What is wrong with a changed object, besides its metadata.
    fn validate_update(
        &self,
        resource: &Resource,
        object: &Value,
        old: &Value,
        subresource: Option<&str>,
    ) -> Vec<field::Error>;

    /// Converts objects between versions of the resource. The default rewrites `apiVersion` only, which is
    /// right where versions have one schema.
    fn convert<'a>(
        &'a self,
        _resource: &'a Resource,
        mut objects: Vec<Value>,
        to_api_version: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Value>, Status>> {
        for object in &mut objects {
            if let Some(object) = object.as_object_mut() {
                object.insert("apiVersion".to_owned(), Value::String(to_api_version.to_owned()));
            }
        }
        Box::pin(std::future::ready(Ok(objects)))
    }

    /// Whether [`Self::convert`] only rewrites `apiVersion`, so that stored bytes can be served as they are.
    fn same_schema(&self, _resource: &Resource) -> bool {
        true
    }

    /// Whether a record holds exactly what the resource shows, so that its bytes can be served.
    fn is_as_stored(&self, resource: &Resource, _record: &Record) -> bool {
        !resource.needs_conversion()
    }

    /// Refuses new objects while the resource is on its way out.
    fn takes_new(&self, _resource: &Resource, _name: &str) -> Result<(), Status> {
        Ok(())
    }

    /// Whether the resource is on its way out; discovery then tells only of verbs that help with that.
    fn is_ending(&self) -> bool {
        false
    }
}

/// The rules of the built-in kinds.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn;

impl Rules for BuiltIn {
    fn default(&self, resource: &Resource, object: &mut Value) {
        kinds::defaults(&resource.group, &resource.version, &resource.kind, object);
    }

    fn canonical(&self, resource: &Resource, object: &mut Value) -> Result<Vec<String>, String> {
        kinds::canonical(&resource.group, &resource.version, &resource.kind, object)
    }

    fn typed(&self, resource: &Resource) -> Typed<'_> {
        Schema::built_in(&resource.group, &resource.version, &resource.kind)
    }

    fn prepare_create(&self, resource: &Resource, object: &mut Value) {
        kinds::prepare_create(&resource.group, &resource.kind, object);
    }

    fn validate_create(&self, resource: &Resource, object: &Value) -> Vec<field::Error> {
        kinds::validate_create(&resource.group, &resource.kind, object)
    }

    fn validate_update(
        &self,
        resource: &Resource,
        object: &Value,
        old: &Value,
        subresource: Option<&str>,
    ) -> Vec<field::Error> {
        kinds::validate_update(&resource.group, &resource.kind, object, old, subresource)
    }

    fn convert<'a>(
        &'a self,
        _resource: &'a Resource,
        objects: Vec<Value>,
        to_api_version: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Value>, Status>> {
        let converted = objects.into_iter().map(|object| convert::convert(object, to_api_version)).collect();
        Box::pin(std::future::ready(converted))
    }

    fn same_schema(&self, resource: &Resource) -> bool {
        !convert::differs(&resource.kind)
    }
}

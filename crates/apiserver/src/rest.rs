//! The verbs: what a request does to the store.
//!
//! Every verb is a method of [`ApiServer`] on typed arguments; HTTP (the service) and the in-process
//! client ([`crate::client`]) both call them, so a controller inside the process and kubectl outside meet the
//! same rules.

mod create;
mod decode;
mod delete;
mod duplicates;
mod limits;
mod list;
mod managed;
mod meta;
mod options;
mod output;
mod plugins;
mod quota;
mod strategy;
mod sub;
mod update;
pub mod watch;

use std::sync::Arc;

use crate::admission::{User, Warnings};
use crate::registry::{Resource, fields};
use crate::server::ApiServer;
use crate::status::Status;
use crate::store::{Draft, Record};

pub(crate) use decode::{Expected, decode, parse, settle_shape};
pub use delete::{DeleteOptions, Deleted, Preconditions, Propagation};
pub(crate) use duplicates::duplicates;
pub use list::{ListOptions, Page, Selection, VersionMatch};
pub(crate) use managed::{kept, kept_managers};
pub(crate) use meta::path_segment;
pub(crate) use options::{Query, percent_decode};
pub(crate) use output::Shape;
pub(crate) use plugins::mutate as built_in_admission;
pub(crate) use quota::status as quota_status;
pub(crate) use sub::{Answer, check_container, set_condition};
pub(crate) use watch::Frames;
pub use watch::WatchOptions;

use serde_json::Value;

/// Which object, or which collection, a request is about.
#[derive(Clone, Debug)]
pub struct Target {
    /// The resource, in the request's version.
    pub resource: Arc<Resource>,
    /// The namespace; empty for cluster-scoped resources and for all namespaces.
    pub namespace: String,
    /// The name; empty for collections.
    pub name: String,
    /// The subresource, if any.
    pub subresource: Option<String>,
}

impl Target {
    /// An object of a resource.
    pub fn object(resource: &Arc<Resource>, namespace: &str, name: &str) -> Self {
        Self {
            resource: resource.clone(),
            namespace: if resource.namespaced { namespace.to_owned() } else { String::new() },
            name: name.to_owned(),
            subresource: None,
        }
    }

    /// The same object's subresource.
    #[must_use]
    pub fn with_subresource(mut self, name: &str) -> Self {
        self.subresource = Some(name.to_owned());
        self
    }

    /// The answer when the object is not there.
    pub(crate) fn not_found(&self) -> Status {
        Status::not_found(self.resource.group_resource(), &self.name)
    }
}

/// How strictly unknown and duplicate fields are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped silently.
    Ignore,
    /// They are dropped with a warning.
    #[default]
    Warn,
    /// They are refused.
    Strict,
}

/// What accompanies a write.
#[derive(Debug, Default)]
pub struct WriteOptions {
    /// Do everything except storing.
    pub dry_run: bool,
    /// How strictly unknown fields are taken.
    pub field_validation: FieldValidation,
    /// Paths of fields that the body names more than once.
    pub duplicates: Vec<String>,
    /// Who writes, for field management.
    pub field_manager: String,
    /// Who asks.
    pub user: User,
    /// What the client should be told besides.
    pub warnings: Warnings,
}

/// The outcome of a write that may create.
#[derive(Clone, Debug)]
pub struct Written {
    /// The object as stored (or, in a dry run, as it would be).
    pub record: Arc<Record>,
    /// Whether it is new.
    pub created: bool,
}

impl ApiServer {
    /// One object.
    pub fn get(&self, target: &Target) -> Result<Arc<Record>, Status> {
        self.store()
            .get(&target.resource.table, &target.namespace, &target.name)
            .ok_or_else(|| target.not_found())
    }

    /// A stored object in the version of the resource.
    pub(crate) async fn read(&self, resource: &Resource, record: &Record) -> Result<Value, Status> {
        let mut value = record.value();
        if resource.rules.is_as_stored(resource, record) {
            return Ok(value);
        }
        // Defaults are those of the version in which it is stored.
        if resource.custom {
            resource.rules.default(resource, &mut value);
        }
        convert(resource, value, &resource.api_version()).await
    }

    /// Stored objects in the version of the resource, converted all at once. Those that can be shown as they are
    /// stored are left out.
    pub(crate) async fn read_changed(
        &self,
        resource: &Resource,
        records: &[Arc<Record>],
    ) -> Result<Vec<Option<Value>>, Status> {
        let is_old = |record: &&Arc<Record>| !resource.rules.is_as_stored(resource, record);
        let mut old: Vec<Value> = records.iter().filter(is_old).map(|record| record.value()).collect();
        if old.is_empty() {
            return Ok(vec![None; records.len()]);
        }
        if resource.custom {
            old.iter_mut().for_each(|value| resource.rules.default(resource, value));
        }
        let to = resource.api_version();
        let mut read = resource.rules.convert(resource, old, &to).await?.into_iter();
        Ok(records.iter().map(|record| if is_old(&record) { read.next() } else { None }).collect())
    }

    /// What to store for an object in the version of the resource.
    pub(crate) async fn draft(&self, resource: &Resource, object: Value) -> Result<Draft, Status> {
        let value = if resource.needs_conversion() {
            convert(resource, object, &resource.storage_api_version).await?
        } else {
            object
        };
        let fields = fields::of(resource, &value);
        Ok(Draft { value, fields, managed: None })
    }
}

/// One object in another version.
pub(crate) async fn convert(resource: &Resource, object: Value, to: &str) -> Result<Value, Status> {
    let mut converted = resource.rules.convert(resource, vec![object], to).await?;
    converted.pop().ok_or_else(|| Status::internal("conversion returned no object"))
}

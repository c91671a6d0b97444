//! The seam between decoding and storing a write, where other code may change or refuse it.
//!
//! Order of a write: decode, defaults, [`Admission::mutate`] of every hook in order, defaults again,
//! preparation and validation, [`Admission::validate`] of every hook, store. Policies are one hook and webhooks another;
//! the built-in admission (default tolerations, priority, service account) runs before all of them.

pub(crate) mod conditions;
pub(crate) mod expressions;
pub(crate) mod policies;
pub(crate) mod request;
pub(crate) mod scope;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use serde_json::Value;

use crate::field;
use crate::registry::Resource;
use crate::server::ApiServer;
use crate::status::Status;

/// What the request wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A new object, or a new "object" on a subresource such as `binding`.
    Create,
    /// A changed object.
    Update,
    /// A removed object.
    Delete,
    /// A connection, such as `exec`.
    Connect,
}

impl Operation {
    /// The name in rules and reviews.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// The user's id, if there is one.
    pub uid: String,
    /// The groups the user is in.
    pub groups: Vec<String>,
    /// What else is known about the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Default for User {
    fn default() -> Self {
        Self {
            name: "kubernetes-admin".to_owned(),
            uid: String::new(),
            groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
            extra: BTreeMap::new(),
        }
    }
}

/// Everything about a write except the new object, which hooks may change.
pub struct Attributes<'a> {
    /// The server, for hooks that look at other objects.
    pub server: &'a ApiServer,
    /// What is being done.
    pub operation: Operation,
    /// The resource, in the version of the request.
    pub resource: &'a Arc<Resource>,
    /// The subresource, if any.
    pub subresource: Option<&'a str>,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// The name; empty when it is yet to be generated.
    pub name: &'a str,
    /// Who asks.
    pub user: &'a User,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// The request's options: `CreateOptions`, `UpdateOptions`, `PatchOptions` or `DeleteOptions`.
    pub options: &'a Value,
    /// The object before; absent for creations.
    pub old: Option<&'a Value>,
    /// Warnings for the client, as `Warning` headers.
    pub warnings: &'a Warnings,
}

/// Warnings that a request collects for its client. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// Adds one, unless it was said already.
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains(&text) {
            all.push(text);
        }
    }

    /// Adds the errors that only warn, and returns the others.
    pub fn told(&self, errors: Vec<field::Error>) -> Vec<field::Error> {
        let (told, left): (Vec<_>, Vec<_>) = errors.into_iter().partition(|error| error.only_warns);
        told.iter().for_each(|error| self.add(error.to_string()));
        left
    }

    /// All of them, in order.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A hook into every write.
pub trait Admission: Send + Sync {
    /// May change the new object, or refuse. Not called for deletions, which have no new object. Returns whether it
    /// changed anything; then the object is brought into shape again.
    fn mutate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        object: &'a mut Value,
    ) -> BoxFuture<'a, Result<bool, Status>>;

    /// May refuse. The object is absent for deletions.
    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        object: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>>;
}

//! EphemeralJobs: add ephemeral containers to running pods, a few at a time, and count how they end.
//!
//! A container that was added carries the uid of its job in a variable, so all that a pass must know is in the pods
//! ([`Observed`]). Containers that were added stay in a pod as long as it lives: Kubernetes cannot take them out.

mod outcome;
mod plan;
mod status;
#[cfg(test)]
mod tests;
pub mod validate;

pub use plan::{Plan, Waits, is_interesting, plan};

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::ephemeraljob::v1alpha1::EphemeralJob;

use crate::{
    object::{ObjectKey, ObjectRef, Resource},
    pod::Pod,
};

/// EphemeralJobs.
pub const EPHEMERAL_JOB: Resource =
    Resource::namespaced("apps.kruise.io", "v1alpha1", "EphemeralJob", "ephemeraljobs");

/// The reason of events about pods that did not get the containers.
pub const CREATE_FAILED: &str = "CreateFailed";

/// Everything a pass may know.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The job.
    pub job: Arc<EphemeralJob>,
    /// The pods of its namespace.
    pub pods: Vec<Arc<Pod>>,
    /// The time.
    pub now: Timestamp,
}

/// A job as the subject of an event, and as the target of writes.
pub fn reference(job: &EphemeralJob) -> ObjectRef {
    let metadata = &job.metadata;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    ObjectRef {
        resource: EPHEMERAL_JOB,
        key: ObjectKey::new(namespace, metadata.name.as_deref().unwrap_or_default()),
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
    }
}

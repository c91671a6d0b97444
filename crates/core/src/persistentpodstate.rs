//! PersistentPodState: brings the pods of a StatefulSet back to where they ran.
//!
//! The controller notes for each ready pod its node and labels of that node ([`decide()`]), and makes such objects from
//! annotations of workloads ([`generate()`]). Admission chooses the nodes of a new pod by the record of its name
//! ([`inject()`]).
//!
//! What they keep: a pod that is not ready never overwrites its record, nothing is forgotten while it is unclear which pods
//! the workload has, an object that belongs to somebody else is never changed, and no object keeps a pod from being created.

mod annotations;
mod generate;
mod inject;
mod kinds;
mod record;
mod sets;
mod status;
#[cfg(test)]
mod tests;
pub mod validate;
mod waits;
mod wakes;

pub use generate::{Conflict, Generated, generate};
pub use inject::{inject, step};
pub use kinds::{Kinds, Target};
pub use record::{Members, Observed, Plan, decide, wanted_nodes};
pub use sets::Set;
pub use status::status_write;
pub use waits::waits;
pub use wakes::{injected_by, is_news};

use kruise_api::{names::APPS_GROUP, persistentpodstate::v1beta1::PersistentPodState};

use crate::object::{ObjectKey, ObjectRef, Resource};

/// PersistentPodStates, in the version that we read and write.
pub const PERSISTENT_POD_STATE: Resource =
    Resource::namespaced(APPS_GROUP, "v1beta1", "PersistentPodState", "persistentpodstates");

/// The object as the subject of events.
pub fn reference(state: &PersistentPodState) -> ObjectRef {
    let text = |text: &Option<String>| crate::text::Text::from(text.as_deref().unwrap_or_default());
    let metadata = &state.metadata;
    let key = ObjectKey { namespace: text(&metadata.namespace), name: text(&metadata.name) };
    ObjectRef { resource: PERSISTENT_POD_STATE, key, uid: text(&metadata.uid) }
}

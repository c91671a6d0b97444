//! SidecarSet: containers that are added to pods of other workloads when they are made, and kept up to date in place.
//!
//! Here is what happens when someone writes: a set gets [defaults and hashes](defaults), is [judged](validate), and new pods
//! get its containers ([`inject()`]). Pods are made often and sets change rarely, so a set is [compiled](Set) once: selectors,
//! regular expressions and formulas are read, containers are ready to be copied.

pub mod compiled;
pub mod containers;
pub mod control;
pub mod defaults;
pub mod formula;
pub mod hash;
pub mod index;
pub mod inject;
pub mod matching;
pub mod metadata;
pub mod record;
pub mod resources;
pub mod revision;
pub mod validate;

pub use compiled::{Content, Set};
pub use index::Sets;
pub use inject::{Seen, inject};

use kruise_api::sidecarset::v1beta1::SidecarSet;

use crate::object::{ObjectKey, ObjectRef, Resource};

/// SidecarSets, in the version that we read and write.
pub const SIDECAR_SET: Resource = Resource::cluster("apps.kruise.io", "v1beta1", "SidecarSet", "sidecarsets");

/// The name of a set.
pub fn name(set: &SidecarSet) -> &str {
    set.metadata.name.as_deref().unwrap_or_default()
}

/// An annotation of a set.
pub fn annotation<'a>(set: &'a SidecarSet, key: &str) -> Option<&'a str> {
    set.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The set as the owner of its revisions and the subject of events.
pub fn reference(set: &SidecarSet) -> ObjectRef {
    ObjectRef {
        resource: SIDECAR_SET,
        key: ObjectKey::cluster(name(set)),
        uid: set.metadata.uid.as_deref().unwrap_or_default().into(),
    }
}

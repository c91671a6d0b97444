//! ResourceDistribution: keeps copies of one Secret or ConfigMap, which stands in its spec, in chosen namespaces.
//!
//! Each pass looks at the namespaces and at the objects of the distributed name ([`Observed`]), decides which copies are
//! created, updated and deleted ([`plan()`]), and after that counts ([`status()`]). An object that the ResourceDistribution
//! does not control is never written, whatever its annotations say. What a Secret holds is kept as a digest only, and no
//! text of this module contains it.

mod content;
mod copies;
mod events;
mod failures;
mod plan;
mod source;
mod status;
mod targets;
pub mod validate;
mod waits;

pub use content::Kind;
pub use copies::{Found, is_concerned, is_controlled};
pub use events::Reports;
pub use failures::{Failure, Fault, Memory};
pub use plan::{Deed, Ledger, Observed, Plan, Reading, Said, Side, State, Step, plan, settle};
pub use source::{Problem, Source, hash, hash_of};
pub use status::{Standing, status, status_write, told};
pub use targets::{Namespace, Place, Targets};
pub use waits::{Affected, waits};

use kruise_api::resourcedistribution::{self, v1beta1::ResourceDistribution};

use crate::object::{ObjectKey, ObjectRef, Resource};

/// ResourceDistributions, in the version that we write.
pub const RESOURCE_DISTRIBUTION: Resource = Resource::cluster(
    "apps.kruise.io",
    "v1beta1",
    resourcedistribution::CRD.kind,
    resourcedistribution::CRD.plural,
);

/// The object as the subject of an event or a write.
pub fn reference(object: &ResourceDistribution) -> ObjectRef {
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
    let key = ObjectKey::cluster(object.metadata.name.as_deref().unwrap_or_default());
    ObjectRef { resource: RESOURCE_DISTRIBUTION, key, uid: text(&object.metadata.uid) }
}

#[cfg(test)]
mod tests;

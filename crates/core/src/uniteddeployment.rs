//! UnitedDeployment: one application in several subsets, with one workload for each subset.
//!
//! A reconcile looks at the workloads of all subsets and at their pods ([`Observed`]), marks the subsets that cannot take
//! pods, divides the replicas ([`allocation`]), and brings every workload to what its subset should have ([`decide()`]). Each
//! effect of a plan may fail or come late without harm, because the next reconcile starts from what it sees.
//!
//! What plans keep, whatever they see: no subset has two workloads for longer than it takes to delete one, a workload that
//! is as wanted is not written, and a spec that cannot be carried out changes no subset.

pub mod allocation;
mod desired;
mod object;
mod observed;
mod plan;
mod purpose;
mod render;
pub mod revision;
mod schedule;
mod status;
pub mod validate;
mod view;
mod waits;

pub use desired::Desired;
pub use object::{Child, Kind, Spec, UnitedDeployment};
pub use observed::Observed;
pub use plan::{News, decide, news, plan, to_read};
pub use purpose::Purpose;
pub use status::{Standing, status_write};
pub use view::subset_of;

pub use crate::workload::UNITED_DEPLOYMENT;

use crate::object::ObjectRef;

/// The UnitedDeployment as the owner of its workloads and the subject of events.
pub fn reference(object: &UnitedDeployment) -> ObjectRef {
    ObjectRef { resource: UNITED_DEPLOYMENT, key: object.metadata.key(), uid: object.metadata.uid.clone() }
}

#[cfg(test)]
mod tests;

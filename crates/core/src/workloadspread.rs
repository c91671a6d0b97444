//! WorkloadSpread: spreads the pods of one workload over ordered subsets of nodes, without changing the workload.
//!
//! Two sides share one object. Admission ([`place`]) chooses a subset for each new pod, books a place for it in the status,
//! and changes the pod so that it runs there ([`inject()`]). The controller ([`decide()`]) counts pods, gives them deletion costs
//! so that a scale-in leaves the later subsets first, adopts pods that are older than the spread, and moves pods that find no
//! node to a later subset.
//!
//! What both keep: free places of a subset are never stored knowledge. They follow from its pods, from bookings
//! ([`CREATED_WITHIN`]) and from deletions that were admitted ([`DELETED_WITHIN`]), and every write of the status carries the
//! version that was read. So several managers with caches of different age never give the same place twice.

mod accounts;
mod admit;
mod cost;
mod groups;
mod inject;
mod mark;
mod plan;
mod replicas;
mod reschedule;
mod spread;
mod status;
mod target;
#[cfg(test)]
mod tests;
pub mod validate;
mod version;
mod waits;
mod wake;

pub use accounts::{CREATED_WITHIN, DELETED_WITHIN};
pub use admit::{Asked, Booking, Leaving, Left, Placement, by_ordinal, give_back, leave, place};
pub use groups::strays;
pub use inject::{Placed, inject, step};
pub use mark::Mark;
pub use plan::{Newest, Observed, Plan, Write, decide, undecided};
pub use replicas::total_at;
pub use spread::{Filter, Limit, Spread, Subset};
pub use status::status_write;
pub use target::{Family, Listed, family, has_pods_of_its_own, listed};
pub use version::{IGNORED, Versioned};
pub use wake::{differs, names};

use kruise_api::workloadspread::v1beta1::WorkloadSpread;

use crate::{
    object::{ObjectKey, ObjectRef, Resource},
    text::Text,
};

/// WorkloadSpreads, in the version that we read and write.
pub const WORKLOAD_SPREAD: Resource =
    Resource::namespaced(kruise_api::names::APPS_GROUP, "v1beta1", "WorkloadSpread", "workloadspreads");

/// How the group of pods without a subset is called where people read of it.
pub const NO_SUBSET: &str = "kruise.io/workloadspread-fake-subset-name";

/// The spread as the subject of events.
pub fn reference(spread: &WorkloadSpread) -> ObjectRef {
    let text = |text: &Option<String>| Text::from(text.as_deref().unwrap_or_default());
    let metadata = &spread.metadata;
    let key = ObjectKey { namespace: text(&metadata.namespace), name: text(&metadata.name) };
    ObjectRef { resource: WORKLOAD_SPREAD, key, uid: text(&metadata.uid) }
}

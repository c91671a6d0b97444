//! PodUnavailableBudget: how many pods of an application may be unavailable at once, whoever asks.
//!
//! Two sides share one object. The controller ([`decide()`]) counts pods and writes how many more may become unavailable.
//! Admission ([`admit()`]) takes one of them for each pod that somebody deletes, evicts or changes: it writes the name of the
//! pod and the time into the status before it says yes. A record stands for a disruption that was admitted and is not seen
//! yet; it ends when the disruption is seen, or after a time ([`DISRUPTED_FOR`], [`UNAVAILABLE_FOR`]).
//!
//! What both keep: every write of the status carries the version that was read, so several managers with caches of
//! different age never give away the same share of a budget twice.

mod admit;
mod availability;
mod budget;
mod operation;
mod overlap;
mod plan;
mod records;
mod refusal;
mod relation;
mod status;
mod step;
#[cfg(test)]
mod tests;
mod turns;
pub mod validate;

pub use admit::{Asked, Recount, Verdict, admit, is_exempt};
pub use availability::{is_available, is_consistent, is_marked, is_ready};
pub use budget::{Budget, Covers, Limit, Target};
pub use operation::{Question, operation, question};
pub use plan::{Expected, Observed, Plan, decide, notice, wakes};
pub use records::{DISRUPTED_FOR, Kind, Noticed, STAYS_FOR, UNAVAILABLE_FOR, counted, doubtful};
pub use refusal::{Refusal, is_by_budget};
pub use relation::{chosen, is_on, matches, may_cover, relate, related, stamp};
pub use status::status_write;
pub use step::{Disruption, disruption};
pub use turns::{OTHERS_FIRST, Turns};

use kruise_api::podunavailablebudget::v1beta1::PodUnavailableBudget;

use crate::object::{ObjectKey, ObjectRef, Resource};

/// PodUnavailableBudgets, in the version that we read and write.
pub const POD_UNAVAILABLE_BUDGET: Resource = Resource::namespaced(
    kruise_api::names::POLICY_GROUP,
    "v1beta1",
    "PodUnavailableBudget",
    "podunavailablebudgets",
);

/// The budget as the subject of events.
pub fn reference(budget: &PodUnavailableBudget) -> ObjectRef {
    let text = |text: &Option<String>| crate::text::Text::from(text.as_deref().unwrap_or_default());
    let metadata = &budget.metadata;
    let key = ObjectKey { namespace: text(&metadata.namespace), name: text(&metadata.name) };
    ObjectRef { resource: POD_UNAVAILABLE_BUDGET, key, uid: text(&metadata.uid) }
}

//! AdvancedCronJob: makes a Job, a BroadcastJob or an ImageListPullJob whenever its schedule says so.
//!
//! Each pass looks at the object and its children ([`Observed`]) and decides the next step ([`plan()`]). A child has the
//! name of the time it was due, so that a run that was started without anybody noticing is not started twice. The time of
//! the last run never goes back, also when no child is left that remembers it.

mod children;
mod desired;
mod plan;
pub mod validate;

pub use children::{Child, Job, Outcome};
pub use desired::{Desired, Error, Policy, children_of};
pub use plan::{Observed, Plan, Purpose, plan, status_write};

use kruise_api::advancedcronjob::{self, v1beta1::AdvancedCronJob};

use crate::object::{ObjectKey, ObjectRef, Resource};

/// AdvancedCronJobs, in the version that we write.
pub const ADVANCED_CRON_JOB: Resource =
    Resource::namespaced("apps.kruise.io", "v1beta1", advancedcronjob::CRD.kind, advancedcronjob::CRD.plural);

/// The object as the subject of an event or a write.
pub fn reference(cron: &AdvancedCronJob) -> ObjectRef {
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
    let key = ObjectKey { namespace: text(&cron.metadata.namespace), name: text(&cron.metadata.name) };
    ObjectRef { resource: ADVANCED_CRON_JOB, key, uid: text(&cron.metadata.uid) }
}

#[cfg(test)]
mod tests;

//! BroadcastJob: runs a pod to its end on every node that fits.
//!
//! Each pass looks at the job, its pods and all nodes ([`Observed`]) and decides the next step ([`plan()`]). Which nodes
//! fit is decided by [`node_fit`](crate::node_fit); a pod that has ended stays the answer for its node, whatever becomes of
//! the node later, so that no node does the work twice.

mod desired;
mod new_pod;
mod plan;
mod pods;
mod status;
pub mod validate;
mod waits;

pub use desired::{Desired, Error};
pub use plan::{Observed, Plan, Purpose, Report, plan};
pub use status::{finished, status_write};

use kruise_api::broadcastjob::{
    self,
    v1beta1::{BroadcastJob, CompletionType},
};

use crate::{
    node::Node,
    node_fit::Needs,
    object::{ObjectKey, ObjectRef, Resource},
};

/// BroadcastJobs, in the version that we write.
pub const BROADCAST_JOB: Resource =
    Resource::namespaced("apps.kruise.io", "v1beta1", broadcastjob::CRD.kind, broadcastjob::CRD.plural);

/// The job as the subject of an event or a write.
pub fn reference(job: &BroadcastJob) -> ObjectRef {
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
    let key = ObjectKey { namespace: text(&job.metadata.namespace), name: text(&job.metadata.name) };
    ObjectRef { resource: BROADCAST_JOB, key, uid: text(&job.metadata.uid) }
}

/// Whether a change of a node can matter to a job: it fits now and did not before, or the other way round, or it is gone.
///
/// A job that has ended looks at no node any more.
pub fn is_concerned(job: &BroadcastJob, old: Option<&Node>, new: Option<&Node>) -> bool {
    if is_over(job) {
        return false;
    }
    match (old, new) {
        // Its pods may demand something else than the template does by now, so the template alone cannot say.
        (Some(old), Some(new)) => old.fits_otherwise(new),
        (_, None) => true,
        (None, Some(new)) => Needs::of_template(&job.spec.template.0).fits(new),
    }
}

/// Whether a job has ended and looks at no node any more.
pub fn is_over(job: &BroadcastJob) -> bool {
    let policy = job.spec.completion_policy.as_ref().and_then(|policy| policy.kind.as_ref());
    policy != Some(&CompletionType::Never) && finished(job).is_some()
}

#[cfg(test)]
mod tests;

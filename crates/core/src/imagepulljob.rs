//! ImagePullJob: pulls one image on many nodes before pods need it.
//!
//! A job writes a tag into the NodeImages of its nodes, a few at a time, and counts what the nodes say about it. Each pass
//! looks at the job and at the NodeImages that it [selects](Selection), and decides the next step ([`plan()`]).
//!
//! # What wakes a job
//!
//! Hundreds of jobs may run on thousands of nodes, and every node tells several times about every pull. Almost nothing of
//! that changes what a job would do, so almost nothing wakes one:
//!
//! - a change of the job itself, but not of the counts that the job wrote ([`is_news`]);
//! - a node that has succeeded or failed with a tag of the job, or lost the tag ([`jobs_with_news`]). The tag names its jobs,
//!   so no job has to be searched for. That a tag came in, waits or is being pulled is no news: the job counted it when it
//!   wrote the tag;
//! - a node that comes, goes or changes its labels, for the jobs whose choice of nodes changes by it
//!   ([`Selection::is_concerned`]);
//! - a pod that comes to another node, goes, or changes its labels, for jobs of its namespace that choose nodes by pods
//!   ([`Selection::is_moved`]);
//! - a pull secret of the job that changes;
//! - time, for deadlines and for jobs that are deleted after their end.
//!
//! News of nodes is answered at a [pace](crate::image_pull::Pace) that all jobs share. While there is little of it, a job
//! is passed at once. When there is more, jobs take turns, and each pass answers all news since the last one.

mod desired;
mod news;
mod nodes;
mod plan;
mod status;
mod tags;

pub use desired::Error;
pub use news::{is_news, jobs_with_news};
pub use nodes::{PodOrder, Selection, nodes_of_pods};
pub use plan::{Observed, Plan, plan};
pub use status::status_write;

pub use crate::pre_download::IMAGE_PULL_JOB;

use kruise_api::{image_pull::CompletionType, imagepulljob::v1beta1::ImagePullJob};

use crate::object::{ObjectKey, ObjectRef};

/// The job as the subject of an event or a write.
pub fn reference(job: &ImagePullJob) -> ObjectRef {
    let metadata = &job.metadata;
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
    let key = ObjectKey { namespace: text(&metadata.namespace), name: text(&metadata.name) };
    ObjectRef { resource: IMAGE_PULL_JOB, key, uid: text(&metadata.uid) }
}

/// Whether the job is over: it is complete, or being deleted.
pub fn is_over(job: &ImagePullJob) -> bool {
    let is_complete = job.status.as_ref().is_some_and(|status| status.completion_time.is_some());
    is_complete || job.metadata.deletion_timestamp.is_some()
}

/// Whether the job runs and will end some time.
pub fn will_end(job: &ImagePullJob) -> bool {
    !is_over(job) && job.spec.template.completion_policy.kind != Some(CompletionType::Never)
}

#[cfg(test)]
mod tests;

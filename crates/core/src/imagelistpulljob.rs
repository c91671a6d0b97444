//! ImageListPullJob: pulls several images on many nodes, by one ImagePullJob for each.
//!
//! Each pass looks at the list and at the jobs that it made ([`Observed`]) and decides the next step ([`plan()`]). A child is
//! named after its image and its template, so that a child that was made without anybody hearing of it is not made twice.
//! Children have no time of their own after their end: they go with the list. One that went before would be made again, and
//! its image pulled again.
//!
//! A list is woken by its own changes and by children whose outcome changes ([`is_news_of_child`]); that children count
//! their nodes is no news.

mod children;
mod plan;
mod status;

pub use plan::{Deed, Observed, Plan, created, deleted, failed_create, plan};
pub use status::{is_news_of_child, status_write};

use kruise_api::imagelistpulljob::{self, v1beta1::ImageListPullJob};

use crate::object::{ObjectKey, ObjectRef, Resource};

/// ImageListPullJobs, in the version that we write.
pub const IMAGE_LIST_PULL_JOB: Resource = Resource::namespaced(
    "apps.kruise.io",
    "v1beta1",
    imagelistpulljob::CRD.kind,
    imagelistpulljob::CRD.plural,
);

/// The list as the subject of an event or a write.
pub fn reference(list: &ImageListPullJob) -> ObjectRef {
    let metadata = &list.metadata;
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
    let key = ObjectKey { namespace: text(&metadata.namespace), name: text(&metadata.name) };
    ObjectRef { resource: IMAGE_LIST_PULL_JOB, key, uid: text(&metadata.uid) }
}

#[cfg(test)]
mod tests;

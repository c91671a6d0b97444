//! NodeImage: which images one node is to pull, and how far it is.
//!
//! There is one for each node, with the name and the labels of the node. ImagePullJobs and people write tags into it, the
//! daemon of the node pulls them and tells how far it is, and the manager [keeps it in order](plan()): it makes and deletes
//! it with the node, takes out what is finished or belongs to nobody any more, and speaks for nodes that do not answer.
//!
//! # What wakes a pass
//!
//! NodeImages change often: every pull on every node is a change of two or three. [`delay`] tells when a change needs a
//! pass, and for almost all of them that is at a time in the future: when a node should have answered, or when a finished
//! tag has been there for long enough. Of several such times the earliest counts, so that a node has about one pass in ten
//! minutes while it pulls, however many images that are.

mod news;
mod plan;
mod status;
mod steps;
mod tidy;
pub mod validate;
mod view;

pub use news::{delay, due, new_owners, of_job};
pub use plan::{Observed, Plan, owners, plan, secrets};
pub(crate) use steps::Steps;
pub use view::{Answer, Image, NodeImage, PullSecret, Status, Tag, TagOwner, TagStatus};

use kruise_api::nodeimage;

use crate::object::Resource;

/// NodeImages, in the version that we write.
pub const NODE_IMAGE: Resource =
    Resource::cluster("apps.kruise.io", "v1beta1", nodeimage::CRD.kind, nodeimage::CRD.plural);

/// The reason of events about tags that could not be pulled.
pub const PULL_IMAGE_FAILED: &str = "PullImageFailed";

#[cfg(test)]
mod tests;

//! Image pulls on the node: what the NodeImage of this node asks for, and how far that is.
//!
//! For every tag that is not finished there is one worker for its round ([`plan()`] says which begin and which end). A worker
//! waits for a place, tries as often as its policy allows ([`Policy`]), each time with the credentials of that moment
//! ([`keyring`]). The status is made anew from all workers ([`status()`]).

mod attempts;
pub mod keyring;
mod plan;
pub mod plugins;
mod presence;
mod references;
pub mod secrets;
mod space;
mod status;
#[cfg(test)]
mod tests;
pub mod worker;

use kruise_core::object::Resource;

pub use attempts::{Attempt, Policy, pause};
pub use plan::{Place, Plan, Round, plan};
pub use presence::present;
pub use references::{full_reference, repository};
pub use space::{Space, Wanted};
pub use status::status;

/// NodeImages, in the version that we read and write.
pub const NODE_IMAGE: Resource = Resource::cluster("apps.kruise.io", "v1beta1", "NodeImage", "nodeimages");

/// What is written on every pull, so that plugins of a runtime know who asks.
pub const PULLED_BY: (&str, &str) = ("apps.kruise.io/pulling-image-by", "kruise-daemon");

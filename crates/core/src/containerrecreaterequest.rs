//! ContainerRecreateRequests: restarts of chosen containers of a living pod.
//!
//! A request is judged and [completed](admit::complete) from its pod when it is made. After that two sides work on it: the
//! daemon of the node stops containers and says how far it is, and the manager ([`plan()`]) supervises: it ends requests that
//! cannot go on, tells the daemon what became of the containers, holds the pod not ready before they stop, and removes what
//! is over. Everything is in the request, so either side may be started again at any time.

pub mod admit;
mod hold;
mod plan;
#[cfg(test)]
mod tests;

pub use plan::{Plan, Waits, plan};

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::containerrecreaterequest::v1beta1::{ContainerRecreateRequest, Phase};

use crate::{object::Resource, pod::Pod, sidecar_terminator::REQUEST};

/// ContainerRecreateRequests, in the version that we write.
pub const CONTAINER_RECREATE_REQUEST: Resource = REQUEST;

/// Everything a pass may know.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The request.
    pub request: Arc<ContainerRecreateRequest>,
    /// The pod with the name that the request gives, whichever pod that is.
    pub pod: Option<Arc<Pod>>,
    /// The time.
    pub now: Timestamp,
}

/// Whether a request has ended, well or not.
pub fn is_over(request: &ContainerRecreateRequest) -> bool {
    request
        .status
        .as_ref()
        .is_some_and(|status| status.completion_time.is_some() || status.phase == Phase::Completed)
}

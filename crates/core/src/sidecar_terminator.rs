//! Ends the sidecars of a job's pod once its main containers are done, so that the pod can finish.
//!
//! Users mark sidecars by variables. On nodes with a daemon a marked container is killed through a
//! ContainerRecreateRequest, on virtual ones its image is replaced by one that ends at once. Each pass looks at one pod
//! ([`Observed`]) and decides the next step ([`plan()`]); what a step leads to is seen in the pod, which brings the next pass.

mod containers;
mod plan;
mod purpose;

pub use containers::is_interesting;
pub use plan::{Plan, plan, request_name};
pub use purpose::Purpose;

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::containerrecreaterequest::v1beta1::ContainerRecreateRequest;

use crate::{
    object::Resource,
    pod::{Pairs, Pod},
};

/// ContainerRecreateRequests, in the version that we write.
pub const REQUEST: Resource = Resource::namespaced(
    "apps.kruise.io",
    "v1beta1",
    "ContainerRecreateRequest",
    "containerrecreaterequests",
);

/// Everything a pass may know.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The pod.
    pub pod: Arc<Pod>,
    /// The labels of its node, if that is known.
    pub node: Option<Pairs>,
    /// The request with the name that [`request_name`] gives, if there is one.
    pub request: Option<Arc<ContainerRecreateRequest>>,
    /// The time.
    pub now: Timestamp,
}

#[cfg(test)]
mod tests;

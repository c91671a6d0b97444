//! Everything a reconcile may know.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::{daemonset::v1beta1::DaemonSet, gates::Gates};

use super::{Backoff, Refused};
use crate::{
    in_place::Refusals,
    node::Node,
    plan::WriteBudget,
    pod::{Metadata, Pod},
    revision::Revision,
};

/// Everything a reconcile may know, gathered once from caches. The order of lists does not matter.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The DaemonSet.
    pub set: Arc<DaemonSet>,
    /// The pods that have an owner reference to it, and the pods of the namespace without a controller.
    pub pods: Vec<Arc<Pod>>,
    /// All nodes.
    pub nodes: Vec<Arc<Node>>,
    /// The ControllerRevisions that belong to it or to nobody, and those whose names begin with its name.
    pub revisions: Vec<Arc<Revision>>,
    /// The ImagePullJobs that it controls, and those that have the names of new ones.
    pub jobs: Vec<Arc<Metadata>>,
    /// The time.
    pub now: Timestamp,
    /// Which features are on.
    pub gates: Arc<Gates>,
    /// Flag `--assign-pods-by-scheduler`.
    pub assign_by_scheduler: bool,
    /// Whether the server has `pods/resize`.
    pub resize_subresource: bool,
    /// Updates in place that the server refused.
    pub refusals: Refusals,
    /// How long failed pods stay.
    pub backoff: Backoff,
    /// New pods and deletions that the server refused.
    pub refused: Refused,
    /// How much may be written.
    pub write_budget: WriteBudget,
    /// Makes the names of new pods random. With the same seed a node gets the same name. Keep it until it is certain that a
    /// pod was made, so that trying again cannot make a second one; change it then.
    pub seed: u64,
}

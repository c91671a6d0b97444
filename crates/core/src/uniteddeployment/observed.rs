//! Everything a reconcile may know.

use std::{collections::BTreeMap, collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;

use super::{Child, UnitedDeployment};
use crate::{pod::Pod, revision::Revision, text::Text};

/// Everything a reconcile may know, gathered once from caches. The order of lists does not matter.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The UnitedDeployment.
    pub object: Arc<UnitedDeployment>,
    /// The workloads of all kinds that have an owner reference to it, and those of the namespace without a controller that name
    /// a subset.
    pub children: Vec<Child>,
    /// The pods of these workloads, by the uid of the workload.
    pub pods: BTreeMap<Text, Vec<Arc<Pod>>>,
    /// The ControllerRevisions that belong to it or to nobody, and those whose names begin with its name.
    pub revisions: Vec<Arc<Revision>>,
    /// The workloads that are to be written, by uid, as the server has them.
    pub live: BTreeMap<Text, Value>,
    /// Why workloads could not be read, by uid.
    pub unread: BTreeMap<Text, String>,
    /// The time.
    pub now: Timestamp,
    /// Subsets whose workload the server refused to write last time: they come last, because a refusal leaves out what comes
    /// after it.
    pub refused: BTreeSet<String>,
    /// How many pods could not be scheduled when a subset was marked.
    pub timed_out: BTreeMap<String, usize>,
    /// Makes the names of new workloads random. Keep it until it is certain that they were made, so that trying again cannot
    /// make a second one; change it then.
    pub seed: u64,
}

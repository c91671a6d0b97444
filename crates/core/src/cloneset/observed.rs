//! Everything a pass may know.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use kruise_api::{cloneset::v1beta1::CloneSet, gates::Gates};

use crate::{
    in_place::Refusals,
    plan::WriteBudget,
    pod::{Metadata, Pairs, Pod},
    revision::Revision,
    text::Text,
};

/// A volume claim: its metadata says everything that is needed.
pub type Claim = Metadata;

/// Whether [`Observed::nodes`] is needed for this set.
pub fn needs_nodes(set: &CloneSet) -> bool {
    let constraints = set.spec.template.0.pointer("/spec/topologySpreadConstraints");
    constraints.and_then(serde_json::Value::as_array).is_some_and(|constraints| !constraints.is_empty())
}

/// Everything a pass may know, gathered once from caches. The order of lists does not matter.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The CloneSet.
    pub set: Arc<CloneSet>,
    /// The pods that have an owner reference to it, active or not.
    pub pods: Vec<Arc<Pod>>,
    /// The volume claims that have an owner reference to it.
    pub claims: Vec<Arc<Claim>>,
    /// The ControllerRevisions of the namespace whose labels its selector matches or whose names begin with its name.
    pub revisions: Vec<Arc<Revision>>,
    /// The ImagePullJobs that it controls, and those whose names stand in the way of new ones.
    pub jobs: Vec<Arc<Metadata>>,
    /// Labels of the nodes that its pods are on. Needed only if the template has spread constraints.
    pub nodes: BTreeMap<Text, Pairs>,
    /// The time.
    pub now: Timestamp,
    /// Which features are on.
    pub gates: Arc<Gates>,
    /// Flag `--cloneset-scaling-exclude-preparing-delete`.
    pub exclude_preparing_delete: bool,
    /// Whether the server has `pods/resize`.
    pub resize_subresource: bool,
    /// Updates in place that the server refused.
    pub refusals: Refusals,
    /// How much may be written.
    pub write_budget: WriteBudget,
    /// Makes the ids of new pods random. With the same seed the same pods give the same ids. Keep it until it is certain
    /// that a pod was made, so that trying again cannot make a second one and claims find their pod; change it then.
    pub seed: u64,
}

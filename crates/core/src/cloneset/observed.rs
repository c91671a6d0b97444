//! Everything a pass may know.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use kruise_api::{cloneset::v1beta1::CloneSet, gates::Gates};

use crate::{
    effect::Effect,
    object::POD,
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
    /// Names of pods that a budget does not let go now. Needed only with gate `PodUnavailableBudgetUpdateGate`.
    pub protected: BTreeSet<Text>,
    /// The time.
    pub now: Timestamp,
    /// Which features are on.
    pub gates: Arc<Gates>,
    /// Flag `--cloneset-scaling-exclude-preparing-delete`.
    pub exclude_preparing_delete: bool,
    /// Whether the server has `pods/resize`.
    pub resize_subresource: bool,
    /// How much may be written.
    pub room: Room,
    /// Makes the ids of new pods random. With the same seed the same pods give the same ids. Keep it until it is certain
    /// that a pod was made, so that trying again cannot make a second one and claims find their pod; change it then.
    pub seed: u64,
}

/// How many writes a pass may plan, for each resource that it writes to for each pod. What is beyond that is left to a
/// later pass, which sees more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// To `pods`.
    pub pods: usize,
    /// To `pods/status`.
    pub status: usize,
}

impl Default for Room {
    /// No end of it.
    fn default() -> Self {
        Self { pods: usize::MAX, status: usize::MAX }
    }
}

impl Room {
    /// Takes the place of an effect. Tells whether there was one.
    pub(super) fn take(&mut self, effect: &Effect) -> bool {
        let left = match effect.endpoint() {
            Some((POD, None)) => &mut self.pods,
            Some((POD, Some("status"))) => &mut self.status,
            _ => return true,
        };
        let fits = *left > 0;
        *left = left.saturating_sub(1);
        fits
    }

    /// What is left after these.
    pub(super) fn after(mut self, effects: &[Effect]) -> Self {
        for effect in effects {
            self.take(effect);
        }
        self
    }
}

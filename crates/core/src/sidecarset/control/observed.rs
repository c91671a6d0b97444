//! Everything a pass may know.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_api::sidecarset::v1beta1::SidecarSet;

use crate::{
    object::ObjectKey,
    pod::{Pairs, Pod},
    revision::Revision,
    text::Text,
};

/// Whether [`Observed::namespaces`] is needed for this set.
pub fn needs_namespaces(set: &SidecarSet) -> bool {
    set.spec.namespace_selector.is_some()
}

/// Why a pod must not be written now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// In words.
    pub why: Text,
    /// When to look again.
    pub left: Duration,
    /// A PodUnavailableBudget refused it.
    pub by_budget: bool,
}

/// Everything a pass may know, gathered once from caches. The order of lists does not matter.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The SidecarSet.
    pub set: Arc<SidecarSet>,
    /// The pods whose annotation `kruise.io/sidecarset-injected-list` names it, in whatever namespace.
    pub pods: Vec<Arc<Pod>>,
    /// Labels of the namespaces of these pods. Needed only if the set chooses namespaces.
    pub namespaces: BTreeMap<Text, Pairs>,
    /// The ControllerRevisions of our own namespace that carry the label `kruise.io/sidecarset-name` of the set, or whose
    /// names begin with its name.
    pub revisions: Vec<Arc<Revision>>,
    /// Our own namespace, where revisions are kept.
    pub manager_namespace: Text,
    /// Pods that must not be written now, and why: a budget does not let them go (gate `PodUnavailableBudgetUpdateGate`), or
    /// the server refused their last update a moment ago. The others go on.
    pub held: BTreeMap<ObjectKey, Held>,
    /// The time.
    pub now: Timestamp,
}

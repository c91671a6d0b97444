//! Everything a pass may know.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use kruise_api::{gates::Gates, sidecarset::v1beta1::SidecarSet};

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
    /// Pods that a budget does not let go now. Needed only with gate `PodUnavailableBudgetUpdateGate`.
    pub protected: BTreeSet<ObjectKey>,
    /// The time.
    pub now: Timestamp,
    /// Which features are on.
    pub gates: Arc<Gates>,
}

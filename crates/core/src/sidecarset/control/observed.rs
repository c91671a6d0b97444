//! Everything a pass may know.

use std::{collections::BTreeMap, sync::Arc};

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
    pub held: BTreeMap<ObjectKey, Text>,
    /// The time.
    pub now: Timestamp,
}

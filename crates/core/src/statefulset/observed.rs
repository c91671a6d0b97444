//! Everything a pass may know.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use kruise_api::{gates::Gates, statefulset::v1beta1::StatefulSet};

use super::{claims::claim_name, desired::ordinals_of, parts, reference};
use crate::{
    in_place::Refusals,
    plan::WriteBudget,
    pod::{Metadata, Pod},
    revision::Revision,
    text::Text,
    volume_claim::{StorageClass, VolumeClaim},
};

/// Everything a pass may know, gathered once from caches. The order of lists does not matter.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The StatefulSet.
    pub set: Arc<StatefulSet>,
    /// The pods that have an owner reference to it, and those without a controller whose names are of its form.
    pub pods: Vec<Arc<Pod>>,
    /// Other pods that have names of its own pods, each with the kind and the name of its controller, if it has one.
    pub taken: BTreeMap<Text, Option<String>>,
    /// The volume claims of its pods, those that exist and those to come. They are found by name.
    pub claims: Vec<Arc<VolumeClaim>>,
    /// The storage classes, by name. Needed only where claims grow.
    pub storage_classes: BTreeMap<Text, Arc<StorageClass>>,
    /// The ControllerRevisions of the namespace that its selector matches or whose names begin with its name.
    pub revisions: Vec<Arc<Revision>>,
    /// The ImagePullJobs that it controls, and those whose names stand in the way of new ones.
    pub jobs: Vec<Arc<Metadata>>,
    /// The time.
    pub now: Timestamp,
    /// Which features are on.
    pub gates: Arc<Gates>,
    /// Whether the server has `pods/resize`.
    pub resize_subresource: bool,
    /// Updates in place that the server refused.
    pub refusals: Refusals,
    /// How much may be written.
    pub budget: WriteBudget,
}

/// What has to be looked up by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The pods of the set that are not among those that were seen.
    pub pods: Vec<Text>,
    /// The claims of all pods, those that are seen and those to come.
    pub claims: Vec<Text>,
}

/// What has to be looked up by name, once the pods are seen. Nothing for a spec that cannot be read.
pub fn wanted(seen: &Observed) -> Wanted {
    let mut wanted = Wanted::default();
    let Ok(ordinals) = ordinals_of(&seen.set, &seen.gates) else { return wanted };
    let set = reference(&seen.set).key.name;
    let known: BTreeSet<i64> = seen
        .pods
        .iter()
        .filter_map(|pod| parts(&pod.metadata.name).filter(|(prefix, _)| set == *prefix))
        .map(|(_, ordinal)| ordinal)
        .collect();
    let missing = ordinals.iter().filter(|ordinal| !known.contains(ordinal));
    wanted.pods = missing.map(|ordinal| format!("{set}-{ordinal}").into()).collect();
    let templates = seen.set.spec.volume_claim_templates.as_ref().and_then(|claims| claims.0.as_array());
    let all: BTreeSet<i64> = ordinals.iter().chain(known).collect();
    for template in templates.into_iter().flatten() {
        wanted.claims.extend(all.iter().map(|ordinal| claim_name(template, &set, *ordinal)));
    }
    wanted
}

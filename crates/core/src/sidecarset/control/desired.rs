//! The spec after defaulting: selectors read, options decided.

use kruise_api::{
    int_or_percent::IntOrPercent,
    rollout::ScatterTerm,
    selector::{LabelSelector, Matcher},
    sidecarset::v1beta1::{SidecarSet, UpdateStrategy, UpdateType},
};

use crate::{
    sidecarset::{
        containers::{self, Sidecar},
        hash::{self, Hashes},
        matching::Matching,
    },
    strategy::{InvalidNumber, share, spelled},
    update_order::Strategy,
};

/// The spec after defaulting.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired<'a> {
    /// The set.
    pub name: &'a str,
    /// The hashes that pods are compared with.
    pub hashes: Hashes,
    /// Which pods the set is about.
    pub matching: Matching,
    /// The containers that are updated in place.
    pub sidecars: Vec<Sidecar<'a>>,
    /// What they are called in pods.
    pub names: Vec<String>,
    /// Whether pods are updated.
    pub updates: Updates,
    /// Which pods are updated; all without.
    pub selector: Option<Matcher>,
    /// How many pods stay as they are.
    pub partition: IntOrPercent,
    /// How many pods may be unavailable because of an update.
    pub max_unavailable: IntOrPercent,
    /// The partition as the spec spells it.
    pub spelled_partition: String,
    /// `maxUnavailable` as the spec spells it.
    pub spelled_max_unavailable: String,
    /// Which pods are updated first. What is spread is in `scatter`, because it depends on the pods.
    pub order: Strategy,
    /// Labels whose pods are spread over an update; `*` stands for every value there is.
    pub scatter: Vec<ScatterTerm>,
}

/// Whether pods that exist are updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Updates {
    /// They never are.
    Never,
    /// They wait.
    Paused,
    /// They are.
    Rolling,
}

/// A stored spec that cannot be carried out. Someone has to edit it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A selector that cannot be read.
    #[error("spec.selector or spec.namespaceSelector is invalid")]
    Selector(#[source] kruise_api::selector::Error),
    /// A selector of pods to update that cannot be read.
    #[error("spec.updateStrategy.selector is invalid")]
    UpdateSelector(#[source] kruise_api::selector::Error),
    /// A selector in the priorities.
    #[error("spec.updateStrategy.priorityStrategy has an invalid selector")]
    Priority(#[source] kruise_api::selector::Error),
    /// A number that is none.
    #[error(transparent)]
    Number(#[from] InvalidNumber),
}

impl<'a> Desired<'a> {
    /// Reads the spec.
    pub fn of(set: &'a SidecarSet) -> Result<Self, Error> {
        let spec = &set.spec;
        let strategy = spec.update_strategy.clone().unwrap_or_default();
        let updates = match (&strategy.kind, strategy.paused) {
            (Some(UpdateType::NotUpdate), _) => Updates::Never,
            (_, Some(true)) => Updates::Paused,
            _ => Updates::Rolling,
        };
        // Nothing of the strategy was checked for a set that updates nothing.
        let rolling = if updates == Updates::Never { UpdateStrategy::default() } else { strategy };
        Ok(Self {
            name: crate::sidecarset::name(set),
            hashes: hash::of_set(set),
            matching: Matching::of(spec).map_err(Error::Selector)?,
            sidecars: containers::containers(set).collect(),
            names: containers::names_in_pods(set),
            updates,
            selector: rolling
                .selector
                .as_ref()
                .map(LabelSelector::matcher)
                .transpose()
                .map_err(Error::UpdateSelector)?,
            spelled_partition: spelled(rolling.partition.as_ref(), "0"),
            spelled_max_unavailable: spelled(rolling.max_unavailable.as_ref(), "1"),
            partition: share(rolling.partition.as_ref(), 0, "spec.updateStrategy.partition")?,
            max_unavailable: share(
                rolling.max_unavailable.as_ref(),
                1,
                "spec.updateStrategy.maxUnavailable",
            )?,
            order: Strategy::new(rolling.priority_strategy.as_ref(), &[]).map_err(Error::Priority)?,
            scatter: rolling.scatter_strategy,
        })
    }
}

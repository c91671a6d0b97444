//! The spec after defaulting: the kind of the template, the subsets, and how they are scheduled.

use std::time::Duration;

use kruise_api::{
    schedule::ScheduleType,
    selector::{self, Matcher},
    uniteddeployment::v1beta1::{Adaptive, Subset},
};
use serde_json::Value;

use super::{Kind, UnitedDeployment, allocation::Mode};

/// How many old revisions are kept unless the spec says it.
const HISTORY: i32 = 10;

/// What the spec wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// How many pods all subsets have together.
    pub total: i64,
    /// The kind of the workloads.
    pub kind: Kind,
    /// What the template says about them.
    pub template: Value,
    /// Chooses the workloads and pods.
    pub selector: Matcher,
    /// The subsets in their order, each name once.
    pub subsets: Vec<Subset>,
    /// How the replicas are divided.
    pub mode: Mode,
    /// How long a pod may wait for a node.
    pub critical: Duration,
    /// How long a subset is left alone that cannot take pods.
    pub retry: Duration,
    /// How many old revisions are kept.
    pub history_limit: usize,
}

/// Why a stored spec cannot be carried out. Someone has to edit it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No template, or more than one.
    #[error("spec.template: exactly one template is needed")]
    Template,
    /// The selector has an operator that means nothing.
    #[error("spec.selector: {0}")]
    Selector(#[from] selector::Error),
    /// The selector selects everything.
    #[error("spec.selector: a selector that is not empty is needed")]
    EmptySelector,
}

impl Desired {
    /// Reads the spec.
    pub fn of(object: &UnitedDeployment) -> Result<Self, Error> {
        let spec = &object.spec;
        let mut given = Kind::ALL
            .into_iter()
            .filter_map(|kind| Some((kind, spec.template.get(kind.field()).filter(|one| !one.is_null())?)));
        let (Some((kind, template)), None) = (given.next(), given.next()) else {
            return Err(Error::Template);
        };
        if spec.selector.is_empty() {
            return Err(Error::EmptySelector);
        }
        let topology = spec.topology.clone().unwrap_or_default();
        let mut subsets: Vec<Subset> = Vec::new();
        for subset in topology.subsets {
            if !subsets.iter().any(|known| known.name == subset.name) {
                subsets.push(subset);
            }
        }
        let schedule = topology.schedule_strategy.unwrap_or_default();
        let is_adaptive = schedule.kind == Some(ScheduleType::Adaptive);
        let Adaptive { reschedule_critical_seconds, unschedulable_duration, reserve_unschedulable_pods } =
            schedule.adaptive.unwrap_or_default();
        let mode = match (is_adaptive, reserve_unschedulable_pods == Some(true) && !kind.is_stateful()) {
            (false, _) => Mode::Fixed,
            (true, false) => Mode::Adaptive,
            (true, true) => Mode::Reserving,
        };
        Ok(Self {
            total: i64::from(spec.replicas.unwrap_or(1)).max(0),
            kind,
            template: template.clone(),
            selector: spec.selector.matcher()?,
            subsets,
            mode,
            critical: seconds(reschedule_critical_seconds, 30),
            retry: seconds(unschedulable_duration, 300),
            history_limit: usize::try_from(spec.revision_history_limit.unwrap_or(HISTORY)).unwrap_or(0),
        })
    }

    /// How many pods of a subset stay on the old revision, as the author says.
    pub fn partition(&self, object: &UnitedDeployment, subset: &str) -> i64 {
        let update =
            object.spec.update_strategy.as_ref().and_then(|strategy| strategy.manual_update.as_ref());
        let number = update.and_then(|update| update.partitions.get(subset)).copied();
        i64::from(number.unwrap_or(0)).max(0)
    }
}

/// At least one second: times of the API are whole seconds, and a reconcile must not follow itself at once.
fn seconds(number: Option<i32>, default: u64) -> Duration {
    Duration::from_secs(number.map_or(default, |number| u64::try_from(number).unwrap_or(0)).max(1))
}

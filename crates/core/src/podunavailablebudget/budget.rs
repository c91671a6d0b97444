//! A budget after parsing: what it covers, how much it keeps, which operations it limits.

use std::sync::Arc;

use kruise_api::{
    annotations::{PUB_PROTECT_OPERATIONS, PUB_PROTECT_TOTAL_REPLICAS},
    gates::{Gate, Gates},
    int_or_percent::{IntOrPercent, IntOrString, Rounding},
    podunavailablebudget::v1beta1::{Operation, PodUnavailableBudget, Status},
    selector::Matcher,
};

use crate::{
    object::ObjectKey,
    pod::{Owner, Pairs},
    workload,
};

/// A budget.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The object that it was read from.
    pub object: Arc<PodUnavailableBudget>,
    /// Namespace and name.
    pub key: ObjectKey,
    /// Which pods it is about.
    pub covers: Covers,
    /// How much it keeps.
    pub limit: Limit,
    /// The number of pods that replaces the count of the workloads.
    pub total: Option<u32>,
    /// What it limits; empty where the author says nothing.
    operations: Vec<Operation>,
    /// Pods that it leaves alone.
    ignored: Option<Matcher>,
}

/// Which pods a budget is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Covers {
    /// Those of a workload.
    Workload(Target),
    /// Those with labels.
    Labels(Matcher),
    /// None: the object says nothing that can be used.
    Nothing,
}

/// A workload that a budget names. Its version does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The group.
    pub group: String,
    /// The version as written, for reading kinds that we do not know.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
}

impl Target {
    /// Whether an owner reference means this workload.
    pub fn is(&self, owner: &Owner) -> bool {
        workload::is_owner(owner, &self.group, &self.kind, &self.name)
    }
}

/// How much a budget keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most so many pods are unavailable.
    MaxUnavailable(IntOrPercent),
    /// At least so many pods are available.
    MinAvailable(IntOrPercent),
    /// Neither can be read, and why.
    Unusable(String),
}

impl Budget {
    /// Reads a budget. What admission would refuse today may have been stored earlier, so nothing fails here.
    pub fn of(object: &Arc<PodUnavailableBudget>) -> Self {
        let spec = &object.spec;
        let matcher = |selector: &Option<kruise_api::selector::LabelSelector>| {
            selector.as_ref().filter(|selector| !selector.is_empty())?.matcher().ok()
        };
        let covers = match (&spec.target_ref, matcher(&spec.selector)) {
            (Some(target), _) => {
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                let version = text(&target.api_version);
                let (group, version) = version.split_once('/').unwrap_or(("", &version));
                Covers::Workload(Target {
                    group: group.to_owned(),
                    version: version.to_owned(),
                    kind: text(&target.kind),
                    name: text(&target.name),
                })
            }
            (None, Some(labels)) => Covers::Labels(labels),
            (None, None) => Covers::Nothing,
        };
        let text = |text: &Option<String>| crate::text::Text::from(text.as_deref().unwrap_or_default());
        Self {
            key: ObjectKey { namespace: text(&object.metadata.namespace), name: text(&object.metadata.name) },
            covers,
            limit: limit(spec.max_unavailable.as_ref(), spec.min_available.as_ref()),
            total: total(object),
            operations: operations(object),
            ignored: matcher(&spec.ignored_pod_selector),
            object: object.clone(),
        }
    }

    /// What the object says of its status.
    pub fn status(&self) -> Status {
        self.object.status.clone().unwrap_or_default()
    }

    /// Whether the budget is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    /// The version of the object.
    pub fn version(&self) -> &str {
        self.object.metadata.resource_version.as_deref().unwrap_or_default()
    }

    /// Whether pods with these labels are left alone.
    pub fn ignores(&self, labels: &Pairs) -> bool {
        self.ignored.as_ref().is_some_and(|ignored| ignored.accepts(|key| labels.text(key)))
    }

    /// Whether an operation takes from the budget. While a resize is not an operation of its own it is an update.
    pub fn protects(&self, operation: &Operation, gates: &Gates) -> bool {
        let default = [Operation::Delete, Operation::Update, Operation::Evict];
        let protected: &[Operation] =
            if self.operations.is_empty() { &default } else { self.operations.as_slice() };
        protected.contains(operation)
            || *operation == Operation::Resize
                && !gates.enabled(Gate::InPlacePodVerticalScaling)
                && protected.contains(&Operation::Update)
    }

    /// How many pods must stay available out of this many. Where no workload wants a pod none has to stay, whatever the limit
    /// is: the pods of a deleted workload could not be deleted otherwise.
    pub fn desired(&self, expected: u32) -> Result<i64, String> {
        match &self.limit {
            Limit::MaxUnavailable(_) | Limit::MinAvailable(_) if expected == 0 => Ok(0),
            Limit::MaxUnavailable(limit) => {
                Ok((i64::from(expected) - limit.of(expected, Rounding::Up)).max(0))
            }
            Limit::MinAvailable(limit) => Ok(limit.of(expected, Rounding::Up).max(0)),
            Limit::Unusable(why) => Err(why.clone()),
        }
    }

    /// The limit as the author wrote it, such as `maxUnavailable: 20%`.
    pub fn rule(&self) -> String {
        let written =
            |name: &str, value: &Option<IntOrString>| value.as_ref().map(|value| format!("{name}: {value}"));
        let spec = &self.object.spec;
        let rule = written("maxUnavailable", &spec.max_unavailable);
        rule.or_else(|| written("minAvailable", &spec.min_available)).unwrap_or_default()
    }
}

fn limit(most: Option<&IntOrString>, least: Option<&IntOrString>) -> Limit {
    let parsed =
        |value: &IntOrString, name: &str| value.parse().map_err(|error| format!("spec.{name}: {error}"));
    let read = match (most, least) {
        (Some(most), _) => parsed(most, "maxUnavailable").map(Limit::MaxUnavailable),
        (None, Some(least)) => parsed(least, "minAvailable").map(Limit::MinAvailable),
        (None, None) => Err("no maxUnavailable or minAvailable defined".to_owned()),
    };
    read.unwrap_or_else(Limit::Unusable)
}

fn annotation<'a>(object: &'a PodUnavailableBudget, key: &str) -> Option<&'a str> {
    object.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// Objects that were stored before there was a conversion say it in an annotation, and so may people.
fn operations(object: &PodUnavailableBudget) -> Vec<Operation> {
    if !object.spec.protect_operations.is_empty() {
        return object.spec.protect_operations.clone();
    }
    let text = annotation(object, PUB_PROTECT_OPERATIONS).unwrap_or_default();
    let known = text.split(',').map(str::trim).filter(|word| Operation::KNOWN.contains(word));
    known.map(Operation::from).collect()
}

fn total(object: &PodUnavailableBudget) -> Option<u32> {
    let noted = || annotation(object, PUB_PROTECT_TOTAL_REPLICAS)?.parse::<i32>().ok();
    let total = object.spec.protect_total_replicas.or_else(noted)?;
    u32::try_from(total).ok().filter(|total| *total >= 1)
}

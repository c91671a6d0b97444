//! A spread after parsing. What admission would refuse today may have been stored earlier, so nothing fails here.

use std::sync::Arc;

use jiff::SignedDuration;
use kruise_api::{
    annotations::WORKLOADSPREAD_IGNORE_PATCH_METADATA,
    int_or_percent::{IntOrPercent, IntOrString, Rounding},
    schedule::ScheduleType,
    selector::Matcher,
    workloadspread::v1beta1::{self, Status, WorkloadSpread},
};

use super::{Family, family};
use crate::{object::ObjectKey, pod::Owner, podunavailablebudget::Target, text::Text};

/// A spread.
#[derive(Clone, Debug)]
pub struct Spread {
    /// The object that it was read from.
    pub object: Arc<WorkloadSpread>,
    /// Namespace and name.
    pub key: ObjectKey,
    /// The workload.
    pub target: Target,
    /// Its kind, if it is one that needs no configuration.
    pub family: Option<Family>,
    /// Which of its pods are spread.
    pub filter: Filter,
    /// The subsets, the preferred ones first.
    pub subsets: Vec<Subset>,
    /// How long a pod may wait for a node before it is moved; nothing where pods are not moved.
    pub reschedules_after: Option<SignedDuration>,
}

/// Which pods of a workload are spread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All of them.
    All,
    /// Those with labels.
    Labels(Matcher),
    /// None: the selector cannot be read.
    None,
}

impl Filter {
    /// Whether a pod with these labels is spread.
    pub fn accepts<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        match self {
            Self::All => true,
            Self::Labels(labels) => labels.accepts(label),
            Self::None => false,
        }
    }
}

/// A subset.
#[derive(Clone, Debug)]
pub struct Subset {
    /// What the author wrote.
    pub spec: v1beta1::Subset,
    /// How many pods it takes.
    pub limit: Limit,
}

/// How many pods a subset takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Any number.
    Open,
    /// A number, or a share of the wanted pods.
    Pods(IntOrPercent),
    /// Nobody knows, and why.
    Unusable(String),
}

/// How many pods a subset takes, in pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Most {
    /// Any number.
    Open,
    /// So many.
    Pods(i64),
    /// Nobody knows now.
    Unknown,
}

impl Limit {
    fn of(value: Option<&IntOrString>) -> Self {
        match value.map(IntOrString::parse) {
            None => Self::Open,
            Some(Ok(limit)) => Self::Pods(limit),
            Some(Err(error)) => Self::Unusable(error.to_string()),
        }
    }

    /// Whether it is a share of the wanted pods.
    pub fn is_share(&self) -> bool {
        matches!(self, Self::Pods(IntOrPercent::Percent(_)))
    }

    /// The limit in pods, where so many are wanted. Without that number shares are not known.
    pub(super) fn most(&self, total: Option<u32>) -> Most {
        match (self, total) {
            (Self::Open, _) => Most::Open,
            (Self::Pods(IntOrPercent::Int(number)), _) => Most::Pods((*number).clamp(0, i32::MAX.into())),
            (Self::Pods(limit), Some(total)) => {
                Most::Pods(limit.of(total, Rounding::Up).clamp(0, i32::MAX.into()))
            }
            (Self::Pods(_), None) | (Self::Unusable(_), _) => Most::Unknown,
        }
    }
}

impl Spread {
    /// Reads a spread.
    pub fn of(object: &Arc<WorkloadSpread>) -> Self {
        let spec = &object.spec;
        let text = |text: &Option<String>| Text::from(text.as_deref().unwrap_or_default());
        let (group, version) =
            spec.target_ref.api_version.split_once('/').unwrap_or(("", &spec.target_ref.api_version));
        let selector = spec.target_filter.as_ref().and_then(|filter| filter.selector.as_ref());
        let filter = match selector.map(kruise_api::selector::LabelSelector::matcher) {
            None => Filter::All,
            Some(Ok(labels)) => Filter::Labels(labels),
            Some(Err(_)) => Filter::None,
        };
        let strategy = spec.schedule_strategy.as_ref();
        let is_adaptive = strategy.is_some_and(|strategy| strategy.kind == Some(ScheduleType::Adaptive));
        let seconds = strategy
            .and_then(|strategy| strategy.adaptive.as_ref()?.reschedule_critical_seconds)
            .filter(|seconds| is_adaptive && *seconds > 0);
        let subsets = spec.subsets.iter();
        Self {
            key: ObjectKey { namespace: text(&object.metadata.namespace), name: text(&object.metadata.name) },
            family: family(group, &spec.target_ref.kind),
            target: Target {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: spec.target_ref.kind.clone(),
                name: spec.target_ref.name.clone(),
            },
            filter,
            subsets: subsets
                .map(|spec| Subset { spec: spec.clone(), limit: Limit::of(spec.max_replicas.as_ref()) })
                .collect(),
            reschedules_after: seconds.map(|seconds| SignedDuration::from_secs(seconds.into())),
            object: object.clone(),
        }
    }

    /// What the object says of its status.
    pub fn status(&self) -> Status {
        self.object.status.clone().unwrap_or_default()
    }

    /// Whether the spread is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    /// Whether an owner is the workload.
    pub fn targets(&self, owner: &Owner) -> bool {
        self.target.is(owner)
    }

    /// Whether there is nothing to count: all pods are in the only subset.
    pub fn is_open(&self) -> bool {
        matches!(self.subsets.as_slice(), [only] if only.limit == Limit::Open)
    }

    /// Whether a subset takes a share of the wanted pods.
    pub fn has_shares(&self) -> bool {
        self.subsets.iter().any(|subset| subset.limit.is_share())
    }

    /// The paths where the author says that the number of wanted pods stands.
    pub fn replicas_paths(&self) -> &[String] {
        self.object.spec.target_filter.as_ref().map_or(&[], |filter| &filter.replicas_path_list)
    }

    /// The place of a subset.
    pub fn position(&self, subset: &str) -> Option<usize> {
        self.subsets.iter().position(|one| one.spec.name == subset)
    }

    /// Whether pods that are adopted keep their labels and annotations as they are.
    pub(super) fn leaves_metadata(&self) -> bool {
        let annotations = self.object.metadata.annotations.as_ref();
        let value = annotations.and_then(|all| all.get(WORKLOADSPREAD_IGNORE_PATCH_METADATA));
        value.is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }
}

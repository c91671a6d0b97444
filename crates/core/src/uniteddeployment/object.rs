//! The object as its cache keeps it, with its template as raw JSON, and the workloads of its subsets.

use kruise_api::{
    cloneset::v1beta1::CloneSet,
    int_or_percent::{IntOrString, Rounding},
    selector::LabelSelector,
    statefulset::v1beta1::StatefulSet,
    uniteddeployment::v1beta1::{Status, Topology, UpdateStrategy},
};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    cloneset::CLONE_SET,
    conditions,
    object::Resource,
    pod::Metadata,
    statefulset,
    strategy::{resolve, share},
    waiting,
    workload::{self, DEPLOYMENT, Workload},
};

/// A UnitedDeployment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct UnitedDeployment {
    /// Name, labels, owners.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: Spec,
    /// What was seen last.
    pub status: Option<Status>,
}

/// What is wanted.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// How many pods all subsets have together.
    pub replicas: Option<i32>,
    /// Chooses the workloads and pods.
    pub selector: LabelSelector,
    /// The template, by its field: a member newer than this build is carried.
    pub template: Map<String, Value>,
    /// The subsets.
    pub topology: Option<Topology>,
    /// How far each subset is updated.
    pub update_strategy: Option<UpdateStrategy>,
    /// How many old revisions are kept.
    pub revision_history_limit: Option<i32>,
}

/// The kinds of workloads that subsets have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// StatefulSets of Kubernetes.
    StatefulSet,
    /// StatefulSets of OpenKruise.
    AdvancedStatefulSet,
    /// CloneSets.
    CloneSet,
    /// Deployments.
    Deployment,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::StatefulSet, Self::AdvancedStatefulSet, Self::CloneSet, Self::Deployment];

    /// The name in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StatefulSet => "StatefulSet",
            Self::AdvancedStatefulSet => "AdvancedStatefulSet",
            Self::CloneSet => "CloneSet",
            Self::Deployment => "Deployment",
        }
    }

    /// The field of the template.
    pub fn field(self) -> &'static str {
        match self {
            Self::StatefulSet => "statefulSetTemplate",
            Self::AdvancedStatefulSet => "advancedStatefulSetTemplate",
            Self::CloneSet => "cloneSetTemplate",
            Self::Deployment => "deploymentTemplate",
        }
    }

    /// The kind as the API addresses it.
    pub fn resource(self) -> Resource {
        match self {
            Self::StatefulSet => workload::STATEFUL_SET,
            Self::AdvancedStatefulSet => statefulset::STATEFUL_SET,
            Self::CloneSet => CLONE_SET,
            Self::Deployment => DEPLOYMENT,
        }
    }

    /// Whether pods have an identity, so that none can stand in for another.
    pub fn is_stateful(self) -> bool {
        matches!(self, Self::StatefulSet | Self::AdvancedStatefulSet)
    }
}

/// Reason and message of the condition that says why a workload waits.
macro_rules! waits {
    ($conditions:expr) => {
        conditions::get($conditions, waiting::CONDITION).filter(|condition| condition.status == "True").map(
            |condition| {
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                (text(&condition.reason), text(&condition.message))
            },
        )
    };
}

/// The workload of a subset.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// The kind.
    pub kind: Kind,
    /// Name, labels, owners.
    pub metadata: Metadata,
    /// How many pods it wants.
    pub replicas: i64,
    /// How many pods stay on the old revision; nothing where the workload has no such thing.
    pub partition: Option<i64>,
    /// How many pods may be unavailable, as it says.
    pub max_unavailable: Option<IntOrString>,
    /// Whether it replaces pods by itself.
    pub rolls: bool,
    /// Whether its controller has seen its spec.
    pub is_observed: bool,
    /// How many pods it has.
    pub pods: i64,
    /// How many of them are ready.
    pub ready: i64,
    /// Why it waits: reason and message.
    pub waiting: Option<(String, String)>,
}

impl Child {
    /// A workload of Kubernetes.
    pub fn of_native(kind: Kind, workload: &Workload) -> Self {
        let Workload { metadata, spec, status } = workload;
        let replicas = workload.replicas();
        let strategy = &spec.update_strategy;
        let rolls = matches!(strategy.kind.as_str(), "" | "RollingUpdate");
        let partition = strategy.rolling_update.partition.as_ref();
        Self {
            kind,
            replicas,
            partition: (kind == Kind::StatefulSet && rolls).then(|| number(partition, replicas)),
            max_unavailable: strategy.rolling_update.max_unavailable.clone(),
            rolls,
            is_observed: status.observed_generation.unwrap_or(0) >= metadata.generation,
            pods: status.replicas,
            ready: status.ready_replicas,
            waiting: None,
            metadata: metadata.clone(),
        }
    }

    /// A CloneSet; nothing is known of the numbers of one that cannot be read.
    pub fn of_clone_set(metadata: &Metadata, set: &CloneSet) -> Self {
        let replicas = i64::from(set.spec.replicas.unwrap_or(1));
        let rolling = set.spec.update_strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
        let partition = rolling.and_then(|rolling| rolling.partition.as_ref());
        let status = set.status.clone().unwrap_or_default();
        Self {
            kind: Kind::CloneSet,
            replicas,
            partition: Some(number(partition, replicas)),
            max_unavailable: rolling.and_then(|rolling| rolling.max_unavailable.clone()),
            rolls: true,
            is_observed: status.observed_generation.unwrap_or(0) >= metadata.generation,
            pods: status.replicas.into(),
            ready: status.ready_replicas.into(),
            waiting: waits!(&status.conditions),
            metadata: metadata.clone(),
        }
    }

    /// An Advanced StatefulSet.
    pub fn of_stateful_set(metadata: &Metadata, set: &StatefulSet) -> Self {
        let replicas = i64::from(set.spec.replicas.unwrap_or(1));
        let strategy = set.spec.update_strategy.as_ref();
        let kind = strategy.and_then(|strategy| strategy.kind.as_ref()).map_or("", |kind| kind.as_str());
        let rolls = matches!(kind, "" | "RollingUpdate");
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let partition = rolling.and_then(|rolling| rolling.partition).map(i64::from).unwrap_or(0);
        let status = set.status.clone().unwrap_or_default();
        Self {
            kind: Kind::AdvancedStatefulSet,
            replicas,
            partition: rolls.then_some(partition),
            max_unavailable: rolling.and_then(|rolling| rolling.max_unavailable.clone()),
            rolls,
            is_observed: status.observed_generation.unwrap_or(0) >= metadata.generation,
            pods: status.replicas.into(),
            ready: status.ready_replicas.into(),
            waiting: waits!(&status.conditions),
            metadata: metadata.clone(),
        }
    }

    /// One that cannot be read: it is there, and nobody touches it.
    pub fn unreadable(kind: Kind, metadata: &Metadata) -> Self {
        Self {
            kind,
            metadata: Metadata { unreadable: true, ..metadata.clone() },
            replicas: 0,
            partition: None,
            max_unavailable: None,
            rolls: false,
            is_observed: false,
            pods: 0,
            ready: 0,
            waiting: None,
        }
    }

    /// The subset that it says it belongs to.
    pub fn subset(&self) -> Option<&str> {
        self.metadata.labels.text(kruise_api::labels::SUBSET_NAME)
    }
}

fn number(value: Option<&IntOrString>, replicas: i64) -> i64 {
    let parsed = share(value, 0, "partition");
    parsed.map_or(0, |share| resolve(share, u32::try_from(replicas).unwrap_or(0), Rounding::Up))
}

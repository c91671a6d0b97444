//! Workloads as far as their records and annotations need to know them.

use kruise_api::{gates::Gates, statefulset::v1beta1::StatefulSet};

use super::{Target, annotations};
use crate::{
    object::{ObjectRef, Resource},
    pod::Metadata,
    statefulset::{self, STATEFUL_SET, ordinals::Ordinals},
    workload::{self, Workload},
};

/// A workload whose pods have numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// The kind.
    pub resource: Resource,
    /// Name, annotations.
    pub metadata: Metadata,
    /// The ordinals that it wants; nothing where its spec does not say.
    pub ordinals: Option<Ordinals>,
}

impl Set {
    /// A StatefulSet of ours.
    pub fn of_own(metadata: &Metadata, set: &StatefulSet, gates: &Gates) -> Self {
        let ordinals = statefulset::ordinals_of(set, gates).ok();
        Self { resource: STATEFUL_SET, metadata: metadata.clone(), ordinals }
    }

    /// A StatefulSet of Kubernetes.
    pub fn of_native(set: &Workload) -> Self {
        Self::of(workload::STATEFUL_SET, set, set.replicas())
    }

    /// A workload of a kind of the white list. Without a number of replicas it wants no pods.
    pub fn of_listed(resource: Resource, set: &Workload) -> Self {
        Self::of(resource, set, set.spec.replicas.unwrap_or(0))
    }

    fn of(resource: Resource, set: &Workload, replicas: i64) -> Self {
        let ordinals = Ordinals::new(set.spec.start.max(0), Vec::new(), replicas);
        Self { resource, metadata: set.metadata.clone(), ordinals: Some(ordinals) }
    }

    /// The workload as objects name it.
    pub fn target(&self) -> Target<'_> {
        Target { group: self.resource.group, kind: self.resource.kind, name: &self.metadata.name }
    }

    /// The workload as the subject of events.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef { resource: self.resource, key: self.metadata.key(), uid: self.metadata.uid.clone() }
    }

    /// Whether a change matters for records: it came, it ends, it is another one, or it wants other pods.
    pub fn is_news(before: Option<&Self>, after: Option<&Self>) -> bool {
        let facts = |set: &Self| (set.metadata.uid.clone(), set.metadata.is_deleting(), set.ordinals.clone());
        before.map(facts) != after.map(facts)
    }

    /// Whether a change matters for the object that annotations ask for.
    pub fn asks_anew(before: Option<&Self>, after: Option<&Self>) -> bool {
        let said = |set: &Self| {
            let values = annotations::ALL.map(|key| set.metadata.annotations.get(key).cloned());
            (set.metadata.uid.clone(), set.metadata.is_deleting(), values)
        };
        let has_any = |set: &Self| annotations::ALL.iter().any(|key| set.metadata.annotations.contains(key));
        before.into_iter().chain(after).any(has_any) && before.map(said) != after.map(said)
    }
}

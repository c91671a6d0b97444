//! The pods of a set, sorted and judged once for a pass.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kruise_api::{annotations::CLONESET_VOLUME_CLAIM_TEMPLATE_HASH, gates::Gate, labels, lifecycle::State};
use serde_json::{Map, Value};

use super::{Counts, Desired, Limits, Observed, reference};
use crate::{
    availability::is_available,
    lifecycle,
    object::ObjectRef,
    ownership::{self, Pods},
    pod::{Metadata, Pod},
    revision::{self, Revision, Revisions},
    specified_delete,
    text::Text,
};

/// What a pass works with: the spec, and the pods it is about.
pub(super) struct View<'a> {
    pub(super) seen: &'a Observed,
    pub(super) desired: &'a Desired,
    pub(super) set: ObjectRef,
    /// Pods that belong to the set and have not ended, by name.
    pub(super) pods: Vec<&'a Pod>,
    /// Pods that ended or end, by name.
    pub(super) inactive: Vec<&'a Pod>,
    /// Pods that do not belong to the set any more, by name.
    pub(super) released: Vec<&'a Pod>,
}

impl<'a> View<'a> {
    pub(super) fn new(seen: &'a Observed, desired: &'a Desired) -> Self {
        let set = reference(&seen.set);
        let Pods { active, inactive, released, orphans: _ } =
            ownership::sort(&seen.pods, &set, &desired.matcher);
        Self { seen, desired, set, pods: active, inactive, released }
    }

    pub(super) fn revisions(&self) -> Revisions<'a> {
        let status = self.seen.set.status.as_ref();
        let owner = revision::Owner {
            reference: &self.set,
            annotations: revision::inherited(self.seen.set.metadata.annotations.iter().flatten()),
            collision_count: status.and_then(|status| status.collision_count).unwrap_or(0),
            follows: Some((CLONESET_VOLUME_CLAIM_TEMPLATE_HASH, revision::claim_hash(&self.desired.claims))),
            hash_label: labels::REVISION_HASH,
        };
        let current = status.and_then(|status| status.current_revision.as_deref());
        let Desired { template, matcher, .. } = self.desired;
        Revisions::new(&owner, template, matcher, &self.seen.revisions, current)
    }

    /// The labels that name a revision on a pod.
    pub(super) fn revision_labels(&self, revision: &Revision) -> Map<String, Value> {
        revision::pod_labels(revision, self.gate(Gate::CloneSetShortHash))
    }

    pub(super) fn now(&self) -> Timestamp {
        self.seen.now
    }

    pub(super) fn gate(&self, gate: Gate) -> bool {
        self.seen.gates.enabled(gate)
    }

    pub(super) fn is_specified(&self, pod: &Pod) -> bool {
        specified_delete::is_specified(pod, &self.desired.pods_to_delete)
    }

    /// Whether a pod serves, as far as updates are concerned.
    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        is_available(pod, self.desired.min_ready, self.now())
    }

    /// How many pods are not available now.
    pub(super) fn unavailable(&self) -> usize {
        self.pods.iter().filter(|pod| !self.is_available(pod)).count()
    }

    /// How many of the wanted pods are down when this many of those that exist are.
    pub(super) fn down(&self, unavailable: i64) -> usize {
        let all = i64::try_from(self.pods.len()).unwrap_or(i64::MAX);
        usize::try_from(unavailable + self.desired.replicas - all).unwrap_or(0)
    }

    /// The same without waiting for `minReadySeconds`.
    pub(super) fn serves(&self, pod: &Pod) -> bool {
        is_available(pod, SignedDuration::ZERO, self.now())
    }

    pub(super) fn limits(&self, revisions: &Revisions<'_>) -> Limits {
        Limits {
            replicas: self.desired.replicas,
            partition: self.desired.partition,
            max_surge: self.desired.max_surge,
            max_unavailable: self.desired.max_unavailable,
            scale_max_unavailable: self.desired.scale_max_unavailable,
            exclude_preparing_delete: self.desired.exclude_preparing_delete,
            may_roll_back: self.gate(Gate::CloneSetPartitionRollback)
                && revisions.current.name() != revisions.update.name(),
        }
    }

    /// What there is. `is_new` says on which side a pod is.
    pub(super) fn counts(&self, is_new: &dyn Fn(&Pod) -> bool) -> Counts {
        let mut counts = Counts::default();
        for pod in &self.pods {
            let old = i64::from(!is_new(pod));
            counts.all += 1;
            counts.old += old;
            if lifecycle::is(pod, &State::PreparingDelete) {
                counts.preparing += 1;
                counts.preparing_old += old;
                counts.unavailable += 1;
            } else if self.is_specified(pod) {
                counts.specified_old += old;
                counts.specified_new += 1 - old;
            } else if !self.is_available(pod) {
                counts.unavailable += 1;
            }
        }
        counts
    }

    /// The ids that claims and pods of the set have.
    pub(super) fn ids_of_pods(&self) -> BTreeSet<&Text> {
        self.seen.pods.iter().filter_map(|pod| instance_id(&pod.metadata)).collect()
    }
}

/// The id that a pod shares with its claims.
pub(super) fn instance_id(metadata: &Metadata) -> Option<&Text> {
    metadata.labels.get(labels::CLONESET_INSTANCE_ID).filter(|id| !id.is_empty())
}

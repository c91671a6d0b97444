//! The pods of a set, sorted and judged once for a pass.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    annotations::{CLONESET_VOLUME_CLAIM_TEMPLATE_HASH, LAST_APPLIED_CONFIGURATION},
    conditions::IN_PLACE_UPDATE_READY,
    gates::Gate,
    labels,
    lifecycle::State,
};
use serde_json::{Map, Value};

use super::{Counts, Desired, Limits, Observed, reference};
use crate::{
    in_place::OtherImages,
    lifecycle,
    object::ObjectRef,
    pod::{Condition, Metadata, Pod},
    revision::{self, Found, Revision},
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

/// The revisions of a set.
pub(super) struct Revisions<'a> {
    /// Those that exist and belong to it, from old to new.
    pub(super) all: Vec<&'a Revision>,
    /// Where the revision of the template was found.
    pub(super) found: Found<'a>,
    /// The revision of the template.
    pub(super) update: Revision,
    /// The one that all pods had before.
    pub(super) current: Revision,
}

impl<'a> View<'a> {
    pub(super) fn new(seen: &'a Observed, desired: &'a Desired) -> Self {
        let mut view = Self {
            seen,
            desired,
            set: reference(&seen.set),
            pods: Vec::new(),
            inactive: Vec::new(),
            released: Vec::new(),
        };
        let mut pods: Vec<&Pod> = seen.pods.iter().map(AsRef::as_ref).collect();
        pods.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
        for pod in pods {
            if pod.metadata.is_deleting() || pod.status.phase == "Succeeded" || pod.status.phase == "Failed" {
                view.inactive.push(pod);
            } else if desired.matcher.accepts(|key| pod.metadata.labels.text(key)) {
                view.pods.push(pod);
            } else {
                view.released.push(pod);
            }
        }
        view
    }

    pub(super) fn revisions(&self) -> Revisions<'a> {
        let is_ours = |revision: &&Revision| {
            let owner = revision.metadata.controller();
            owner.is_none_or(|owner| owner.uid == self.set.uid)
                && self.desired.matcher.accepts(|key| revision.metadata.labels.text(key))
        };
        let mut all: Vec<&Revision> = self.seen.revisions.iter().map(AsRef::as_ref).filter(is_ours).collect();
        revision::sort(&mut all);
        let status = self.seen.set.status.clone().unwrap_or_default();
        let annotations: Map<String, Value> = self
            .seen
            .set
            .metadata
            .annotations
            .iter()
            .flatten()
            .filter(|(key, _)| *key != LAST_APPLIED_CONFIGURATION)
            .map(|(key, value)| (key.clone(), value.as_str().into()))
            .collect();
        let owner = revision::Owner {
            reference: &self.set,
            annotations: annotations.into(),
            collision_count: status.collision_count.unwrap_or(0),
            follows: Some((CLONESET_VOLUME_CLAIM_TEMPLATE_HASH, revision::claim_hash(&self.desired.claims))),
        };
        let taken = |name: &str| self.seen.revisions.iter().any(|known| known.name() == name);
        let found = revision::find(&owner, &self.desired.template, &all, &taken);
        let update = match &found {
            Found::Newest(revision) | Found::Older(revision, _) => (*revision).clone(),
            Found::Missing(new) => Revision::from(new.as_ref()),
        };
        let current =
            status.current_revision.as_deref().and_then(|name| all.iter().find(|one| one.name() == name));
        let current = current.map_or_else(|| update.clone(), |current| (*current).clone());
        Revisions { all, found, update, current }
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

impl Revisions<'_> {
    /// The images that containers have in other revisions than the newest.
    pub(super) fn other_images(&self) -> OtherImages {
        let mut images = OtherImages::new();
        for revision in &self.all {
            let containers = revision.template.pointer("/spec/containers").and_then(Value::as_array);
            for container in containers.into_iter().flatten() {
                let text = |name: &str| container.get(name).and_then(Value::as_str).unwrap_or_default();
                images.entry(text("name").into()).or_default().insert(text("image").into());
            }
        }
        images
    }
}

pub(super) fn revision_label(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.text(labels::CONTROLLER_REVISION_HASH)
}

pub(super) fn is_on(pod: &Pod, revision: &Revision) -> bool {
    revision_label(pod).is_some_and(|label| revision::is_label_of(label, revision.name()))
}

/// The id that a pod shares with its claims.
pub(super) fn instance_id(metadata: &Metadata) -> Option<&Text> {
    metadata.labels.get(labels::CLONESET_INSTANCE_ID).filter(|id| !id.is_empty())
}

/// Whether a pod is ready, and not being updated.
pub(super) fn is_ready(pod: &Pod) -> bool {
    pod.status.phase == "Running"
        && pod.condition("Ready").is_some_and(Condition::is_true)
        && pod.condition(IN_PLACE_UPDATE_READY).is_none_or(Condition::is_true)
}

pub(super) fn is_available(pod: &Pod, min_ready: SignedDuration, now: Timestamp) -> bool {
    lifecycle::is_in_service(pod)
        && is_ready(pod)
        && (min_ready.is_zero() || ready_for(pod, now).is_some_and(|time| time > min_ready))
}

/// How long a pod has been ready.
pub(super) fn ready_for(pod: &Pod, now: Timestamp) -> Option<SignedDuration> {
    Some(now.duration_since(pod.condition("Ready")?.last_transition_time?))
}

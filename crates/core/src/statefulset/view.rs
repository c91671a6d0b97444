//! The pods of a set in their slots, sorted once for a pass.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
};

use jiff::Timestamp;
use kruise_api::{
    gates::Gate,
    lifecycle::{Hook, Lifecycle, State},
};
use serde::Deserialize as _;

use super::{Desired, Observed, parts, reference};
use crate::{
    availability::{is_available, is_ready},
    in_place::{self, OtherImages},
    lifecycle,
    object::ObjectRef,
    ownership,
    pod::Pod,
    revision::{self, Revisions},
    specified_delete,
    text::Text,
    volume_claim::VolumeClaim,
};

/// What a pass works with: the spec, and the pods it is about.
pub(super) struct View<'a> {
    pub(super) seen: &'a Observed,
    pub(super) desired: &'a Desired,
    pub(super) set: ObjectRef,
    /// The slots, in ascending order.
    pub(super) slots: Vec<Slot<'a>>,
    /// Pods whose ordinals are not wanted, from the highest down.
    pub(super) condemned: Vec<&'a Pod>,
    /// Pods of the set whose names are not of its form.
    pub(super) strays: Vec<&'a Pod>,
    /// Pods that do not belong to the set any more.
    pub(super) released: Vec<&'a Pod>,
    /// Pods of nobody that belong to the set.
    pub(super) orphans: Vec<&'a Pod>,
    /// The claim templates, as claims.
    pub(super) templates: Vec<VolumeClaim>,
    /// The claims, by name.
    pub(super) claims: BTreeMap<&'a str, &'a VolumeClaim>,
    others: OnceCell<OtherImages>,
}

/// A place for a pod.
#[derive(Clone, Debug)]
pub(super) struct Slot<'a> {
    pub(super) ordinal: i64,
    /// The name of its pod.
    pub(super) name: Text,
    /// The pod, if there is one.
    pub(super) pod: Option<&'a Pod>,
    /// Another pod has the name.
    pub(super) is_taken: bool,
    /// Who it belongs to, where that does not end by itself.
    pub(super) taken_by: Option<String>,
}

impl<'a> View<'a> {
    pub(super) fn new(seen: &'a Observed, desired: &'a Desired) -> Self {
        let set = reference(&seen.set);
        let sorted = ownership::sort_named(&seen.pods, &set, &desired.matcher);
        let mut by_ordinal: BTreeMap<i64, &Pod> = BTreeMap::new();
        let mut strays = Vec::new();
        for pod in sorted.active.iter().chain(&sorted.inactive) {
            match parts(&pod.metadata.name).filter(|(prefix, _)| set.key.name == *prefix) {
                Some((_, ordinal)) => drop(by_ordinal.insert(ordinal, pod)),
                None => strays.push(*pod),
            }
        }
        let is_free =
            |pod: &&&Pod| parts(&pod.metadata.name).is_some_and(|(prefix, _)| set.key.name == *prefix);
        let orphans: Vec<&Pod> = sorted.orphans.iter().filter(is_free).copied().collect();
        let others = seen.pods.iter().map(|pod| &pod.metadata.name);
        let names: BTreeSet<&Text> = others.chain(seen.taken.keys()).collect();
        let moves: Vec<&Pod> = orphans.iter().chain(&sorted.released).copied().collect();
        let stays = |name: &Text| !moves.iter().any(|pod| pod.metadata.name == *name);
        let slots = desired.ordinals.iter().map(|ordinal| {
            let name = Text::from(format!("{}-{ordinal}", set.key.name));
            let pod = by_ordinal.remove(&ordinal);
            let is_taken = pod.is_none() && names.contains(&name);
            let owner = seen.taken.get(&name).cloned().flatten();
            let taken_by = (is_taken && stays(&name)).then(|| owner.unwrap_or_else(|| "nobody".to_owned()));
            Slot { ordinal, is_taken, taken_by, name, pod }
        });
        let slots = slots.collect();
        let claims = seen.claims.iter().map(|claim| (claim.metadata.name.as_str(), claim.as_ref()));
        Self {
            seen,
            desired,
            slots,
            condemned: by_ordinal.into_values().rev().collect(),
            strays,
            released: sorted.released,
            orphans,
            templates: desired
                .claims
                .iter()
                .map(|template| VolumeClaim::deserialize(template).unwrap_or_default())
                .collect(),
            claims: claims.collect(),
            others: OnceCell::new(),
            set,
        }
    }

    /// All pods of the set.
    pub(super) fn pods(&self) -> impl Iterator<Item = &'a Pod> + '_ {
        let slots = self.slots.iter().filter_map(|slot| slot.pod);
        slots.chain(self.condemned.iter().copied()).chain(self.strays.iter().copied())
    }

    pub(super) fn now(&self) -> Timestamp {
        self.seen.now
    }

    pub(super) fn gate(&self, gate: Gate) -> bool {
        self.seen.gates.enabled(gate)
    }

    /// Whether a pod has been ready for long enough, and no hook holds it.
    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        is_available(pod, self.desired.min_ready, self.now())
    }

    /// Whether a pod serves, as far as its order in scaling is concerned.
    pub(super) fn is_healthy(&self, pod: &Pod) -> bool {
        lifecycle::is_in_service(pod) && is_ready(pod) && !pod.metadata.is_deleting()
    }

    pub(super) fn is_specified(&self, pod: &Pod) -> bool {
        specified_delete::is_specified(pod, &BTreeSet::new())
    }

    pub(super) fn hook(&self, which: fn(&Lifecycle) -> Option<&Hook>) -> Option<&Hook> {
        self.desired.lifecycle.as_ref().and_then(which)
    }

    pub(super) fn pre_delete(&self) -> Option<&Hook> {
        self.hook(|lifecycle| lifecycle.pre_delete.as_ref())
    }

    /// The images of all revisions.
    pub(super) fn others(&self, revisions: &Revisions<'_>) -> &OtherImages {
        self.others.get_or_init(|| revisions.other_images())
    }

    /// Whether the last update in place of a pod is over.
    pub(super) fn is_complete(&self, revisions: &Revisions<'_>, pod: &Pod) -> bool {
        !in_place::is_in_grace(pod)
            && in_place::completion(pod, &self.desired.in_place, self.others(revisions)).is_complete()
    }

    pub(super) fn revisions(&self) -> Revisions<'a> {
        let status = self.seen.set.status.as_ref();
        let owner = revision::Owner {
            reference: &self.set,
            annotations: revision::inherited(self.seen.set.metadata.annotations.iter().flatten()),
            collision_count: status.and_then(|status| status.collision_count).unwrap_or(0),
            follows: None,
            hash_label: kruise_api::labels::REVISION_HASH,
        };
        let current = status.and_then(|status| status.current_revision.as_deref());
        let Desired { template, matcher, .. } = self.desired;
        Revisions::new(&owner, template, matcher, &self.seen.revisions, current)
    }
}

/// Whether a pod ended and will not start again.
pub(super) fn has_ended(pod: &Pod) -> bool {
    matches!(pod.status.phase.as_str(), "Failed" | "Succeeded")
}

pub(super) fn is_preparing_delete(pod: &Pod) -> bool {
    lifecycle::is(pod, &State::PreparingDelete)
}

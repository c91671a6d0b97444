//! Filling slots, and removing pods that are too many.

use super::{
    Plan, Purpose,
    claims::{self, Found},
    pods::{self, Side},
    view::{Slot, View, has_ended, is_preparing_delete},
};
use crate::{
    availability::time_until_available,
    lifecycle,
    plan::Part,
    pod::Pod,
    pod_deletion,
    revision::Revisions,
    waiting::{Reason, Waits},
};
use kruise_api::labels::STATEFULSET_POD_NAME;
use serde_json::json;

/// Whether a pass may go on to updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Every slot and every surplus pod was looked at.
    No,
    /// OrderedReady waits for the pod of this slot.
    Slot(usize),
    /// OrderedReady waits for a pod that is too many.
    Condemned,
}

/// Plans the next steps of scaling.
pub(super) fn run(view: &View<'_>, revisions: &Revisions<'_>, waits: &mut Waits, plan: &mut Plan) -> Stop {
    let sides = pods::sides(view, revisions);
    let mut scaling = Scaling { view, revisions, sides, waits, plan };
    if view.desired.ordered {
        if let Some(place) = scaling.fill_in_order() {
            return Stop::Slot(place);
        }
        let held = scaling.own_claims_of_condemned();
        return if scaling.remove_in_order(&held) { Stop::Condemned } else { Stop::No };
    }
    scaling.fill_at_once();
    let held = scaling.own_claims_of_condemned();
    scaling.remove_at_once(&held);
    Stop::No
}

struct Scaling<'p, 'v> {
    view: &'v View<'v>,
    revisions: &'v Revisions<'v>,
    sides: std::collections::BTreeMap<usize, Side>,
    waits: &'p mut Waits,
    plan: &'p mut Plan,
}

impl Scaling<'_, '_> {
    /// Fills and repairs the slots one by one. The place of the slot that it waits for.
    fn fill_in_order(&mut self) -> Option<usize> {
        for (place, slot) in self.view.slots.iter().enumerate() {
            let Some(pod) = slot.pod else {
                self.create(place, slot);
                return Some(place);
            };
            if pod.metadata.unreadable || pod.metadata.is_deleting() {
                return Some(place);
            }
            if has_ended(pod) {
                self.delete(pod, "it has ended");
                return Some(place);
            }
            let is_available = self.view.is_available(pod);
            if is_available || pod.status.phase == "Pending" {
                claims::replace_missing(self.view, slot.ordinal, pod, self.plan);
            }
            if !is_available {
                self.wait_for(pod);
                return Some(place);
            }
            self.repair(slot, pod);
        }
        None
    }

    /// Fills and repairs all slots, as far as `scaleStrategy.maxUnavailable` allows.
    fn fill_at_once(&mut self) {
        let limit = self.view.desired.scale_max_unavailable;
        let (mut charged, mut is_full) = (0, false);
        for (place, slot) in self.view.slots.iter().enumerate() {
            if limit.is_some_and(|limit| charged >= limit) {
                if !is_full {
                    self.wait_for_others(place, charged);
                }
                is_full = true;
                // A pod that has ended costs nothing, so it goes all the same.
                let ended = slot.pod.filter(|pod| has_ended(pod));
                if let Some(pod) = ended.filter(|pod| !pod.metadata.unreadable && !pod.metadata.is_deleting())
                {
                    self.delete(pod, "it has ended");
                }
                continue;
            }
            let Some(pod) = slot.pod else {
                charged += i64::from(self.create(place, slot));
                continue;
            };
            if pod.metadata.unreadable || pod.metadata.is_deleting() {
                charged += 1;
                continue;
            }
            if has_ended(pod) {
                self.delete(pod, "it has ended");
                charged += 1;
                continue;
            }
            if !self.view.is_available(pod) {
                self.wait_for(pod);
                charged += 1;
            }
            claims::replace_missing(self.view, slot.ordinal, pod, self.plan);
            self.repair(slot, pod);
        }
    }

    /// Creates the pod of a slot, or what it needs before. True if something is created.
    fn create(&mut self, place: usize, slot: &Slot<'_>) -> bool {
        if slot.is_taken {
            if let Some(owner) = &slot.taken_by {
                let sentence =
                    format!("pods {} exists and belongs to {owner}; delete or rename it", slot.name);
                self.waits.add(Reason::NameTaken, sentence);
            }
            return false;
        }
        match claims::find(self.view, slot) {
            Found::Leaving(claim) => {
                let name = &slot.name;
                let sentence =
                    format!("claim {claim} is being deleted; pod {name} is created when it is gone");
                self.waits.add(Reason::ClaimTerminating, sentence);
                false
            }
            Found::Missing(missing) => {
                claims::create_all(self.view, &slot.name, missing, self.plan);
                true
            }
            Found::All => {
                let revision = match self.sides.get(&place) {
                    Some(Side::Old) => &self.revisions.current,
                    Some(Side::New) | None => &self.revisions.update,
                };
                let effect = pods::create(self.view, slot, revision);
                self.plan.add(effect, Purpose::CreatePod(slot.name.clone()), "its slot is empty");
                true
            }
        }
    }

    /// Deletes a pod, or asks its hook first.
    fn delete(&mut self, pod: &Pod, why: &'static str) {
        match pod_deletion::next(pod, self.view.pre_delete(), self.view.now()) {
            pod_deletion::Step::Wait(None) => {}
            pod_deletion::Step::Wait(Some(effect)) => {
                self.plan.add(effect, Purpose::Quiet(Part::Scale), why);
            }
            pod_deletion::Step::Delete(effect) => {
                self.plan.add(effect, Purpose::DeletePod(pod.metadata.name.clone()), why);
            }
        }
    }

    /// Looks again when a pod has been ready for long enough.
    fn wait_for(&mut self, pod: &Pod) {
        let left = time_until_available(pod, self.view.desired.min_ready, self.view.now());
        left.into_iter().for_each(|left| self.plan.wake(left));
    }

    fn wait_for_others(&mut self, place: usize, charged: i64) {
        let missing = self.view.slots.iter().skip(place).filter(|slot| slot.pod.is_none()).count();
        if missing == 0 {
            return;
        }
        let are = if charged == 1 { "pod is" } else { "pods are" };
        let still = if missing == 1 { "1 pod is".to_owned() } else { format!("{missing} pods are") };
        self.waits.add(
            Reason::MaxUnavailableReached,
            format!(
                "{charged} of at most {} {are} unavailable (scaleStrategy.maxUnavailable: {}); {still} still missing",
                self.view.desired.scale_max_unavailable.unwrap_or(charged),
                self.view.desired.scale_max_unavailable_text,
            ),
        );
    }

    /// Gives a pod the label with its name.
    fn repair(&mut self, slot: &Slot<'_>, pod: &Pod) {
        if pod.metadata.labels.text(STATEFULSET_POD_NAME) != Some(slot.name.as_str()) {
            let change = json!({"metadata": {"labels": {STATEFULSET_POD_NAME: slot.name}}});
            let purpose = Purpose::RepairPod(slot.name.clone());
            self.plan.add(lifecycle::patch(pod, change), purpose, "its label does not name it");
        }
    }

    /// Lets the claims of pods that are too many be deleted with them, if that is wanted. The places of those whose claims
    /// are not ready for it: the pods stay for another pass.
    fn own_claims_of_condemned(&mut self) -> Vec<bool> {
        let view = self.view;
        let mut held = Vec::with_capacity(view.condemned.len());
        for pod in &view.condemned {
            let ordinal = super::parts(&pod.metadata.name).map_or(0, |(_, ordinal)| ordinal);
            held.push(!pod.metadata.unreadable && claims::own(view, ordinal, pod, false, self.plan));
        }
        held
    }

    /// Removes the highest pod that is too many. True while there is one.
    fn remove_in_order(&mut self, held: &[bool]) -> bool {
        let Some(pod) = self.view.condemned.first() else { return false };
        let waits = pod.metadata.unreadable || pod.metadata.is_deleting() || held.first() == Some(&true);
        let is_ready = self.view.is_available(pod)
            || is_preparing_delete(pod)
            || self.first_unhealthy() == Some(&pod.metadata.name);
        if !waits && !is_ready {
            self.wait_for(pod);
        }
        if !waits && is_ready {
            self.delete(pod, "its ordinal is not wanted");
        }
        true
    }

    /// The unhealthy pod with the lowest ordinal.
    fn first_unhealthy(&self) -> Option<&crate::text::Text> {
        let condemned = self.view.condemned.iter().rev().copied();
        let mut pods = self.view.slots.iter().filter_map(|slot| slot.pod).chain(condemned);
        pods.find(|pod| !self.view.is_healthy(pod)).map(|pod| &pod.metadata.name)
    }

    /// Removes all pods that are too many.
    fn remove_at_once(&mut self, held: &[bool]) {
        for (pod, held) in self.view.condemned.iter().zip(held) {
            if !pod.metadata.unreadable && !pod.metadata.is_deleting() && !held {
                self.delete(pod, "its ordinal is not wanted");
            }
        }
    }
}

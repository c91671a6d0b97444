//! Why a set makes no progress, in the order in which people should hear of it.

use kruise_api::{gates::Gate, rollout::UpdateType, statefulset::v1beta1::VolumeClaimUpdateType};

use super::{
    choice::{Choices, targets},
    claims::{claim_name, mounts},
    expansion,
    scale::Stop,
    view::{Slot, View},
};
use crate::{
    claims::template_name,
    pod::Pod,
    revision::{self, Revisions},
    text::Text,
    waiting::{
        self, Hooks, Reason, Waits,
        text::{foreign, names},
    },
};

const PAUSED: &str = "spec.updateStrategy.rollingUpdate.paused";

/// Updates that wait for other pods.
pub(super) fn of_choices(view: &View<'_>, choices: &Choices, waits: &mut Waits) {
    let Some((place, down)) = choices.held else { return };
    let Some(slot) = view.slots.get(place) else { return };
    let most = if view.desired.policy.is_some() { view.desired.max_unavailable } else { 1 };
    waiting::max_unavailable(
        down,
        usize::try_from(most).unwrap_or(usize::MAX),
        &view.desired.max_unavailable_text,
        &slot.name,
        waits,
    );
}

/// What the whole set waits for.
pub(super) fn of_set(view: &View<'_>, revisions: &Revisions<'_>, stop: Stop, waits: &mut Waits) {
    troubles(view, revisions, waits);
    predecessor(view, revisions, stop, waits);
    gates(view, waits);
    let pods: Vec<&Pod> = view.slots.iter().filter_map(|slot| slot.pod).collect();
    waiting::min_ready(&pods, view.desired.min_ready, view.now(), waits);
    missing_volumes(view, waits);
    let (new, old): (Vec<&Pod>, Vec<&Pod>) =
        pods.iter().partition(|pod| revision::is_on(pod, &revisions.update));
    if old.is_empty() {
        return;
    }
    let (updated, all, desired) = (new.len(), pods.len(), view.desired);
    if desired.policy.is_none() {
        return waiting::on_delete(&old, all, UpdateType::OnDelete.as_str(), waits);
    }
    if desired.paused {
        waiting::paused(PAUSED, updated, all, revisions.update.name(), waits);
    }
    let kept = usize::try_from(desired.partition).unwrap_or(0);
    if kept > 0 && old.len() <= kept {
        waiting::partition(updated, all, &kept.to_string(), kept, waits);
    }
}

/// Trouble of pods and of their claims.
fn troubles(view: &View<'_>, revisions: &Revisions<'_>, waits: &mut Waits) {
    let now = view.now();
    claims_in_expansion(view, waits);
    let unbound: Vec<(&Slot<'_>, &Pod, Text)> = view
        .slots
        .iter()
        .filter_map(|slot| {
            let pod = slot.pod.filter(|pod| pod.status.phase == "Pending" && pod.is_active())?;
            let mut names =
                view.desired.claims.iter().map(|one| claim_name(one, &view.set.key.name, slot.ordinal));
            let unbound = names.find(|name| {
                view.claims.get(name.as_str()).is_some_and(|one| one.status.phase == "Pending")
            })?;
            Some((slot, pod, unbound))
        })
        .collect();
    if let Some((slot, pod, claim)) = unbound.first() {
        let scheduler = pod.condition("PodScheduled").map(|one| foreign(&one.message)).unwrap_or_default();
        let why = if scheduler.is_empty() { "it has no volume yet".to_owned() } else { scheduler };
        let sentence = format!("claim {claim} of pod {} is not bound: {why}", slot.name);
        waits.add_later(Reason::ClaimPending, pod.metadata.creation_timestamp, now, sentence);
    }
    let is_told = |pod: &Pod| unbound.iter().any(|(slot, ..)| slot.name == pod.metadata.name);
    let slots = view.slots.iter().filter_map(|slot| slot.pod);
    let all: Vec<&Pod> = slots.clone().chain(view.condemned.iter().copied()).collect();
    let active: Vec<&Pod> = all.into_iter().filter(|pod| pod.is_active() && !is_told(pod)).collect();
    // The successor of a pod waits until it is gone; with OrderedReady so do all other pods.
    let condemned = view.condemned.iter().copied().filter(|_| view.desired.ordered);
    let ending: Vec<&Pod> = slots.chain(condemned).filter(|pod| pod.metadata.is_deleting()).collect();
    let hooks = Hooks {
        lifecycle: view.desired.lifecycle.as_ref(),
        options: &view.desired.in_place,
        others: view.others(revisions),
    };
    waiting::pods(&active, &ending, &hooks, now, waits);
}

fn claims_in_expansion(view: &View<'_>, waits: &mut Waits) {
    if !view.desired.expands {
        return;
    }
    let running: Vec<_> = view.slots.iter().flat_map(|slot| expansion::running(view, slot.ordinal)).collect();
    let Some(first) = running.first() else { return };
    let size = first.spec.resources.requests.storage.as_deref().unwrap_or("?");
    let state = first.status.conditions.iter().find(|one| one.is_true());
    let state = state.map_or("the volume has not grown yet", |one| one.r#type.as_str());
    let are = if running.len() == 1 { "claim is" } else { "claims are" };
    let sentence = format!(
        "{} {are} being expanded to {size} ({}): {state}",
        running.len(),
        names(running.iter().map(|claim| claim.metadata.name.as_str())),
    );
    let since =
        first.status.conditions.iter().find(|one| one.is_true()).and_then(|one| one.last_transition_time);
    waits.add_later(Reason::ClaimResizing, since, view.now(), sentence);
}

/// Fields that would change something if their feature gate were on.
fn gates(view: &View<'_>, waits: &mut Waits) {
    let spec = &view.seen.set.spec;
    let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or(0);
    let strategy = spec.volume_claim_update_strategy.as_ref().and_then(|strategy| strategy.kind.as_ref());
    let grows = strategy == Some(&VolumeClaimUpdateType::OnPodRollingUpdate);
    let is_small = || view.slots.iter().any(|slot| !expansion::is_compatible(view, slot.ordinal));
    let off = [
        (start > 0, "spec.ordinals.start", Gate::StatefulSetStartOrdinal),
        (grows && is_small(), "spec.volumeClaimUpdateStrategy", Gate::StatefulSetAutoResizePVCGate),
    ];
    for (_, path, gate) in off.into_iter().filter(|(is_set, _, gate)| *is_set && !view.gate(*gate)) {
        waits.add(Reason::FeatureGateOff, format!("{path} has no effect: feature gate {gate} is off"));
    }
}

/// OrderedReady waits for one pod.
fn predecessor(view: &View<'_>, revisions: &Revisions<'_>, stop: Stop, waits: &mut Waits) {
    let (pod, next) = match stop {
        Stop::No => return,
        Stop::Condemned => {
            let mut condemned = view.condemned.iter().map(|pod| &pod.metadata.name);
            let (Some(first), Some(second)) = (condemned.next(), condemned.next()) else { return };
            let sentence = format!("pod {first} must be gone before {second} is deleted");
            return waits.add(Reason::PredecessorNotReady, sentence);
        }
        Stop::Slot(place) => {
            let Some(slot) = view.slots.get(place).filter(|slot| slot.pod.is_some()) else { return };
            let after = view.slots.iter().skip(place + 1).find(|slot| slot.pod.is_none());
            (slot, after)
        }
    };
    let is_outdated = |slot: &&Slot<'_>| {
        slot.name != pod.name && slot.pod.is_some_and(|pod| !revision::is_on(pod, &revisions.update))
    };
    let updates = !view.desired.paused && view.desired.policy.is_some();
    let outdated = || {
        let mut targets = targets(view, revisions).into_iter().filter_map(|place| view.slots.get(place));
        targets.find(is_outdated).filter(|_| updates)
    };
    let (next, done) = match (next, view.condemned.first()) {
        (Some(slot), _) => (&slot.name, "created"),
        (None, Some(pod)) => (&pod.metadata.name, "deleted"),
        (None, None) => match outdated() {
            Some(slot) => (&slot.name, "updated"),
            None => return,
        },
    };
    let sentence = format!("pod {} must be available before {next} is {done}", pod.name);
    waits.add(Reason::PredecessorNotReady, sentence);
}

/// Pods that lack the volume of a claim template, by the template's name.
pub(super) fn without_volumes<'v>(view: &View<'v>) -> Vec<(&'v str, Vec<&'v Text>, usize)> {
    let pods: Vec<_> = view.slots.iter().filter_map(|slot| Some((slot.ordinal, slot.pod?))).collect();
    let lacking = view.desired.claims.iter().map(|template| {
        let volume = template_name(template);
        let lacks = |(ordinal, pod): &&(i64, &'v Pod)| {
            !pod.metadata.unreadable
                && !mounts(pod, volume, &claim_name(template, &view.set.key.name, *ordinal))
        };
        let pods_without = pods.iter().filter(lacks).map(|(_, pod)| &pod.metadata.name).collect();
        (volume, pods_without, pods.len())
    });
    lacking.filter(|(_, pods, _): &(_, Vec<_>, _)| !pods.is_empty()).collect()
}

fn missing_volumes(view: &View<'_>, waits: &mut Waits) {
    if let Some((volume, pods, all)) = without_volumes(view).first() {
        let lack = if pods.len() == 1 { "lacks" } else { "lack" };
        let sentence = format!(
            "{} of {all} pods {lack} the volume of volumeClaimTemplate {volume} ({}); each gets it when it is re-created",
            pods.len(),
            names(pods.iter().map(|pod| pod.as_str())),
        );
        waits.add(Reason::ClaimTemplateNotApplied, sentence);
    }
}

/// The events about claim templates that running pods lack.
pub(super) fn volume_news(view: &View<'_>) -> Vec<(String, String)> {
    let news = without_volumes(view).into_iter().map(|(volume, pods, all)| {
        let lack = if pods.len() == 1 { "lacks" } else { "lack" };
        let message = format!(
            "{} of {all} pods {lack} the volume of volumeClaimTemplate {volume}; each gets it when it is re-created",
            pods.len()
        );
        (volume.to_owned(), message)
    });
    news.collect()
}

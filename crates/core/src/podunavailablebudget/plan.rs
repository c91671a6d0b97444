//! What the controller does for a budget: counts, notes the budget on its pods, and writes how things stand.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_api::{
    annotations::{RELATED_PUB, RELATED_PUB_OLD},
    podunavailablebudget::v1beta1::Status,
};
use serde_json::json;

use super::{
    Budget, availability,
    records::{self, Kind, Noticed},
    reference, related, relation, status_write,
};
use crate::{
    effect::{Effect, Event, Level, Patch, Target},
    object::{ObjectKey, POD},
    pod::{Owner, Pod},
    text::Text,
};

/// How many pods there should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// This many.
    Pods(u32),
    /// Nobody knows, and why: the budget cannot be kept.
    Unknown(String),
    /// It could not be read just now, and why: the numbers that were counted before stay.
    Unread(String),
}

/// What a pass may know.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The budget.
    pub budget: Budget,
    /// All budgets of the namespace, this one included, sorted by name.
    pub budgets: Vec<Budget>,
    /// The active pods that the budget is about.
    pub pods: Vec<Arc<Pod>>,
    /// The controllers of pods that are not noted as protected by this budget: their own first, then its own, and so on.
    pub owners: BTreeMap<Text, Vec<Owner>>,
    /// How many pods there should be.
    pub expected: Expected,
    /// Why the pods of some workloads are counted as they are: these do not say how many they want.
    pub guessed: Option<String>,
    /// Pods of the namespace that records are about, as the cache has them.
    pub recorded: BTreeMap<Text, Arc<Pod>>,
    /// The same as the server has them, where it had to be asked.
    pub live: BTreeMap<Text, Option<Arc<Pod>>>,
    /// When records were first seen by this process.
    pub noticed: Noticed,
    /// The time.
    pub now: Timestamp,
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Pods are noted, and people hear of records that ran out.
    pub effects: Vec<Effect>,
    /// What people hear once while it lasts.
    pub notices: Vec<Event>,
    /// The write of the status, if something changed.
    pub status: Option<Effect>,
    /// The status after this pass.
    pub counted: Status,
    /// Why the spec cannot be carried out.
    pub failure: Option<String>,
    /// Why workloads have to be read again.
    pub unread: Option<String>,
    /// When to look again.
    pub wake_after: Option<Duration>,
}

/// Decides.
pub fn decide(seen: &Observed) -> Plan {
    let budget = &seen.budget;
    let before = budget.status();
    let kept = records::keep(&before, &seen.noticed, |name| seen.recorded.get(name), &seen.live, seen.now);
    let mut plan = Plan { wake_after: kept.next, counted: before.clone(), ..Plan::default() };
    for pod in notable(seen) {
        plan.effects.push(note(pod, &budget.key.name));
    }
    plan.effects.extend(kept.not_deleted.iter().filter_map(|name| not_deleted(seen, name)));
    let is_unread = matches!(seen.expected, Expected::Unread(_));
    if seen.pods.is_empty() && !is_unread {
        plan.notices.push(event(budget, Level::Normal, "NoPods", "No matching pods found".to_owned()));
    }
    plan.notices.extend(seen.guessed.iter().map(|why| uncounted(budget, why)));
    let generation = budget.object.metadata.generation;
    let desired = match &seen.expected {
        Expected::Pods(expected) => {
            budget.desired(*expected).map(|desired| (desired, i64::from(*expected), generation))
        }
        Expected::Unknown(why) => {
            plan.notices.push(uncounted(budget, why));
            Ok((0, 0, generation))
        }
        Expected::Unread(why) => {
            plan.notices.push(uncounted(budget, why));
            plan.unread = Some(why.clone());
            // Until a budget was counted once, admission counts for itself.
            if before.observed_generation.is_none() {
                return plan;
            }
            Ok((before.desired_available.into(), before.total_replicas.into(), before.observed_generation))
        }
    };
    let (desired, expected, generation) = match desired {
        Ok(numbers) => numbers,
        Err(why) => {
            plan.notices.push(uncounted(budget, &why));
            plan.failure = Some(why);
            return plan;
        }
    };
    let pods = newest(seen);
    let available = match is_unread && pods.is_empty() {
        // The workload would say which ones they are.
        true => before.current_available.into(),
        false => i64::try_from(records::counted(&kept.status, &pods)).unwrap_or(i64::MAX),
    };
    let small = |number: i64| i32::try_from(number.max(0)).unwrap_or(i32::MAX);
    let status = Status {
        observed_generation: generation,
        unavailable_allowed: small(available - desired),
        current_available: small(available),
        desired_available: small(desired),
        total_replicas: small(expected),
        ..kept.status.clone()
    };
    plan.status = status_write(&budget.object, &status);
    plan.counted = status;
    plan
}

/// The pods, with what the server said of those that it was asked about.
fn newest(seen: &Observed) -> Vec<Arc<Pod>> {
    let pods = seen.pods.iter().filter_map(|pod| match seen.live.get(&pod.metadata.name) {
        None => Some(pod.clone()),
        Some(None) => None,
        Some(Some(live)) => Some(live.clone()),
    });
    pods.filter(|pod| pod.is_active()).collect()
}

/// The pods that are to be noted as protected by the budget.
fn notable(seen: &Observed) -> impl Iterator<Item = &Arc<Pod>> {
    let budget = &seen.budget;
    let none = Vec::new();
    seen.pods.iter().filter(move |pod| {
        let owners = seen.owners.get(&pod.metadata.name).unwrap_or(&none);
        !pod.metadata.unreadable && relation::relate(budget, pod, owners, &seen.budgets)
    })
}

fn note(pod: &Pod, budget: &Text) -> Effect {
    let annotations = json!({RELATED_PUB: budget, RELATED_PUB_OLD: budget});
    let target = Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone());
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    Effect::Patch { target, subresource: None, patch }
}

fn not_deleted(seen: &Observed, name: &Text) -> Option<Effect> {
    let live = seen.live.get(name).and_then(Option::as_ref);
    let pod = live.or_else(|| seen.recorded.get(name))?;
    let message = format!("Pod was expected by PUB {} to be deleted but it wasn't", seen.budget.key);
    Some(Effect::Event(Event {
        regarding: pod.reference(),
        level: Level::Warning,
        reason: "NotDeleted".into(),
        message,
    }))
}

fn uncounted(budget: &Budget, why: &str) -> Event {
    let message = format!("Failed to calculate the number of expected pods: {why}");
    event(budget, Level::Warning, "CalculateExpectedPodCountFailed", message)
}

fn event(budget: &Budget, level: Level, reason: &str, message: String) -> Event {
    Event { regarding: reference(&budget.object), level, reason: reason.into(), message }
}

/// The budgets that a change of a pod is news for, where its annotation says so.
pub fn wakes(before: Option<&Pod>, after: Option<&Pod>) -> Vec<ObjectKey> {
    // Every change of a pod in the cluster comes by here, and most pods have no budget.
    let mut found: Vec<ObjectKey> = [before, after]
        .into_iter()
        .flatten()
        .filter_map(|pod| {
            let name = related(&pod.metadata.annotations)?;
            Some(ObjectKey { namespace: pod.metadata.namespace.clone(), name: name.into() })
        })
        .collect();
    if found.is_empty() {
        return found;
    }
    let is_news = match (before, after) {
        (Some(before), Some(after)) => {
            let ends = |pod: &Pod| pod.metadata.is_deleting();
            !ends(before)
                && (ends(after)
                    || availability::is_available(before) != availability::is_available(after)
                    || before.is_active() != after.is_active()
                    || before.metadata.labels != after.metadata.labels
                    || related(&before.metadata.annotations) != related(&after.metadata.annotations))
        }
        _ => true,
    };
    if !is_news {
        return Vec::new();
    }
    found.sort();
    found.dedup();
    found
}

/// Records of a status that this process sees for the first time, and none that are gone.
pub fn notice(noticed: &mut Noticed, status: &Status, now: Timestamp) {
    let present: Vec<(Kind, Text, Timestamp)> =
        records::all(status).map(|(kind, pod, at)| (kind, pod.into(), at)).collect();
    noticed.retain(|known, _| present.contains(known));
    for record in present {
        noticed.entry(record).or_insert(now);
    }
}

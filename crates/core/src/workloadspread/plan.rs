//! What the controller does for a spread: counts, adopts, sets deletion costs, and moves pods that find no node.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use kruise_api::{
    annotations::POD_DELETION_COST,
    json,
    workloadspread::v1beta1::{Status, SubsetStatus},
};
use serde_json::{Map, Value, json};

use super::{
    Family, Limit, NO_SUBSET, Spread, Subset, Versioned,
    accounts::{self, Counted},
    cost::costs,
    groups::{Member, adoption, members},
    reference,
    reschedule::{self, Verdict, Wait, condition, judge, written},
    spread::Most,
    status_write, waits,
};
use crate::{
    effect::{Effect, Event, Level, Patch, Target},
    node::Node,
    object::POD,
    pod::Pod,
    text::Text,
    waiting::Waits,
};

/// When to look again while nobody knows which version is the newest.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Which version of the pods is the newest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Newest {
    /// All of them: versions are not distinguished.
    All,
    /// This one.
    Version(String),
    /// Nobody knows yet.
    Unknown,
}

/// What a pass may know.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The spread.
    pub spread: Spread,
    /// The pods of the workload that are spread, also those that are not active.
    pub pods: Vec<Arc<Pod>>,
    /// How many pods the workload wants; nothing where nobody knows.
    pub total: Option<u32>,
    /// Which kinds have versions.
    pub versioned: Versioned,
    /// Which version is the newest.
    pub newest: Newest,
    /// The nodes of pods that may be adopted.
    pub nodes: BTreeMap<Text, Arc<Node>>,
    /// Pods that may be adopted with all that caches leave out, where subsets have patches.
    pub whole: BTreeMap<Text, Arc<Value>>,
    /// The time.
    pub now: Timestamp,
}

/// A write, and what people hear when it fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The write.
    pub effect: Effect,
    /// What people hear.
    pub failed: Event,
}

/// What to do, in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Marks and costs of pods.
    pub pods: Vec<Write>,
    /// The write of the status, if something changed.
    pub status: Option<Effect>,
    /// What people hear once the status is written.
    pub events: Vec<Event>,
    /// What people hear once while it lasts.
    pub notices: Vec<Event>,
    /// Deletions of pods that move. Only once the status says that their subset is closed.
    pub moves: Vec<Write>,
    /// The status after this pass.
    pub counted: Status,
    /// Why the spread waits.
    pub waits: Waits,
    /// When to look again.
    pub wake_after: Option<Duration>,
}

/// Decides.
pub fn decide(seen: &Observed) -> Plan {
    let spread = &seen.spread;
    let before = spread.status();
    let mut plan = Plan { counted: before.clone(), ..Plan::default() };
    let members = if seen.total == Some(0) { Vec::new() } else { members(seen) };
    let total = Some(seen.total.unwrap_or(0));
    let most: Vec<Most> = spread.subsets.iter().map(|subset| subset.limit.most(total)).collect();
    mark(seen, &members, &most, &mut plan);
    plan.notices = notices(seen);
    if let Some((position, why)) = unusable(spread) {
        waits::invalid(&format!("spec.subsets[{position}].maxReplicas"), why, &mut plan.waits);
        return plan;
    }
    let verdicts = reschedule(seen, &members, &before, &mut plan);
    let (mut lost, mut kept) = (BTreeSet::new(), BTreeSet::new());
    let mut account = |old: &[SubsetStatus], members: &[&Member]| -> Vec<SubsetStatus> {
        let subsets = spread.subsets.iter().zip(&most).enumerate();
        let counted = subsets.map(|(position, (subset, most))| {
            let known = old.iter().find(|account| account.name == subset.spec.name);
            let pods = members.iter().filter(|member| member.subset == Some(position));
            let pods: Vec<&Pod> = pods.map(|member| &*member.pod).collect();
            let known = known.cloned().unwrap_or_default();
            let Counted { mut account, not_created, not_deleted, next } =
                accounts::count(&known, &subset.spec.name, *most, &pods, seen.now);
            lost.extend(not_created);
            kept.extend(not_deleted);
            plan.wake_after = plan.wake_after.into_iter().chain(next).min();
            let verdict = verdicts.as_ref().and_then(|verdicts| verdicts.get(position));
            account.conditions.extend(verdict.map(|verdict| written(condition(&known), verdict)));
            account
        });
        counted.collect()
    };
    let all: Vec<&Member> = members.iter().collect();
    let mut status = Status {
        observed_generation: spread.object.metadata.generation,
        subset_statuses: account(&before.subset_statuses, &all),
        versioned_subset_statuses: BTreeMap::new(),
    };
    let versions =
        members.iter().map(|member| &member.version).chain(before.versioned_subset_statuses.keys());
    for version in versions.collect::<BTreeSet<_>>() {
        let old = before.versioned_subset_statuses.get(version).map(Vec::as_slice).unwrap_or_default();
        let own: Vec<&Member> = members.iter().filter(|member| member.version == *version).collect();
        let accounts = account(old, &own);
        let is_empty = |account: &SubsetStatus| {
            account.replicas == 0 && account.creating_pods.is_empty() && account.deleting_pods.is_empty()
        };
        if !accounts.iter().all(is_empty) {
            status.versioned_subset_statuses.insert(version.clone(), accounts);
        }
    }
    let namespace = &spread.key.namespace;
    plan.events.extend(lost.iter().map(|key: &String| {
        let message = format!("Pod {namespace}/{key} was expected to be created but it wasn't");
        event(spread, Level::Warning, "CreatePodFailed", message)
    }));
    plan.events.extend(kept.iter().map(|pod: &String| {
        let message = format!("Pod {namespace}/{pod} was expected to be deleted but it wasn't");
        event(spread, Level::Warning, "DeletePodFailed", message)
    }));
    waits::subsets(&waits::Seen { spread, most: &most, status: &status, members: &members }, &mut plan.waits);
    if seen.total.is_none() && spread.has_shares() {
        waits::invalid("spec.targetRef", &unknown(spread), &mut plan.waits);
    }
    plan.wake_after = plan.wake_after.into_iter().chain(plan.waits.wake_after()).min();
    plan.status = status_write(&spread.object, &status);
    plan.counted = status;
    plan
}

/// Why a spread waits whose workload cannot be read.
pub fn undecided(why: &str) -> Waits {
    let mut found = Waits::default();
    waits::invalid("spec.targetRef", why, &mut found);
    found
}

/// The first subset whose limit cannot be used, and why.
fn unusable(spread: &Spread) -> Option<(usize, &str)> {
    spread.subsets.iter().enumerate().find_map(|(position, subset)| match &subset.limit {
        Limit::Unusable(why) => Some((position, why.as_str())),
        Limit::Open | Limit::Pods(_) => None,
    })
}

fn notices(seen: &Observed) -> Vec<Event> {
    let spread = &seen.spread;
    let broken = spread.subsets.iter().filter_map(|Subset { spec, limit }| {
        let Limit::Unusable(why) = limit else { return None };
        let value = spec.max_replicas.as_ref().map(ToString::to_string).unwrap_or_default();
        let message = format!(
            "maxReplicas \"{value}\" of subset {} cannot be resolved: {why}; the status is kept and new pods skip the subset",
            spec.name
        );
        Some(event(spread, Level::Warning, "UnresolvedMaxReplicas", message))
    });
    let is_unknown = seen.total.is_none() && spread.has_shares();
    let unknown = is_unknown.then(|| event(spread, Level::Warning, "UnknownReplicas", unknown(spread)));
    broken.chain(unknown).collect()
}

fn unknown(spread: &Spread) -> String {
    format!(
        "replicas of {} {}/{} are unknown (no replicasPath, no scale subresource); percentages in maxReplicas count as 0",
        spread.target.kind, spread.key.namespace, spread.target.name
    )
}

/// Marks of pods that are adopted, and costs.
fn mark(seen: &Observed, members: &[Member], most: &[Most], plan: &mut Plan) {
    let spread = &seen.spread;
    let mut wanted: BTreeMap<Text, i64> = BTreeMap::new();
    if spread.family.is_some_and(Family::has_cost) {
        if seen.newest == Newest::Unknown {
            plan.wake_after = Some(LOOK_AGAIN);
        } else {
            for version in members.iter().map(|member| &member.version).collect::<BTreeSet<_>>() {
                let is_newest = match &seen.newest {
                    Newest::Version(newest) => newest == version,
                    Newest::All | Newest::Unknown => true,
                };
                let own = members.iter().filter(|member| member.version == *version);
                wanted.extend(costs(own, most, is_newest));
            }
        }
    }
    for member in members {
        let pod = &member.pod;
        if pod.metadata.unreadable {
            continue;
        }
        let subset = member.subset.and_then(|position| spread.subsets.get(position));
        let mut metadata = match subset.filter(|_| member.is_adopted) {
            Some(subset) => Value::Object(adoption(spread, subset)),
            None => Value::Object(Map::new()),
        };
        let cost = wanted.get(&pod.metadata.name).map(ToString::to_string);
        let known = pod.metadata.annotations.text(POD_DELETION_COST);
        if let Some(cost) = cost.as_deref().filter(|cost| known != Some(*cost)) {
            json::set(&mut metadata, &["annotations", POD_DELETION_COST], cost);
        }
        if metadata.as_object().is_none_or(Map::is_empty) {
            continue;
        }
        let target = Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone());
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let subset = subset.map_or(NO_SUBSET, |subset| subset.spec.name.as_str());
        let message = format!(
            "WorkloadSpread {} failed to patch deletion-cost annotation to {} for Pod {} in subset {subset}",
            spread.key,
            cost.as_deref().or(known).unwrap_or_default(),
            pod.metadata.key(),
        );
        plan.pods.push(Write {
            effect: Effect::Patch { target, subresource: None, patch },
            failed: event(spread, Level::Warning, "PatchPodDeletionCostFailed", message),
        });
    }
}

/// Which subsets are open, and which pods move; nothing where pods are not moved.
fn reschedule(seen: &Observed, members: &[Member], before: &Status, plan: &mut Plan) -> Option<Vec<Verdict>> {
    let spread = &seen.spread;
    let within = spread.reschedules_after?;
    let last = spread.subsets.len().saturating_sub(1);
    let mut verdicts = Vec::with_capacity(spread.subsets.len());
    for (position, subset) in spread.subsets.iter().enumerate() {
        let name = &subset.spec.name;
        let is_last = position == last;
        let mut has_timed_out = false;
        let own = members.iter().filter(|member| member.subset == Some(position) && !is_last);
        for member in own {
            match reschedule::wait(&member.pod, within, seen.now) {
                Wait::No => {}
                Wait::For(left) => wake(plan, left),
                Wait::Over => {
                    has_timed_out = true;
                    plan.moves.push(moving(spread, &member.pod, name));
                }
            }
        }
        let old = before.subset_statuses.iter().find(|account| account.name == *name);
        let verdict = judge(old.and_then(condition), is_last, has_timed_out, seen.now);
        if verdict.is_recovered {
            let message = format!(
                "Subset {name} of WorkloadSpread {} is recovered from unschedulable to schedulable",
                spread.key
            );
            plan.events.push(event(spread, Level::Normal, "RecoverSchedulable", message));
        }
        if let Some(again) = verdict.again {
            wake(plan, again.duration_since(seen.now));
        }
        verdicts.push(verdict);
    }
    Some(verdicts)
}

fn wake(plan: &mut Plan, after: jiff::SignedDuration) {
    let after = Duration::try_from(after).unwrap_or_default() + Duration::from_millis(1);
    plan.wake_after = Some(plan.wake_after.map_or(after, |known| known.min(after)));
}

fn moving(spread: &Spread, pod: &Pod, subset: &str) -> Write {
    // It may have found a node since: only the pod that was seen to wait is deleted.
    let target = Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone())
        .at_version(pod.metadata.resource_version.clone());
    // The word is the original's: people search for it.
    let message = format!(
        "Failed to delete unschedulabe Pod {} in Subset {subset} of WorkloadSpread {}",
        pod.metadata.key(),
        spread.key
    );
    Write {
        effect: Effect::Delete { target, grace: None, follows: false },
        failed: event(spread, Level::Warning, "DeletePodFailed", message),
    }
}

fn event(spread: &Spread, level: Level, reason: &str, message: String) -> Event {
    Event { regarding: reference(&spread.object), level, reason: reason.into(), message }
}

//! Why the set makes no progress.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kruise_api::{
    annotations::{
        IMAGE_PREDOWNLOAD_MIN_UPDATED_READY_PODS, IMAGE_PREDOWNLOAD_PARALLELISM,
        IMAGE_PREDOWNLOAD_TIMEOUT_SECONDS,
    },
    gates::Gate,
    int_or_percent::IntOrString,
    rollout::UpdateType,
};

use super::{
    rollout::Rollout,
    view::{Place, View},
};
use crate::{
    node_fit::Misfit,
    pod::Pod,
    waiting::{self, Hooks, Reason, Waits, text},
};

/// What asks for images to be pulled ahead of an update.
const WISHES: [&str; 3] = [
    IMAGE_PREDOWNLOAD_PARALLELISM,
    IMAGE_PREDOWNLOAD_TIMEOUT_SECONDS,
    IMAGE_PREDOWNLOAD_MIN_UPDATED_READY_PODS,
];
/// The path of the field that pauses updates.
const PAUSED: &str = "spec.updateStrategy.rollingUpdate.paused";

/// Trouble of nodes and pods, and what follows from the spec. `rollout` is what the update wants, if there is one.
/// `held_back` is how many nodes get no pod because of the partition.
pub(super) fn of(view: &View<'_>, rollout: Option<&Rollout<'_>>, held_back: usize) -> Waits {
    let mut waits = Waits::default();
    troubles(view, &mut waits);
    limits(view, rollout, &mut waits);
    new_pods(view, held_back, &mut waits);
    rules(view, rollout, &mut waits);
    waits
}

fn troubles(view: &View<'_>, waits: &mut Waits) {
    let now = view.now();
    let is_down = |place: &&Place<'_>| place.node.is_some_and(|node| node.status.ready_since.is_none());
    let down: Vec<&Place<'_>> =
        view.places.values().filter(is_down).filter(|place| !place.pods.is_empty()).collect();
    let since = |place: &Place<'_>| place.node.and_then(|node| node.status.unready_since);
    let is_old = |place: &&&Place<'_>| since(place).is_none_or(|since| waiting::is_old(since, now));
    let (old, young): (Vec<&Place<'_>>, Vec<&Place<'_>>) = down.iter().partition(is_old);
    if !old.is_empty() {
        let nodes = text::names(old.iter().map(|place| place.name));
        let pods = text::pods_are(old.iter().map(|place| place.pods.len()).sum());
        waits.add(Reason::NodeNotReady, format!("{pods} on nodes that are not ready ({nodes})"));
    }
    if let Some(since) = young.iter().filter_map(|place| since(place)).min() {
        waits.add_later(Reason::NodeNotReady, Some(since), now, "");
    }
    let down = down.iter().flat_map(|place| &place.pods);
    let down: BTreeSet<&str> = down.map(|pod| pod.metadata.uid.as_str()).collect();
    let others = view.pods.iter().copied().filter(|pod| !down.contains(pod.metadata.uid.as_str()));
    let (active, ending): (Vec<&Pod>, Vec<&Pod>) = others.partition(|pod| pod.is_active());
    unschedulable(&active, now, waits);
    let images = view.revisions.shared.other_images();
    let hooks = Hooks {
        lifecycle: view.seen.set.spec.lifecycle.as_ref(),
        options: &view.desired.in_place,
        others: &images,
    };
    let ending: Vec<&Pod> = ending.into_iter().filter(|pod| pod.metadata.is_deleting()).collect();
    waiting::pods(&active, &ending, &hooks, now, waits);
}

/// Each pod is meant for one node: that is where space has to be made.
fn unschedulable(pods: &[&Pod], now: Timestamp, waits: &mut Waits) {
    let condition = |pod: &Pod| {
        let condition = pod.condition("PodScheduled")?;
        (!condition.is_true() && condition.reason == "Unschedulable").then(|| condition.clone())
    };
    let found: Vec<&Pod> = pods.iter().copied().filter(|pod| condition(pod).is_some()).collect();
    let Some(first) = found.first().and_then(|pod| condition(pod)) else { return };
    let since = found.iter().filter_map(|pod| condition(pod)?.last_transition_time).min();
    let names: Vec<String> =
        found.iter().map(|pod| format!("{} on {}", pod.metadata.name, pod.node())).collect();
    let names = text::names(names.iter().map(String::as_str));
    let pods = text::pods(found.len());
    let sentence = format!("{pods} cannot be scheduled ({names}): {}", text::foreign(&first.message));
    waits.add_later(Reason::PodUnschedulable, since, now, sentence);
}

fn spelled(value: Option<&IntOrString>, default: i64) -> String {
    value.map_or_else(|| default.to_string(), ToString::to_string)
}

/// Limits that are used up.
fn limits(view: &View<'_>, rollout: Option<&Rollout<'_>>, waits: &mut Waits) {
    let spec = &view.seen.set.spec;
    let rolling = spec.update_strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
    if let Some((rollout, next)) = rollout.and_then(|rollout| Some((rollout, rollout.next.first()?))) {
        let wanted = view.places.values().filter(|place| place.fit.should_run);
        let wanted: Vec<&Pod> = wanted.flat_map(|place| place.pods.iter().copied()).collect();
        waiting::min_ready(&wanted, view.desired.min_ready, view.now(), waits);
        if view.surges() {
            let most = view.limits.max_surge;
            let value = spelled(rolling.and_then(|rolling| rolling.max_surge.as_ref()), 0);
            let verb = if most == 1 { "pod exists" } else { "pods exist" };
            let sentence =
                format!("{} of at most {most} surge {verb} (maxSurge: {value})", rollout.used.max(most));
            waits.add(Reason::MaxUnavailableReached, sentence);
        } else {
            let most = view.limits.max_unavailable;
            let value = spelled(rolling.and_then(|rolling| rolling.max_unavailable.as_ref()), 1);
            let next = view.places.get(next).and_then(|place| place.pods.first());
            let next = next.map_or("", |pod| pod.metadata.name.as_str());
            waiting::max_unavailable(rollout.used.max(most), most, &value, next, waits);
        }
    }
    let missing = view.places.values().filter(|place| place.fit.should_run && place.pods.is_empty()).count();
    if view.limits.burst == 0 && missing > 0 {
        let value = spelled(spec.burst_replicas.as_ref(), 0);
        let sentence = format!("no pod is created at once (burstReplicas: {value}); {missing} still to come");
        waits.add(Reason::ParallelismReached, sentence);
    }
    if view.limits.desired == 0 && !view.seen.nodes.is_empty() {
        let count = |which: &[Misfit]| {
            let misfits = view.places.values().filter_map(|place| place.fit.misfit);
            misfits.filter(|misfit| which.contains(misfit)).count()
        };
        let (labels, taints) = (count(&[Misfit::OtherNode, Misfit::Labels]), count(&[Misfit::Taint]));
        let sentence = format!(
            "no node fits: of {} nodes {labels} do not match nodeSelector or affinity, {taints} have taints that are not \
             tolerated, 0 are too small",
            view.seen.nodes.len()
        );
        waits.add(Reason::NodeNotEligible, sentence);
    }
}

/// New pods that the partition holds back.
fn new_pods(view: &View<'_>, held_back: usize, waits: &mut Waits) {
    if held_back == 0 {
        return;
    }
    let nodes = if view.limits.desired == 1 { "node" } else { "nodes" };
    let get = if held_back == 1 { "gets" } else { "get" };
    let sentence = format!(
        "{held_back} of {} {nodes} {get} no pod: partition {} holds new pods back (scaleStrategy.partitionedScaling); lower \
         it to continue",
        view.limits.desired,
        partition(view),
    );
    waits.add(Reason::PartitionReached, sentence);
}

/// The partition as the spec spells it.
fn partition(view: &View<'_>) -> String {
    let strategy = view.seen.set.spec.update_strategy.as_ref();
    spelled(strategy.and_then(|strategy| strategy.rolling_update.as_ref()?.partition.as_ref()), 0)
}

/// Images would be pulled ahead of the update, if the gate were open.
fn closed_gate(view: &View<'_>, waits: &mut Waits) {
    let gate = Gate::PreDownloadImageForDaemonSetUpdate;
    let annotations = view.seen.set.metadata.annotations.as_ref();
    let asks = |key: &&&str| annotations.is_some_and(|annotations| annotations.contains_key(**key));
    if let Some(key) = WISHES.iter().find(asks).filter(|_| !view.gate(gate)) {
        let sentence = format!("metadata.annotations[{key}] has no effect: feature gate {gate} is off");
        waits.add(Reason::FeatureGateOff, sentence);
    }
}

/// What the user wants so.
fn rules(view: &View<'_>, rollout: Option<&Rollout<'_>>, waits: &mut Waits) {
    let stands_for = || {
        let wanted = view.places.values().filter(|place| place.fit.should_run);
        wanted.filter_map(|place| place.pods.first().copied())
    };
    let (new, old): (Vec<&Pod>, Vec<&Pod>) = stands_for().partition(|pod| view.is_updated(pod));
    if old.is_empty() {
        return;
    }
    closed_gate(view, waits);
    let (updated, all) = (new.len(), view.limits.desired);
    let Some(rolling) = &view.desired.rolling else {
        return waiting::on_delete(&old, all, UpdateType::OnDelete.as_str(), waits);
    };
    if let Some(selector) = &rolling.selector {
        let selects = |place: &Place<'_>| {
            place.node.is_some_and(|node| selector.accepts(|key| node.metadata.labels.text(key)))
        };
        if !view.places.values().any(selects) {
            let sentence = "no node matches updateStrategy.rollingUpdate.selector";
            waits.add(Reason::NodeNotEligible, sentence);
        }
    }
    if rolling.paused {
        return waiting::paused(PAUSED, updated, all, view.revisions.hash(), waits);
    }
    let is_over = rollout.is_some_and(|rollout| {
        let Rollout { replace, create, delete, used: _, next } = rollout;
        next.is_empty() && replace.is_empty() && create.is_empty() && delete.is_empty()
    });
    let kept = view.limits.partition;
    if kept > 0 && is_over && old.len() <= kept {
        waiting::partition(updated, all, &partition(view), kept, waits);
    }
}

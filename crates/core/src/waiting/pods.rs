//! Trouble of the pods themselves. A pod is counted for the first reason that fits it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    annotations,
    lifecycle::{Hook, Lifecycle, State},
};

use super::{Reason, Waits, text};
use crate::{
    availability::is_ready,
    in_place::{self, Completion, Options, OtherImages},
    lifecycle,
    pod::{Condition, ContainerStatus, Pod},
    text::Text,
    time,
};

const CANNOT_PULL: [&str; 4] = ["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"];
const CANNOT_START: [&str; 3] = ["CrashLoopBackOff", "CreateContainerError", "RunContainerError"];

/// What of a workload decides how its pods are seen.
#[derive(Clone, Copy)]
pub struct Hooks<'a> {
    /// The hooks.
    pub lifecycle: Option<&'a Lifecycle>,
    /// How updates in place work.
    pub options: &'a Options,
    /// The images of all revisions.
    pub others: &'a OtherImages,
}

/// One fact about a pod.
struct Fact {
    reason: Reason,
    /// What tells groups of one reason apart, such as the image.
    about: String,
    /// The end of the sentence.
    detail: String,
    since: Option<Timestamp>,
}

/// Why pods of a workload are not available. `ending` are those that the workload waits for until they are gone.
pub fn pods(active: &[&Pod], ending: &[&Pod], hooks: &Hooks<'_>, now: Timestamp, waits: &mut Waits) {
    let mut groups: BTreeMap<Reason, Vec<(&Pod, Fact)>> = BTreeMap::new();
    for pod in active.iter().filter(|pod| !pod.metadata.unreadable) {
        if let Some(fact) = of_active(pod, hooks) {
            groups.entry(fact.reason).or_default().push((pod, fact));
        }
    }
    for pod in ending {
        if let Some(fact) = of_ending(pod) {
            groups.entry(fact.reason).or_default().push((pod, fact));
        }
    }
    for (reason, group) in groups {
        report(reason, &group, active.len(), now, waits);
    }
}

/// Pods that are on nodes that are not ready. Nothing else is said of them.
pub fn unready_nodes(pods: &[&Pod], now: Timestamp, waits: &mut Waits) {
    let Some(since) = pods.iter().filter_map(|pod| unready_since(pod)).min() else { return };
    let nodes = text::names(pods.iter().map(|pod| pod.node().as_str()));
    let sentence = format!("{} on nodes that are not ready ({nodes})", text::pods_are(pods.len()));
    waits.add_later(Reason::NodeNotReady, Some(since), now, sentence);
}

/// Reports the facts that are old enough. The oldest says the detail.
fn report(reason: Reason, group: &[(&Pod, Fact)], all: usize, now: Timestamp, waits: &mut Waits) {
    let is_old = |since: Option<Timestamp>| since.is_none_or(|since| super::is_old(since, now));
    let (mut old, young): (Vec<_>, Vec<_>) = group.iter().partition(|(_, fact)| is_old(fact.since));
    for (_, fact) in young {
        waits.add_later(reason, fact.since, now, "");
    }
    old.sort_by(|(left, one), (right, other)| {
        one.since.cmp(&other.since).then_with(|| left.metadata.name.cmp(&right.metadata.name))
    });
    let Some((_, first)) = old.first() else { return };
    let same: Vec<&str> = old
        .iter()
        .filter(|(_, fact)| fact.about == first.about)
        .map(|(pod, _)| pod.metadata.name.as_str())
        .collect();
    let (count, names) = (same.len(), text::names(same.iter().copied()));
    let (pods, detail, about) = (text::pods(count), &first.detail, &first.about);
    let wait = if count == 1 { "waits" } else { "wait" };
    let their = if count == 1 { "its" } else { "their" };
    let sentence = match reason {
        Reason::PodUnschedulable => format!("{pods} cannot be scheduled ({names}): {detail}"),
        Reason::ImagePullFailing => format!("{pods} cannot pull {about} ({names}): {detail}"),
        Reason::ContainerCrashing => format!("container {about} keeps exiting in {pods} ({names}): {detail}"),
        Reason::PodTerminating => {
            format!("{} being deleted since {about} ({names}){detail}", text::pods_are(count))
        }
        Reason::PreNormalHook => format!("{pods} {wait} for {their} preNormal hook ({names}): {detail}"),
        Reason::PreDeleteHook => format!("{pods} {wait} for {their} preDelete hook ({names}): {detail}"),
        Reason::InPlaceHook => format!("{pods} {wait} for {their} inPlaceUpdate hook ({names}): {detail}"),
        Reason::GracePeriod => {
            let are = text::pods_are(count);
            format!("{are} out of service until {about} before {their} containers change ({names})")
        }
        Reason::InPlaceUpdateRunning => {
            format!("{} being updated in place ({names}): {detail}", text::pods_are(count))
        }
        _ => format!("{} not ready ({names}): {detail}", text::of(count, all)),
    };
    waits.add(reason, sentence);
}

fn of_active(pod: &Pod, hooks: &Hooks<'_>) -> Option<Fact> {
    of_scheduler(pod).or_else(|| of_containers(pod)).or_else(|| of_state(pod, hooks)).or_else(|| {
        let ready = pod.condition("Ready");
        let detail = ready.map(|ready| text::foreign(&ready.message)).filter(|text| !text.is_empty());
        (pod.status.phase == "Running" && !is_ready(pod)).then(|| Fact {
            reason: Reason::PodNotReady,
            about: String::new(),
            detail: detail.unwrap_or_else(|| "the kubelet gives no reason".to_owned()),
            since: unready_since(pod),
        })
    })
}

fn of_scheduler(pod: &Pod) -> Option<Fact> {
    let condition = pod.condition("PodScheduled")?;
    (!condition.is_true() && condition.reason == "Unschedulable").then(|| Fact {
        reason: Reason::PodUnschedulable,
        about: String::new(),
        detail: text::foreign(&condition.message),
        since: condition.last_transition_time,
    })
}

fn of_containers(pod: &Pod) -> Option<Fact> {
    let statuses = || pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses);
    let since = unready_since(pod);
    let pull = |status: &ContainerStatus| {
        let waiting =
            status.state.waiting.as_ref().filter(|one| CANNOT_PULL.contains(&one.reason.as_str()))?;
        // Kubelets wrap the cause: `Back-off pulling image "x": ErrImagePull: manifest unknown`.
        let cause =
            waiting.message.rsplit_once("ErrImagePull: ").map_or(waiting.message.as_str(), |(_, text)| text);
        let cause = if cause.is_empty() { waiting.reason.as_str() } else { cause };
        let about = image_of(pod, &status.name).unwrap_or(&status.image).to_owned();
        Some(Fact { reason: Reason::ImagePullFailing, about, detail: text::foreign(cause), since })
    };
    let crash = |status: &ContainerStatus| {
        let waiting = status.state.waiting.as_ref().filter(|one| CANNOT_START.contains(&one.reason.as_str()));
        let ended = status.state.terminated.as_ref().filter(|ended| ended.exit_code != 0);
        let is_restarted = pod.spec.restart_policy != "Never";
        let detail = match (waiting, ended.filter(|_| is_restarted), status.last_termination.as_deref()) {
            (None, None, _) => return None,
            (_, Some(ended), _) | (Some(_), None, Some(ended)) => {
                let reason = if ended.reason.is_empty() { "Error" } else { ended.reason.as_str() };
                format!("{reason}, exit code {}", ended.exit_code)
            }
            (Some(waiting), None, None) => waiting.reason.to_string(),
        };
        Some(Fact { reason: Reason::ContainerCrashing, about: status.name.to_string(), detail, since })
    };
    statuses().find_map(pull).or_else(|| statuses().find_map(crash))
}

fn image_of<'p>(pod: &'p Pod, container: &str) -> Option<&'p str> {
    let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    containers.filter(|one| one.name == container).map(|one| one.image.as_str()).next()
}

fn of_state(pod: &Pod, hooks: &Hooks<'_>) -> Option<Fact> {
    let name = &pod.metadata.name;
    let lifecycle = hooks.lifecycle;
    let update = lifecycle.and_then(|hooks| hooks.in_place_update.as_ref());
    let pre_delete = lifecycle.and_then(|hooks| hooks.pre_delete.as_ref());
    let pre_normal = lifecycle.and_then(|hooks| hooks.pre_normal.as_ref());
    let since = pod.metadata.annotations.text(annotations::LIFECYCLE_TIMESTAMP).and_then(time::saturating);
    let fact = |reason, detail: String| {
        let about = if reason == Reason::InPlaceHook { state_of(pod) } else { String::new() };
        Some(Fact { reason, about, detail, since })
    };
    if let Some(until) = grace_end(pod) {
        return Some(Fact {
            reason: Reason::GracePeriod,
            about: text::time(until),
            detail: String::new(),
            since,
        });
    }
    let Some(state) = lifecycle::state(pod) else { return of_update(pod, hooks) };
    match state {
        State::PreparingNormal => {
            let missing = mark(pre_normal?, pod, false)?;
            fact(Reason::PreNormalHook, format!("{missing} is missing on {name}"))
        }
        State::PreparingUpdate => {
            let left = mark(update?, pod, true)?;
            fact(Reason::InPlaceHook, format!("{left} is still on {name}"))
        }
        State::Updated => {
            let missing = mark(update?, pod, false)?;
            fact(Reason::InPlaceHook, format!("{missing} is not back on {name}"))
        }
        State::PreparingDelete => {
            let left = mark(pre_delete?, pod, true)?;
            fact(Reason::PreDeleteHook, format!("{left} is still on {name}"))
        }
        State::Updating => fact(Reason::InPlaceUpdateRunning, incomplete(pod, hooks)?),
        State::Normal | State::Other(_) => None,
    }
}

/// An update in place of a pod that carries no state. Only new amounts of cpu and memory leave a pod ready meanwhile.
fn of_update(pod: &Pod, hooks: &Hooks<'_>) -> Option<Fact> {
    let state = in_place::state::read(pod).ok()??;
    if is_ready(pod) && !state.update_resources {
        return None;
    }
    let detail = incomplete(pod, hooks)?;
    let since = Some(state.update_timestamp.0);
    Some(Fact { reason: Reason::InPlaceUpdateRunning, about: String::new(), detail, since })
}

/// Why the update in place of a pod is not complete. The kubelet knows best why it does not take new amounts of cpu and memory.
fn incomplete(pod: &Pod, hooks: &Hooks<'_>) -> Option<String> {
    let Completion::Waiting(why) = in_place::completion(pod, hooks.options, hooks.others) else {
        return None;
    };
    let pending = pod.condition("PodResizePending").filter(|one| one.is_true() && !one.message.is_empty());
    Some(text::foreign(pending.map_or(why.as_str(), |pending| pending.message.as_str())))
}

fn state_of(pod: &Pod) -> String {
    lifecycle::state(pod).map(|state| state.to_string()).unwrap_or_default()
}

/// The first label or finalizer of a hook that is on the pod, or that is missing.
fn mark(hook: &Hook, pod: &Pod, present: bool) -> Option<String> {
    let finalizer = hook
        .finalizers_handler
        .iter()
        .find(|one| pod.metadata.finalizers.iter().any(|known| *known == one.as_str()) == present);
    let label = || {
        let is_there = |key: &str, value: &str| pod.metadata.labels.text(key) == Some(value);
        hook.labels_handler.iter().find(|(key, value)| is_there(key, value) == present)
    };
    finalizer
        .map(|finalizer| format!("finalizer {finalizer}"))
        .or_else(|| label().map(|(key, value)| format!("label {key}={value}")))
}

/// When the containers of a pod may change that was taken out of service for an update in place.
fn grace_end(pod: &Pod) -> Option<Timestamp> {
    let change = in_place::state::grace(pod).ok()??;
    let state = in_place::state::read(pod).ok()??;
    let grace = SignedDuration::from_secs(i64::try_from(change.grace_seconds).ok()?);
    state.update_timestamp.0.saturating_add(grace).ok()
}

/// A pod that is still there after the time that it was given to end.
fn of_ending(pod: &Pod) -> Option<Fact> {
    let end = pod.metadata.deletion_timestamp?;
    let finalizers: Vec<&str> = pod.metadata.finalizers.iter().map(Text::as_str).collect();
    let detail = match finalizers.is_empty() {
        true => String::new(),
        false => format!(" and have finalizers ({})", text::names(finalizers)),
    };
    Some(Fact { reason: Reason::PodTerminating, about: text::time(end), detail, since: Some(end) })
}

/// Since when a pod is not ready.
fn unready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = pod.condition("Ready").filter(|ready| !ready.is_true());
    ready.and_then(|ready: &Condition| ready.last_transition_time).or(pod.metadata.creation_timestamp)
}

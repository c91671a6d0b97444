//! Which pods are updated first.
//!
//! Pods that serve nobody come first; then what the workload asks for: weights, numbers in labels, and spreading pods with
//! a label over the whole update. The order is complete, so equal input gives equal plans.

mod scatter;
pub mod validate;

use std::cmp::{Ordering, Reverse};

use jiff::Timestamp;
use kruise_api::{
    lifecycle::State,
    rollout::{PriorityStrategy, ScatterTerm},
    selector::Matcher,
};

pub use scatter::scatter;

use crate::{
    lifecycle,
    pod::{Condition, ContainerStatus, Pod},
};

/// What a workload asks for, checked once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strategy {
    /// Weights of the pods that a selector chooses.
    pub weights: Vec<(i64, Matcher)>,
    /// Labels whose values end in a number.
    pub ordered_keys: Vec<String>,
    /// Labels whose pods are spread.
    pub scatter: Vec<ScatterTerm>,
}

impl Strategy {
    /// The strategy of a spec.
    pub fn new(
        priority: Option<&PriorityStrategy>,
        scatter: &[ScatterTerm],
    ) -> Result<Self, kruise_api::selector::Error> {
        let terms = priority.map(|priority| priority.weight_priority.as_slice()).unwrap_or_default();
        let weights = terms
            .iter()
            .map(|term| Ok((i64::from(term.weight), term.match_selector.matcher()?)))
            .collect::<Result<_, _>>()?;
        let keys = priority.map(|priority| priority.order_priority.as_slice()).unwrap_or_default();
        let ordered_keys = keys.iter().map(|term| term.ordered_key.clone()).collect();
        Ok(Self { weights, ordered_keys, scatter: scatter.to_vec() })
    }
}

/// The waiting pods in the order of their update. `all` are all pods of the workload, waiting or not. Pods that wait for
/// a hook of their update already stay ahead.
pub fn update_order<'a>(waiting: &[&'a Pod], all: &[&Pod], strategy: &Strategy) -> Vec<&'a Pod> {
    let mut pods = strategic_order(waiting, all, strategy);
    pods.sort_by_key(|pod| !lifecycle::is(pod, &State::PreparingUpdate));
    pods
}

/// The same for whoever does not own the pods, and so has nothing to do with their hooks.
pub fn strategic_order<'a>(waiting: &[&'a Pod], all: &[&Pod], strategy: &Strategy) -> Vec<&'a Pod> {
    let mut pods = waiting.to_vec();
    pods.sort_by(|left, right| active_order(left, right).then_with(|| by_name(left, right)));
    sort_by_priority(&mut pods, strategy, |pod| Some(*pod));
    scatter(pods, all, &strategy.scatter)
}

/// Sorts by the weights or the numbers that a workload asks for. Equal ones keep their order. A place without a pod counts
/// as a pod without labels.
pub fn sort_by_priority<'p, T>(items: &mut [T], strategy: &Strategy, pod: impl Fn(&T) -> Option<&'p Pod>) {
    if !strategy.weights.is_empty() {
        items.sort_by_cached_key(|item| Reverse(pod(item).map_or(0, |pod| weight(pod, strategy))));
    } else if !strategy.ordered_keys.is_empty() {
        items.sort_by_cached_key(|item| pod(item).map_or((-1, Reverse(0)), |pod| level(pod, strategy)));
    }
}

fn weight(pod: &Pod, strategy: &Strategy) -> i64 {
    let labels =
        pod.metadata.labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    strategy.weights.iter().filter(|(_, matcher)| matcher.matches(&labels)).map(|(weight, _)| weight).sum()
}

/// Pods without any of the keys come first. Within a key larger numbers come first.
fn level(pod: &Pod, strategy: &Strategy) -> (i64, Reverse<i64>) {
    let found = strategy
        .ordered_keys
        .iter()
        .enumerate()
        .find_map(|(index, key)| Some((index, pod.metadata.labels.text(key)?)));
    match found {
        Some((index, value)) => (i64::try_from(index).unwrap_or(i64::MAX), Reverse(trailing_number(value))),
        None => (-1, Reverse(0)),
    }
}

fn trailing_number(text: &str) -> i64 {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
    text.get(digits..).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Kubernetes' order of active pods: those that are less worth come first.
pub fn active_order(left: &Pod, right: &Pod) -> Ordering {
    before_readiness(left, right)
        .then_with(|| is_ready(left).cmp(&is_ready(right)))
        .then_with(|| ready_time(left, right))
        .then_with(|| restarts(right).cmp(&restarts(left)))
        .then_with(|| sidecar_restarts(right).cmp(&sidecar_restarts(left)))
        .then_with(|| creation(left, right))
}

/// A pod without a node, and one that does not run, come first.
pub(crate) fn before_readiness(left: &Pod, right: &Pod) -> Ordering {
    let phase = |pod: &Pod| match pod.status.phase.as_str() {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    (!left.spec.node_name.is_empty())
        .cmp(&!right.spec.node_name.is_empty())
        .then_with(|| phase(left).cmp(&phase(right)))
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    pod.condition("Ready").is_some_and(Condition::is_true)
}

/// Of two ready pods the one that became ready later comes first.
pub(crate) fn ready_time(left: &Pod, right: &Pod) -> Ordering {
    if !is_ready(left) || !is_ready(right) {
        return Ordering::Equal;
    }
    let since = |pod: &Pod| pod.condition("Ready").and_then(|ready| ready.last_transition_time);
    newest_first(since(left), since(right))
}

fn newest_first(left: Option<Timestamp>, right: Option<Timestamp>) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => right.cmp(&left),
        (left, right) => left.is_some().cmp(&right.is_some()),
    }
}

pub(crate) fn restarts(pod: &Pod) -> i32 {
    most_restarts(pod.status.container_statuses.iter())
}

fn sidecar_restarts(pod: &Pod) -> i32 {
    let is_sidecar = |status: &&ContainerStatus| {
        let mut containers = pod.spec.init_containers.iter();
        containers.any(|container| container.name == status.name && container.restart_policy == "Always")
    };
    most_restarts(pod.status.init_container_statuses.iter().filter(is_sidecar))
}

fn most_restarts<'a>(statuses: impl Iterator<Item = &'a ContainerStatus>) -> i32 {
    statuses.map(|status| status.restart_count).max().unwrap_or(0)
}

pub(crate) fn creation(left: &Pod, right: &Pod) -> Ordering {
    newest_first(left.metadata.creation_timestamp, right.metadata.creation_timestamp)
}

pub(crate) fn by_name(left: &Pod, right: &Pod) -> Ordering {
    let (left, right) = (&left.metadata, &right.metadata);
    left.namespace.cmp(&right.namespace).then_with(|| left.name.cmp(&right.name))
}

#[cfg(test)]
mod tests;

//! Which pods go first when a workload shrinks.
//!
//! Pods that serve nobody, then those that cost least by their annotation, then those whose place has most others.

use std::{cmp::Ordering, collections::BTreeMap};

use kruise_api::annotations;

use crate::{
    pod::{Pairs, Pod},
    text::Text,
    update_order::{before_readiness, by_name, creation, is_ready, ready_time, restarts},
};

/// What besides the pods themselves decides.
#[derive(Clone, Copy)]
pub struct Placement<'a> {
    /// Whether a pod serves, as its workload sees it.
    pub is_available: &'a dyn Fn(&Pod) -> bool,
    /// The `topologyKey` of each spread constraint of the template.
    pub topology_keys: &'a [String],
    /// Labels of nodes.
    pub nodes: &'a BTreeMap<Text, Pairs>,
}

/// The candidates in the order of their deletion.
pub fn deletion_order<'a>(candidates: &[&'a Pod], placement: &Placement<'_>) -> Vec<&'a Pod> {
    let ranks = ranks(candidates, placement);
    let mut order: Vec<(usize, &Pod)> = candidates.iter().copied().enumerate().collect();
    let rank = |index: &usize| ranks.get(*index).copied().unwrap_or(0.0);
    order.sort_by(|(left_index, left), (right_index, right)| {
        let available = |pod: &Pod| (placement.is_available)(pod);
        compare(
            left,
            right,
            available(left).cmp(&available(right)),
            rank(left_index).total_cmp(&rank(right_index)),
        )
    });
    order.into_iter().map(|(_, pod)| pod).collect()
}

fn compare(left: &Pod, right: &Pod, by_availability: Ordering, by_rank: Ordering) -> Ordering {
    before_readiness(left, right)
        .then(by_availability)
        .then_with(|| is_ready(left).cmp(&is_ready(right)))
        .then_with(|| cost(left).cmp(&cost(right)))
        .then(by_rank.reverse())
        .then_with(|| ready_time(left, right))
        .then_with(|| restarts(right).cmp(&restarts(left)))
        .then_with(|| creation(left, right))
        .then_with(|| by_name(left, right))
}

/// The cost of deleting a pod. What no server would store as such a number counts as none.
pub fn cost(pod: &Pod) -> i32 {
    let text = pod.metadata.annotations.text(annotations::POD_DELETION_COST).unwrap_or_default();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = !text.starts_with('+') && (digits == "0" || !digits.starts_with('0'));
    if is_plain { text.parse().unwrap_or(0) } else { 0 }
}

/// How crowded the place of each candidate is, counting candidates only.
fn ranks(candidates: &[&Pod], placement: &Placement<'_>) -> Vec<f64> {
    let same_node = same_node(candidates);
    if placement.topology_keys.is_empty() {
        return same_node;
    }
    let mut sums = vec![0.0; candidates.len()];
    for key in placement.topology_keys {
        let domain = |pod: &Pod| placement.nodes.get(&pod.spec.node_name)?.get(key).cloned();
        let groups = groups(candidates, &domain);
        // A place that is one node says the same as the rank by node.
        let within = |index: usize| {
            if key == "kubernetes.io/hostname" { 0.0 } else { same_node.get(index).copied().unwrap_or(0.0) }
        };
        #[allow(clippy::cast_precision_loss, reason = "counts of pods")]
        let factor = (groups.len() as f64 + 2.0).ln();
        for mut group in groups.into_values() {
            sort_group(&mut group, candidates, &within);
            for (place, index) in group.iter().enumerate() {
                #[allow(clippy::cast_precision_loss, reason = "counts of pods")]
                let left = (group.len() - place) as f64;
                if let Some(sum) = sums.get_mut(*index) {
                    *sum += left * factor;
                }
            }
        }
    }
    sums
}

fn same_node(candidates: &[&Pod]) -> Vec<f64> {
    let mut ranks = vec![0.0; candidates.len()];
    let node = |pod: &Pod| Some(pod.spec.node_name.clone()).filter(|node| !node.is_empty());
    for mut group in groups(candidates, &node).into_values() {
        sort_group(&mut group, candidates, &|_| 0.0);
        for (place, index) in group.iter().enumerate() {
            if let Some(rank) = ranks.get_mut(*index) {
                #[allow(clippy::cast_precision_loss, reason = "counts of pods")]
                let left = (group.len() - 1 - place) as f64;
                *rank = left;
            }
        }
    }
    ranks
}

fn groups(candidates: &[&Pod], place: &dyn Fn(&Pod) -> Option<Text>) -> BTreeMap<Text, Vec<usize>> {
    let mut groups: BTreeMap<Text, Vec<usize>> = BTreeMap::new();
    for (index, pod) in candidates.iter().enumerate() {
        if let Some(place) = place(pod) {
            groups.entry(place).or_default().push(index);
        }
    }
    groups
}

fn sort_group(group: &mut [usize], candidates: &[&Pod], rank: &dyn Fn(usize) -> f64) {
    group.sort_by(|left, right| {
        let by_rank = rank(*left).total_cmp(&rank(*right));
        match (candidates.get(*left), candidates.get(*right)) {
            (Some(left), Some(right)) => compare(left, right, Ordering::Equal, by_rank),
            _ => Ordering::Equal,
        }
    });
}

#[cfg(test)]
mod tests;

//! Deletion costs: pods that are cheap are deleted first when the workload shrinks.

use std::collections::BTreeMap;

use super::{groups::Member, spread::Most};
use crate::{
    deletion_order,
    pod::Pod,
    text::Text,
    update_order::{active_order, by_name},
};

/// The cost of each active pod of one version, by its name. `most` are the limits of the subsets in the order of the spec.
pub(super) fn costs<'m>(
    members: impl IntoIterator<Item = &'m Member>,
    most: &[Most],
    is_newest: bool,
) -> BTreeMap<Text, i64> {
    let count = i64::try_from(most.len()).unwrap_or(i64::MAX);
    let mut groups: BTreeMap<Option<usize>, Vec<&Pod>> = BTreeMap::new();
    for member in members {
        if member.pod.is_active() {
            groups.entry(member.subset).or_default().push(&member.pod);
        }
    }
    let mut costs = BTreeMap::new();
    for (subset, mut pods) in groups {
        let Some((subset, limit)) = subset.and_then(|subset| Some((subset, most.get(subset)?))) else {
            costs.extend(pods.iter().map(|pod| (pod.metadata.name.clone(), -100 * (count + 1))));
            continue;
        };
        let position = i64::try_from(subset).unwrap_or(i64::MAX);
        // An old version shrinks from its first subset, while the new one fills it.
        let index = if is_newest { position } else { count - 1 - position };
        let surplus = match limit {
            Most::Pods(limit) => pods.len().saturating_sub(usize::try_from(*limit).unwrap_or(usize::MAX)),
            Most::Open | Most::Unknown => 0,
        };
        // Of pods that differ in nothing else those stay cheap that are: no cost is written anew for the same choice.
        let by_cost =
            |left: &&Pod, right: &&Pod| deletion_order::cost(left).cmp(&deletion_order::cost(right));
        pods.sort_by(|left, right| {
            active_order(left, right).then_with(|| by_cost(left, right)).then_with(|| by_name(left, right))
        });
        for (place, pod) in pods.iter().enumerate() {
            let cost = if place < surplus { -100 * (index + 1) } else { 100 * (count - index) };
            costs.insert(pod.metadata.name.clone(), cost);
        }
    }
    costs
}

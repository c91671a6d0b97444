//! Which changes of pods are news for spreads.

use super::{Mark, Versioned};
use crate::{
    pod::Pod,
    update_order::{is_ready, restarts},
};

/// Whether a change of a pod can change an account, a cost or where the pod belongs. Most changes of pods cannot.
pub fn differs(before: Option<&Pod>, after: Option<&Pod>, versioned: &Versioned) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return true };
    let facts = |pod: &Pod| {
        let scheduled = pod.condition("PodScheduled");
        (
            pod.is_active(),
            pod.spec.node_name.clone(),
            scheduled.map(|condition| (condition.status.clone(), condition.reason.clone())),
            pod.status.phase.clone(),
            is_ready(pod),
            restarts(pod),
            versioned.of(pod),
        )
    };
    facts(before) != facts(after)
        || before.metadata.annotations != after.metadata.annotations
        || before.metadata.owner_references != after.metadata.owner_references
        || before.metadata.labels != after.metadata.labels
}

/// The spreads that pods name.
pub fn names<'p>(pods: impl IntoIterator<Item = &'p Pod>) -> Vec<String> {
    let mut found: Vec<String> = pods
        .into_iter()
        .filter_map(|pod| Mark::of(&pod.metadata.annotations).map(|mark| mark.name))
        .collect();
    found.sort();
    found.dedup();
    found
}

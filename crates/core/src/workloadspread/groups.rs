//! Which pod is in which subset, and the subsets of pods that are older than the spread.

use std::{collections::BTreeMap, sync::Arc};

use kruise_api::{annotations::MATCHED_WORKLOADSPREAD, json};
use serde_json::{Map, Value, json};

use super::{Mark, Observed, Spread, Subset, spread::Most};
use crate::{
    node::Node,
    node_fit::{Needs, is_met},
    pod::Pod,
    strategic_merge,
};

/// A pod with its place.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// The pod.
    pub(super) pod: Arc<Pod>,
    /// Its version.
    pub(super) version: String,
    /// The place of its subset; nothing where it is in none.
    pub(super) subset: Option<usize>,
    /// It does not say yet that it is in the subset.
    pub(super) is_adopted: bool,
}

/// All pods with their places, sorted by name: the order in which they were found does not matter.
pub(super) fn members(seen: &Observed) -> Vec<Member> {
    let spread = &seen.spread;
    let mut pods: Vec<&Arc<Pod>> = seen.pods.iter().collect();
    pods.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
    let mut taken: BTreeMap<(String, usize), i64> = BTreeMap::new();
    let mut members: Vec<Member> = Vec::with_capacity(pods.len());
    let mut strays: Vec<usize> = Vec::new();
    for pod in pods {
        let version = seen.versioned.of(pod);
        let mark = Mark::of(&pod.metadata.annotations).filter(|mark| spread.key.name == *mark.name.as_str());
        let subset = mark.as_ref().and_then(|mark| spread.position(&mark.subset));
        if let Some(subset) = subset.filter(|_| pod.is_active()) {
            *taken.entry((version.clone(), subset)).or_default() += 1;
        }
        if mark.is_none() && pod.is_active() && !pod.metadata.unreadable {
            strays.push(members.len());
        }
        members.push(Member { pod: pod.clone(), version, subset, is_adopted: false });
    }
    for stray in strays {
        let Some(member) = members.get_mut(stray) else { continue };
        let room = |subset: usize| {
            let taken = taken.get(&(member.version.clone(), subset)).copied().unwrap_or(0);
            let most = spread.subsets.get(subset).map(|one| one.limit.most(Some(seen.total.unwrap_or(0))));
            match most {
                Some(Most::Open) => true,
                Some(Most::Pods(most)) => taken < most,
                Some(Most::Unknown) | None => false,
            }
        };
        if let Some(found) = suitable(seen, &member.pod, &room) {
            *taken.entry((member.version.clone(), found)).or_default() += 1;
            (member.subset, member.is_adopted) = (Some(found), true);
        }
    }
    members
}

/// The subset that a running pod fits best; the first one of equals.
fn suitable(seen: &Observed, pod: &Pod, has_room: &dyn Fn(usize) -> bool) -> Option<usize> {
    let node = seen.nodes.get(&pod.spec.node_name).filter(|_| !pod.spec.node_name.is_empty())?;
    let mut best: Option<(i64, usize)> = None;
    for (position, subset) in seen.spread.subsets.iter().enumerate() {
        if !fits(pod, subset, node) {
            continue;
        }
        let terms = subset.spec.preferred_node_selector.iter();
        let wishes = terms.filter(|term| is_met(&term.preference, node));
        let weight: i64 = wishes.map(|term| i64::from(term.weight)).sum();
        let is_patched = is_patched(seen.whole.get(&pod.metadata.name), subset);
        let score = 100 * weight + 10 * i64::from(is_patched) + i64::from(has_room(position));
        if best.is_none_or(|(most, _)| score > most) {
            best = Some((score, position));
        }
    }
    best.map(|(_, position)| position)
}

fn fits(pod: &Pod, subset: &Subset, node: &Node) -> bool {
    let needs = Needs::of_pod(pod).tolerating(subset.spec.tolerations.iter().cloned());
    let required = subset.spec.required_node_selector.as_ref();
    needs.tolerates_taints(node) && required.is_none_or(|term| needs.requiring(term).demands(node))
}

/// Whether a pod looks as if it had been made with the patch of a subset.
fn is_patched(pod: Option<&Arc<Value>>, subset: &Subset) -> bool {
    let Some((pod, patch)) = pod.zip(subset.spec.patch.as_ref()) else { return false };
    let Ok(mut patched) = strategic_merge::pod(pod, &patch.0) else { return false };
    let annotations = ["metadata", "annotations"];
    match json::at(pod, &annotations) {
        Some(known) => json::set(&mut patched, &annotations, known.clone()),
        None => drop(json::take(&mut patched, &annotations)),
    }
    patched == **pod
}

/// What adoption writes into a pod: its mark and, unless the spread says otherwise, the labels and annotations that new pods
/// of the subset get. As members of `metadata`.
pub(super) fn adoption(spread: &Spread, subset: &Subset) -> Map<String, Value> {
    let mark =
        Mark { name: spread.key.name.to_string(), subset: subset.spec.name.clone(), uid: String::new() };
    let mut metadata = json!({"annotations": {}});
    if !spread.leaves_metadata() {
        for part in ["labels", "annotations"] {
            let patch = subset.spec.patch.as_ref().and_then(|patch| patch.at(&["metadata", part]));
            let pairs: Map<String, Value> = patch
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .filter(|(key, value)| !key.starts_with('$') && (value.is_string() || value.is_null()))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            if !pairs.is_empty() {
                json::set(&mut metadata, &[part], pairs);
            }
        }
    }
    json::set(&mut metadata, &["annotations", MATCHED_WORKLOADSPREAD], mark.text());
    metadata.as_object().cloned().unwrap_or_default()
}

/// The pods that may be adopted, if their nodes are known: those that run and do not say that they belong to the spread.
pub fn strays<'p>(spread: &Spread, pods: &'p [Arc<Pod>]) -> impl Iterator<Item = &'p Arc<Pod>> {
    let name = spread.key.name.clone();
    pods.iter().filter(move |pod| {
        let mark = Mark::of(&pod.metadata.annotations);
        pod.is_active()
            && !pod.spec.node_name.is_empty()
            && mark.is_none_or(|mark| name != *mark.name.as_str())
    })
}

//! New pods: their names, their claims, their content.

use std::{collections::BTreeSet, time::Duration};

use jiff::SignedDuration;
use kruise_api::labels;
use serde_json::{Map, Value};

use super::view::{View, instance_id};
use crate::{claims, effect::Effect, new_pod::NewPod, random_id, revision::Revision, text::Text};

/// How many ids a pass thinks of: its work grows with what can be written, not with what is wanted. The same seed begins
/// with the same ids, so that a later pass finds the claims that were made for them.
const AT_ONCE: usize = 1_000;
/// A claim that is deleted goes with its pod, unless somebody holds it.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

/// The ids of pods to make, at most `wanted`, of which `room` can be made now. With claims that are used again, the ids of
/// claims whose pod is gone come first; where such a pod, or one of its claims, has still to end, its successor waits and
/// no other takes its place, unless a claim takes too long.
pub(super) fn ids(view: &View<'_>, wanted: usize, room: usize) -> Vec<Text> {
    let used = view.ids_of_pods();
    let ids_of_claims = |deleting: bool| -> BTreeSet<&Text> {
        let claims = view.seen.claims.iter().filter(|claim| claim.is_deleting() == deleting);
        claims.filter_map(|claim| instance_id(claim)).collect()
    };
    let (claimed, going) = (ids_of_claims(false), ids_of_claims(true));
    let mut ids: Vec<Text> = Vec::new();
    let mut wanted = wanted;
    if view.desired.reuse_claims {
        let (waiting, free): (Vec<&Text>, Vec<&Text>) =
            claimed.iter().copied().filter(|id| !used.contains(id)).partition(|id| going.contains(id));
        let waiting = waiting.into_iter().filter(|id| patience(view, id).is_some()).count();
        ids.extend(free.into_iter().take(wanted).cloned());
        let ending = view.inactive.iter().filter(|pod| pod.metadata.is_deleting());
        let reserved =
            ending.filter_map(|pod| instance_id(&pod.metadata)).filter(|id| claimed.contains(id)).count();
        wanted = wanted.saturating_sub(reserved + waiting).max(ids.len());
    }
    let wanted = wanted.min(room).min(AT_ONCE);
    // Pods that come and go do not change the ids, or claims that were made for the next pods would be thrown away.
    let mut random = random_id::Ids::new(random_id::mix(view.seen.seed, &view.set.uid));
    let mut taken: BTreeSet<Text> = ids.iter().cloned().collect();
    while ids.len() < wanted {
        let id = random.next_id();
        // Without reuse, claims of such an id were made for this very pod in the last pass, or go.
        if !used.contains(&id) && !going.contains(&id) && taken.insert(id.clone()) {
            ids.push(id);
        }
    }
    ids
}

/// How long a successor still waits for a claim of this id that was deleted and has not gone: perhaps it never goes.
fn patience(view: &View<'_>, id: &Text) -> Option<SignedDuration> {
    let claims = view.seen.claims.iter().filter(|claim| instance_id(claim) == Some(id));
    let left = claims.filter_map(|claim| {
        let left = PATIENCE.saturating_sub(view.now().duration_since(claim.deletion_timestamp?));
        left.is_positive().then_some(left.min(PATIENCE))
    });
    left.max()
}

/// When the first successor stops waiting for a claim of its id, if any waits.
pub(super) fn next_patience(view: &View<'_>) -> Option<Duration> {
    let claims = view.seen.claims.iter().filter(|claim| view.desired.reuse_claims && claim.is_deleting());
    let left = claims.filter_map(|claim| patience(view, instance_id(claim)?)).min()?;
    left.try_into().ok()
}

pub(super) fn name(view: &View<'_>, id: &str) -> String {
    format!("{}-{id}", view.set.key.name)
}

/// A pod to create.
pub(super) fn pod(view: &View<'_>, revision: &Revision, id: &str) -> Effect {
    let mut marks = view.revision_labels(revision);
    marks.insert(labels::CLONESET_INSTANCE_ID.to_owned(), id.into());
    let claims: Vec<(String, String)> = view
        .desired
        .claims
        .iter()
        .map(claims::template_name)
        .filter(|template| !template.is_empty())
        .map(|template| (template.to_owned(), claim_name(view, template, id)))
        .collect();
    NewPod::new(&view.set, &revision.template, &name(view, id))
        .with_generate_name(&view.set)
        .with_labels(marks)
        .preparing(view.now())
        .with_in_place_gate()
        .with_claims(&claims)
        .create(&view.set.key.namespace)
}

fn claim_name(view: &View<'_>, template: &str, id: &str) -> String {
    format!("{template}-{}-{id}", view.set.key.name)
}

/// The claims of a new pod that do not exist yet, with their names.
pub(super) fn claims(view: &View<'_>, id: &str) -> Vec<(Text, Effect)> {
    let mut labels: Map<String, Value> = view
        .desired
        .selector
        .match_labels
        .iter()
        .map(|(key, value)| (key.clone(), value.as_str().into()))
        .collect();
    labels.insert(labels::CLONESET_INSTANCE_ID.to_owned(), id.into());
    let (namespace, owner) = (&view.set.key.namespace, [view.set.controller_reference()]);
    let mut missing = Vec::new();
    for template in &view.desired.claims {
        let name = claim_name(view, claims::template_name(template), id);
        if view.seen.claims.iter().all(|claim| claim.name != name.as_str()) {
            let claim = claims::claim(template, namespace, &name, &labels, &owner);
            missing.push((Text::from(name), claims::create(claim, namespace)));
        }
    }
    missing
}

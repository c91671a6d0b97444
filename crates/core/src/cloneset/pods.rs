//! New pods: their names, their claims, their content.

use std::{collections::BTreeSet, time::Duration};

use jiff::SignedDuration;
use kruise_api::{
    annotations, conditions::IN_PLACE_UPDATE_READY, gates::Gate, json as paths, labels, lifecycle::State,
};
use serde_json::{Map, Value, json};

use super::view::{View, instance_id};
use crate::{
    hash, lifecycle,
    object::{PERSISTENT_VOLUME_CLAIM, POD},
    revision::{self, Revision},
    text::Text,
};

const ID_LENGTH: usize = 5;
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
    let mut random = Random::new(view);
    let mut taken: BTreeSet<Text> = ids.iter().cloned().collect();
    while ids.len() < wanted {
        let id = random.id();
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

/// Ids that differ with the seed. Pods that come and go do not change them, or claims that were made for the next pods would
/// be thrown away whenever one does.
struct Random {
    state: u64,
}

impl Random {
    fn new(view: &View<'_>) -> Self {
        let mixed = view
            .set
            .uid
            .bytes()
            .fold(view.seen.seed, |state, byte| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self { state: mixed }
    }

    fn id(&mut self) -> Text {
        let letters = hash::safe_letters();
        let mut bits = self.next();
        let mut id = String::with_capacity(ID_LENGTH);
        for _ in 0..ID_LENGTH {
            let count = letters.len() as u64;
            let index = usize::try_from(bits % count).unwrap_or(0);
            id.push(char::from(letters.get(index).copied().unwrap_or(b'b')));
            bits /= count;
        }
        id.into()
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The labels that tell the revision of a pod.
pub(super) fn revision_labels(view: &View<'_>, revision: &Revision) -> Map<String, Value> {
    let label = revision::label(revision.name(), view.gate(Gate::CloneSetShortHash));
    let mut pairs = Map::new();
    pairs.insert(labels::CONTROLLER_REVISION_HASH.to_owned(), label.into());
    pairs.insert(labels::POD_TEMPLATE_HASH.to_owned(), revision::short_hash(revision.name()).into());
    pairs
}

pub(super) fn name(view: &View<'_>, id: &str) -> String {
    format!("{}-{id}", view.set.key.name)
}

/// A pod to create.
pub(super) fn pod(view: &View<'_>, revision: &Revision, id: &str) -> Value {
    let template = &revision.template;
    let mut pod = json!({
        "apiVersion": POD.api_version(),
        "kind": POD.kind,
        "metadata": template.get("metadata").cloned().unwrap_or_else(|| json!({})),
        "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
    });
    let (state_labels, state_annotations) = lifecycle::marks(&State::PreparingNormal, view.now());
    let mut marks = revision_labels(view, revision);
    marks.insert(labels::CLONESET_INSTANCE_ID.to_owned(), id.into());
    marks.extend(state_labels.as_object().cloned().unwrap_or_default());
    if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| ["labels", "annotations", "finalizers"].contains(&name.as_str()));
        metadata.insert("name".to_owned(), name(view, id).into());
        metadata.insert("generateName".to_owned(), format!("{}-", view.set.key.name).into());
        metadata.insert("namespace".to_owned(), json!(view.set.key.namespace));
        metadata.insert("ownerReferences".to_owned(), json!([view.set.controller_reference()]));
    }
    for (key, value) in marks {
        paths::set(&mut pod, &["metadata", "labels", &key], value);
    }
    if let Some(timestamp) = state_annotations.get(annotations::LIFECYCLE_TIMESTAMP) {
        paths::set(
            &mut pod,
            &["metadata", "annotations", annotations::LIFECYCLE_TIMESTAMP],
            timestamp.clone(),
        );
    }
    add_gate(&mut pod);
    add_volumes(view, &mut pod, id);
    pod
}

fn add_gate(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let gates = spec.entry("readinessGates").or_insert_with(|| json!([]));
    let Some(gates) = gates.as_array_mut() else { return };
    let is_ours =
        |gate: &Value| gate.get("conditionType").and_then(Value::as_str) == Some(IN_PLACE_UPDATE_READY);
    if !gates.iter().any(is_ours) {
        gates.push(json!({"conditionType": IN_PLACE_UPDATE_READY}));
    }
}

fn add_volumes(view: &View<'_>, pod: &mut Value, id: &str) {
    let names: Vec<&str> = view.desired.claims.iter().filter_map(template_name).collect();
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if names.is_empty() {
        return;
    }
    let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
    let Some(volumes) = volumes.as_array_mut() else { return };
    volumes.retain(|volume| {
        !volume.get("name").and_then(Value::as_str).is_some_and(|name| names.contains(&name))
    });
    for name in names {
        let claim = claim_name(view, name, id);
        volumes.push(json!({"name": name, "persistentVolumeClaim": {"claimName": claim}}));
    }
}

fn template_name(template: &Value) -> Option<&str> {
    template.pointer("/metadata/name")?.as_str()
}

fn claim_name(view: &View<'_>, template: &str, id: &str) -> String {
    format!("{template}-{}-{id}", view.set.key.name)
}

/// The claims of a new pod that do not exist yet, with their names.
pub(super) fn claims(view: &View<'_>, id: &str) -> Vec<(Text, Value)> {
    let mut missing = Vec::new();
    for template in &view.desired.claims {
        let name = claim_name(view, template_name(template).unwrap_or_default(), id);
        if view.seen.claims.iter().any(|claim| claim.name == name.as_str()) {
            continue;
        }
        let mut labels =
            template.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
        let matched = view.desired.selector.match_labels.iter();
        labels.extend(matched.map(|(key, value)| (key.clone(), value.as_str().into())));
        labels.insert(labels::CLONESET_INSTANCE_ID.to_owned(), id.into());
        let mut metadata = json!({
            "name": name,
            "namespace": view.set.key.namespace,
            "labels": labels,
            "ownerReferences": [view.set.controller_reference()],
        });
        if let Some(annotations) = template.pointer("/metadata/annotations").filter(|pairs| pairs.is_object())
        {
            paths::set(&mut metadata, &["annotations"], annotations.clone());
        }
        let claim = json!({
            "apiVersion": PERSISTENT_VOLUME_CLAIM.api_version(),
            "kind": PERSISTENT_VOLUME_CLAIM.kind,
            "metadata": metadata,
            "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
        });
        missing.push((Text::from(name), claim));
    }
    missing
}

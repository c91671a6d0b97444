//! Which containers change together, and the write that changes them.

use std::collections::{BTreeMap, BTreeSet};

use kruise_api::{annotations, kubernetes::quantity::Quantity, time::Time};
use serde_json::{Map, Value, json};

use super::{
    Options, compare, metadata,
    state::{self, Amounts, Change, LastStatus, PreCheck, State},
};
use crate::{
    effect::{Effect, Patch, Target},
    object::POD,
    pod::Pod,
    text::Text,
};

/// The containers that change now: those without a place in the order of starting, those with the first place, and those
/// that read a label or annotation of these, because a pod shows one value to all its containers.
fn batch(pod: &Pod, change: &Change) -> BTreeSet<Text> {
    let named = compare::named(change);
    let candidates: Vec<_> = pod.spec.containers.iter().filter(|one| named.contains(&one.name)).collect();
    let first = candidates.iter().filter_map(|one| one.env.priority).max();
    let mut now: BTreeSet<Text> = candidates
        .iter()
        .filter(|one| one.env.priority.is_none() || one.env.priority == first)
        .map(|one| one.name.clone())
        .collect();
    loop {
        let pulled = candidates.iter().find(|one| {
            let Some(reads) = change.container_ref_metadata.get(&one.name) else { return false };
            let shares = |inside: &Text| {
                change.container_ref_metadata.get(inside).is_some_and(|other| reads.shares_a_key_with(other))
            };
            !now.contains(&one.name) && now.iter().any(shares)
        });
        match pulled {
            Some(pulled) => now.insert(pulled.name.clone()),
            None => return now,
        };
    }
}

/// Changes the containers of the next batch and moves the state on. Amounts of cpu and memory may need a write of their
/// own first; then only that one is returned, and the rest follows in the next pass.
///
/// `patch` is what else is written to the pod.
pub(super) fn apply(
    pod: &Pod,
    change: &Change,
    mut state: State,
    mut patch: Value,
    options: &Options,
    now: Time,
) -> Effect {
    let batch = batch(pod, change);
    let is_now = |name: &Text| batch.contains(name);
    if options.resize_subresource
        && let Some(resize) = resize(pod, change, &batch)
    {
        return resize;
    }
    if let Some(change) = &change.meta_data_patch {
        metadata::merge_into(&mut patch, change);
    }
    let mut containers: BTreeMap<&Text, Map<String, Value>> = BTreeMap::new();
    for (name, image) in change.container_images.iter().filter(|(name, _)| is_now(name)) {
        containers.entry(name).or_default().insert("image".to_owned(), json!(image));
        if let Some(status) = pod.status.container_statuses.iter().find(|status| status.name == **name) {
            let last = state.last_container_statuses.get_or_insert_default();
            last.insert(name.clone(), LastStatus { image_id: status.image_id.clone() });
        }
    }
    if !options.resize_subresource {
        for (name, amounts) in change.container_resources.iter().filter(|(name, _)| is_now(name)) {
            containers.entry(name).or_default().insert("resources".to_owned(), json!(amounts));
        }
    }
    for (_, read) in change.container_ref_metadata.iter().filter(|(name, _)| is_now(name)) {
        metadata::merge_into(&mut patch, &json!({"metadata": read}));
    }
    state.next_container_images = later(&change.container_images, &batch);
    state.next_container_ref_metadata = later(&change.container_ref_metadata, &batch);
    state.next_container_resources = later(&change.container_resources, &batch);
    let names: Vec<Text> = batch.iter().cloned().collect();
    if !state.has_next() {
        state.previous_revision = Text::default();
    }
    state.pre_check_before_next =
        state.has_next().then(|| PreCheck { containers_required_ready: names.clone() });
    state.container_batches_record.push(state::Batch { timestamp: now, containers: names });
    if !containers.is_empty() {
        let list: Vec<Value> = containers
            .into_iter()
            .map(|(name, mut members)| {
                members.insert("name".to_owned(), json!(name));
                members.into()
            })
            .collect();
        metadata::merge_into(&mut patch, &json!({"spec": {"containers": list}}));
    }
    write_state(pod, &state, &mut patch);
    drop_grace(pod, &mut patch);
    crate::lifecycle::patch(pod, patch)
}

/// Whether the first batch of a change begins with a write of its own for cpu and memory.
pub(super) fn resizes_first(pod: &Pod, change: &Change, options: &Options) -> bool {
    options.resize_subresource && resize(pod, change, &batch(pod, change)).is_some()
}

/// Says what comes before any of it is done: all of the change is still to come. New amounts of cpu and memory carry no
/// mark, so a pod that got them without a word could not be told from one that always had them, and nobody would take them
/// back.
pub(super) fn announce(pod: &Pod, change: &Change, mut state: State, mut patch: Value) -> Effect {
    if let Some(change) = &change.meta_data_patch {
        metadata::merge_into(&mut patch, change);
    }
    state.next_container_images = change.container_images.clone();
    state.next_container_ref_metadata = change.container_ref_metadata.clone();
    state.next_container_resources = change.container_resources.clone();
    write_state(pod, &state, &mut patch);
    drop_grace(pod, &mut patch);
    crate::lifecycle::patch(pod, patch)
}

fn later<T: Clone>(all: &BTreeMap<Text, T>, batch: &BTreeSet<Text>) -> BTreeMap<Text, T> {
    all.iter()
        .filter(|(name, _)| !batch.contains(*name))
        .map(|(name, one)| (name.clone(), one.clone()))
        .collect()
}

/// Puts the state into a patch. The key of older releases goes.
pub(super) fn write_state(pod: &Pod, state: &State, patch: &mut Value) {
    annotate(patch, annotations::IN_PLACE_UPDATE_STATE, state.text().into());
    if pod.metadata.annotations.contains(annotations::IN_PLACE_UPDATE_STATE_OLD) {
        annotate(patch, annotations::IN_PLACE_UPDATE_STATE_OLD, Value::Null);
    }
}

/// Ends the grace period in a patch.
pub(super) fn drop_grace(pod: &Pod, patch: &mut Value) {
    for key in [annotations::IN_PLACE_UPDATE_GRACE, annotations::IN_PLACE_UPDATE_GRACE_OLD] {
        if pod.metadata.annotations.contains(key) {
            annotate(patch, key, Value::Null);
        }
    }
}

pub(super) fn annotate(patch: &mut Value, key: &str, value: Value) {
    kruise_api::json::set(patch, &["metadata", "annotations", key], value);
}

/// The amounts of a batch that the pod does not have yet.
pub(super) fn resize(pod: &Pod, change: &Change, batch: &BTreeSet<Text>) -> Option<Effect> {
    let containers: Vec<Value> = pod
        .spec
        .containers
        .iter()
        .filter(|container| batch.contains(&container.name))
        .filter_map(|container| {
            let Amounts { limits, requests } = change.container_resources.get(&container.name)?;
            let missing = |wanted: &BTreeMap<Text, Text>,
                           present: &crate::pod::Amounts|
             -> BTreeMap<Text, Text> {
                let differs = |(name, amount): &(&Text, &Text)| {
                    !present.get(name).is_some_and(|present| is_same_amount(present, amount))
                };
                wanted.iter().filter(differs).map(|(name, amount)| (name.clone(), amount.clone())).collect()
            };
            let missing = Amounts {
                limits: missing(limits, &container.resources.limits),
                requests: missing(requests, &container.resources.requests),
            };
            (missing != Amounts::default()).then(|| json!({"name": container.name, "resources": missing}))
        })
        .collect();
    (!containers.is_empty()).then(|| Effect::Patch {
        target: Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone()),
        subresource: Some("resize"),
        patch: Patch::Strategic(json!({"spec": {"containers": containers}})),
    })
}

/// Whether two amounts have the same value, however they are written.
pub(super) fn is_same_amount(left: &str, right: &str) -> bool {
    match (Quantity::parse(left), Quantity::parse(right)) {
        (Ok(left), Ok(right)) => left.nanos() == right.nanos(),
        _ => left == right,
    }
}

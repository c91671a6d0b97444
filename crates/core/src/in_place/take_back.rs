//! How an update in place that the server refused half-way is taken back, and how the server is asked beforehand.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kruise_api::{annotations, time::Time};
use serde_json::{Map, Value, json};

use super::{
    Labels, Options, batch, compare, metadata,
    state::{self, Change, LastStatus, State},
};
use crate::{
    effect::{Effect, Patch, Target},
    object::POD,
    pod::Pod,
    text::Text,
};

/// The revision that a pod left for `towards` without having come there: a step of its update is still to come.
pub fn half_done(pod: &Pod, towards: &str) -> Option<Text> {
    let state = state::read(pod).ok().flatten()?;
    let is_open = state.has_next() || super::is_in_grace(pod);
    (is_open && state.revision == *towards && !state.previous_revision.is_empty())
        .then_some(state.previous_revision)
}

/// The next write that brings a pod back to the revision that it left: `back` is the way there. New amounts of cpu and memory
/// go first, in a write of their own; with `keep_amounts` they stay, because the server does not take them back.
pub fn take_back(
    pod: &Pod,
    back: &Change,
    marks: &Labels,
    options: &Options,
    keep_amounts: bool,
    now: Timestamp,
) -> Effect {
    let named: BTreeSet<Text> = compare::named(back).into_iter().cloned().collect();
    if options.resize_subresource
        && !keep_amounts
        && let Some(resize) = batch::resize(pod, back, &named)
    {
        return resize;
    }
    let mut patch = json!({"metadata": {"labels": marks.labels, "annotations": marks.annotations}});
    if let Some(change) = &back.meta_data_patch {
        metadata::merge_into(&mut patch, change);
    }
    for read in back.container_ref_metadata.values() {
        metadata::merge_into(&mut patch, &json!({"metadata": read}));
    }
    let mut state = State::new(back, Time(now));
    let containers = containers(pod, back, options);
    for name in containers.keys() {
        if let Some(status) = pod.status.container_statuses.iter().find(|status| status.name == **name) {
            let last = state.last_container_statuses.get_or_insert_default();
            last.insert((*name).clone(), LastStatus { image_id: status.image_id.clone() });
        }
    }
    if containers.is_empty() {
        // Nothing was changed: the pod is what its labels say again.
        batch::annotate(&mut patch, annotations::IN_PLACE_UPDATE_STATE, Value::Null);
        if pod.metadata.annotations.contains(annotations::IN_PLACE_UPDATE_STATE_OLD) {
            batch::annotate(&mut patch, annotations::IN_PLACE_UPDATE_STATE_OLD, Value::Null);
        }
    } else {
        let names = containers.keys().map(|name| (*name).clone()).collect();
        state.container_batches_record.push(state::Batch { timestamp: Time(now), containers: names });
        metadata::merge_into(&mut patch, &json!({"spec": {"containers": list(containers)}}));
        batch::write_state(pod, &state, &mut patch);
    }
    batch::drop_grace(pod, &mut patch);
    crate::lifecycle::patch(pod, patch)
}

/// What a server is asked before a pod is made not ready for a change: all of it at once.
pub fn questions(pod: &Pod, change: &Change, options: &Options) -> Vec<Effect> {
    let named: BTreeSet<Text> = compare::named(change).into_iter().cloned().collect();
    let mut patch = json!({"metadata": {}});
    if let Some(change) = &change.meta_data_patch {
        metadata::merge_into(&mut patch, change);
    }
    for read in change.container_ref_metadata.values() {
        metadata::merge_into(&mut patch, &json!({"metadata": read}));
    }
    let containers = containers(pod, change, options);
    if !containers.is_empty() {
        metadata::merge_into(&mut patch, &json!({"spec": {"containers": list(containers)}}));
    }
    let target = Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone());
    let whole = Effect::Ask { target, subresource: None, patch: Patch::Strategic(patch) };
    let resize = batch::resize(pod, change, &named).filter(|_| options.resize_subresource);
    let resize = resize.and_then(|effect| match effect {
        Effect::Patch { target, subresource, patch } => Some(Effect::Ask { target, subresource, patch }),
        _ => None,
    });
    std::iter::once(whole).chain(resize).collect()
}

/// What changes in containers, without what has a write of its own.
fn containers<'c>(
    pod: &Pod,
    change: &'c Change,
    options: &Options,
) -> BTreeMap<&'c Text, Map<String, Value>> {
    let mut containers: BTreeMap<&Text, Map<String, Value>> = BTreeMap::new();
    for (name, image) in &change.container_images {
        if pod.spec.containers.iter().any(|one| one.name == *name && one.image != *image) {
            containers.entry(name).or_default().insert("image".to_owned(), json!(image));
        }
    }
    for (name, amounts) in change.container_resources.iter().filter(|_| !options.resize_subresource) {
        containers.entry(name).or_default().insert("resources".to_owned(), json!(amounts));
    }
    containers
}

fn list(containers: BTreeMap<&Text, Map<String, Value>>) -> Vec<Value> {
    let named = containers.into_iter().map(|(name, mut members)| {
        members.insert("name".to_owned(), json!(name));
        members.into()
    });
    named.collect()
}

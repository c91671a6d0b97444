//! New pods: which revision they get, and what is in them.

use std::collections::BTreeMap;

use kruise_api::{annotations, gates::Gate, labels, lifecycle::State};
use serde_json::{Map, Value, json};

use super::{
    choice::is_updated,
    claims::claim_name,
    view::{Slot, View},
};
use crate::{
    claims::template_name,
    effect::Effect,
    lifecycle,
    new_pod::NewPod,
    pod::{Metadata, Pod},
    revision::{self, Revision, Revisions},
};

/// The side of an update that a pod to create is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The revision before the running update.
    Old,
    /// The newest revision.
    New,
}

/// The sides of the pods that are missing, by their place among the slots.
pub(super) fn sides(view: &View<'_>, revisions: &Revisions<'_>) -> BTreeMap<usize, Side> {
    let missing = view.slots.iter().enumerate().filter(|(_, slot)| slot.pod.is_none());
    let partition = usize::try_from(view.desired.partition).unwrap_or(0);
    if view.desired.policy.is_none() {
        return missing.map(|(place, _)| (place, Side::New)).collect();
    }
    if view.desired.unordered.is_none() {
        let side = |place| if place < partition { Side::Old } else { Side::New };
        return missing.map(|(place, _)| (place, side(place))).collect();
    }
    let existing = view.slots.iter().filter_map(|slot| slot.pod);
    let mut old = existing.filter(|pod| !is_updated(view, revisions, pod)).count();
    let side = |(place, _)| {
        if old < partition {
            old += 1;
            (place, Side::Old)
        } else {
            (place, Side::New)
        }
    };
    missing.map(side).collect()
}

/// The labels of a pod that name its revision.
pub(super) fn revision_labels(revision: &Revision) -> Map<String, Value> {
    let label = revision::label(revision.name(), false);
    [(labels::CONTROLLER_REVISION_HASH.to_owned(), label.into())].into_iter().collect()
}

/// Creates the pod of a slot.
pub(super) fn create(view: &View<'_>, slot: &Slot<'_>, revision: &Revision) -> Effect {
    let (state_labels, state_annotations) = lifecycle::marks(&first_state(view, revision), view.now());
    let timestamp = state_annotations.get(annotations::LIFECYCLE_TIMESTAMP).cloned().unwrap_or_default();
    let mut marks = revision_labels(revision);
    marks.extend(state_labels.as_object().cloned().unwrap_or_default());
    marks.insert(labels::STATEFULSET_POD_NAME.to_owned(), json!(slot.name));
    if view.gate(Gate::PodIndexLabel) {
        marks.insert(labels::POD_INDEX.to_owned(), slot.ordinal.to_string().into());
    }
    let mut pod = NewPod::new(&view.set, &revision.template, &slot.name)
        .with_generate_name(&view.set)
        .with_labels(marks)
        .with_annotation(annotations::LIFECYCLE_TIMESTAMP, timestamp)
        .with_spec(&["hostname"], json!(slot.name));
    // Without a service a subdomain of the template goes too, as with the native kind.
    let has_subdomain = revision.template.pointer("/spec/subdomain").is_some();
    if has_subdomain || !view.desired.service.is_empty() {
        pod = pod.with_spec(&["subdomain"], json!(view.desired.service));
    }
    if !view.desired.claims.is_empty() {
        pod = pod.with_spec(&["volumes"], volumes(view, slot, &revision.template));
    }
    pod.create(&view.set.key.namespace)
}

/// A pod that already carries everything that its first hook asks for need not wait for it.
fn first_state(view: &View<'_>, revision: &Revision) -> State {
    let Some(hook) = view.hook(|lifecycle| lifecycle.pre_normal.as_ref()) else { return State::Normal };
    let text =
        |member: &str| revision.template.pointer("/metadata").and_then(|metadata| metadata.get(member));
    let labels = text("labels").and_then(Value::as_object).into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())));
    let finalizers = text("finalizers").and_then(Value::as_array).into_iter().flatten();
    let finalizers = finalizers.filter_map(|finalizer| Some(finalizer.as_str()?.into()));
    let metadata =
        Metadata { labels: labels.collect(), finalizers: finalizers.collect(), ..Metadata::default() };
    let pod = Pod { metadata, ..Pod::default() };
    if lifecycle::is_all_hooked(Some(hook), &pod) { State::Normal } else { State::PreparingNormal }
}

/// The volumes of claims in the order of their templates, then those of the pod template that have other names.
fn volumes(view: &View<'_>, slot: &Slot<'_>, template: &Value) -> Value {
    let claims = &view.desired.claims;
    let mut volumes: Vec<Value> = claims
        .iter()
        .map(|claim| {
            let name = claim_name(claim, &view.set.key.name, slot.ordinal);
            json!({"name": template_name(claim), "persistentVolumeClaim": {"claimName": name}})
        })
        .collect();
    let others = template.pointer("/spec/volumes").and_then(Value::as_array);
    let is_other = |volume: &&Value| {
        let name = volume.get("name").and_then(Value::as_str);
        !claims.iter().any(|claim| name == Some(template_name(claim)))
    };
    volumes.extend(others.into_iter().flatten().filter(is_other).cloned());
    volumes.into()
}

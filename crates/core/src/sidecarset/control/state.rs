//! The annotation in which a pod carries what images its sidecars had before their last update.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::{annotations::SIDECARSET_IN_PLACE_UPDATE_STATE, time::Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    in_place::is_same_image,
    pod::{Container, ContainerStatus, Pod, or_default},
    text::Text,
};

/// How far the last update of one set is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct State {
    /// The hash of the set that the pod was updated to.
    #[serde(deserialize_with = "or_default")]
    pub(super) revision: String,
    /// When.
    pub(super) update_timestamp: Option<Time>,
    /// The contents of images that ran before, by container.
    #[serde(deserialize_with = "or_default")]
    pub(super) last_container_statuses: BTreeMap<Text, Last>,
    /// What others may know of it.
    #[serde(flatten)]
    pub(super) rest: BTreeMap<String, Value>,
}

/// How many images a container may wait for; a node starts none that is older.
const PENDING: usize = 5;

/// What was known of a container before its last update.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Last {
    /// The content of the image that ran.
    #[serde(rename = "imageID", default, deserialize_with = "or_default")]
    image_id: Text,
    /// Images that it should have had before and had not got yet, the newest last. A node that was about to start one of them
    /// does so before it looks at its pod again. The original does not know this and takes such a container for updated.
    #[serde(
        rename = "pendingImages",
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pending: Vec<Text>,
}

impl Last {
    fn of(pod: &Pod, state: &State, name: &Text) -> Self {
        let image_id = status(pod, name).map(|status| status.image_id.clone()).unwrap_or_default();
        let wanted = pod.spec.containers.iter().find(|container| container.name == *name);
        let Some(wanted) = wanted.map(|container| &container.image) else {
            return Self { image_id, pending: Vec::new() };
        };
        // A container without an image has not started yet.
        if !image_id.is_empty() && is_consistent(pod, Some(state), &[name]) {
            return Self { image_id, pending: Vec::new() };
        }
        let before = state.last_container_statuses.get(name).into_iter().flat_map(|last| &last.pending);
        let mut pending: Vec<Text> = before.filter(|image| *image != wanted).cloned().collect();
        pending.push(wanted.clone());
        let surplus = pending.len().saturating_sub(PENDING);
        pending.drain(..surplus);
        Self { image_id, pending }
    }

    /// Whether what runs is neither what ran before the update nor what should have run before it.
    fn is_over(&self, status: &ContainerStatus) -> bool {
        self.image_id != status.image_id
            && !self.pending.iter().any(|image| is_same_image(image, &status.image))
    }
}

/// The states of all sets of a pod, by the name of the set; nothing for an annotation that cannot be read.
pub(super) fn read(pod: &Pod) -> Option<BTreeMap<String, State>> {
    match pod.metadata.annotations.text(SIDECARSET_IN_PLACE_UPDATE_STATE) {
        Some(text) => serde_json::from_str(text).ok(),
        None => Some(BTreeMap::new()),
    }
}

/// The text of the annotation after an update of `containers` by a set. What other sets wrote stays.
pub(super) fn recorded<'a>(
    pod: &Pod,
    set: &str,
    revision: &str,
    containers: impl Iterator<Item = &'a Text>,
    now: Timestamp,
) -> String {
    let mut states = read(pod).unwrap_or_default();
    let state = states.entry(set.to_owned()).or_default();
    revision.clone_into(&mut state.revision);
    state.update_timestamp = Some(Time(now));
    for name in containers {
        let last = Last::of(pod, state, name);
        state.last_container_statuses.insert(name.clone(), last);
    }
    serde_json::to_string(&states).unwrap_or_default()
}

/// Whether no update of a set is on its way in the pod. An annotation that cannot be read says that one is.
pub fn is_settled(pod: &Pod) -> bool {
    read(pod).is_some_and(|states| {
        states.values().all(|state| {
            let names: Vec<&str> = state.last_container_statuses.keys().map(Text::as_str).collect();
            names.is_empty() || is_consistent(pod, Some(state), &names)
        })
    })
}

pub(super) fn status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    pod.status.container_statuses.iter().find(|status| status.name == container)
}

/// Whether containers run what the spec of their pod says, as far as the last update of a set is concerned. `state` is
/// nothing when the annotation cannot be read.
pub(super) fn is_consistent(pod: &Pod, state: Option<&State>, names: &[&str]) -> bool {
    if pod.status.container_statuses.len() != pod.spec.containers.len() {
        return false;
    }
    let containers = || pod.spec.containers.iter().filter(move |one| names.contains(&one.name.as_str()));
    if containers().all(|container| container.image.contains('@')) {
        return containers().all(|container| runs_digest(pod, container));
    }
    let Some(state) = state else { return false };
    containers().all(|container| {
        let last = state.last_container_statuses.get(&container.name);
        let (Some(last), Some(status)) = (last, status(pod, &container.name)) else { return true };
        last.is_over(status) || is_same_image(&container.image, &status.image)
    })
}

/// An image by digest says itself which content it has.
fn runs_digest(pod: &Pod, container: &Container) -> bool {
    status(pod, &container.name).is_some_and(|status| {
        let id = status.image_id.split_once("://").map_or(status.image_id.as_str(), |(_, id)| id);
        is_same_image(&container.image, id)
    })
}

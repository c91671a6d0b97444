//! The annotation in which a pod carries what images its sidecars had before their last update.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::{annotations::SIDECARSET_IN_PLACE_UPDATE_STATE, time::Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    in_place::{is_same_image, state::LastStatus},
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
    pub(super) last_container_statuses: BTreeMap<Text, LastStatus>,
    /// What others may know of it.
    #[serde(flatten)]
    pub(super) rest: BTreeMap<String, Value>,
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
        let image_id = status(pod, name).map(|status| status.image_id.clone()).unwrap_or_default();
        state.last_container_statuses.insert(name.clone(), LastStatus { image_id });
    }
    serde_json::to_string(&states).unwrap_or_default()
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
        last.image_id != status.image_id || is_same_image(&container.image, &status.image)
    })
}

/// An image by digest says itself which content it has.
fn runs_digest(pod: &Pod, container: &Container) -> bool {
    status(pod, &container.name).is_some_and(|status| {
        let id = status.image_id.split_once("://").map_or(status.image_id.as_str(), |(_, id)| id);
        is_same_image(&container.image, id)
    })
}

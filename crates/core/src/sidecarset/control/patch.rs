//! The write that changes the sidecars of a pod. Images and annotations go together, so that a pod always says truly what it
//! has.

use std::collections::BTreeMap;

use kruise_api::annotations::{
    SIDECARSET_HASH, SIDECARSET_HASH_WITHOUT_IMAGE, SIDECARSET_IN_PLACE_UPDATE_STATE,
    SIDECARSET_VERSION_ALT_PREFIX, SIDECARSET_VERSION_PREFIX, SIDECARSET_WORKING_HOT_UPGRADE_CONTAINER,
};
use serde_json::{Value, json};

use super::{
    hot::{self, Turn},
    pods::{Member, View},
    state,
};
use crate::{
    effect::{Effect, Patch, Target},
    object::POD,
    pod::Pod,
    sidecarset::{
        containers,
        metadata::{self, NotJson},
        record::{self, Entry},
    },
    text::Text,
};

/// The version of a twin that has nothing to do.
const IDLE: &str = "0";
/// The version of a twin that was injected and never upgraded.
const INJECTED: &str = "1";

/// What changes in a pod.
#[derive(Default)]
struct Change {
    /// New images, by container.
    images: BTreeMap<Text, Text>,
    /// Annotations with new values.
    annotations: BTreeMap<String, String>,
    /// Which twin works, by sidecar, if that changes.
    working: BTreeMap<String, String>,
    /// Containers whose state before is recorded.
    recorded: Vec<Text>,
}

impl Change {
    fn image(&mut self, container: &str, image: &str) {
        self.images.insert(container.into(), image.into());
        self.recorded.push(container.into());
    }

    fn version(&mut self, container: &str, version: &str) {
        self.annotations.insert(format!("{SIDECARSET_VERSION_PREFIX}{container}"), version.to_owned());
    }

    fn version_of_twin(&mut self, container: &str, version: &str) {
        self.annotations.insert(format!("{SIDECARSET_VERSION_ALT_PREFIX}{container}"), version.to_owned());
    }

    fn empty(&mut self, container: &str, image: &str, working: &str) {
        self.image(container, image);
        self.version(container, IDLE);
        self.version_of_twin(working, IDLE);
    }

    /// Gives up the twin that failed.
    fn back(&mut self, sidecar: &str, serving: String, failed: &str, empty_image: &str) {
        self.empty(failed, empty_image, &serving);
        self.working.insert(sidecar.to_owned(), serving);
    }

    fn into_effect(mut self, view: &View<'_>, member: &Member<'_>, hash: &str) -> Effect {
        let (pod, now) = (member.pod, view.seen.now);
        if !self.working.is_empty() {
            let mut working = member.working.clone();
            working.extend(self.working);
            let text = record::write_working(&working);
            self.annotations.insert(SIDECARSET_WORKING_HOT_UPGRADE_CONTAINER.to_owned(), text);
        }
        let state = state::recorded(pod, view.desired.name, hash, self.recorded.iter(), now);
        self.annotations.insert(SIDECARSET_IN_PLACE_UPDATE_STATE.to_owned(), state);
        self.annotations.retain(|key, value| pod.metadata.annotations.text(key) != Some(value.as_str()));
        self.images.retain(|name, image| member.image(name) != image.as_str());
        let mut patch = json!({"metadata": {"annotations": self.annotations}});
        if !self.images.is_empty()
            && let Some(members) = patch.as_object_mut()
        {
            let images = self.images.iter().map(|(name, image)| json!({"name": name, "image": image}));
            members.insert("spec".to_owned(), json!({"containers": images.collect::<Vec<Value>>()}));
        }
        let target = Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone())
            .at_version(pod.metadata.resource_version.clone());
        Effect::Patch { target, subresource: None, patch: Patch::Strategic(patch) }
    }
}

/// The annotations of the set that a pod gets with an update.
pub(super) fn annotations(view: &View<'_>, member: &Member<'_>) -> Result<BTreeMap<String, String>, NotJson> {
    let present = |key: &str| member.pod.metadata.annotations.text(key);
    metadata::changes(&view.seen.set.spec.patch_pod_metadata, present)
}

/// Brings a pod to what the set has now. `annotations` go along; `revision` is the name of the revision of the set.
pub(super) fn update(
    view: &View<'_>,
    member: &Member<'_>,
    annotations: BTreeMap<String, String>,
    revision: &str,
) -> Effect {
    let mut change = Change { annotations, ..Change::default() };
    let version = view.seen.set.metadata.resource_version.as_deref().unwrap_or_default();
    for sidecar in &view.desired.sidecars {
        if !sidecar.is_hot() && member.image(sidecar.name) != sidecar.image {
            change.image(sidecar.name, sidecar.image);
        }
    }
    for (sidecar, empty_image) in hot::sidecars(view.desired) {
        match hot::turn(member, sidecar) {
            Turn::Stay => {}
            Turn::Forward { new, old } => {
                change.image(&new, sidecar.image);
                change.version(&new, version);
                change.version_of_twin(&new, version_of(member.pod, &old));
                change.version_of_twin(&old, version);
                change.working.insert(sidecar.name.to_owned(), new);
            }
            Turn::Back { serving, failed } => change.back(sidecar.name, serving, &failed, empty_image),
        }
    }
    change.annotations.extend(hashes(view, member, revision));
    change.into_effect(view, member, &view.desired.hashes.full)
}

/// Makes the idle twins of a pod empty, or gives up those that failed after others took an upgrade back. What the pod
/// follows stays what it was.
pub(super) fn reset(view: &View<'_>, member: &Member<'_>) -> Effect {
    let mut change = Change::default();
    for (sidecar, empty_image) in hot::sidecars(view.desired) {
        let hot::Twins { working, idle } = hot::of(member, sidecar);
        match hot::turn(member, sidecar) {
            Turn::Back { serving, failed } if hot::is_stuck(member, view.desired) => {
                change.back(sidecar.name, serving, &failed, empty_image);
            }
            _ if hot::is_reset_due(member, view.desired) && member.image(&idle) != empty_image => {
                change.empty(&idle, empty_image, &working);
            }
            _ => {}
        }
    }
    let hash = member.entry.as_ref().map_or(view.desired.hashes.full.as_str(), |entry| entry.hash.as_str());
    change.into_effect(view, member, hash)
}

fn version_of<'a>(pod: &'a Pod, container: &str) -> &'a str {
    pod.metadata.annotations.text(&format!("{SIDECARSET_VERSION_PREFIX}{container}")).unwrap_or(INJECTED)
}

/// Both annotations with hashes: the one that changes, and the other one in the form of today.
fn hashes(view: &View<'_>, member: &Member<'_>, revision: &str) -> BTreeMap<String, String> {
    let read = |key: &str| member.pod.metadata.annotations.text(key).and_then(|text| record::read(text).ok());
    let sidecars = containers::recorded(&view.seen.set);
    let hash = &view.desired.hashes.full;
    let mut entries = read(SIDECARSET_HASH).unwrap_or_default();
    let entry = Entry::new(view.desired.name, hash, &sidecars, revision, view.seen.now);
    entries.insert(view.desired.name.to_owned(), entry);
    let mut written = BTreeMap::from([(SIDECARSET_HASH.to_owned(), record::write(&entries))]);
    if let Some(entries) = read(SIDECARSET_HASH_WITHOUT_IMAGE) {
        written.insert(SIDECARSET_HASH_WITHOUT_IMAGE.to_owned(), record::write(&entries));
    }
    written
}

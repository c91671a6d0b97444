//! The annotations in which a pod carries its update.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kruise_api::{annotations, time::Time};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use super::Error;
use crate::{
    pod::{Pod, or_default},
    text::Text,
};

/// What an update does to a pod. The annotation of the grace period holds it whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The name of the revision.
    pub revision: Text,
    /// New images, by container.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub container_images: BTreeMap<Text, Text>,
    /// Labels and annotations that go with containers whose environment reads them.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub container_ref_metadata: BTreeMap<Text, RefMetadata>,
    /// New amounts of cpu and memory, by container.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub container_resources: BTreeMap<Text, Amounts>,
    /// The change of labels, annotations and finalizers.
    #[serde(default, with = "bytes", skip_serializing_if = "Option::is_none")]
    pub meta_data_patch: Option<Value>,
    /// Whether containers are started again because of labels or annotations.
    #[serde(default, skip_serializing_if = "is_false")]
    pub update_env_from_metadata: bool,
    /// How long the pod is not ready before its containers change.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub grace_seconds: u64,
    /// The revision that is left.
    #[serde(skip)]
    pub previous: Text,
}

/// Labels and annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefMetadata {
    /// Labels.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<Text, Text>,
    /// Annotations.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<Text, Text>,
}

impl RefMetadata {
    /// Whether both have a key in common.
    pub fn shares_a_key_with(&self, other: &Self) -> bool {
        self.labels.keys().any(|key| other.labels.contains_key(key))
            || self.annotations.keys().any(|key| other.annotations.contains_key(key))
    }
}

/// Amounts of resources by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amounts {
    /// What may be used at most.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<Text, Text>,
    /// What is asked for.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<Text, Text>,
}

/// How far an update is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// The name of the revision.
    pub revision: Text,
    /// When the update started.
    pub update_timestamp: Time,
    /// The images that ran before, by container. Null when no image changed.
    #[serde(default)]
    pub last_container_statuses: Option<BTreeMap<Text, LastStatus>>,
    /// Whether containers are started again because of labels or annotations.
    #[serde(default, skip_serializing_if = "is_false")]
    pub update_env_from_metadata: bool,
    /// Whether amounts of cpu or memory changed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub update_resources: bool,
    /// Whether images changed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub update_images: bool,
    /// Images of later batches.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub next_container_images: BTreeMap<Text, Text>,
    /// Labels and annotations of later batches.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub next_container_ref_metadata: BTreeMap<Text, RefMetadata>,
    /// Cpu and memory of later batches.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub next_container_resources: BTreeMap<Text, Amounts>,
    /// What must hold before the next batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_check_before_next: Option<PreCheck>,
    /// The batches so far.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub container_batches_record: Vec<Batch>,
    /// The revision that is left, while something is still to come: if the server refuses that, the pod goes back to it. The
    /// original does not know this member.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_empty")]
    pub previous_revision: Text,
}

/// What ran before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastStatus {
    /// The content of the image.
    #[serde(rename = "imageID", default)]
    pub image_id: Text,
}

/// What must hold before the next batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreCheck {
    /// Containers that must be ready.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub containers_required_ready: Vec<Text>,
}

/// Containers that changed together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// When.
    pub timestamp: Time,
    /// Which; none when only metadata changed.
    #[serde(default, deserialize_with = "or_default")]
    pub containers: Vec<Text>,
}

impl State {
    /// An update that has not changed anything yet.
    pub fn new(change: &Change, now: Time) -> Self {
        Self {
            revision: change.revision.clone(),
            update_timestamp: now,
            last_container_statuses: None,
            update_env_from_metadata: change.update_env_from_metadata,
            update_resources: !change.container_resources.is_empty(),
            update_images: !change.container_images.is_empty(),
            next_container_images: BTreeMap::new(),
            next_container_ref_metadata: BTreeMap::new(),
            next_container_resources: BTreeMap::new(),
            pre_check_before_next: None,
            container_batches_record: Vec::new(),
            previous_revision: Text::default(),
        }
    }

    /// Whether something is left for later batches.
    pub fn has_next(&self) -> bool {
        !self.next_container_images.is_empty()
            || !self.next_container_ref_metadata.is_empty()
            || !self.next_container_resources.is_empty()
    }

    /// The text of the annotation.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Change {
    /// The text of the annotation.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether nothing but amounts of cpu and memory changes in containers.
    pub fn is_vertical_only(&self) -> bool {
        !self.container_resources.is_empty()
            && self.container_images.is_empty()
            && !self.update_env_from_metadata
    }
}

/// How far the update of a pod is; nothing for a pod that was never updated.
pub fn read(pod: &Pod) -> Result<Option<State>, Error> {
    let text = text(pod, annotations::IN_PLACE_UPDATE_STATE, annotations::IN_PLACE_UPDATE_STATE_OLD);
    text.map(|text| parse(pod, annotations::IN_PLACE_UPDATE_STATE, text)).transpose()
}

/// The change that waits for the end of the grace period.
pub fn grace(pod: &Pod) -> Result<Option<Change>, Error> {
    grace_text(pod).map(|text| parse(pod, annotations::IN_PLACE_UPDATE_GRACE, text)).transpose()
}

pub(super) fn grace_text(pod: &Pod) -> Option<&str> {
    text(pod, annotations::IN_PLACE_UPDATE_GRACE, annotations::IN_PLACE_UPDATE_GRACE_OLD)
}

fn text<'a>(pod: &'a Pod, name: &str, old_name: &str) -> Option<&'a str> {
    pod.metadata.annotations.text(name).or_else(|| pod.metadata.annotations.text(old_name))
}

fn parse<T: de::DeserializeOwned>(pod: &Pod, annotation: &'static str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|problem| Error::Unreadable {
        pod: pod.metadata.key().to_string(),
        annotation,
        problem: problem.to_string(),
    })
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_empty(text: &Text) -> bool {
    text.as_str().is_empty()
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// JSON as the base64 of its text.
mod bytes {
    use super::*;

    pub(super) fn serialize<S: Serializer>(patch: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
        let text = patch.as_ref().map(crate::canonical_json::text).unwrap_or_default();
        serializer.serialize_str(&STANDARD.encode(text))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
        let Some(text) = Option::<Text>::deserialize(deserializer)? else { return Ok(None) };
        let bytes =
            STANDARD.decode(text.as_str()).map_err(|_| de::Error::custom("metaDataPatch is no base64"))?;
        serde_json::from_slice(&bytes).map(Some).map_err(de::Error::custom)
    }
}

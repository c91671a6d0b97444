//! A NodeImage as rules see it: the fields that decide something.
//!
//! A cache holds one for each node, and each may have hundreds of tags, so this is small: messages, progress and ids of
//! images are left out, and texts are shared. What is written is a list of [steps](super::Steps), which leave alone what is
//! not here.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::nodeimage::v1beta1::{Phase, PullPolicy, SandboxConfig};
use serde::{Deserialize, de::IgnoredAny};

use crate::{
    object::{ObjectKey, ObjectRef},
    pod::{Metadata, boxed},
    pre_download::IMAGE_PULL_JOB,
    text::{Pool, Text},
};

use super::NODE_IMAGE;

/// A NodeImage.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeImage {
    /// Name, labels.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: Option<Spec>,
    /// What is.
    pub status: Option<Status>,
}

/// Which images the node is to pull.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Spec {
    /// By name, without tag.
    pub images: BTreeMap<Text, Image>,
}

/// The tags of one image, and how to get at it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Image {
    /// Secrets with credentials.
    #[serde(deserialize_with = "boxed")]
    pub pull_secrets: Box<[PullSecret]>,
    /// The tags, in the order in which they are stored.
    #[serde(deserialize_with = "boxed")]
    pub tags: Box<[Tag]>,
    /// What the container runtime gets along with the pull.
    pub sandbox_config: Option<Box<SandboxConfig>>,
}

/// A secret with credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct PullSecret {
    /// Its namespace.
    pub namespace: Text,
    /// Its name.
    pub name: Text,
    /// `batch` for one that lives as long as the image; empty for one that lives as long as the secret.
    pub mode: Text,
}

/// One tag that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tag {
    /// The tag, or a digest.
    pub tag: Text,
    /// When this round began.
    pub created_at: Option<Timestamp>,
    /// Limits of time and of attempts.
    pub pull_policy: Option<PullPolicy>,
    /// Who wants it.
    #[serde(deserialize_with = "boxed")]
    pub owner_references: Box<[TagOwner]>,
    /// The round.
    pub version: i64,
    /// Whether an image that is there is pulled again.
    pub image_pull_policy: Text,
}

/// Who wants a tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TagOwner {
    /// The kind.
    pub kind: Text,
    /// The namespace.
    pub namespace: Text,
    /// The name.
    pub name: Text,
    /// The uid.
    pub uid: Text,
}

/// How far the node is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// Tags that are wanted.
    pub desired: i32,
    /// Tags that are there.
    pub succeeded: i32,
    /// Tags that could not be pulled.
    pub failed: i32,
    /// Tags that are being pulled.
    pub pulling: i32,
    /// Tags that wait for their turn.
    pub waiting: i32,
    /// By the name of the image. Nothing at all is not the same as no image: it tells how to write one.
    pub image_statuses: Option<BTreeMap<Text, ImageStatus>>,
    /// Whether the end of the first list is noted.
    pub first_sync_status: Option<IgnoredAny>,
}

/// How far one image is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ImageStatus {
    /// In the order in which they are stored.
    #[serde(deserialize_with = "boxed")]
    pub tags: Box<[TagStatus]>,
}

/// How far one tag is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TagStatus {
    /// The tag, or a digest.
    pub tag: Text,
    /// How far.
    pub phase: Phase,
    /// When it ended.
    pub completion_time: Option<Timestamp>,
    /// The round that it is about.
    pub version: i64,
}

/// What a node says about the round of a tag that is wanted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing yet.
    None,
    /// It has begun.
    Begun,
    /// The image is there.
    Succeeded,
    /// The image could not be pulled.
    Failed,
}

impl Answer {
    /// Whether the round is over.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

impl NodeImage {
    /// The object as the subject of an event or a write.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef { resource: NODE_IMAGE, key: self.metadata.key(), uid: self.metadata.uid.clone() }
    }

    /// All images that are wanted.
    pub fn images(&self) -> impl Iterator<Item = (&Text, &Image)> {
        self.spec.iter().flat_map(|spec| &spec.images)
    }

    /// An image that is wanted.
    pub fn image(&self, name: &str) -> Option<&Image> {
        self.spec.as_ref()?.images.get(name)
    }

    /// All tags that are wanted, each with the name of its image.
    pub fn tags(&self) -> impl Iterator<Item = (&Text, &Tag)> {
        self.images().flat_map(|(name, image)| image.tags.iter().map(move |tag| (name, tag)))
    }

    /// The status of a tag, of whatever round.
    pub fn tag_status(&self, image: &str, tag: &str) -> Option<&TagStatus> {
        let statuses = self.status.as_ref()?.image_statuses.as_ref()?;
        let tags = &statuses.get(image)?.tags;
        tags.get(position(tags, tag, |status| &status.tag)?)
    }

    /// The status of the round of a tag that is wanted now.
    pub fn current_status(&self, image: &str, tag: &Tag) -> Option<&TagStatus> {
        self.tag_status(image, &tag.tag).filter(|status| status.version == tag.version)
    }

    /// What the node says about the round of a tag that is wanted now.
    pub fn answer(&self, image: &str, tag: &Tag) -> Answer {
        match self.current_status(image, tag).map(|status| &status.phase) {
            None => Answer::None,
            Some(Phase::Succeeded) => Answer::Succeeded,
            Some(Phase::Failed) => Answer::Failed,
            Some(Phase::Waiting | Phase::Pulling | Phase::Other(_)) => Answer::Begun,
        }
    }

    /// Makes equal texts one.
    pub fn share(&mut self, pool: &mut Pool) {
        self.metadata.share(pool);
        for image in self.spec.iter_mut().flat_map(|spec| spec.images.values_mut()) {
            for PullSecret { namespace, name, mode } in &mut image.pull_secrets {
                [namespace, name, mode].into_iter().for_each(|text| pool.share(text));
            }
            for Tag { tag, image_pull_policy, owner_references, .. } in &mut image.tags {
                [tag, image_pull_policy].into_iter().for_each(|text| pool.share(text));
                for TagOwner { kind, namespace, name, uid } in owner_references.iter_mut() {
                    [kind, namespace, name, uid].into_iter().for_each(|text| pool.share(text));
                }
            }
        }
        let statuses = self.status.iter_mut().filter_map(|status| status.image_statuses.as_mut());
        for status in statuses.flat_map(BTreeMap::values_mut).flat_map(|image| image.tags.iter_mut()) {
            pool.share(&mut status.tag);
        }
    }
}

impl Image {
    /// Where a tag is, and the tag.
    pub fn tag(&self, tag: &str) -> Option<(usize, &Tag)> {
        let place = position(&self.tags, tag, |known| &known.tag)?;
        Some((place, self.tags.get(place)?))
    }
}

/// Where a tag is in a list that is sorted, unless somebody wrote it in another order. An image may have hundreds of tags,
/// and every change of a node looks for each of them.
fn position<T>(list: &[T], tag: &str, name: impl Fn(&T) -> &Text) -> Option<usize> {
    let sorted = list.binary_search_by(|known| name(known).as_str().cmp(tag)).ok();
    sorted.or_else(|| list.iter().position(|known| name(known) == tag))
}

impl Tag {
    /// Whether the object with this uid wants the tag.
    pub fn is_wanted_by(&self, uid: &str) -> bool {
        self.owner_references.iter().any(|owner| owner.uid == *uid)
    }
}

impl TagOwner {
    /// Whether this is an ImagePullJob.
    pub fn is_job(&self) -> bool {
        self.kind == IMAGE_PULL_JOB.kind
    }

    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey { namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

impl PullSecret {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey { namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

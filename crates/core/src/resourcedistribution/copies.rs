//! Objects of the distributed name as they are found in namespaces, and whose they are.

use std::fmt;

use kruise_api::names::APPS_GROUP;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{
    RESOURCE_DISTRIBUTION,
    content::{Content, Digest},
};
use crate::{
    object::ObjectRef,
    pod::Metadata,
    text::{Pool, Text},
};

/// A Secret or ConfigMap without what is in it: only a digest and the keys are kept.
#[derive(Clone, Default, PartialEq)]
pub struct Found {
    /// Name, labels, owners.
    pub metadata: Metadata,
    pub(super) digest: Digest,
    pub(super) data_keys: Box<[Text]>,
    pub(super) binary_keys: Box<[Text]>,
    pub(super) is_immutable: bool,
}

impl fmt::Debug for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.metadata.key();
        formatter.debug_struct("Found").field("key", &key).finish_non_exhaustive()
    }
}

impl Found {
    /// An object of which only the metadata are known. It is taken for a different one.
    pub fn bare(metadata: Metadata) -> Self {
        Self { metadata, ..Self::default() }
    }

    /// Makes equal texts one.
    pub fn share(&mut self, pool: &mut Pool) {
        self.metadata.share(pool);
        self.data_keys.iter_mut().chain(self.binary_keys.iter_mut()).for_each(|key| pool.share(key));
    }
}

impl<'de> Deserialize<'de> for Found {
    /// Only the metadata can fail: an error must not repeat what is in a Secret.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            #[serde(default)]
            metadata: Metadata,
            #[serde(flatten)]
            members: Map<String, Value>,
        }
        let Wire { metadata, members } = Wire::deserialize(deserializer)?;
        let content = Content::stored(&members);
        Ok(Self {
            metadata,
            digest: content.digest(),
            data_keys: content.keys("data"),
            binary_keys: content.keys("binaryData"),
            is_immutable: content.is_immutable(),
        })
    }
}

/// Whether a ResourceDistribution controls an object. Only the reference of the controller decides, because anybody can
/// write annotations; its version does not matter.
pub fn is_controlled(metadata: &Metadata, own: &ObjectRef) -> bool {
    metadata.controller().is_some_and(|controller| {
        if controller.uid.is_empty() || own.uid.is_empty() {
            let is_kind = controller.kind == RESOURCE_DISTRIBUTION.kind && controller.group() == APPS_GROUP;
            return is_kind && controller.name == own.key.name;
        }
        controller.uid == own.uid
    })
}

/// Whether a change of an object of the distributed name matters to a ResourceDistribution: it is one of its copies, or the
/// name was taken, left or given to somebody else.
pub fn is_concerned(old: Option<&Metadata>, new: Option<&Metadata>, own: &ObjectRef) -> bool {
    let is_ours = |object: Option<&Metadata>| object.is_some_and(|object| is_controlled(object, own));
    let controller = |object: Option<&Metadata>| object.map(|object| object.controller().cloned());
    is_ours(old) || is_ours(new) || controller(old) != controller(new)
}

//! A ResourceDistribution as its cache keeps it: with the hash of its resource as the server sent it.

use std::fmt;

use kruise_api::resourcedistribution::v1beta1::ResourceDistribution;
use kruise_core::{
    pod::Metadata,
    resourcedistribution::{Source, hash, hash_of},
    text::{Pool, Text},
};
use kruise_runtime::{
    cache::{Guarded, View},
    decode::Unread,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// A ResourceDistribution.
#[derive(Clone)]
pub struct Distribution {
    /// The object, as far as it can be read.
    pub stored: Guarded<ResourceDistribution>,
    /// The hash that its copies carry: of the very bytes that the server sent, as the original computes it.
    pub hash: Text,
}

impl fmt::Debug for Distribution {
    /// The resource may be a Secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Distribution").field(&self.stored.metadata.name).finish()
    }
}

#[derive(Deserialize)]
struct Object<'t> {
    #[serde(borrow)]
    spec: Spec<'t>,
}

#[derive(Deserialize)]
struct Spec<'t> {
    #[serde(borrow)]
    resource: &'t RawValue,
}

impl View for Distribution {
    fn metadata(&self) -> &Metadata {
        self.stored.metadata()
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        self.stored.metadata_mut()
    }

    fn share(&mut self, pool: &mut Pool) {
        self.stored.share(pool);
    }

    fn strict(text: &str) -> Option<Self> {
        let stored = Guarded::strict(text)?;
        let Object { spec } = serde_json::from_str(text).ok()?;
        Some(Self { stored, hash: hash(spec.resource.get()).into() })
    }

    fn lenient(object: Value, unread: &mut Vec<Unread>) -> Self {
        let resource = object.pointer("/spec/resource").cloned().unwrap_or_default();
        Self { stored: Guarded::lenient(object, unread), hash: hash_of(&resource).into() }
    }

    fn bare(metadata: Metadata, why: &str) -> Self {
        Self { stored: Guarded::bare(metadata, why), hash: Text::default() }
    }
}

/// What it distributes, as the index has it.
pub fn resource_of(one: &Distribution) -> Option<Text> {
    let source = Source::parse(&one.stored.object.as_ref().ok()?.spec.resource.0).ok()?;
    Some(resource_text(source.kind.resource().kind, &source.name))
}

/// The text under which an index has those that distribute an object of this kind and name.
pub fn resource_text(kind: &str, name: &str) -> Text {
    format!("{kind}/{name}").into()
}

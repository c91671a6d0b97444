//! The thin coat in which kube's watcher carries our views.

use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kruise_core::object::Resource;
use kube::core::DynamicResourceScope;
use serde::{Deserialize, Deserializer};

use super::{
    View,
    view::{Read, read},
};
use crate::decode::Raw;

/// A view with the three things that kube wants to see of an object. Any JSON is one: an error here would be one of the
/// whole page.
#[derive(Clone, Debug)]
pub(super) struct Wire<V> {
    meta: ObjectMeta,
    pub(super) read: Read<V>,
    /// Tells apart what has no name, or no namespace where it needs one.
    pub(super) print: u64,
}

impl<'de, V: View> Deserialize<'de> for Wire<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Raw(text) = Raw::deserialize(deserializer)?;
        let read = read::<V>(&text);
        let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let mut hasher = DefaultHasher::new();
        let Some(metadata) = read.view.as_ref().map(View::metadata) else {
            text.hash(&mut hasher);
            // Where a version can be read, the watch goes on behind it.
            let version = serde_json::from_str::<Versioned<'_>>(&text).ok();
            let resource_version = version.map(|found| found.metadata.resource_version.to_owned());
            let meta = ObjectMeta { resource_version, ..ObjectMeta::default() };
            return Ok(Self { meta, read, print: hasher.finish() });
        };
        (metadata.name.as_str(), metadata.resource_version.as_str()).hash(&mut hasher);
        let meta = ObjectMeta {
            name: filled(&metadata.name),
            namespace: filled(&metadata.namespace),
            resource_version: filled(&metadata.resource_version),
            ..ObjectMeta::default()
        };
        Ok(Self { meta, read, print: hasher.finish() })
    }
}

#[derive(Deserialize)]
struct Versioned<'a> {
    #[serde(borrow)]
    metadata: Version<'a>,
}

#[derive(Deserialize)]
struct Version<'a> {
    #[serde(rename = "resourceVersion")]
    resource_version: &'a str,
}

impl<V> kube::Resource for Wire<V> {
    type DynamicType = Resource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &Resource) -> Cow<'_, str> {
        resource.kind.into()
    }

    fn group(resource: &Resource) -> Cow<'_, str> {
        resource.group.into()
    }

    fn version(resource: &Resource) -> Cow<'_, str> {
        resource.version.into()
    }

    fn plural(resource: &Resource) -> Cow<'_, str> {
        resource.plural.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

//! The thin coat in which kube's watcher carries our views.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kruise_core::object::Resource;
use kube::core::DynamicResourceScope;
use serde::{Deserialize, Deserializer};

use super::View;

/// A view with the three things that kube wants to see of an object.
#[derive(Clone, Debug)]
pub(super) struct Wire<V> {
    meta: ObjectMeta,
    pub(super) view: V,
}

impl<'de, V: View> Deserialize<'de> for Wire<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let view = V::deserialize(deserializer)?;
        let metadata = view.metadata();
        let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let meta = ObjectMeta {
            name: filled(&metadata.name),
            namespace: filled(&metadata.namespace),
            resource_version: filled(&metadata.resource_version),
            ..ObjectMeta::default()
        };
        Ok(Self { meta, view })
    }
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

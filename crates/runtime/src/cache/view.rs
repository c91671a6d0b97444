//! What a cache keeps of an object.

use std::{fmt, sync::Arc};

use kruise_core::{
    nodeimage::{Node, NodeImage},
    pod::{Metadata, Pod},
    revision::Revision,
    text::{Pool, Text},
};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// What a cache keeps of an object: it reads itself from the API's JSON, skipping what nobody needs.
pub trait View: Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static {
    /// What every object has.
    fn metadata(&self) -> &Metadata;

    /// Makes equal texts one, over all objects of a cache.
    fn share(&mut self, pool: &mut Pool);
}

impl View for Pod {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Pool) {
        Pod::share(self, pool);
    }
}

impl View for Revision {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Pool) {
        self.metadata.share(pool);
    }
}

impl View for Node {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Pool) {
        Node::share(self, pool);
    }
}

impl View for NodeImage {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Pool) {
        NodeImage::share(self, pool);
    }
}

/// Only what every object has.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Plain {
    /// Name, labels, owners.
    #[serde(default)]
    pub metadata: Metadata,
}

impl View for Plain {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Pool) {
        self.metadata.share(pool);
    }
}

/// The whole object as JSON, for kinds of which there are few and whose content must not change on its way.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole {
    /// Name, labels, owners.
    pub metadata: Metadata,
    /// All of it but `managedFields`.
    pub object: Arc<Value>,
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (metadata, object) = whole(deserializer)?;
        Ok(Self { metadata, object: Arc::new(object) })
    }
}

impl View for Whole {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Pool) {
        self.metadata.share(pool);
    }
}

/// An object of one of our kinds, or why it is none: one broken object must not stop the watch of thousands.
#[derive(Clone, Debug)]
pub struct Guarded<K> {
    /// Name, labels, owners.
    pub metadata: Metadata,
    /// The object, or what is wrong with it in a sentence.
    pub object: Result<Arc<K>, Text>,
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (metadata, object) = whole(deserializer)?;
        let object = K::deserialize(object).map(Arc::new).map_err(|error| error.to_string().into());
        Ok(Self { metadata, object })
    }
}

impl<K: Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static> View for Guarded<K> {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Pool) {
        self.metadata.share(pool);
    }
}

fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(Metadata, Value), D::Error> {
    let mut object = Value::deserialize(deserializer)?;
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let metadata = Metadata::deserialize(metadata).map_err(serde::de::Error::custom)?;
    Ok((metadata, object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, Deserialize)]
    struct Numbered {
        number: u8,
    }

    #[test]
    fn a_broken_object_is_kept_with_what_is_wrong() {
        let read = |text: &str| {
            serde_json::from_str::<Guarded<Numbered>>(text).expect("never fails for its content")
        };
        let good = read(r#"{"metadata":{"name":"a","managedFields":[]},"number":7}"#);
        assert_eq!(good.object.expect("good").number, 7);
        let bad = read(r#"{"metadata":{"name":"b"},"number":"many"}"#);
        assert_eq!(bad.metadata.name, "b");
        assert!(bad.object.expect_err("bad").contains("many"));
    }
}

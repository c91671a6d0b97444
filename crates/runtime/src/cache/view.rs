//! What a cache keeps of an object.

use std::{fmt, sync::Arc};

use kruise_core::{
    advancedcronjob::Job,
    node::Node,
    nodeimage::NodeImage,
    pod::{Metadata, Pod},
    resourcedistribution::Found,
    revision::Revision,
    text::{Pool, Text},
    volume_claim::{StorageClass, VolumeClaim},
    workload::Workload,
};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

use crate::decode::{self, Path, Step, Unread};

/// What a cache keeps of an object: it reads itself from the API's JSON, skipping what nobody needs.
pub trait View: Clone + fmt::Debug + Send + Sync + 'static {
    /// What every object has.
    fn metadata(&self) -> &Metadata;

    /// The same, to be changed.
    fn metadata_mut(&mut self) -> &mut Metadata;

    /// Makes equal texts one, over all objects of a cache.
    fn share(&mut self, pool: &mut Pool);

    /// Reads an object of which everything can be read, straight from its text. Almost all are like that.
    fn strict(text: &str) -> Option<Self>;

    /// Reads what can be read, and names what cannot.
    fn lenient(object: Value, unread: &mut Vec<Unread>) -> Self;

    /// An object of which nothing but this can be read.
    fn bare(metadata: Metadata, why: &str) -> Self;
}

/// An object as far as it could be read.
#[derive(Clone, Debug)]
pub(super) struct Read<V> {
    /// Nothing where not even a name can be read.
    pub(super) view: Option<V>,
    /// What could not be read.
    pub(super) unread: Vec<Unread>,
}

/// Reads an object, whatever is in it.
pub(super) fn read<V: View>(text: &str) -> Read<V> {
    if let Some(Some(view)) = decode::contained(|| V::strict(text))
        && !view.metadata().name.is_empty()
    {
        return Read { view: Some(view), unread: Vec::new() };
    }
    let (view, mut unread) = decode::contained(|| {
        let (object, mut unread) = decode::tree(text);
        (V::lenient(object, &mut unread), unread)
    })
    .unwrap_or_else(|| {
        let (object, mut unread) = decode::tree(text);
        let metadata = metadata_of(&object, &mut unread);
        let why = Unread { path: Path::default(), why: "reading it panicked".to_owned() };
        let view = V::bare(metadata, &why.why);
        unread.push(why);
        (view, unread)
    });
    let mut known: Vec<Unread> = Vec::with_capacity(unread.len());
    for field in unread.drain(..) {
        if !known.iter().any(|other| other.path == field.path) {
            known.push(field);
        }
    }
    let mut view = Some(view).filter(|view| !view.metadata().name.is_empty());
    if view.is_none() && known.is_empty() {
        let path = Path::of(&["metadata", "name"]);
        known.push(Unread { path, why: "there is none".to_owned() });
    }
    if let Some(view) = &mut view {
        view.metadata_mut().unreadable = !known.iter().all(Unread::is_harmless);
    }
    Read { view, unread: known }
}

fn strict<V: DeserializeOwned>(text: &str) -> Option<V> {
    serde_json::from_str(text).ok()
}

/// A view that leaves out what it cannot read.
fn lenient<V: View + DeserializeOwned>(mut object: Value, unread: &mut Vec<Unread>) -> V {
    decode::fit(&mut object, &|_| true, unread).unwrap_or_else(|failed: Unread| {
        let metadata = metadata_of(&object, unread);
        let view = V::bare(metadata, &failed.why);
        unread.push(failed);
        view
    })
}

/// The metadata of an object, as far as they can be read.
fn metadata_of(object: &Value, unread: &mut Vec<Unread>) -> Metadata {
    let mut metadata = object.get("metadata").cloned().unwrap_or_default();
    let mut found = Vec::new();
    let read = loop {
        let failed: Unread = match decode::fit(&mut metadata, &|_| true, &mut found) {
            Ok(read) => break read,
            Err(failed) => failed,
        };
        // One member with too many fields that cannot be read is left out as a whole: the object keeps its name.
        let member = failed.path.0.first().and_then(|step| match step {
            Step::Key(key) => metadata.as_object_mut()?.remove(key).map(|_| key.clone()),
            Step::Index(_) => None,
        });
        let Some(member) = member else {
            found.push(failed);
            break Metadata::default();
        };
        found.retain(|field| !field.path.begins(&[member.as_str()]));
        found.push(Unread { path: Path::of(&[member.as_str()]), why: failed.why });
    };
    unread.extend(found.into_iter().map(|mut field| {
        field.path.0.insert(0, Step::Key("metadata".to_owned()));
        field
    }));
    read
}

/// Views that are read member by member.
macro_rules! read_by_members {
    ($($view:ident: $bare:expr;)*) => {$(
        impl View for $view {
            fn metadata(&self) -> &Metadata {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut Metadata {
                &mut self.metadata
            }

            fn share(&mut self, pool: &mut Pool) {
                $view::share(self, pool);
            }

            fn strict(text: &str) -> Option<Self> {
                strict(text)
            }

            fn lenient(object: Value, unread: &mut Vec<Unread>) -> Self {
                lenient(object, unread)
            }

            fn bare(metadata: Metadata, _: &str) -> Self {
                let bare: fn(Metadata) -> Self = $bare;
                bare(metadata)
            }
        }
    )*};
}

read_by_members! {
    Pod: |metadata| Self { metadata, ..Self::default() };
    Node: |metadata| Self { metadata, ..Self::default() };
    NodeImage: |metadata| Self { metadata, ..Self::default() };
    Revision: |metadata| Self { metadata, number: 0, template: Value::Null };
    Job: |metadata| Self { metadata, ..Self::default() };
    Found: Self::bare;
    Plain: |metadata| Self { metadata };
    Workload: |metadata| Self { metadata, ..Self::default() };
    StorageClass: |metadata| Self { metadata, allow_volume_expansion: None };
    VolumeClaim: |metadata| Self { metadata, ..Self::default() };
}

/// Only what every object has.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Plain {
    /// Name, labels, owners.
    #[serde(default)]
    pub metadata: Metadata,
}

impl Plain {
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
        let object = Value::deserialize(deserializer)?;
        Ok(Self::lenient(object, &mut Vec::new()))
    }
}

impl View for Whole {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }

    fn share(&mut self, pool: &mut Pool) {
        self.metadata.share(pool);
    }

    fn strict(text: &str) -> Option<Self> {
        let object = without_managers(serde_json::from_str(text).ok()?);
        let metadata = Metadata::deserialize(object.get("metadata")?).ok()?;
        Some(Self { metadata, object: Arc::new(object) })
    }

    fn lenient(object: Value, unread: &mut Vec<Unread>) -> Self {
        let object = without_managers(object);
        Self { metadata: metadata_of(&object, unread), object: Arc::new(object) }
    }

    fn bare(metadata: Metadata, _: &str) -> Self {
        Self { metadata, object: Arc::default() }
    }
}

/// An object of one of our kinds, or why it is none: one broken object must not stop the watch of thousands. One whose spec
/// cannot be read in full is none, because what is left of a spec wants something else. A status is read as far as it goes.
#[derive(Clone, Debug)]
pub struct Guarded<K> {
    /// Name, labels, owners.
    pub metadata: Metadata,
    /// The object, or what is wrong with it in a sentence.
    pub object: Result<Arc<K>, Text>,
}

impl<K: Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static> View for Guarded<K> {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }

    fn share(&mut self, pool: &mut Pool) {
        self.metadata.share(pool);
    }

    fn strict(text: &str) -> Option<Self> {
        let object = without_managers(serde_json::from_str(text).ok()?);
        let metadata = Metadata::deserialize(object.get("metadata")?).ok()?;
        Some(Self { metadata, object: Ok(Arc::new(K::deserialize(object).ok()?)) })
    }

    fn lenient(object: Value, unread: &mut Vec<Unread>) -> Self {
        let mut object = without_managers(object);
        let metadata = metadata_of(&object, unread);
        let read = decode::fit(&mut object, &Unread::is_harmless, unread);
        unread.extend(read.as_ref().err().cloned());
        let object = match (read, unread.iter().find(|field| !field.is_harmless())) {
            (Ok(object), None) => Ok(Arc::new(object)),
            (Err(field), _) => Err(field.to_string().into()),
            (_, Some(field)) => Err(field.to_string().into()),
        };
        Self { metadata, object }
    }

    fn bare(metadata: Metadata, why: &str) -> Self {
        Self { metadata, object: Err(why.into()) }
    }
}

fn without_managers(mut object: Value) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    object
}

#[cfg(test)]
mod tests;

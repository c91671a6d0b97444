//! Controller revisions: what a workload's pod template was, under a name that pods carry as a label. Those of a
//! SidecarSet hold the [part of its spec](crate::sidecarset::revision) that pods get.
//!
//! Names and bytes equal the original's, so that a cluster can change hands in both directions. Whether two revisions are
//! equal is decided by what they mean, not by their bytes: a template that was written by another build makes no new
//! revision, and so no update.

mod claims;
mod find;
mod history;
mod workload;

pub use claims::hash as claim_hash;
pub use find::{Content, Found, Owner, find, find_content};
pub use history::{outdated, sort};
pub use workload::{Revisions, inherited, is_on, label_of, pod_labels};

use kruise_api::kubernetes::shape::{self, Unknown};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::{
    canonical_json, hash,
    object::{CONTROLLER_REVISION, ObjectRef},
    pod::Metadata,
    sidecarset,
    text::Pool,
    uniteddeployment,
};

/// The longest part of a workload's name that goes into the name of a revision.
const LONGEST_PREFIX: usize = 223;
/// The longest value of a label.
const LONGEST_LABEL: usize = 63;

/// A stored revision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Revision {
    /// Name, labels, annotations, owners.
    pub metadata: Metadata,
    /// Its place in the history.
    pub number: i64,
    /// The pod template, in the form of [`comparable`]. In a revision of a SidecarSet, what its pods get.
    pub template: Value,
}

impl Revision {
    /// Reads a ControllerRevision. Data of another shape gives an empty template, which equals nothing.
    pub fn read(object: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(object)
    }

    /// Makes equal texts one.
    pub fn share(&mut self, pool: &mut Pool) {
        self.metadata.share(pool);
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Whether both mean the same template.
    pub fn means(&self, template: &Value) -> bool {
        !self.template.is_null() && self.template == *template
    }
}

impl<'de> Deserialize<'de> for Revision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            metadata: Metadata,
            #[serde(default)]
            revision: i64,
            #[serde(default)]
            data: Value,
        }
        let wire = Wire::deserialize(deserializer)?;
        let template = match (wire.data.pointer("/spec/template"), wire.data.get("spec")) {
            (Some(template), _) if uniteddeployment::revision::is_template(template) => {
                uniteddeployment::revision::comparable(template)
            }
            (Some(template), _) => comparable(template),
            (None, Some(spec)) => sidecarset::revision::comparable(spec),
            (None, None) => Value::Null,
        };
        Ok(Self { metadata: wire.metadata, number: wire.revision, template })
    }
}

/// A pod template in the form in which equal templates are equal: as a typed server would write it, without `$patch`,
/// without nulls, with the members that this build does not know.
pub fn comparable(template: &Value) -> Value {
    let mut value = written(template);
    drop_nulls(&mut value);
    value
}

/// A pod template as the original stores it. One that does not fit the types stays as it is.
fn written(template: &Value) -> Value {
    let mut value = template.clone();
    if let Some(members) = value.as_object_mut() {
        members.remove("$patch");
    }
    let _ = shape::canonical("core.PodTemplateSpec", &mut value, Unknown::Keep);
    value
}

/// Takes out members that are null: they mean what absent ones mean.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// `data` of the revision of a template.
pub fn data(template: &Value) -> Value {
    let mut template = written(template);
    if let Some(members) = template.as_object_mut() {
        members.insert("$patch".to_owned(), "replace".into());
    }
    json!({"spec": {"template": template}})
}

/// The hash in the name of a revision with this data.
pub fn hash_of(data: &Value, collision_count: i32) -> String {
    let text = canonical_json::text(data) + &collision_count.to_string();
    hash::safe_encode(&hash::fnv1(text.bytes()).to_string())
}

/// The name of a revision.
pub fn name(workload: &str, hash: &str) -> String {
    let mut end = workload.len().min(LONGEST_PREFIX);
    while !workload.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{hash}", workload.get(..end).unwrap_or(workload))
}

/// The hash at the end of a revision's name, or of a label that holds it.
pub fn short_hash(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(_, hash)| hash)
}

/// Whether a pod's label means a revision. Labels hold the name, or only the hash.
pub fn is_label_of(label: &str, name: &str) -> bool {
    label == name || short_hash(label) == short_hash(name)
}

/// The label that a pod gets: the name, or the hash if that is wanted or the name is too long for a label.
pub fn label(name: &str, prefer_short: bool) -> &str {
    if prefer_short || name.len() > LONGEST_LABEL { short_hash(name) } else { name }
}

/// A whole ControllerRevision to create.
#[derive(Clone, Debug, PartialEq)]
pub struct New {
    /// The name.
    pub name: String,
    /// Its place in the history.
    pub number: i64,
    /// The whole object.
    pub object: Value,
    /// How many names were taken before this one was free.
    pub collision_count: i32,
    /// The template, in the form of [`comparable`].
    pub template: Value,
}

/// The revision as it is once it was stored.
impl From<&New> for Revision {
    fn from(new: &New) -> Self {
        Self::read(&new.object).unwrap_or_else(|_| Self {
            metadata: Metadata { name: new.name.as_str().into(), ..Metadata::default() },
            number: new.number,
            template: new.template.clone(),
        })
    }
}

fn object(
    owner: &ObjectRef,
    namespace: &str,
    labels: Map<String, Value>,
    annotations: Value,
    name: &str,
    number: i64,
    data: Value,
) -> Value {
    json!({
        "apiVersion": CONTROLLER_REVISION.api_version(),
        "kind": CONTROLLER_REVISION.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner.controller_reference()],
        },
        "data": data,
        "revision": number,
    })
}

#[cfg(test)]
mod tests;

//! A JSON patch that is being written.
//!
//! Steps say where something is, so they are right only for the object that they were made for. A write of the spec is tied
//! to its generation and not to the version of the object: the daemon writes the status all the time, and none of that
//! moves what is in the spec.

use serde_json::{Value, json};

use crate::{
    effect::{Effect, Patch, Target},
    object::ObjectRef,
    text::Text,
};

/// The steps of a JSON patch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Steps(Vec<Value>);

impl Steps {
    /// Sets a member of an object, or inserts an item of a list before that place.
    pub(crate) fn add(&mut self, path: &[&str], value: impl Into<Value>) {
        self.0.push(json!({"op": "add", "path": pointer(path), "value": value.into()}));
    }

    /// Puts another item in the place of one.
    pub(crate) fn replace(&mut self, path: &[&str], value: impl Into<Value>) {
        self.0.push(json!({"op": "replace", "path": pointer(path), "value": value.into()}));
    }

    /// Removes what is there.
    pub(crate) fn remove(&mut self, path: &[&str]) {
        self.0.push(json!({"op": "remove", "path": pointer(path)}));
    }

    /// Whether nothing is to be done.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The write of a spec, as long as the spec is still of this generation.
    pub(crate) fn on_generation(self, object: &ObjectRef, generation: i64) -> Effect {
        let mut steps = vec![json!({"op": "test", "path": "/metadata/generation", "value": generation})];
        steps.extend(self.0);
        effect(object, None, None, steps)
    }

    /// The write of a status, as long as the object is still of this version.
    pub(crate) fn on_status(self, object: &ObjectRef, version: &Text) -> Effect {
        effect(object, Some("status"), Some(version), self.0)
    }
}

fn effect(
    object: &ObjectRef,
    subresource: Option<&'static str>,
    version: Option<&Text>,
    steps: Vec<Value>,
) -> Effect {
    let mut target = Target::with_uid(object.resource, object.key.clone(), object.uid.clone());
    target.resource_version = version.cloned();
    Effect::Patch { target, subresource, patch: Patch::Json(Value::Array(steps)) }
}

/// RFC 6901: names of images have slashes.
fn pointer(path: &[&str]) -> String {
    path.iter().map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_slashes_are_one_part_of_a_path() {
        assert_eq!(pointer(&["spec", "images", "reg:5000/a~b"]), "/spec/images/reg:5000~1a~0b");
    }
}

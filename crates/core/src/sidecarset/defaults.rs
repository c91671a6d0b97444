//! What a set gets for what its author left out, and its hashes.

use kruise_api::{
    annotations::{SIDECARSET_HASH, SIDECARSET_HASH_WITHOUT_IMAGE},
    json,
    kubernetes::{
        defaults::{self, Options},
        shape,
    },
    sidecarset::CRD,
};
use serde_json::Value;

use super::hash::{self, Hashes};
use crate::admission::{Operation, Request, kinds::Context};

const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

/// Whether the containers and volumes of a set fit their types. The error is what a server says about a value of another
/// type, such as a quantity that is none; the writer gets it with code 400.
pub fn readable(object: &Value) -> Result<(), shape::Error> {
    for (list, kind) in
        [("initContainers", "core.Container"), ("containers", "core.Container"), ("volumes", "core.Volume")]
    {
        let items = json::at(object, &["spec", list]).and_then(Value::as_array);
        for item in items.into_iter().flatten() {
            shape::unknown_members(kind, item)?;
        }
    }
    Ok(())
}

/// Fills in the defaults of a new or changed set, in either version of the API, and its hashes. `stored` is the object
/// that is changed.
///
/// The containers get exactly what the original fills in, because the result is hashed. What this build does not know
/// stays as it is.
pub fn apply(object: &mut Value, stored: Option<&Value>) {
    (CRD.defaults)(object);
    let options = Options::KRUISE_SIDECAR;
    for list in CONTAINERS {
        for container in json::items_mut(object, &["spec", list]) {
            defaults::container(container, &options);
            if json::at(container, &["resourcesPolicy"]).is_some() {
                json::default_text(container, &["resourcesPolicy", "targetContainersNameRegex"], ".*");
            }
        }
    }
    for volume in json::items_mut(object, &["spec", "volumes"]) {
        defaults::volume(volume, &options);
    }
    let hashes = stored
        .and_then(|stored| kept(object, stored))
        .unwrap_or_else(|| hash::of_spec(json::at(object, &["spec"]).unwrap_or(&Value::Null)));
    json::set(object, &["metadata", "annotations", SIDECARSET_HASH], hashes.full);
    json::set(object, &["metadata", "annotations", SIDECARSET_HASH_WITHOUT_IMAGE], hashes.without_image);
}

/// The same in the form in which [kinds](crate::admission::kinds::Entry::mutations) list it.
pub fn mutation(object: &mut Value, request: &Request, _: &Context<'_>) -> Result<(), String> {
    apply(object, (request.operation == Operation::Update).then_some(&request.old_object));
    Ok(())
}

/// The hashes that the stored set carries, if what is hashed did not change: whoever made them, its pods follow them.
fn kept(object: &Value, stored: &Value) -> Option<Hashes> {
    let spec = |object| json::at(object, &["spec"]).unwrap_or(&Value::Null);
    if !hash::is_same(spec(object), spec(stored)) {
        return None;
    }
    let carried = |key: &str| {
        json::text(stored, &["metadata", "annotations", key])
            .filter(|hash| !hash.is_empty())
            .map(str::to_owned)
    };
    Some(Hashes { full: carried(SIDECARSET_HASH)?, without_image: carried(SIDECARSET_HASH_WITHOUT_IMAGE)? })
}

#[cfg(test)]
mod tests;

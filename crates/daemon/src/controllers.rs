//! The controllers of the daemon: each looks, asks the rules, and acts.

pub mod container_meta;
pub mod image_puller;
pub mod probes;
pub mod recreation;
#[cfg(test)]
mod tests;

use kruise_core::{
    effect::{Effect, Patch, Target},
    object::Resource,
    pod::{Metadata, Pod},
};
use serde_json::Value;

/// A change of the status of an object, whatever its version is by now.
fn status_patch(resource: Resource, metadata: &Metadata, patch: Value) -> Effect {
    let target = Target::with_uid(resource, metadata.key(), metadata.uid.clone());
    Effect::Patch { target, subresource: Some("status"), patch: Patch::Merge(patch) }
}

/// The same, only if nobody changed the object since it was seen.
fn careful_status_patch(resource: Resource, metadata: &Metadata, patch: Value) -> Effect {
    let target = Target::with_uid(resource, metadata.key(), metadata.uid.clone());
    let target = target.at_version(metadata.resource_version.clone());
    Effect::Patch { target, subresource: Some("status"), patch: Patch::Merge(patch) }
}

/// The address of a pod as its status has it.
fn pod_address(pod: &Pod) -> Option<String> {
    Some(pod.status.pod_ip.to_string()).filter(|address| !address.is_empty())
}

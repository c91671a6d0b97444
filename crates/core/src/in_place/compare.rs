//! Whether a pod can go from one revision to another in place, and what changes on the way.

use std::collections::{BTreeMap, BTreeSet};

use kruise_api::kubernetes::{quantity::Quantity, validation::is_qos_kept};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::{
    Options, metadata,
    state::{Amounts, Change, RefMetadata},
};
use crate::{
    pod::{Container, Source},
    revision::Revision,
    text::Text,
};

/// The change from one revision to another.
pub type Update = Change;

/// The change from one revision to another, or nothing if it cannot be made in place.
pub fn compare(old: &Revision, new: &Revision, options: &Options) -> Option<Update> {
    if options.fixed_annotation.is_some_and(|key| differ_in(key, old, new)) {
        return None;
    }
    let (mut container_images, mut container_resources) = (BTreeMap::new(), BTreeMap::new());
    let (old_spec, new_spec) = (old.template.get("spec")?, new.template.get("spec")?);
    let mut expected = old_spec.clone();
    let new_containers = new_spec.get("containers")?.as_array()?;
    let containers = expected.get_mut("containers")?.as_array_mut()?;
    if containers.len() != new_containers.len() {
        return None;
    }
    // Make every allowed change to the old template: whatever differs after that is not allowed.
    for (container, wanted) in containers.iter_mut().zip(new_containers) {
        let name = wanted.get("name")?.as_str()?;
        if container.get("name")?.as_str()? != name {
            return None;
        }
        if container.get("image") != wanted.get("image") {
            let (image, _) = (image(wanted)?, image(container)?);
            container_images.insert(Text::from(name), Text::from(image));
            container.as_object_mut()?.insert("image".to_owned(), image.into());
        }
        if options.resize && container.get("resources") != wanted.get("resources") {
            let changed = Amounts {
                limits: change_amounts(container, wanted, "limits"),
                requests: change_amounts(container, wanted, "requests"),
            };
            if changed != Amounts::default() {
                container_resources.insert(Text::from(name), changed);
            }
        }
    }
    if expected != *new_spec || (!container_resources.is_empty() && !is_qos_kept(new_spec, old_spec)) {
        return None;
    }
    let empty = Value::Object(Map::new());
    let old_metadata = old.template.get("metadata").unwrap_or(&empty);
    let new_metadata = new.template.get("metadata").unwrap_or(&empty);
    let (apart, container_ref_metadata) = if options.env_from_metadata {
        read_by_containers(old_metadata, new_metadata, new_containers)
    } else {
        (RefMetadata::default(), BTreeMap::new())
    };
    Some(Change {
        revision: new.metadata.name.clone(),
        container_images,
        update_env_from_metadata: !container_ref_metadata.is_empty(),
        container_ref_metadata,
        container_resources,
        meta_data_patch: metadata::patch(old_metadata, new_metadata, &apart),
        grace_seconds: options.grace.as_secs(),
        previous: old.metadata.name.clone(),
    })
}

fn image(container: &Value) -> Option<&str> {
    container.get("image")?.as_str().filter(|image| !image.is_empty())
}

/// Whether two revisions have different values of an annotation. One without it counts as equal to all.
fn differ_in(annotation: &str, old: &Revision, new: &Revision) -> bool {
    let value = |revision: &Revision| revision.metadata.annotations.get(annotation).cloned();
    matches!((value(old), value(new)), (Some(old), Some(new)) if old != new)
}

/// Gives a container the wanted amounts of cpu and memory where both have one, and tells which changed.
fn change_amounts(container: &mut Value, wanted: &Value, member: &str) -> BTreeMap<Text, Text> {
    let mut changed = BTreeMap::new();
    let amounts = container.pointer_mut(&format!("/resources/{member}")).and_then(Value::as_object_mut);
    let (Some(amounts), Some(wanted)) = (amounts, wanted.pointer(&format!("/resources/{member}"))) else {
        return changed;
    };
    for name in ["cpu", "memory"] {
        let (Some(amount), Some(new)) = (amounts.get_mut(name), wanted.get(name)) else { continue };
        if !is_same_amount(amount, new) {
            changed.insert(Text::from(name), Text::from(new.as_str().unwrap_or_default()));
        }
        *amount = new.clone();
    }
    changed
}

fn is_same_amount(left: &Value, right: &Value) -> bool {
    match (Quantity::from_json(left), Quantity::from_json(right)) {
        (Ok(left), Ok(right)) => left.nanos() == right.nanos(),
        _ => left == right,
    }
}

/// The new and changed labels and annotations that containers read through their environment: all of them, and by
/// container. A key that is gone restarts nothing.
fn read_by_containers(
    old: &Value,
    new: &Value,
    containers: &[Value],
) -> (RefMetadata, BTreeMap<Text, RefMetadata>) {
    let changed =
        |name| -> BTreeMap<Text, Text> { metadata::added_or_changed(old, new, name).into_iter().collect() };
    let (labels, annotations) = (changed("labels"), changed("annotations"));
    let (mut all, mut by_container) = (RefMetadata::default(), BTreeMap::new());
    for container in containers.iter().filter_map(|container| Container::deserialize(container).ok()) {
        let mut read = RefMetadata::default();
        for variable in &container.env.from_metadata {
            let (from, to, every) = match variable.source {
                Source::Label => (&labels, &mut read.labels, &mut all.labels),
                Source::Annotation => (&annotations, &mut read.annotations, &mut all.annotations),
            };
            if let Some(value) = from.get(&variable.key) {
                to.insert(variable.key.clone(), value.clone());
                every.insert(variable.key.clone(), value.clone());
            }
        }
        if read != RefMetadata::default() {
            by_container.insert(container.name, read);
        }
    }
    (all, by_container)
}

/// The containers that an update names.
pub(super) fn named(change: &Change) -> BTreeSet<&Text> {
    let images = change.container_images.keys();
    images.chain(change.container_ref_metadata.keys()).chain(change.container_resources.keys()).collect()
}

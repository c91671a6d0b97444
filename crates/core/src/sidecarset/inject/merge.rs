//! Where sidecars stand among the containers of a pod.

use std::collections::BTreeSet;

use kruise_api::json;
use serde_json::Value;

use super::{
    super::compiled::{Place, name_of},
    Error,
    build::{Built, Placed},
};

/// Puts everything that was made into the pod.
pub(super) fn into_pod(pod: &mut Value, built: Built, sorts_by_name: bool) -> Result<(), Error> {
    let Built { mut init_containers, mut containers, volumes, pull_secrets, annotations: _, working: _ } =
        built;
    let by_name = |left: &Placed, right: &Placed| left.name.cmp(&right.name);
    init_containers.sort_by(by_name);
    if sorts_by_name {
        containers.sort_by(by_name);
    }
    place(pod, "initContainers", init_containers)?;
    place(pod, "containers", containers)?;
    append(pod, "volumes", volumes)?;
    append(pod, "imagePullSecrets", pull_secrets)
}

fn list<'a>(pod: &'a mut Value, name: &str) -> Result<&'a mut Vec<Value>, Error> {
    let spec = json::object_or_insert(pod, &["spec"]).ok_or(Error::Shape("spec"))?;
    let list = spec.entry(name).or_insert(Value::Null);
    if list.is_null() {
        *list = Value::Array(Vec::new());
    }
    list.as_array_mut().ok_or(Error::Shape("a list in the spec"))
}

/// A sidecar replaces the container of its name; others go before or behind all. Of two sidecars of one name the first
/// one stays: with both of them, the pod could not start.
fn place(pod: &mut Value, name: &str, sidecars: Vec<Placed>) -> Result<(), Error> {
    if sidecars.is_empty() {
        return Ok(());
    }
    let list = list(pod, name)?;
    let mut seen = BTreeSet::new();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for Placed { name, place, container } in sidecars {
        if seen.contains(&name) {
            continue;
        }
        match list.iter_mut().rfind(|present| name_of(present) == Some(name.as_str())) {
            Some(present) => *present = container,
            None if place == Place::Before => before.push(container),
            None => after.push(container),
        }
        seen.insert(name);
    }
    before.append(list);
    before.extend(after);
    *list = before;
    Ok(())
}

/// Appends what is not there yet by name.
fn append(pod: &mut Value, name: &str, more: Vec<Value>) -> Result<(), Error> {
    if more.is_empty() {
        return Ok(());
    }
    let list = list(pod, name)?;
    for item in more {
        if !list.iter().any(|present| name_of(present) == name_of(&item)) {
            list.push(item);
        }
    }
    Ok(())
}

//! UnitedDeployment between v1alpha1 and v1beta1.
//!
//! Two things differ: where the status says how far each subset is, and the shape of a CloneSet template. v1alpha1
//! takes the shapes of both CloneSet versions and shows the older one.

use serde_json::{Value, json};

use crate::{
    cloneset::conversion::{flatten_update_strategy, nest_update_strategy},
    convert::Error,
    json::{Object, at, at_mut, object_mut, object_or_insert, set, take, text},
};

const CLONE_SET: &[&str] = &["spec", "template", "cloneSetTemplate", "spec"];
const TYPE: &[&str] = &["updateStrategy", "type"];
const ROLLING: &[&str] = &["updateStrategy", "rollingUpdate"];
const DISABLE_REUSE: &[&str] = &["scaleStrategy", "disablePVCReuse"];
const ENABLE_REUSE: &[&str] = &["scaleStrategy", "enablePVCReuse"];

const SUBSETS: &[&str] = &["status", "subsetStatuses"];
const SUBSET_REPLICAS: &[&str] = &["status", "subsetReplicas"];
const UPDATE_STATUS: &[&str] = &["status", "updateStatus"];
const REVISION: &[&str] = &["status", "updatedRevision"];

/// Fields of an update strategy that v1beta1 has under `rollingUpdate`.
const FLAT: &[&str] = &[
    "partition",
    "maxUnavailable",
    "maxSurge",
    "paused",
    "priorityStrategy",
    "scatterStrategy",
    "inPlaceUpdateStrategy",
];

/// v1alpha1 to v1beta1.
pub(super) fn up(object: &mut Value) -> Result<(), Error> {
    if let Some(spec) = at_mut(object, CLONE_SET) {
        clone_set_up(spec);
    }
    let replicas = take(object, SUBSET_REPLICAS);
    let mut update = take(object, UPDATE_STATUS).unwrap_or_default();
    if let Some(revision) = take(&mut update, &["updatedRevision"]) {
        set(object, REVISION, revision);
    }
    merge_into_subsets(object, "replicas", replicas.as_ref());
    merge_into_subsets(object, "partition", at(&update, &["currentPartitions"]));
    Ok(())
}

/// v1beta1 to v1alpha1.
pub(super) fn down(object: &mut Value) -> Result<(), Error> {
    if let Some(spec) = at_mut(object, CLONE_SET) {
        clone_set_down(spec);
    }
    for (field, map) in
        [("replicas", SUBSET_REPLICAS), ("partition", &[UPDATE_STATUS, &["currentPartitions"]].concat())]
    {
        let numbers = number_of_each_subset(object, field);
        if !numbers.is_empty() {
            set(object, map, numbers);
        }
    }
    if let Some(revision) = take(object, REVISION) {
        set(object, &[UPDATE_STATUS, &["updatedRevision"]].concat(), revision);
    }
    Ok(())
}

/// Brings a CloneSet spec of either shape into the shape of v1beta1.
///
/// A spec that has nothing of the older shape stays as it is. In the older shape volume claims are reused unless that
/// is disabled; `enablePVCReuse: false` says nothing there, because the API server fills it in.
pub fn clone_set_up(spec: &mut Value) {
    let older = is_older_shape(spec);
    if older {
        let nested = take(spec, ROLLING);
        nest_update_strategy(spec);
        if let Some(Value::Object(nested)) = nested
            && let Some(rolling) = object_or_insert(spec, ROLLING)
        {
            rolling.extend(nested);
        }
    }
    match take(spec, DISABLE_REUSE) {
        Some(Value::Bool(disabled)) => set(spec, ENABLE_REUSE, !disabled),
        _ if older => set(spec, ENABLE_REUSE, true),
        _ => {}
    }
}

/// Brings a CloneSet spec into the shape of v1alpha1, if it says anything that the two shapes say differently.
fn clone_set_down(spec: &mut Value) {
    if at(spec, ROLLING).is_none() && text(spec, TYPE) != Some("RollingUpdate") {
        return;
    }
    flatten_update_strategy(spec);
    if at(spec, ENABLE_REUSE) != Some(&json!(true)) {
        set(spec, DISABLE_REUSE, true);
        // The API server would fill it in with the next write, which would then change something.
        set(spec, ENABLE_REUSE, false);
    }
}

fn is_older_shape(spec: &Value) -> bool {
    matches!(text(spec, TYPE), Some("ReCreate" | "InPlaceIfPossible" | "InPlaceOnly"))
        || FLAT.iter().any(|field| at(spec, &["updateStrategy", field]).is_some())
}

/// Writes a number for each named subset; subsets that have no entry yet get one. Zero is written as absent.
fn merge_into_subsets(object: &mut Value, field: &str, numbers: Option<&Value>) {
    let Some(numbers) = numbers.and_then(Value::as_object).filter(|numbers| !numbers.is_empty()) else {
        return;
    };
    let Some(status) = object_mut(object, &["status"]) else { return };
    let subsets = status.entry("subsetStatuses").or_insert_with(|| json!([]));
    let Some(subsets) = subsets.as_array_mut() else { return };
    for (name, number) in numbers {
        let found = subsets.iter_mut().find(|subset| text(subset, &["name"]) == Some(name));
        let Some(subset) = found else {
            let mut subset = json!({ "name": name });
            if number != &json!(0) {
                set(&mut subset, &[field], number.clone());
            }
            subsets.push(subset);
            continue;
        };
        if at(subset, &[field]).unwrap_or(&json!(0)) != number {
            set(subset, &[field], number.clone());
        }
    }
}

/// A number of each subset that has a name, by the name.
fn number_of_each_subset(object: &Value, field: &str) -> Object {
    let mut numbers = Object::new();
    for subset in at(object, SUBSETS).and_then(Value::as_array).into_iter().flatten() {
        if let Some(name) = text(subset, &["name"]).filter(|name| !name.is_empty()) {
            let number = at(subset, &[field]).cloned().unwrap_or_else(|| json!(0));
            numbers.entry(name).or_insert(number);
        }
    }
    numbers
}

#[cfg(test)]
mod tests;

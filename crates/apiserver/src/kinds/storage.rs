//! Claims, volumes and storage classes.

use super::immutable;
use super::object::{equal, get, list, text};
use crate::field::Error;
use kruise_api::kubernetes::quantity::Quantity;
use kruise_api::kubernetes::validation::names;
use serde_json::Value;

const NULL: &Value = &Value::Null;
const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

fn access_modes(found: &mut Vec<Error>, spec: &Value, missing: &str) {
    let modes = list(spec, "accessModes");
    if modes.is_empty() {
        found.push(Error::required("spec.accessModes", missing));
    }
    for mode in modes.iter().filter_map(Value::as_str).filter(|mode| !MODES.contains(mode)) {
        found.push(Error::not_supported("spec.accessModes", mode, &MODES));
    }
    if modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        let detail = "may not use ReadWriteOncePod with other access modes";
        found.push(Error::forbidden("spec.accessModes", detail));
    }
}

fn volume_mode(found: &mut Vec<Error>, spec: &Value) {
    if let Some(mode) = get(spec, "volumeMode").and_then(Value::as_str)
        && !matches!(mode, "Block" | "Filesystem")
    {
        found.push(Error::not_supported("spec.volumeMode", mode, &["Block", "Filesystem"]));
    }
}

/// An amount of storage, which must be there and positive.
fn storage(found: &mut Vec<Error>, owner: Option<&Value>, path: &str) {
    match owner.map(Quantity::from_json) {
        None => found.push(Error::required(path, "")),
        Some(Ok(amount)) if amount <= Quantity::ZERO => {
            found.push(Error::invalid(path, amount.to_string(), "must be greater than zero"));
        }
        Some(_) => {}
    }
}

pub(super) fn validate_claim(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = object.get("spec").unwrap_or(NULL);
    access_modes(&mut found, spec, "at least 1 access mode is required");
    storage(&mut found, spec.pointer("/resources/requests/storage"), "spec.resources[storage]");
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        let rules = names::dns_subdomain(class).into_iter();
        found.extend(rules.map(|rule| Error::invalid("spec.storageClassName", class, rule)));
    }
    volume_mode(&mut found, spec);
    found
}

pub(super) fn validate_claim_update(object: &Value, old: &Value) -> Vec<Error> {
    let mut found = validate_claim(object);
    let request = |object: &Value| {
        object.pointer("/spec/resources/requests/storage").and_then(|value| Quantity::from_json(value).ok())
    };
    let bound = object.pointer("/status/phase").and_then(Value::as_str) == Some("Bound");
    let unnamed = text(old.get("spec").unwrap_or(NULL), "volumeName").is_empty();
    let masked = |object: &Value| {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        if unnamed && let Some(spec) = spec.as_object_mut() {
            // The controller binds by writing the volume's name.
            spec.remove("volumeName");
        }
        if bound
            && let Some(resources) = spec.pointer_mut("/resources/requests").and_then(Value::as_object_mut)
        {
            resources.remove("storage");
        }
        spec
    };
    if !equal(&masked(object), &masked(old)) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        found.push(Error::forbidden("spec", format!("{detail}\n")));
    }
    if let (Some(now), Some(before)) = (request(object), request(old))
        && now < before
    {
        let detail = "field can not be less than previous value";
        found.push(Error::forbidden("spec.resources.requests.storage", detail));
    }
    found
}

const VOLUME_MEMBERS: [&str; 10] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeMode",
    "volumeAttributesClassName",
    "resources",
];

fn volume_source(spec: &Value) -> Vec<(&String, &Value)> {
    let members = spec.as_object().into_iter().flatten();
    members.filter(|(key, value)| !VOLUME_MEMBERS.contains(&key.as_str()) && !value.is_null()).collect()
}

pub(super) fn validate_volume(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = object.get("spec").unwrap_or(NULL);
    access_modes(&mut found, spec, "");
    match spec.get("capacity").and_then(Value::as_object) {
        Some(capacity) if !capacity.is_empty() => {
            storage(&mut found, capacity.get("storage"), "spec.capacity[storage]");
        }
        _ => found.push(Error::required("spec.capacity", "")),
    }
    let policy = text(spec, "persistentVolumeReclaimPolicy");
    if !matches!(policy, "" | "Delete" | "Recycle" | "Retain") {
        let allowed = ["Delete", "Recycle", "Retain"];
        found.push(Error::not_supported("spec.persistentVolumeReclaimPolicy", policy, &allowed));
    }
    let sources = volume_source(spec);
    if sources.is_empty() {
        found.push(Error::required("spec", "must specify a volume type"));
    }
    for (kind, _) in sources.iter().skip(1) {
        found.push(Error::forbidden(format!("spec.{kind}"), "may not specify more than 1 volume type"));
    }
    volume_mode(&mut found, spec);
    found
}

pub(super) fn validate_volume_update(object: &Value, old: &Value) -> Vec<Error> {
    let mut found = validate_volume(object);
    let (spec, old_spec) = (object.get("spec").unwrap_or(NULL), old.get("spec").unwrap_or(NULL));
    if volume_source(spec) != volume_source(old_spec) {
        found.push(Error::forbidden(
            "spec.persistentvolumesource",
            "spec.persistentvolumesource is immutable after creation\n",
        ));
    }
    immutable(&mut found, spec, old_spec, "volumeMode", "spec");
    found
}

pub(super) fn validate_class(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    if text(object, "provisioner").is_empty() {
        found.push(Error::required("provisioner", ""));
    }
    let policy = text(object, "reclaimPolicy");
    if !matches!(policy, "" | "Delete" | "Retain") {
        found.push(Error::not_supported("reclaimPolicy", policy, &["Delete", "Retain"]));
    }
    let mode = text(object, "volumeBindingMode");
    if mode.is_empty() {
        found.push(Error::required("volumeBindingMode", ""));
    } else if !matches!(mode, "Immediate" | "WaitForFirstConsumer") {
        let allowed = ["Immediate", "WaitForFirstConsumer"];
        found.push(Error::not_supported("volumeBindingMode", mode, &allowed));
    }
    found
}

pub(super) fn validate_class_update(object: &Value, old: &Value) -> Vec<Error> {
    let mut found = validate_class(object);
    let same = |member: &str| super::object::same(object, old, member);
    if !same("parameters") {
        found.push(Error::forbidden("parameters", "updates to parameters are forbidden."));
    }
    if text(object, "provisioner") != text(old, "provisioner") {
        found.push(Error::forbidden("provisioner", "updates to provisioner are forbidden."));
    }
    if !same("reclaimPolicy") {
        found.push(Error::forbidden("reclaimPolicy", "updates to reclaimPolicy are forbidden."));
    }
    immutable(&mut found, object, old, "volumeBindingMode", "");
    found
}

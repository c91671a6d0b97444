//! Rules on `metadata`, the same for all kinds.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::field::{self, Error};
use crate::registry::Resource;
use crate::selector::syntax;

const MAX_ANNOTATIONS: usize = 256 << 10;
/// The GC's own marks, the only finalizers that need no qualified name.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// What is wrong with the metadata of a new object (or of a changed one, apart from the change itself).
pub(super) fn validate(resource: &Resource, object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let Some(meta) = object.get("metadata").and_then(Value::as_object) else {
        return vec![Error::required("metadata", "")];
    };
    let text = |key: &str| meta.get(key).and_then(Value::as_str).unwrap_or_default();
    let generate = text("generateName");
    if !generate.is_empty() {
        // A trailing dash is fine where random letters follow.
        let stem = generate.strip_suffix('-').map_or(generate.to_owned(), |stem| format!("{stem}a"));
        let why = name_errors(resource, &stem);
        errors.extend(why.into_iter().map(|why| Error::invalid("metadata.generateName", generate, why)));
    }
    match text("name") {
        "" => errors.push(Error::required("metadata.name", "name or generateName is required")),
        name => {
            let why = name_errors(resource, name);
            errors.extend(why.into_iter().map(|why| Error::invalid("metadata.name", name, why)));
        }
    }
    labels(meta.get("labels"), &mut errors);
    annotations(meta.get("annotations"), &mut errors);
    owners(meta.get("ownerReferences"), &mut errors);
    finalizers(meta.get("finalizers"), &mut errors);
    errors
}

/// What is wrong with how the metadata changed.
pub(super) fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let (Some(meta), Some(before)) = (object.get("metadata"), old.get("metadata")) else { return errors };
    for key in
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        if meta.get(key) != before.get(key) {
            let value = meta.get(key).cloned().unwrap_or_default();
            errors.push(Error::invalid(format!("metadata.{key}"), value, "field is immutable"));
        }
    }
    let unchanged = |key: &str| meta.get(key) == before.get(key);
    if meta.get("deletionTimestamp").is_some() && !unchanged("finalizers") {
        let list = |meta: &Value| -> BTreeSet<String> {
            let names = meta.get("finalizers").and_then(Value::as_array);
            names.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
        };
        let known = list(before);
        let added: Vec<String> =
            list(meta).iter().filter(|name| !known.contains(*name)).map(|name| field::quote(name)).collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            errors.push(Error::forbidden("metadata.finalizers", detail));
        }
    }
    // What was accepted before is not questioned again, which also keeps status writes cheap.
    if !unchanged("labels") {
        labels(meta.get("labels"), &mut errors);
    }
    if !unchanged("annotations") {
        annotations(meta.get("annotations"), &mut errors);
    }
    if !unchanged("ownerReferences") {
        owners(meta.get("ownerReferences"), &mut errors);
    }
    if !unchanged("finalizers") {
        finalizers(meta.get("finalizers"), &mut errors);
    }
    errors
}

/// Which rule a resource's names follow.
fn name_errors(resource: &Resource, name: &str) -> Vec<String> {
    match (resource.group.as_ref(), resource.plural.as_ref()) {
        ("rbac.authorization.k8s.io", _) => path_segment(name),
        ("", "namespaces") => syntax::dns_label(name),
        ("", "services") => syntax::dns_1035_label(name),
        _ => syntax::dns_subdomain(name),
    }
}

/// What is wrong with a name that stands between slashes.
pub(crate) fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|bad| name.contains(**bad))
        .map(|bad| format!("may not contain '{bad}'"))
        .collect()
}

fn labels(value: Option<&Value>, errors: &mut Vec<Error>) {
    for (key, value) in value.and_then(Value::as_object).into_iter().flatten() {
        errors.extend(
            syntax::qualified_name(key)
                .into_iter()
                .map(|why| Error::invalid("metadata.labels", key.as_str(), why)),
        );
        let value = value.as_str().unwrap_or_default();
        let why = syntax::label_value(value);
        errors.extend(why.into_iter().map(|why| Error::invalid("metadata.labels", value, why)));
    }
}

fn annotations(value: Option<&Value>, errors: &mut Vec<Error>) {
    let mut size = 0;
    for (key, value) in value.and_then(Value::as_object).into_iter().flatten() {
        let why = syntax::qualified_name(&key.to_lowercase());
        errors.extend(why.into_iter().map(|why| Error::invalid("metadata.annotations", key.as_str(), why)));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MAX_ANNOTATIONS {
        let detail = format!("may not be more than {MAX_ANNOTATIONS} bytes");
        errors.push(Error::new(field::ErrorKind::TooLong, "metadata.annotations", "", detail));
    }
}

fn owners(value: Option<&Value>, errors: &mut Vec<Error>) {
    let mut controller: Option<String> = None;
    for owner in value.and_then(Value::as_array).into_iter().flatten() {
        let text = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or_default();
        // The real server does not say which owner it is.
        for key in ["apiVersion", "kind", "name", "uid"] {
            if text(key).is_empty() {
                let what =
                    if key == "apiVersion" { "version must not be empty" } else { "must not be empty" };
                errors.push(Error::invalid(format!("metadata.ownerReferences.{key}"), "", what));
            }
        }
        if (text("apiVersion"), text("kind")) == ("v1", "Event") {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            let error = Error::invalid("metadata.ownerReferences", owner.clone(), detail);
            errors.push(error.shown_as(owner_text(owner)));
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            let this = format!("{}/{}", text("kind"), text("name"));
            let Some(first) = &controller else {
                controller = Some(this);
                continue;
            };
            let detail = format!(
                "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
            );
            let all: Vec<&Value> = value.and_then(Value::as_array).into_iter().flatten().collect();
            let shown: Vec<String> = all.iter().map(|owner| owner_text(owner)).collect();
            let error =
                Error::invalid("metadata.ownerReferences", value.cloned().unwrap_or_default(), detail);
            errors.push(error.shown_as(format!("[{}]", shown.join(","))));
        }
    }
}

/// A reference with its fields in the order of the real server's type.
fn owner_text(owner: &Value) -> String {
    let order = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let fields = order.iter().filter_map(|key| Some(format!("\"{key}\":{}", owner.get(key)?)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn finalizers(value: Option<&Value>, errors: &mut Vec<Error>) {
    let names = || {
        value.and_then(Value::as_array).into_iter().flatten().map(|name| name.as_str().unwrap_or_default())
    };
    for name in names() {
        let why = syntax::qualified_name(name).into_iter();
        errors.extend(why.map(|why| Error::invalid("metadata.finalizers", name, why)));
    }
    for (i, name) in names().enumerate() {
        if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(Error::invalid(format!("metadata.finalizers[{i}]"), name, detail));
        }
    }
}

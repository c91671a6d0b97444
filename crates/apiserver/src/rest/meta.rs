//! Rules on `metadata`, the same for all kinds.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::field::Error;
use crate::registry::Resource;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
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
        errors.extend(
            name_errors(resource, &stem).map(|why| Error::invalid("metadata.generateName", generate, why)),
        );
    }
    match text("name") {
        "" => errors.push(Error::required("metadata.name", "name or generateName is required")),
        name => {
            errors.extend(name_errors(resource, name).map(|why| Error::invalid("metadata.name", name, why)))
        }
    }
    labels(meta.get("labels"), &mut errors);
    annotations(meta.get("annotations"), &mut errors);
    owners(meta.get("ownerReferences"), &mut errors);
    finalizers(meta.get("finalizers"), &mut errors);
    errors
}

/// What is wrong with how the metadata changed.
pub(super) fn validate_update(resource: &Resource, object: &Value, old: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let pick =
        |value: &Value, key: &str| value.pointer(&format!("/metadata/{key}")).cloned().unwrap_or_default();
    for key in
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        let (new, before) = (pick(object, key), pick(old, key));
        if new != before {
            errors.push(Error::invalid(format!("metadata.{key}"), new, "field is immutable"));
        }
    }
    let list = |value: &Value| -> Vec<String> {
        let names = pick(value, "finalizers");
        names.as_array().into_iter().flatten().filter_map(|f| f.as_str().map(str::to_owned)).collect()
    };
    if !pick(object, "deletionTimestamp").is_null() {
        let before: BTreeSet<String> = list(old).into_iter().collect();
        let added: Vec<String> = list(object).into_iter().filter(|name| !before.contains(name)).collect();
        if !added.is_empty() {
            let quoted: Vec<String> = added.iter().map(|name| crate::field::quote(name)).collect();
            errors.push(Error::forbidden(
                "metadata.finalizers",
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    quoted.join(", ")
                ),
            ));
        }
    }
    let Some(meta) = object.get("metadata") else { return errors };
    let unchanged = |key: &str| meta.get(key) == old.pointer(&format!("/metadata/{key}"));
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
    let _ = resource;
    errors
}

/// Which rule a resource's names follow.
fn name_errors(resource: &Resource, name: &str) -> Option<String> {
    match (resource.group.as_ref(), resource.plural.as_ref()) {
        ("rbac.authorization.k8s.io", _) => path_segment(name),
        ("", "namespaces") => dns_label(name),
        ("", "services") => dns_1035(name),
        _ => dns_subdomain(name),
    }
}

fn path_segment(name: &str) -> Option<String> {
    if name == "." || name == ".." {
        return Some(format!("may not be '{name}'"));
    }
    name.contains(['/', '%']).then(|| {
        let found = if name.contains('/') { "/" } else { "%" };
        format!("may not contain '{found}'")
    })
}

fn is_label(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let edge = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| inside(*byte)) && edge(bytes.first()) && edge(bytes.last())
}

fn dns_label(name: &str) -> Option<String> {
    if name.len() > 63 {
        return Some("must be no more than 63 characters".to_owned());
    }
    (!is_label(name)).then(|| {
        format!(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
             and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
        )
    })
}

fn dns_1035(name: &str) -> Option<String> {
    if name.len() > 63 {
        return Some("must be no more than 63 characters".to_owned());
    }
    let fine = is_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase());
    (!fine).then(|| {
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
         character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
         validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
            .to_owned()
    })
}

fn dns_subdomain(name: &str) -> Option<String> {
    if name.len() > 253 {
        return Some("must be no more than 253 characters".to_owned());
    }
    (!name.split('.').all(is_label)).then(|| {
        format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
             must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '{LABEL}(\\.{LABEL})*')"
        )
    })
}

/// `prefix/name`, as label and annotation keys and finalizers are.
fn qualified_name(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let (prefix, local) = match name.split_once('/') {
        Some((prefix, local)) => (Some(prefix), local),
        None => (None, name),
    };
    const SHAPE: &str = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start \
                         and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex \
                         used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS \
                         subdomain prefix and '/' (e.g. 'example.com/MyName')";
    if local.contains('/') {
        return vec![SHAPE.to_owned()];
    }
    match prefix {
        Some("") => errors.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => errors.extend(dns_subdomain(prefix).map(|why| format!("prefix part {why}"))),
        None => {}
    }
    if local.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if local.len() > 63 {
        errors.push("name part must be no more than 63 characters".to_owned());
    }
    if !is_word(local) {
        errors.push(
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
             alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                .to_owned(),
        );
    }
    errors
}

fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && edge(bytes.first())
        && edge(bytes.last())
}

fn labels(value: Option<&Value>, errors: &mut Vec<Error>) {
    for (key, value) in value.and_then(Value::as_object).into_iter().flatten() {
        errors.extend(
            qualified_name(key).into_iter().map(|why| Error::invalid("metadata.labels", key.as_str(), why)),
        );
        let value = value.as_str().unwrap_or_default();
        if value.len() > 63 {
            errors.push(Error::invalid("metadata.labels", value, "must be no more than 63 characters"));
        }
        if !value.is_empty() && !is_word(value) {
            errors.push(Error::invalid(
                "metadata.labels",
                value,
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                 must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                 regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ));
        }
    }
}

fn annotations(value: Option<&Value>, errors: &mut Vec<Error>) {
    let mut size = 0;
    for (key, value) in value.and_then(Value::as_object).into_iter().flatten() {
        let why = qualified_name(&key.to_lowercase());
        errors.extend(why.into_iter().map(|why| Error::invalid("metadata.annotations", key.as_str(), why)));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MAX_ANNOTATIONS {
        let detail = format!("may not be more than {MAX_ANNOTATIONS} bytes");
        errors.push(Error::new(crate::field::ErrorKind::TooLong, "metadata.annotations", "", detail));
    }
}

fn owners(value: Option<&Value>, errors: &mut Vec<Error>) {
    let mut controller: Option<String> = None;
    for (i, owner) in value.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let text = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or_default();
        let at = |key: &str| format!("metadata.ownerReferences[{i}].{key}");
        if !text("apiVersion").contains('/') && text("apiVersion").is_empty() {
            errors.push(Error::invalid(at("apiVersion"), text("apiVersion"), "version must not be empty"));
        }
        for key in ["kind", "name", "uid"] {
            if text(key).is_empty() {
                errors.push(Error::invalid(at(key), "", format!("{key} must not be empty")));
            }
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            if let Some(first) = &controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {}",
                    text("kind").to_owned() + "/" + text("name")
                );
                errors.push(Error::invalid(
                    "metadata.ownerReferences",
                    value.cloned().unwrap_or_default(),
                    detail,
                ));
            } else {
                controller = Some(format!("{}/{}", text("kind"), text("name")));
            }
        }
    }
}

fn finalizers(value: Option<&Value>, errors: &mut Vec<Error>) {
    for (i, name) in value.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let name = name.as_str().unwrap_or_default();
        let why = qualified_name(name);
        let bad = !why.is_empty();
        errors.extend(why.into_iter().map(|why| Error::invalid("metadata.finalizers", name, why)));
        if !bad && !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(Error::invalid(format!("metadata.finalizers[{i}]"), name, detail));
        }
    }
}

//! The rules for CustomResourceDefinition objects themselves.
//!
//! The real server keeps a schema that all versions share (also that of a single version) at the top of the spec
//! while it validates; its messages therefore say `spec.validation.openAPIV3Schema`, and ours do too.

mod selectable;

use std::collections::BTreeSet;

use serde_json::Value;

use super::Structural;
use crate::field::{Error, Path};
use crate::selector::syntax;

const APPROVED: &str = "api-approved.kubernetes.io";

/// What is wrong with a new CRD (after defaults: singular, listKind, conversion strategy).
pub fn validate(crd: &Value) -> Vec<Error> {
    validate_after(crd, &[])
}

/// `before` are the versions that were there already.
fn validate_after(crd: &Value, before: &[Value]) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Path::root();
    let null = Value::Null;
    let spec = crd.get("spec").unwrap_or(&null);
    let (group, plural) = (text(spec, "/group"), text(spec, "/names/plural"));
    let name = text(crd, "/metadata/name");
    if name != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(Error::invalid("metadata.name", name, why));
    }
    approval(crd, group, &mut errors);
    let path = root.child("spec");
    if group.is_empty() {
        errors.push(Error::required(path.child("group"), ""));
    } else if let broken = syntax::dns_subdomain(group)
        && !broken.is_empty()
    {
        errors.push(Error::invalid(path.child("group"), group, broken.join(",")));
    } else if !group.contains('.') {
        errors.push(Error::invalid(path.child("group"), group, "should be a domain with at least one dot"));
    }
    match text(spec, "/scope") {
        "" => errors.push(Error::required(path.child("scope"), "")),
        "Cluster" | "Namespaced" => {}
        other => {
            errors.push(Error::not_supported(path.child("scope"), other, &["Cluster", "Namespaced"]));
        }
    }
    versions(spec, before, &path, &mut errors);
    names(spec, &path, &mut errors);
    conversion(spec.get("conversion"), &path, &mut errors);
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(true)) {
        errors.push(Error::invalid(
            path.child("preserveUnknownFields"),
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ));
    }
    errors
}

/// What is wrong with a change of a CRD.
pub fn validate_update(new: &Value, old: &Value) -> Vec<Error> {
    let mut errors = validate_after(new, list(old.get("spec"), "versions"));
    let mut immutable = |pointer: &str, path: &str| {
        let (new, old) = (text(new, pointer), text(old, pointer));
        if new != old {
            errors.push(Error::invalid(path, new, "field is immutable"));
        }
    };
    immutable("/spec/group", "spec.group");
    immutable("/spec/names/plural", "spec.names.plural");
    if is_established(old) {
        immutable("/spec/scope", "spec.scope");
        immutable("/spec/names/kind", "spec.names.kind");
    }
    stored_versions(new, &mut errors);
    errors
}

/// Every version that objects may still be stored in must stay in the spec.
fn stored_versions(crd: &Value, errors: &mut Vec<Error>) {
    let Some(stored) = crd.pointer("/status/storedVersions").and_then(Value::as_array) else { return };
    let path = Path::new("status.storedVersions");
    if stored.is_empty() {
        errors.push(Error::invalid(path, Vec::<Value>::new(), "must have at least one stored version"));
        return;
    }
    let versions = list(crd.get("spec"), "versions");
    for version in versions.iter().filter(|version| flag(version, "storage")) {
        let name = text(version, "/name");
        if !stored.iter().any(|stored| stored == name) {
            let why = format!("must have the storage version {name}");
            errors.push(Error::invalid(path, stored.clone(), why));
        }
    }
    for (i, name) in stored.iter().filter_map(Value::as_str).enumerate() {
        if !versions.iter().any(|version| text(version, "/name") == name) {
            errors.push(Error::invalid(
                path.index(i),
                name,
                format!(
                    "missing from spec.versions; {name} was previously a storage version, and must remain in \
                     spec.versions until a storage migration ensures no data remains persisted in {name} and removes \
                     {name} from status.storedVersions"
                ),
            ));
        }
    }
}

fn approval(crd: &Value, group: &str, errors: &mut Vec<Error>) {
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|owned| group == *owned || group.strip_suffix(owned).is_some_and(|rest| rest.ends_with('.')));
    if !protected {
        return;
    }
    let value =
        crd.pointer("/metadata/annotations").and_then(|all| all.get(APPROVED)).and_then(Value::as_str);
    let path = Path::new("metadata.annotations");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match value.unwrap_or_default() {
        "" => {
            let why = format!("protected groups must have approval annotation \"{APPROVED}\", {see}");
            errors.push(Error::required(path.key(APPROVED), why));
        }
        value if value.starts_with("unapproved") || value.contains("://") => {}
        value => {
            let why = format!(
                "protected groups must have approval annotation \"{APPROVED}\" with either a URL or a reason \
                 starting with \"unapproved\", {see}"
            );
            errors.push(Error::invalid(path.key(APPROVED), value, why));
        }
    }
}

fn versions(spec: &Value, before: &[Value], path: &Path<'_>, errors: &mut Vec<Error>) {
    let own = path.child("versions");
    let versions = list(Some(spec), "versions");
    let shown = || Value::from(versions.to_vec());
    let mut seen = BTreeSet::new();
    for (i, version) in versions.iter().enumerate() {
        let (own, name) = (own.index(i), text(version, "/name"));
        let broken = syntax::dns_1035_label(name);
        if !broken.is_empty() {
            errors.push(Error::invalid(own.child("name"), name, broken.join(",")));
        }
        seen.insert(name);
        deprecation_warning(version, &own, errors);
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            let schema = own.child("schema");
            errors.push(Error::required(schema.child("openAPIV3Schema"), ""));
        }
    }
    if seen.len() != versions.len() {
        errors.push(Error::invalid(own, shown(), "must contain unique version names"));
    }
    if versions.iter().filter(|version| flag(version, "storage")).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        errors.push(Error::invalid(own, shown(), why));
    }
    // What all versions share is checked once and named once.
    shared(versions, "schema", &own, &path.child("validation"), errors, |schema, path, errors| {
        // Rules that were accepted once stay, also if they are thought to be dearer now.
        let is_old = before.iter().any(|version| version.get("schema") == Some(schema));
        let Some(schema) = schema.get("openAPIV3Schema") else { return };
        let own = path.child("openAPIV3Schema");
        match Structural::parse_at(schema, &own) {
            Err(broken) => errors.extend(broken),
            Ok(_) if is_old => {}
            Ok(structural) => errors.extend(structural.rule_errors(&own)),
        }
    });
    shared(versions, "subresources", &own, &path.child("subresources"), errors, scale);
    let columns = "additionalPrinterColumns";
    shared(versions, columns, &own, &path.child(columns), errors, |columns, path, errors| {
        for (i, column) in columns.as_array().into_iter().flatten().enumerate() {
            self::column(column, &path.index(i), errors);
        }
    });
    selectable::validate(versions, path, errors);
}

/// What users of a version are told must fit into a header.
fn deprecation_warning(version: &Value, path: &Path<'_>, errors: &mut Vec<Error>) {
    let Some(text) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let path = path.child("deprecationWarning");
    let mut wrong = |why: &str| errors.push(Error::invalid(path, text, why));
    if !flag(version, "deprecated") {
        return wrong("can only be set for deprecated versions");
    }
    if text.len() > 256 {
        wrong("must be <= 256 characters long");
    }
    if text.is_empty() {
        wrong("must not be an empty string");
    }
    if let Some((index, _)) = text.char_indices().find(|(_, letter)| !is_printable(*letter)) {
        wrong(&format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {index}"
        ));
    }
}

/// Everything but control and format characters, spaces other than the common one, and what has no meaning. Those are
/// what the standard library escapes, too, if marks have a letter to stand on.
fn is_printable(letter: char) -> bool {
    format!("a{letter}").escape_debug().last() == Some(letter)
}

/// Calls `check` on a part of each version, or once for all if it is the same in all.
fn shared(
    versions: &[Value],
    part: &str,
    versions_path: &Path<'_>,
    top: &Path<'_>,
    errors: &mut Vec<Error>,
    check: impl Fn(&Value, &Path<'_>, &mut Vec<Error>),
) {
    let parts: Vec<Option<&Value>> = versions.iter().map(|version| version.get(part)).collect();
    match parts.first() {
        Some(Some(first)) if parts.iter().all(|part| *part == Some(*first)) => check(first, top, errors),
        _ => {
            for (i, found) in parts.into_iter().enumerate() {
                if let Some(found) = found {
                    check(found, &versions_path.index(i).child(part), errors);
                }
            }
        }
    }
}

fn scale(subresources: &Value, path: &Path<'_>, errors: &mut Vec<Error>) {
    let Some(scale) = subresources.get("scale").filter(|scale| !scale.is_null()) else { return };
    let own = path.child("scale");
    let mut check = |name: &str, needed: bool, roots: &[&str], why: &str| {
        let value = scale.get(name).and_then(Value::as_str).unwrap_or_default();
        if value.is_empty() {
            if needed {
                errors.push(Error::required(own.child(name), ""));
            }
        } else if !value.starts_with('.') {
            let why = "must be a simple json path starting with .";
            errors.push(Error::invalid(own.child(name), value, why));
        } else if !roots.iter().any(|root| value.starts_with(root)) {
            errors.push(Error::invalid(own.child(name), value, why));
        }
    };
    check("specReplicasPath", true, &[".spec."], "should be a json path under .spec");
    check("statusReplicasPath", true, &[".status."], "should be a json path under .status");
    let either = "should be a json path under either .spec or .status";
    check("labelSelectorPath", false, &[".spec.", ".status."], either);
}

fn column(column: &Value, path: &Path<'_>, errors: &mut Vec<Error>) {
    if text(column, "/name").is_empty() {
        errors.push(Error::required(path.child("name"), ""));
    }
    let types = "must be one of boolean,date,integer,number,string";
    match text(column, "/type") {
        "" => errors.push(Error::required(path.child("type"), types)),
        "boolean" | "date" | "integer" | "number" | "string" => {}
        other => errors.push(Error::invalid(path.child("type"), other, types)),
    }
    let format = text(column, "/format");
    let formats = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    if !format.is_empty() && !formats.contains(&format) {
        let why = format!("must be one of {}", formats.join(","));
        errors.push(Error::invalid(path.child("format"), format, why));
    }
    match text(column, "/jsonPath") {
        "" => errors.push(Error::required(path.child("JSONPath"), "")),
        found if !found.starts_with('.') => {
            let why = "must be a simple json path starting with .";
            errors.push(Error::invalid(path.child("JSONPath"), found, why));
        }
        _ => {}
    }
}

fn names(spec: &Value, path: &Path<'_>, errors: &mut Vec<Error>) {
    let own = path.child("names");
    let null = Value::Null;
    let names = spec.get("names").unwrap_or(&null);
    for (name, mixed_case) in [("plural", false), ("singular", false), ("kind", true), ("listKind", true)] {
        let value = names.get(name).and_then(Value::as_str).unwrap_or_default();
        if value.is_empty() {
            errors.push(Error::required(own.child(name), ""));
            continue;
        }
        let lower = value.to_lowercase();
        let broken = syntax::dns_1035_label(if mixed_case { &lower } else { value });
        if !broken.is_empty() {
            let prefix = if mixed_case { "may have mixed case, but should otherwise match: " } else { "" };
            errors.push(Error::invalid(own.child(name), value, format!("{prefix}{}", broken.join(","))));
        }
    }
    for part in ["shortNames", "categories"] {
        let own = own.child(part);
        for (i, value) in list(Some(names), part).iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            let broken = syntax::dns_1035_label(value);
            if !broken.is_empty() {
                errors.push(Error::invalid(own.index(i), value, broken.join(",")));
            }
        }
    }
    let (kind, list_kind) = (text(names, "/kind"), text(names, "/listKind"));
    if !kind.is_empty() && kind == list_kind {
        let why = "kind and listKind may not be the same";
        errors.push(Error::invalid(own.child("listKind"), list_kind, why));
    }
}

fn conversion(conversion: Option<&Value>, path: &Path<'_>, errors: &mut Vec<Error>) {
    let Some(conversion) = conversion.filter(|conversion| !conversion.is_null()) else { return };
    let own = path.child("conversion");
    let (config_path, versions_path) =
        (own.child("webhookClientConfig"), own.child("conversionReviewVersions"));
    let config = conversion.pointer("/webhook/clientConfig").filter(|config| !config.is_null());
    let versions: Vec<&str> = list(conversion.get("webhook"), "conversionReviewVersions")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    match text(conversion, "/strategy") {
        "Webhook" => {
            match config {
                None => {
                    errors.push(Error::required(config_path, "required when strategy is set to Webhook"));
                }
                Some(config) if config.get("url").is_some() == config.get("service").is_some() => {
                    errors.push(Error::required(config_path, "exactly one of url or service is required"));
                }
                Some(config) => client_config(config, &config_path, errors),
            }
            if versions.is_empty() {
                errors.push(Error::required(versions_path, ""));
            } else if !versions.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
                let why = "must include at least one of v1, v1beta1";
                errors.push(Error::invalid(versions_path, versions.clone(), why));
            }
            for (i, version) in versions.iter().enumerate() {
                if versions.iter().take(i).any(|earlier| earlier == version) {
                    errors.push(Error::invalid(versions_path.index(i), *version, "duplicate version"));
                }
            }
        }
        strategy => {
            match strategy {
                "" => errors.push(Error::required(own.child("strategy"), "")),
                "None" => {}
                other => {
                    errors.push(Error::not_supported(own.child("strategy"), other, &["None", "Webhook"]));
                }
            }
            let why = "should not be set when strategy is not set to Webhook";
            if config.is_some() {
                errors.push(Error::forbidden(config_path, why));
            }
            if !versions.is_empty() {
                errors.push(Error::forbidden(versions_path, why));
            }
        }
    }
}

fn client_config(config: &Value, path: &Path<'_>, errors: &mut Vec<Error>) {
    if let Some(url) = config.get("url").and_then(Value::as_str) {
        let own = path.child("url");
        let form = "desired format: https://host[/path]";
        match url.split_once("://") {
            Some(("https", rest)) if !rest.is_empty() && !rest.starts_with('/') => {}
            Some(("https", _)) => {
                errors.push(Error::invalid(own, "", format!("host must be specified; {form}")));
            }
            Some((scheme, _)) => {
                let why = format!("'https' is the only allowed URL scheme; {form}");
                errors.push(Error::invalid(own, scheme, why));
            }
            None => errors.push(Error::invalid(
                own,
                "",
                format!("'https' is the only allowed URL scheme; {form}"),
            )),
        }
    }
    if let Some(service) = config.get("service") {
        let own = path.child("service");
        for (name, why) in
            [("name", "service name is required"), ("namespace", "service namespace is required")]
        {
            if service.get(name).and_then(Value::as_str).unwrap_or_default().is_empty() {
                errors.push(Error::required(own.child(name), why));
            }
        }
    }
}

fn is_established(crd: &Value) -> bool {
    let conditions = list(crd.get("status"), "conditions");
    conditions.iter().any(|found| text(found, "/type") == "Established" && text(found, "/status") == "True")
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn list<'a>(value: Option<&'a Value>, name: &str) -> &'a [Value] {
    let items = value.and_then(|value| value.get(name)).and_then(Value::as_array);
    items.map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests;

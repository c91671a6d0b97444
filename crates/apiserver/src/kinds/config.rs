//! ConfigMaps and Secrets: keys that can be file names, and what is fixed once it is declared immutable.

use super::object::{entries, same, text};
use crate::field::Error;
use kruise_api::kubernetes::validation::names;
use serde_json::Value;

const MAX_SIZE: u64 = 1 << 20;

fn keys(found: &mut Vec<Error>, object: &Value, member: &str) {
    for (key, _) in entries(object, member) {
        let rules = names::config_key(key).into_iter();
        found.extend(rules.map(|rule| Error::invalid(format!("{member}[{key}]"), key, rule)));
    }
}

fn bytes(object: &Value, member: &str, encoded: bool) -> u64 {
    let size = |value: &Value| {
        let length = value.as_str().map_or(0, str::len) as u64;
        if encoded { length / 4 * 3 } else { length }
    };
    entries(object, member).map(|(_, value)| size(value)).sum()
}

pub(super) fn validate_config_map(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    keys(&mut found, object, "data");
    for (key, _) in entries(object, "data") {
        if object.get("binaryData").and_then(|data| data.get(key)).is_some() {
            let detail = "duplicate of key present in binaryData";
            found.push(Error::invalid(format!("data[{key}]"), key, detail));
        }
    }
    keys(&mut found, object, "binaryData");
    if bytes(object, "data", false) + bytes(object, "binaryData", true) > MAX_SIZE {
        found.push(Error::too_long("", MAX_SIZE));
    }
    found
}

pub(super) fn validate_secret(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    keys(&mut found, object, "data");
    if bytes(object, "data", true) > MAX_SIZE {
        found.push(Error::too_long("data", MAX_SIZE));
    }
    let has = |key: &str| object.get("data").and_then(|data| data.get(key)).is_some();
    let required: &[&str] = match text(object, "type") {
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => &["username", "password"],
        "kubernetes.io/service-account-token" => {
            let account = object.pointer("/metadata/annotations/kubernetes.io~1service-account.name");
            if account.and_then(Value::as_str).unwrap_or_default().is_empty() {
                let path = "metadata.annotations[kubernetes.io/service-account.name]";
                found.push(Error::required(path, ""));
            }
            &[]
        }
        _ => &[],
    };
    let missing = required.iter().filter(|key| !has(key));
    found.extend(missing.map(|key| Error::required(format!("data[{key}]"), "")));
    found
}

pub(super) fn validate_update(kind: &str, object: &Value, old: &Value) -> Vec<Error> {
    let mut found = match kind {
        "Secret" => validate_secret(object),
        _ => validate_config_map(object),
    };
    if kind == "Secret" && text(object, "type") != text(old, "type") {
        found.push(Error::invalid("type", text(object, "type"), "field is immutable"));
    }
    let fixed = |object: &Value| object.get("immutable").and_then(Value::as_bool) == Some(true);
    if fixed(old) {
        let detail = "field is immutable when `immutable` is set";
        if !fixed(object) {
            found.push(Error::forbidden("immutable", detail));
        }
        for member in ["data", "binaryData"] {
            if !same(object, old, member) {
                found.push(Error::forbidden(member, detail));
            }
        }
    }
    found
}

//! ConfigMaps and Secrets: keys that can be file names, and what is fixed once it is declared immutable.

use super::object::{child_or_new, entries, same, text};
use crate::field::Error;
use kruise_api::kubernetes::validation::names;
use serde_json::{Map, Value};

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

/// Texts that a client sent for convenience become data.
pub(super) fn fold_texts(secret: &mut Map<String, Value>) {
    let Some(Value::Object(texts)) = secret.remove("stringData") else { return };
    if texts.is_empty() {
        return;
    }
    if let Some(data) = child_or_new(secret, "data") {
        let texts =
            texts.into_iter().filter_map(|(key, text)| Some((key, encode(text.as_str()?.as_bytes()))));
        data.extend(texts.map(|(key, text)| (key, text.into())));
    }
}

/// Base64 with the standard alphabet and padding, as JSON carries bytes.
fn encode(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_usize, |word, byte| (word << 8) | usize::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = ALPHABET.get((word >> (18 - 6 * place)) & 63).copied().unwrap_or(b'=');
            out.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    out
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

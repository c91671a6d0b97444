//! Conversion of custom resources between their versions: by name only, or by a webhook.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{list, text};
use crate::field;
use crate::registry::split_api_version;
use crate::selector::syntax;
use crate::status::Status;
use crate::webhook::{Address, Dispatcher};

/// How long a conversion may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How many objects are in one review. Servers send few in each, because a webhook answers only so much at once.
const MOST: usize = 100;

/// How the versions of a definition are converted into each other.
#[derive(Debug)]
pub(super) enum Conversion {
    /// `apiVersion` is rewritten.
    Rename,
    /// A webhook does it.
    Webhook {
        address: Option<Address>,
        /// The first version of `ConversionReview` in the definition's list that we speak.
        review: Option<&'static str>,
        dispatcher: Arc<Dispatcher>,
    },
}

impl Conversion {
    pub(super) fn parse(definition: &Value, dispatcher: Arc<Dispatcher>) -> Self {
        if text(definition, "/spec/conversion/strategy") != "Webhook" {
            return Self::Rename;
        }
        let versions = list(definition, "/spec/conversion/webhook/conversionReviewVersions");
        let review = versions.iter().find_map(|version| match version.as_str() {
            Some("v1") => Some("v1"),
            Some("v1beta1") => Some("v1beta1"),
            _ => None,
        });
        let address = definition.pointer("/spec/conversion/webhook/clientConfig").and_then(Address::parse);
        Self::Webhook { address, review, dispatcher }
    }

    /// The objects in another version, in their order. Those that are in it already stay as they are.
    pub(super) async fn convert(&self, mut objects: Vec<Value>, to: &str) -> Result<Vec<Value>, Status> {
        let others = |object: &&mut Value| text(object, "/apiVersion") != to;
        match self {
            Self::Rename => {
                for object in objects.iter_mut().filter(others) {
                    if let Some(map) = object.as_object_mut() {
                        map.insert("apiVersion".to_owned(), json!(to));
                    }
                }
            }
            Self::Webhook { address, review, dispatcher } => {
                let mut asked: Vec<&mut Value> = objects.iter_mut().filter(others).collect();
                let Some(first) = asked.first() else { return Ok(objects) };
                let about = format!(
                    "conversion webhook for {}, Kind={}",
                    text(first, "/apiVersion"),
                    text(first, "/kind")
                );
                let plain = |why: String| Status::failure(500, "", why);
                let (Some(address), Some(review)) = (address, *review) else {
                    return Err(plain("no supported conversion review versions".to_owned()));
                };
                for part in asked.chunks_mut(MOST) {
                    let uid = dispatcher.uid();
                    let sent: Vec<&Value> = part.iter().map(|object| &**object).collect();
                    let question = json!({
                        "kind": "ConversionReview",
                        "apiVersion": format!("apiextensions.k8s.io/{review}"),
                        "request": {"uid": uid, "desiredAPIVersion": to, "objects": sent},
                    });
                    let answer = dispatcher.post(address, TIMEOUT, &question).await;
                    let converted = answer
                        .and_then(|answer| converted(answer, &uid, review))
                        .map_err(|why| plain(format!("{about} failed: {why}")))?;
                    if converted.len() != part.len() {
                        let (got, expected) = (converted.len(), part.len());
                        return Err(plain(format!("{about} returned {got} objects, expected {expected}")));
                    }
                    for (original, converted) in part.iter_mut().zip(converted) {
                        **original =
                            accept(original, converted, to).map_err(|why| plain(format!("{about} {why}")))?;
                    }
                }
            }
        }
        Ok(objects)
    }
}

/// The objects in an answer.
fn converted(mut answer: Value, uid: &str, review: &str) -> Result<Vec<Value>, String> {
    if review == "v1" {
        let (version, kind) = (text(&answer, "/apiVersion"), text(&answer, "/kind"));
        if (version, kind) != ("apiextensions.k8s.io/v1", "ConversionReview") {
            return Err(format!(
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got {version}, Kind={kind}"
            ));
        }
    }
    if !answer.get("response").is_some_and(Value::is_object) {
        return Err("no response provided".to_owned());
    }
    let got = text(&answer, "/response/uid");
    if review == "v1" && got != uid {
        return Err(format!("expected response.uid={}, got {}", field::quote(uid), field::quote(got)));
    }
    let status = text(&answer, "/response/result/status");
    if status != "Success" {
        return Err(match text(&answer, "/response/result/message") {
            "" => format!("response.result.status was '{status}', not 'Success'"),
            message => message.to_owned(),
        });
    }
    match answer.pointer_mut("/response/convertedObjects").map(Value::take) {
        Some(Value::Array(objects)) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// Checks a converted object and gives it the metadata of the original, except for labels and annotations.
fn accept(original: &Value, mut converted: Value, to: &str) -> Result<Value, String> {
    let version = text(&converted, "/apiVersion");
    if version != to {
        let (expected, got) = (split_api_version(to), split_api_version(version));
        return Err(format!(
            "returned invalid object at index 0: invalid groupVersion (expected {}/{}, received {}/{})",
            expected.0, expected.1, got.0, got.1
        ));
    }
    let (kind, got) = (text(original, "/kind"), text(&converted, "/kind"));
    if kind != got {
        return Err(format!(
            "returned invalid object at index 0: invalid kind (expected {kind}, received {got})"
        ));
    }
    for (key, shown) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let pointer = format!("/metadata/{key}");
        let (before, after) = (text(original, &pointer), text(&converted, &pointer));
        if before != after {
            return Err(format!("returned invalid object: must have the same {shown}: {before} != {after}"));
        }
    }
    let metadata =
        restored(original, &converted).map_err(|why| format!("returned invalid metadata: {why}"))?;
    if let Some(map) = converted.as_object_mut() {
        map.insert("metadata".to_owned(), Value::Object(metadata));
    }
    Ok(converted)
}

fn restored(original: &Value, converted: &Value) -> Result<Map<String, Value>, String> {
    let given = converted.get("metadata").ok_or("missing metadata in converted object")?;
    let mut metadata = original.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    for key in ["labels", "annotations"] {
        let Some(map) = given.get(key).filter(|map| !map.is_null()) else {
            metadata.remove(key);
            continue;
        };
        if metadata.get(key) != Some(map) {
            check(key, map)?;
        }
        metadata.insert(key.to_owned(), map.clone());
    }
    Ok(metadata)
}

fn check(key: &str, map: &Value) -> Result<(), String> {
    let Some(map) = map.as_object() else {
        return Err(format!("invalid metadata.{key} of type {} in converted object", go_type(map)));
    };
    let mut errors = Vec::new();
    for (name, value) in map {
        let Some(value) = value.as_str() else {
            let kind = go_type(value);
            return Err(format!(
                "metadata.{key}[{name}] must be a string, but is {kind} in converted object"
            ));
        };
        let path = if key == "labels" { "metadata.labels" } else { "metadata.annotation" };
        let why = if key == "labels" {
            syntax::qualified_name(name)
        } else {
            syntax::qualified_name(&name.to_lowercase())
        };
        errors.extend(why.into_iter().map(|why| field::Error::invalid(path, name.as_str(), why)));
        if key == "labels" {
            let why = syntax::label_value(value);
            errors.extend(why.into_iter().map(|why| field::Error::invalid(path, value, why)));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(field::aggregate(&errors)) }
}

/// The type as Go's JSON reader holds it.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(version: &str, extra: Value) -> Value {
        let mut metadata = json!({"name": "a", "namespace": "n", "uid": "u", "generation": 4});
        if let (Some(into), Value::Object(extra)) = (metadata.as_object_mut(), extra) {
            into.extend(extra);
        }
        json!({"apiVersion": version, "kind": "W", "metadata": metadata})
    }

    #[test]
    fn only_labels_and_annotations_of_a_converted_object_count() {
        let original = object("g/v1", json!({"labels": {"a": "1"}}));
        let converted = object("g/v2", json!({"generation": 9, "annotations": {"x": "y"}}));
        let accepted = accept(&original, converted, "g/v2").unwrap();
        assert_eq!(accepted, object("g/v2", json!({"annotations": {"x": "y"}})));
    }

    #[test]
    fn a_converted_object_that_is_another_one_is_refused() {
        let original = object("g/v1", json!({}));
        let refused = |converted: Value| accept(&original, converted, "g/v2").unwrap_err();
        assert_eq!(
            refused(object("g/v2", json!({"name": "b"}))),
            "returned invalid object: must have the same name: a != b"
        );
        assert_eq!(
            refused(object("g/v3", json!({}))),
            "returned invalid object at index 0: invalid groupVersion (expected g/v2, received g/v3)"
        );
        assert_eq!(
            refused(object("g/v2", json!({"labels": {"a": 1}}))),
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object"
        );
    }
}

//! `ConversionReview`.

use std::collections::BTreeMap;
use std::io;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Envelope, Name, encode};

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "ConversionReview";

/// What an API server wants converted.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    envelope: Envelope,
    /// The version that all objects should have.
    pub wanted: String,
    /// The objects, of any of their versions. They stay texts, because a tree takes several times as much memory.
    pub objects: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow)]
    request: Option<Request<'a>>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(default)]
    uid: String,
    #[serde(default, rename = "desiredAPIVersion")]
    wanted: String,
    #[serde(default, borrow)]
    objects: Option<Vec<&'a RawValue>>,
}

/// Reads a question. The error says what is wrong with the body.
pub fn decode(body: &[u8]) -> Result<Question<'_>, String> {
    let review: Review<'_> =
        serde_json::from_slice(body).map_err(|error| format!("the body is no ConversionReview: {error}"))?;
    let mut envelope = Envelope { api_version: review.api_version, kind: review.kind, uid: String::new() };
    envelope.check(GROUP, KIND)?;
    let request = review.request.ok_or("the ConversionReview has no request")?;
    envelope.uid = request.uid;
    Ok(Question { envelope, wanted: request.wanted, objects: request.objects.unwrap_or_default() })
}

impl Question<'_> {
    /// Begins the body that carries the objects, with space for about so many bytes: one that grows takes twice its memory.
    pub fn answer(&self, size: usize) -> Converted {
        let Envelope { api_version, kind, uid } = &self.envelope;
        let head = format!(
            r#"{{"kind":{},"apiVersion":{},"response":{{"uid":{},"result":{{"metadata":{{}},"status":"Success"}},"convertedObjects":["#,
            json!(kind),
            json!(api_version),
            json!(uid)
        );
        let mut body = Vec::with_capacity(size + head.len());
        body.extend_from_slice(head.as_bytes());
        Converted { body, is_first: true }
    }

    /// The body that says why there are no objects.
    pub fn failed(&self, message: &str) -> Vec<u8> {
        encode(&json!({
            "kind": self.envelope.kind,
            "apiVersion": self.envelope.api_version,
            "response": {
                "uid": self.envelope.uid,
                "convertedObjects": [],
                "result": { "metadata": {}, "status": "Failure", "message": message },
            },
        }))
    }
}

/// An answer that grows by one object after the other, so that only one of them is in memory as a tree.
#[derive(Clone, Debug)]
pub struct Converted {
    body: Vec<u8>,
    is_first: bool,
}

impl Converted {
    /// Adds the next object.
    pub fn add(&mut self, object: &Value) {
        if !std::mem::take(&mut self.is_first) {
            self.body.push(b',');
        }
        // Writing a JSON value into memory cannot fail.
        let _ = serde_json::to_writer(&mut self.body, object);
    }

    /// The whole body.
    pub fn end(mut self) -> Vec<u8> {
        self.body.extend_from_slice(b"]}}");
        self.body
    }
}

/// What must not change when an object is converted.
#[derive(Clone, Debug)]
pub struct Before {
    name: Name,
    api_version: String,
    metadata: BTreeMap<String, Print>,
}

/// Stands for a value: two that differ have different prints.
type Print = [u8; 32];

impl Before {
    /// Remembers an object before it is converted.
    pub fn of(object: &Value) -> Self {
        let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { name: Name::of(object), api_version, metadata: bound_parts(object) }
    }

    /// Says of which object something went wrong.
    pub fn failed(&self, wanted: &str, why: &str) -> String {
        let from = if self.api_version.is_empty() { "a version it does not name" } else { &self.api_version };
        format!("{} cannot be converted from {from} to {wanted}: {why}", self.name)
    }

    /// Servers refuse a list as a whole when one object changed more than it may; this says which and what.
    pub fn check(&self, after: &Value, wanted: &str) -> Result<(), String> {
        let text = |field| after.get(field).and_then(Value::as_str).unwrap_or_default();
        if text("apiVersion") != wanted || text("kind") != self.name.kind {
            let got = format!("the result is kind {:?} of {:?}", text("kind"), text("apiVersion"));
            return Err(self.failed(wanted, &got));
        }
        let metadata = bound_parts(after);
        if metadata == self.metadata {
            return Ok(());
        }
        let differs = |key: &&String| self.metadata.get(*key) != metadata.get(*key);
        let changed = self.metadata.keys().chain(metadata.keys()).find(differs);
        let field = changed.map_or("metadata".to_owned(), |key| format!("metadata.{key}"));
        Err(self.failed(wanted, &format!("{field} would change, and only labels and annotations may")))
    }
}

/// The fields of the metadata that no conversion may change, each by its print: it may be as large as the object.
fn bound_parts(object: &Value) -> BTreeMap<String, Print> {
    let fields = object.get("metadata").and_then(Value::as_object).into_iter().flatten();
    let bound = fields.filter(|(field, _)| !matches!(field.as_str(), "labels" | "annotations"));
    bound.map(|(field, value)| (field.clone(), print(value))).collect()
}

fn print(value: &Value) -> Print {
    struct Hashing(Sha256);
    impl io::Write for Hashing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut hashing = Hashing(Sha256::new());
    // Writing a JSON value into a hash cannot fail.
    let _ = serde_json::to_writer(&mut hashing, value);
    hashing.0.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(version: &str) -> Vec<u8> {
        json!({
            "apiVersion": format!("{GROUP}/{version}"), "kind": KIND,
            "request": { "uid": "u", "desiredAPIVersion": "g/v2", "objects": [{ "kind": "A" }] },
        })
        .to_string()
        .into_bytes()
    }

    #[test]
    fn an_answer_has_the_version_of_its_question() {
        for version in ["v1", "v1beta1"] {
            let body = body(version);
            let question = decode(&body).unwrap();
            assert_eq!((question.wanted.as_str(), question.objects.len()), ("g/v2", 1));
            let mut converted = question.answer(0);
            converted.add(&json!(1));
            converted.add(&json!({"a": "b"}));
            let answer: Value = serde_json::from_slice(&converted.end()).unwrap();
            assert_eq!(
                answer,
                json!({
                    "kind": KIND, "apiVersion": format!("{GROUP}/{version}"),
                    "response": {
                        "uid": "u", "convertedObjects": [1, {"a": "b"}],
                        "result": { "metadata": {}, "status": "Success" },
                    },
                })
            );
        }
    }

    #[test]
    fn a_failure_has_no_objects_and_a_message() {
        let body = body("v1");
        let question = decode(&body).unwrap();
        let answer: Value = serde_json::from_slice(&question.failed("because")).unwrap();
        assert_eq!(answer["response"]["result"]["status"], "Failure");
        assert_eq!(answer["response"]["result"]["message"], "because");
        assert_eq!(answer["response"]["convertedObjects"], json!([]));
    }

    #[test]
    fn bodies_that_are_no_review_are_named() {
        assert!(decode(b"[]").unwrap_err().starts_with("the body is no ConversionReview: "));
        assert!(decode(b"{}").unwrap_err().contains("got neither kind nor apiVersion"));
        let none = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": KIND });
        assert_eq!(decode(none.to_string().as_bytes()).unwrap_err(), "the ConversionReview has no request");
    }

    #[track_caller]
    fn check(change: impl Fn(&mut Value), expected: Result<(), &str>) {
        let object = json!({
            "apiVersion": "g/v1", "kind": "CloneSet",
            "metadata": { "name": "web", "namespace": "default", "uid": "1", "labels": { "a": "b" } },
        });
        let mut after = object.clone();
        after["apiVersion"] = json!("g/v2");
        change(&mut after);
        let checked = Before::of(&object).check(&after, "g/v2");
        assert_eq!(checked, expected.map_err(str::to_owned));
    }

    #[test]
    fn of_the_metadata_only_labels_and_annotations_may_change() {
        check(|after| after["metadata"]["labels"] = json!({}), Ok(()));
        check(|after| after["metadata"]["annotations"] = json!({ "x": "y" }), Ok(()));
        let prefix = "CloneSet default/web cannot be converted from g/v1 to g/v2: ";
        let changed = |field: &str| {
            format!("{prefix}metadata.{field} would change, and only labels and annotations may")
        };
        check(|after| after["metadata"]["uid"] = json!("2"), Err(&changed("uid")));
        check(|after| after["metadata"]["finalizers"] = json!([]), Err(&changed("finalizers")));
        check(|after| after["metadata"] = Value::Null, Err(&changed("name")));
        check(
            |after| after["kind"] = json!("Pod"),
            Err(&format!("{prefix}the result is kind \"Pod\" of \"g/v2\"")),
        );
    }
}

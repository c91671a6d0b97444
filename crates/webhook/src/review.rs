//! What an API server sends to a webhook and what it gets back, as JSON.
//!
//! An answer has the version of its question. What cannot be read is answered too, with the uid and the version as far
//! as they can be made out, so that the person at the other end learns what was wrong.

pub mod admission;
pub mod conversion;
mod object;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// The envelope of a review: which one, and in which version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Envelope {
    /// `admission.k8s.io/v1` and the like; empty where the question did not say.
    api_version: String,
    kind: String,
    uid: String,
}

impl Envelope {
    /// What can still be made out of a body that is not as it should be.
    fn of(body: &[u8]) -> Self {
        let Ok(review) = serde_json::from_slice::<Value>(body) else { return Self::default() };
        let text = |path| review.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { api_version: text("/apiVersion"), kind: text("/kind"), uid: text("/request/uid") }
    }

    /// Says what is wrong when this is not a review of the group, in a version that we speak.
    fn check(&self, group: &str, kind: &str) -> Result<(), String> {
        let version = self.api_version.strip_prefix(group).and_then(|rest| rest.strip_prefix('/'));
        if self.kind == kind && version.is_some_and(|version| VERSIONS.contains(&version)) {
            return Ok(());
        }
        let said = if self.kind.is_empty() && self.api_version.is_empty() {
            "neither kind nor apiVersion".to_owned()
        } else {
            format!("kind {:?} of {:?}", self.kind, self.api_version)
        };
        Err(format!("expected kind {kind} of {group}/v1 or {group}/v1beta1, got {said}"))
    }
}

/// The versions of both reviews.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// An object as people call it: `CloneSet default/web`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    kind: String,
    namespace: String,
    name: String,
}

impl Name {
    fn of(object: &Value) -> Self {
        let text = |path| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = Some(text("/metadata/name")).filter(|name| !name.is_empty());
        Self {
            kind: text("/kind"),
            namespace: text("/metadata/namespace"),
            name: name.unwrap_or_else(|| text("/metadata/generateName")),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.kind.is_empty() { "object" } else { &self.kind };
        let name = if self.name.is_empty() { "without a name" } else { &self.name };
        match self.namespace.as_str() {
            "" => write!(formatter, "{kind} {name}"),
            namespace => write!(formatter, "{kind} {namespace}/{name}"),
        }
    }
}

/// Bytes of an answer; serialisation of texts and JSON values cannot fail, and an empty answer is refused by any client.
fn encode(answer: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(answer).unwrap_or_default()
}

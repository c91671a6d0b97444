//! Admission: what the API server asks before it stores an object, and what we answer.
//!
//! A rule of admission is a pure function from a [`Request`] and what the caches know to an [`Answer`]. The web server
//! only decodes, calls and encodes; it knows no kinds.

pub mod handler;
pub mod kinds;
pub mod patch;
pub mod pod;
pub mod protection;
pub mod rules;

use std::collections::BTreeMap;

use kruise_api::kubernetes::validation::Violation;
use serde_json::Value;

/// What the API server asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Which request this is; the answer repeats it.
    pub uid: String,
    /// What the object is, in the version of the request.
    pub kind: Kind,
    /// How the object is addressed, in the version of the request.
    pub resource: Resource,
    /// `status`, `eviction`, `resize` and so on; empty for the object itself.
    pub subresource: String,
    /// What is about to happen.
    pub operation: Operation,
    /// Where; empty for a cluster-wide kind.
    pub namespace: String,
    /// The name; empty while the server has still to make one from `generateName`.
    pub name: String,
    /// The new object; null when it is deleted.
    pub object: Value,
    /// The object as it is stored; null when it is created.
    pub old_object: Value,
    /// The options of the operation, such as `DeleteOptions`.
    pub options: Value,
    /// Who asks.
    pub user: User,
    /// Whether nothing will be stored: then nothing else may change either.
    pub dry_run: bool,
}

impl Request {
    /// The name of the object. API servers leave it out where they delete many at once, but send the object.
    pub fn object_name(&self) -> &str {
        let stored = || kruise_api::json::text(&self.old_object, &["metadata", "name"]);
        Some(self.name.as_str()).filter(|name| !name.is_empty()).or_else(stored).unwrap_or_default()
    }
}

/// What an object is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

/// How an object is addressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural name in paths.
    pub resource: String,
}

/// What is about to happen to the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// It is made.
    #[default]
    Create,
    /// It is changed.
    Update,
    /// It is removed.
    Delete,
    /// Someone opens a connection to it, such as `exec`.
    Connect,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 4] = [Self::Create, Self::Update, Self::Delete, Self::Connect];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }

    /// The operation that a word on the wire means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.as_str() == word)
    }
}

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name: `alice`, `system:serviceaccount:default:builder`.
    pub username: String,
    /// The uid, if the authenticator gives one.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Whatever else the authenticator says.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What we say.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Go on.
    Allowed {
        /// RFC 6902 operations that change the object; none when there is nothing to change.
        patch: Option<json_patch::Patch>,
        /// Shown to the person who asked.
        warnings: Vec<String>,
    },
    /// Stop.
    Denied {
        /// The HTTP code that the person who asked gets.
        code: u16,
        /// Why.
        message: String,
    },
    /// Stop, with what can be read beside the message. Users match on messages, so what is new stands here.
    Held {
        /// The HTTP code that the person who asked gets.
        code: u16,
        /// Why.
        message: String,
        /// What the answer depends on, as `details.causes` of the status.
        causes: Vec<Cause>,
    },
}

/// One entry of `details.causes` of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// One word in CamelCase that programs may match.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

impl Answer {
    /// Go on, nothing to change.
    pub fn allowed() -> Self {
        Self::Allowed { patch: None, warnings: Vec::new() }
    }

    /// Go on with the object as it is now. Nothing is sent when nothing changed.
    pub fn changed(original: &Value, changed: Value) -> Self {
        Self::Allowed { patch: patch::between(original, changed), warnings: Vec::new() }
    }

    /// The object cannot be read.
    pub fn bad_object(error: impl ToString) -> Self {
        Self::Denied { code: 400, message: error.to_string() }
    }

    /// We failed while changing the object.
    pub fn internal(error: impl ToString) -> Self {
        Self::Denied { code: 500, message: error.to_string() }
    }

    /// The object breaks rules; allowed when it breaks none.
    pub fn checked(violations: &[Violation]) -> Self {
        match aggregate(violations) {
            None => Self::allowed(),
            Some(message) => Self::Denied { code: 422, message },
        }
    }

    /// The feature is switched off.
    pub fn gate_closed(gate: &str) -> Self {
        Self::Denied { code: 403, message: format!("feature-gate {gate} is not enabled") }
    }

    /// The object is protected. `details` continue the sentence and may be empty.
    pub fn protected(value: &str, details: &str) -> Self {
        let label = kruise_api::labels::DELETE_PROTECTION;
        let message = format!("forbidden by ResourcesProtectionDeletion for {label}={value}{details}");
        Self::Denied { code: 403, message }
    }

    /// A budget or a spread could not be asked about a pod.
    pub fn pod_check_failed(error: impl ToString) -> Self {
        Self::Denied { code: 400, message: error.to_string() }
    }

    /// The same with more that is shown to the person who asked. A refusal says enough by itself.
    #[must_use]
    pub fn warned(self, more: Vec<String>) -> Self {
        match self {
            Self::Allowed { patch, mut warnings } => {
                warnings.extend(more);
                Self::Allowed { patch, warnings }
            }
            refused => refused,
        }
    }

    /// Whether the request goes on.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed { .. })
    }
}

/// All violations in one line as Kubernetes writes it: one stands alone, more stand in brackets, equal ones once.
/// None when there are none.
pub fn aggregate(violations: &[Violation]) -> Option<String> {
    let mut texts: Vec<String> = Vec::new();
    for text in violations.iter().map(ToString::to_string) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(answer: Answer, code: u16, message: &str) {
        assert_eq!(answer, Answer::Denied { code, message: message.to_owned() });
    }

    #[test]
    fn refusals_have_the_codes_and_texts_that_users_know() {
        check(Answer::bad_object("couldn't get version/kind"), 400, "couldn't get version/kind");
        check(Answer::internal("the cache is gone"), 500, "the cache is gone");
        check(Answer::gate_closed("KruiseDaemon"), 403, "feature-gate KruiseDaemon is not enabled");
        check(
            Answer::protected("Cascading", " and active pods 2>0"),
            403,
            "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading and active pods 2>0",
        );
        check(Answer::pod_check_failed("pods \"web\" not found"), 400, "pods \"web\" not found");
    }

    #[test]
    fn several_violations_stand_in_brackets_and_equal_ones_once() {
        let replicas = Violation::invalid("spec.replicas", -1, "must be greater than or equal to 0");
        let template = Violation::required("spec.template", "");
        assert_eq!(Answer::checked(&[]), Answer::allowed());
        check(
            Answer::checked(&[replicas.clone(), replicas.clone()]),
            422,
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        );
        check(
            Answer::checked(&[replicas, template]),
            422,
            "[spec.replicas: Invalid value: -1: must be greater than or equal to 0, spec.template: Required value]",
        );
    }

    #[test]
    fn nothing_to_change_sends_no_patch() {
        let object = json!({"spec": {"replicas": 1}});
        assert_eq!(Answer::changed(&object, object.clone()), Answer::allowed());
        let changed = json!({"spec": {"replicas": 1, "paused": false}});
        assert_eq!(
            Answer::changed(&object, changed),
            Answer::Allowed {
                patch: Some(
                    serde_json::from_value(json!([{"op": "add", "path": "/spec/paused", "value": false}]))
                        .unwrap()
                ),
                warnings: Vec::new(),
            }
        );
    }

    #[test]
    fn operations_are_known_by_their_words() {
        for operation in Operation::ALL {
            assert_eq!(Operation::parse(operation.as_str()), Some(operation));
        }
        assert_eq!(Operation::parse("create"), None);
    }
}

//! `AdmissionReview`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kruise_core::admission::{Answer, Cause, Kind, Operation, Request, Resource, User};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Envelope, Name, encode, object::without_managers};

const GROUP: &str = "admission.k8s.io";
const KIND: &str = "AdmissionReview";

/// Where an answer goes: to which request, in which version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyTo(Envelope);

/// A question that we cannot put to a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Where the refusal goes.
    pub reply_to: ReplyTo,
    /// What was wrong, with the name of the object where there is one.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<Question>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Question {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    kind: WireKind,
    #[serde(default)]
    resource: WireResource,
    #[serde(default)]
    sub_resource: Option<String>,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default, deserialize_with = "without_managers")]
    object: Value,
    #[serde(default, deserialize_with = "without_managers")]
    old_object: Value,
    #[serde(default)]
    options: Value,
    #[serde(default)]
    user_info: WireUser,
    #[serde(default)]
    dry_run: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireKind {
    group: String,
    version: String,
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireResource {
    group: String,
    version: String,
    resource: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireUser {
    username: String,
    uid: String,
    groups: Option<Vec<String>>,
    extra: Option<std::collections::BTreeMap<String, Vec<String>>>,
}

/// Reads a question. The error is ready to be sent back.
pub fn decode(body: &[u8]) -> Result<(ReplyTo, Request), Refused> {
    let review: Review = serde_json::from_slice(body).map_err(|error| Refused {
        reply_to: ReplyTo(Envelope::of(body)).if_ours(),
        message: format!("the body is no AdmissionReview: {error}"),
    })?;
    let uid = review.request.as_ref().map(|request| request.uid.clone()).unwrap_or_default();
    let envelope = Envelope { api_version: review.api_version, kind: review.kind, uid };
    if let Err(message) = envelope.check(GROUP, KIND) {
        return Err(Refused { reply_to: ReplyTo(envelope).if_ours(), message });
    }
    let reply_to = ReplyTo(envelope);
    let Some(question) = review.request else {
        return Err(Refused { reply_to, message: "the AdmissionReview has no request".to_owned() });
    };
    match question.into_request() {
        Ok(request) => Ok((reply_to, request)),
        Err(message) => Err(Refused { reply_to, message }),
    }
}

impl Question {
    fn into_request(self) -> Result<Request, String> {
        if self.resource.version.is_empty() {
            // The text that the original's handlers give to a request that names no version.
            return Err("unsupported version: ".to_owned());
        }
        let Some(operation) = Operation::parse(&self.operation) else {
            let words: Vec<&str> = Operation::ALL.into_iter().map(Operation::as_str).collect();
            let (object, words) = (self.object_name(), words.join(", "));
            return Err(format!("{object}: unknown operation {:?}, expected one of {words}", self.operation));
        };
        for (field, value) in [("object", &self.object), ("oldObject", &self.old_object)] {
            if !value.is_object() && !value.is_null() {
                return Err(format!("{}: {field} of the request is no JSON object", self.object_name()));
            }
        }
        Ok(Request {
            uid: self.uid,
            kind: Kind { group: self.kind.group, version: self.kind.version, kind: self.kind.kind },
            resource: Resource {
                group: self.resource.group,
                version: self.resource.version,
                resource: self.resource.resource,
            },
            subresource: self.sub_resource.unwrap_or_default(),
            operation,
            namespace: self.namespace.unwrap_or_default(),
            name: self.name.unwrap_or_default(),
            object: self.object,
            old_object: self.old_object,
            options: self.options,
            user: User {
                username: self.user_info.username,
                uid: self.user_info.uid,
                groups: self.user_info.groups.unwrap_or_default(),
                extra: self.user_info.extra.unwrap_or_default(),
            },
            dry_run: self.dry_run.unwrap_or_default(),
        })
    }

    fn object_name(&self) -> Name {
        let mut name = Name::of(&self.object);
        let prefer = |slot: &mut String, said: Option<&str>| {
            if let Some(said) = said.filter(|said| !said.is_empty()) {
                said.clone_into(slot);
            }
        };
        prefer(&mut name.kind, Some(&self.kind.kind));
        prefer(&mut name.namespace, self.namespace.as_deref());
        prefer(&mut name.name, self.name.as_deref());
        name
    }
}

impl ReplyTo {
    /// An answer must not claim to be what the question was, when that was not a review of ours.
    fn if_ours(mut self) -> Self {
        if self.0.check(GROUP, KIND).is_err() {
            self.0.api_version.clear();
            self.0.kind.clear();
        }
        self
    }

    /// The body that carries the answer.
    pub fn answer(&self, answer: &Answer) -> Vec<u8> {
        let Envelope { api_version, kind, uid } = &self.0;
        let (allowed, code, message, patch, warnings) = match answer {
            Answer::Allowed { patch, warnings } => (true, 200, None, patch.as_ref(), warnings.as_slice()),
            Answer::Denied { code, message } | Answer::Held { code, message, .. } => {
                (false, *code, Some(message.as_str()), None, &[][..])
            }
        };
        let causes = match answer {
            Answer::Held { causes, .. } => causes.as_slice(),
            Answer::Allowed { .. } | Answer::Denied { .. } => &[],
        };
        let details =
            (!causes.is_empty()).then(|| Details { causes: causes.iter().map(WireCause::of).collect() });
        // Programs ask for the reason before the code.
        let reason = match answer {
            Answer::Held { code: 429, .. } => Some("TooManyRequests"),
            Answer::Held { code: 403, .. } => Some("Forbidden"),
            _ => None,
        };
        // Servers refuse a patch type without a patch.
        let patch = patch.filter(|patch| !patch.is_empty());
        let patch = patch.map(|patch| STANDARD.encode(serde_json::to_vec(patch).unwrap_or_default()));
        encode(&Reply {
            response: Response {
                uid,
                allowed,
                status: Status { metadata: Map::new(), code, message, reason, details },
                patch_type: patch.is_some().then_some("JSONPatch"),
                patch,
                warnings,
            },
            kind,
            api_version,
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reply<'a> {
    response: Response<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    status: Status<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Status<'a> {
    metadata: Map<String, Value>,
    code: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details<'a>>,
}

#[derive(Serialize)]
struct Details<'a> {
    causes: Vec<WireCause<'a>>,
}

#[derive(Serialize)]
struct WireCause<'a> {
    reason: &'static str,
    message: &'a str,
}

impl<'a> WireCause<'a> {
    fn of(cause: &'a Cause) -> Self {
        Self { reason: cause.reason, message: &cause.message }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(version: &str, request: Value) -> Vec<u8> {
        let review = json!({ "apiVersion": format!("{GROUP}/{version}"), "kind": KIND, "request": request });
        review.to_string().into_bytes()
    }

    fn update() -> Value {
        json!({
            "uid": "u-1",
            "kind": { "group": "apps.kruise.io", "version": "v1alpha1", "kind": "CloneSet" },
            "resource": { "group": "apps.kruise.io", "version": "v1alpha1", "resource": "clonesets" },
            "operation": "UPDATE", "namespace": "default", "name": "web",
            "userInfo": { "username": "bob", "groups": ["dev"], "extra": { "k": ["v"] } },
            "object": { "kind": "CloneSet", "spec": { "new": true } },
            "oldObject": { "kind": "CloneSet" },
            "options": { "kind": "UpdateOptions" },
            "dryRun": true,
        })
    }

    #[test]
    fn a_question_is_read_whole() {
        let (reply_to, request) = decode(&question("v1", update())).unwrap();
        assert_eq!(reply_to.0.uid, "u-1");
        assert_eq!((request.operation, request.dry_run), (Operation::Update, true));
        assert_eq!((request.namespace.as_str(), request.name.as_str()), ("default", "web"));
        assert_eq!(request.resource.resource, "clonesets");
        assert_eq!(request.kind.version, "v1alpha1");
        assert_eq!(request.user.username, "bob");
        assert_eq!(request.user.groups, ["dev"]);
        assert_eq!(request.user.extra["k"], ["v"]);
        assert_eq!(request.object["spec"]["new"], true);
        assert_eq!(request.old_object["kind"], "CloneSet");
        assert_eq!(request.options["kind"], "UpdateOptions");
    }

    #[test]
    fn nulls_of_older_servers_are_nothing() {
        let mut request = update();
        for field in ["namespace", "name", "subResource", "dryRun", "object", "oldObject", "options"] {
            request[field] = Value::Null;
        }
        let (_, request) = decode(&question("v1beta1", request)).unwrap();
        assert_eq!((request.name.as_str(), request.dry_run), ("", false));
        assert!(request.object.is_null());
    }

    #[track_caller]
    fn check(version: &str, answer: &Answer, expected: Value) {
        let (reply_to, _) = decode(&question(version, update())).unwrap();
        let answered: Value = serde_json::from_slice(&reply_to.answer(answer)).unwrap();
        assert_eq!(answered["apiVersion"], format!("{GROUP}/{version}"));
        assert_eq!(answered["kind"], KIND);
        assert_eq!(answered["response"], expected);
    }

    #[test]
    fn an_answer_has_the_version_of_its_question() {
        for version in ["v1", "v1beta1"] {
            check(
                version,
                &Answer::allowed(),
                json!({ "uid": "u-1", "allowed": true, "status": { "metadata": {}, "code": 200 } }),
            );
        }
    }

    #[test]
    fn a_patch_goes_along_only_when_there_is_one() {
        let operation = json!({ "op": "add", "path": "/a", "value": 1 });
        let allowed = |patch| Answer::Allowed { patch: Some(patch), warnings: vec!["careful".to_owned()] };
        let status = json!({ "metadata": {}, "code": 200 });
        check(
            "v1",
            &allowed(serde_json::from_value(json!([operation])).unwrap()),
            json!({
                "uid": "u-1", "allowed": true, "status": status, "warnings": ["careful"],
                "patchType": "JSONPatch", "patch": STANDARD.encode(json!([operation]).to_string()),
            }),
        );
        let none = json!({ "uid": "u-1", "allowed": true, "status": status, "warnings": ["careful"] });
        check("v1", &allowed(serde_json::from_value(json!([])).unwrap()), none);
    }

    #[test]
    fn what_a_refusal_depends_on_stands_in_its_details() {
        let causes = vec![Cause { reason: "PodUnavailableBudget", message: "0 more".to_owned() }];
        let status = |code: u16, reason: &str| {
            json!({
                "metadata": {}, "code": code, "message": "no", "reason": reason,
                "details": {"causes": [{"reason": "PodUnavailableBudget", "message": "0 more"}]},
            })
        };
        for (code, reason) in [(429, "TooManyRequests"), (403, "Forbidden")] {
            check(
                "v1",
                &Answer::Held { code, message: "no".to_owned(), causes: causes.clone() },
                json!({"uid": "u-1", "allowed": false, "status": status(code, reason)}),
            );
        }
    }

    #[test]
    fn a_refusal_carries_code_and_message() {
        check(
            "v1",
            &Answer::Denied { code: 422, message: "spec.replicas: Required value".to_owned() },
            json!({
                "uid": "u-1", "allowed": false,
                "status": { "metadata": {}, "code": 422, "message": "spec.replicas: Required value" },
            }),
        );
    }

    #[track_caller]
    fn refused(body: &[u8], uid: &str, message: &str) {
        let refused = decode(body).unwrap_err();
        assert_eq!(refused.message, message);
        assert_eq!(refused.reply_to.0.uid, uid);
    }

    #[test]
    fn what_cannot_be_answered_is_named() {
        let with = |field: &str, value: Value| {
            let mut request = update();
            request[field] = value;
            question("v1", request)
        };
        refused(b"{", "", "the body is no AdmissionReview: EOF while parsing an object at line 1 column 1");
        refused(
            b"{}",
            "",
            "expected kind AdmissionReview of admission.k8s.io/v1 or admission.k8s.io/v1beta1, \
             got neither kind nor apiVersion",
        );
        refused(
            br#"{"kind":"Pod","apiVersion":"v1"}"#,
            "",
            "expected kind AdmissionReview of admission.k8s.io/v1 or admission.k8s.io/v1beta1, \
             got kind \"Pod\" of \"v1\"",
        );
        refused(&question("v1", Value::Null), "", "the AdmissionReview has no request");
        refused(&question("v1", json!({ "uid": "u" })), "u", "unsupported version: ");
        refused(
            &with("operation", json!("EXPLODE")),
            "u-1",
            "CloneSet default/web: unknown operation \"EXPLODE\", expected one of CREATE, UPDATE, DELETE, CONNECT",
        );
        refused(
            &with("object", json!([1])),
            "u-1",
            "CloneSet default/web: object of the request is no JSON object",
        );
        let odd = decode(&with("operation", json!(7))).unwrap_err();
        assert_eq!(odd.reply_to.0, ReplyTo(Envelope::of(&with("operation", json!(7)))).0);
        assert_eq!(odd.reply_to.0.uid, "u-1");
        assert!(
            odd.message.starts_with("the body is no AdmissionReview: invalid type: integer"),
            "{}",
            odd.message
        );
    }

    #[test]
    fn a_refusal_of_something_else_does_not_pretend_to_be_it() {
        let refused = decode(br#"{"kind":"Pod","apiVersion":"v1","request":{"uid":"x"}}"#).unwrap_err();
        let answer = refused.reply_to.answer(&Answer::bad_object("no"));
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer.get("kind"), None);
        assert_eq!(answer["response"]["allowed"], false);
    }
}

//! Answers to clients that are not objects: Kubernetes' `Status`.
//!
//! Every refusal of the server is one of these. Codes, reasons, messages and details equal the real server's,
//! because clients decide by the reason and people read the message.

use std::borrow::Cow;
use std::fmt::{self, Display};

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::field;

/// A resource with its group, as REST errors name it: `pods` or `deployments.apps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupResource<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural name.
    pub resource: &'a str,
}

impl<'a> GroupResource<'a> {
    /// A resource of a group.
    pub const fn new(group: &'a str, resource: &'a str) -> Self {
        Self { group, resource }
    }
}

impl Display for GroupResource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        qualified(f, self.resource, self.group)
    }
}

/// A kind with its group, as errors about content name it: `Pod` or `Deployment.apps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupKind<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
}

impl<'a> GroupKind<'a> {
    /// A kind of a group.
    pub const fn new(group: &'a str, kind: &'a str) -> Self {
        Self { group, kind }
    }
}

impl Display for GroupKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        qualified(f, self.kind, self.group)
    }
}

fn qualified(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    if group.is_empty() { f.write_str(name) } else { write!(f, "{name}.{group}") }
}

/// The answer itself. It serialises in the real server's field order.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Status {
    /// List metadata; empty but for expired continue tokens, which may carry a new one.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// `Success` or `Failure`.
    #[serde(default)]
    pub status: Cow<'static, str>,
    /// What a person reads.
    #[serde(default)]
    pub message: String,
    /// What a program reads, for example `NotFound`.
    #[serde(default)]
    pub reason: Cow<'static, str>,
    /// More about the reason.
    #[serde(default)]
    pub details: Option<Box<Details>>,
    /// The HTTP status code.
    #[serde(default)]
    pub code: u16,
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { metadata, status, message, reason, details, code } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", "Status")?;
        map.serialize_entry("apiVersion", "v1")?;
        map.serialize_entry("metadata", metadata)?;
        for (name, text) in [("status", status.as_ref()), ("message", message), ("reason", reason)] {
            if !text.is_empty() {
                map.serialize_entry(name, text)?;
            }
        }
        if let Some(details) = details {
            map.serialize_entry("details", details)?;
        }
        if *code != 0 {
            map.serialize_entry("code", code)?;
        }
        map.end()
    }
}

/// More about a [`Status`]: the object and the causes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// The object's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The plural resource name for REST errors, the kind for `Invalid`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// What exactly is wrong, field by field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When the client may try again.
    #[serde(default, rename = "retryAfterSeconds", skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u16,
}

/// One cause of a failure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// Machine-readable, for example `FieldValueInvalid`.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub reason: Cow<'static, str>,
    /// What a person reads.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The path of the field.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u16) -> bool {
    *number == 0
}

impl Status {
    /// A failure without details.
    pub fn failure(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            metadata: Map::new(),
            status: Cow::Borrowed("Failure"),
            message: message.into(),
            reason: Cow::Borrowed(reason),
            details: None,
            code,
        }
    }

    /// A success without a message, as a delete of a finished object answers.
    pub fn success(resource: GroupResource<'_>, name: &str, uid: &str) -> Self {
        let mut status = Self::failure(0, "", "");
        status.status = Cow::Borrowed("Success");
        let mut details = about(resource, name);
        uid.clone_into(&mut details.uid);
        status.with_details(details)
    }

    /// The same with details.
    #[must_use]
    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// `400`: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(400, "BadRequest", message)
    }

    /// `401`: who is asking is not known.
    pub fn unauthorized() -> Self {
        Self::failure(401, "Unauthorized", "Unauthorized")
    }

    /// `403`: the request is understood and refused.
    pub fn forbidden(resource: GroupResource<'_>, name: &str, why: impl Display) -> Self {
        let message = if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} {} is forbidden: {why}", field::quote(name))
        };
        Self::failure(403, "Forbidden", message).with_details(about(resource, name))
    }

    /// `404`: no such object.
    pub fn not_found(resource: GroupResource<'_>, name: &str) -> Self {
        let message = format!("{resource} {} not found", field::quote(name));
        Self::failure(404, "NotFound", message).with_details(about(resource, name))
    }

    /// `404`: no such resource or path.
    pub fn resource_not_found() -> Self {
        Self::failure(404, "NotFound", "the server could not find the requested resource")
            .with_details(Details::default())
    }

    /// `405`: the verb does not exist for this resource.
    pub fn method_not_allowed(resource: GroupResource<'_>, action: &str) -> Self {
        let message =
            format!("{action} is not supported on resources of kind {}", field::quote(&resource.to_string()));
        Self::failure(405, "MethodNotAllowed", message).with_details(about(resource, ""))
    }

    /// `405`: the HTTP method does not exist on this path.
    pub fn http_method_not_allowed() -> Self {
        Self::failure(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with_details(Details::default())
    }

    /// `406`: the client accepts nothing that the server can write.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        Self::failure(406, "NotAcceptable", message)
    }

    /// `409`: an object of that name exists.
    pub fn already_exists(resource: GroupResource<'_>, name: &str) -> Self {
        let message = format!("{resource} {} already exists", field::quote(name));
        Self::failure(409, "AlreadyExists", message).with_details(about(resource, name))
    }

    /// `409`: no free name was found for `generateName`.
    pub fn generate_name_conflict(resource: GroupResource<'_>, name: &str, retry_after_seconds: u16) -> Self {
        let message = format!(
            "{resource} {} already exists, the server was not able to generate a unique name for the object",
            field::quote(name)
        );
        let details = Details { retry_after_seconds, ..about(resource, name) };
        Self::failure(409, "AlreadyExists", message).with_details(details)
    }

    /// `409`: the object is not in the state the client thought it was.
    pub fn conflict(resource: GroupResource<'_>, name: &str, why: impl Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {}: {why}", field::quote(name));
        Self::failure(409, "Conflict", message).with_details(about(resource, name))
    }

    /// `409`: the client's `resourceVersion` is not the current one.
    pub fn modified(resource: GroupResource<'_>, name: &str) -> Self {
        Self::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// `410` with reason `Expired`: a version or continue token that is too old.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(410, "Expired", message)
    }

    /// `410` with reason `Gone`.
    pub fn gone(message: impl Into<String>) -> Self {
        Self::failure(410, "Gone", message)
    }

    /// `410`: the watch or list version is older than the history that is kept.
    pub fn too_old_resource_version(requested: u64, oldest: u64) -> Self {
        Self::expired(format!("too old resource version: {requested} ({oldest})"))
    }

    /// `413`: the body is too big.
    pub fn too_large(message: impl Display) -> Self {
        Self::failure(413, "RequestEntityTooLarge", format!("Request entity too large: {message}"))
    }

    /// `415`: the body's content type is not accepted here.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::failure(415, "UnsupportedMediaType", message)
    }

    /// `406` or `415` as the router of the real server says it.
    pub fn unroutable(code: u16, reason: &'static str, words: &str) -> Self {
        Self::failure(code, reason, format!("{code}: {words}")).with_details(Details::default())
    }

    /// `422`: the object breaks rules.
    pub fn invalid(kind: GroupKind<'_>, name: &str, errors: Vec<field::Error>) -> Self {
        let quoted = field::quote(name);
        let message = if errors.is_empty() {
            format!("{kind} {quoted} is invalid")
        } else {
            format!("{kind} {quoted} is invalid: {}", field::aggregate(&errors))
        };
        let causes = errors
            .into_iter()
            .map(|error| Cause {
                reason: Cow::Borrowed(error.kind.reason()),
                message: error.body(),
                field: error.path,
            })
            .collect();
        Self::failure(422, "Invalid", message).with_details(Details {
            name: name.to_owned(),
            group: kind.group.to_owned(),
            kind: kind.kind.to_owned(),
            causes,
            ..Details::default()
        })
    }

    /// `422`: the request cannot be carried out on this object; the real server says no more than this.
    pub fn unprocessable() -> Self {
        Self::failure(422, "Invalid", "the server rejected our request due to an error in our request")
            .with_details(Details::default())
    }

    /// `429`: later, please. Evictions that a budget forbids answer this with a cause of their own.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u16) -> Self {
        Self::failure(429, "TooManyRequests", message)
            .with_details(Details { retry_after_seconds, ..Details::default() })
    }

    /// `500`: our fault, or a webhook's.
    pub fn internal(why: impl Display) -> Self {
        let why = why.to_string();
        Self::failure(500, "InternalError", format!("Internal error occurred: {why}")).with_details(Details {
            causes: vec![Cause { message: why, ..Cause::default() }],
            ..Details::default()
        })
    }

    /// `500` with reason `ServerTimeout`: try the operation again.
    pub fn server_timeout(resource: GroupResource<'_>, operation: &str, retry_after_seconds: u16) -> Self {
        let message = format!(
            "The {operation} operation against {resource} could not be completed at this time, please try again."
        );
        let details = Details { retry_after_seconds, ..about(resource, operation) };
        Self::failure(500, "ServerTimeout", message).with_details(details)
    }

    /// `501`: a real server can do this, we cannot. `what` says what is missing.
    pub fn not_implemented(what: impl Display) -> Self {
        Self::failure(501, "NotImplemented", format!("not implemented by this server: {what}"))
    }

    /// `503`: not ready.
    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::failure(503, "ServiceUnavailable", message)
    }

    /// `504`: it took too long; the operation may still have happened.
    pub fn timeout(message: impl Display, retry_after_seconds: u16) -> Self {
        Self::failure(504, "Timeout", format!("Timeout: {message}"))
            .with_details(Details { retry_after_seconds, ..Details::default() })
    }

    /// Adds a cause to the details.
    #[must_use]
    pub fn with_cause(
        mut self,
        reason: &'static str,
        message: impl Into<String>,
        field: impl Into<String>,
    ) -> Self {
        self.details.get_or_insert_default().causes.push(Cause {
            reason: Cow::Borrowed(reason),
            message: message.into(),
            field: field.into(),
        });
        self
    }

    /// The body, as compact JSON.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

fn about(resource: GroupResource<'_>, name: &str) -> Details {
    Details {
        name: name.to_owned(),
        group: resource.group.to_owned(),
        kind: resource.resource.to_owned(),
        ..Details::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: GroupResource<'_> = GroupResource::new("", "pods");
    const DEPLOYMENTS: GroupResource<'_> = GroupResource::new("apps", "deployments");

    #[track_caller]
    fn check(status: &Status, expected: &str) {
        assert_eq!(String::from_utf8(status.to_json()).unwrap(), expected);
    }

    #[test]
    fn rest_errors_name_the_plural_resource_and_its_group() {
        check(
            &Status::not_found(PODS, "x"),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"x\" not found","reason":"NotFound","details":{"name":"x","kind":"pods"},"code":404}"#,
        );
        check(
            &Status::already_exists(DEPLOYMENTS, "x"),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"deployments.apps \"x\" already exists","reason":"AlreadyExists","details":{"name":"x","group":"apps","kind":"deployments"},"code":409}"#,
        );
        assert_eq!(
            Status::modified(PODS, "x").message,
            "Operation cannot be fulfilled on pods \"x\": the object has been modified; \
             please apply your changes to the latest version and try again"
        );
    }

    #[test]
    fn an_invalid_object_is_told_field_by_field() {
        let one = Status::invalid(GroupKind::new("", "Pod"), "x", vec![field::Error::required("spec.a", "")]);
        check(
            &one,
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Pod \"x\" is invalid: spec.a: Required value","reason":"Invalid","details":{"name":"x","kind":"Pod","causes":[{"reason":"FieldValueRequired","message":"Required value","field":"spec.a"}]},"code":422}"#,
        );
        let two = Status::invalid(
            GroupKind::new("apps", "Deployment"),
            "x",
            vec![field::Error::required("spec.a", ""), field::Error::duplicate("spec.b", "y")],
        );
        assert_eq!(
            two.message,
            "Deployment.apps \"x\" is invalid: [spec.a: Required value, spec.b: Duplicate value: \"y\"]"
        );
    }

    #[test]
    fn a_status_of_a_webhook_reads_back() {
        let status: Status =
            serde_json::from_str(r#"{"code":403,"message":"no","reason":"Forbidden"}"#).unwrap();
        assert_eq!((status.code, status.message.as_str()), (403, "no"));
        assert_eq!(status.reason, "Forbidden");
    }

    #[test]
    fn an_internal_error_carries_its_cause() {
        check(
            &Status::internal("boom"),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Internal error occurred: boom","reason":"InternalError","details":{"causes":[{"message":"boom"}]},"code":500}"#,
        );
    }
}

//! One effect as one call of the API, and what the answer means.

use std::time::Duration;

use http_body_util::{BodyExt as _, Collected};
use kruise_core::{
    effect::{Effect, Patch, Target},
    object::{JOB, ObjectKey, Resource},
    text::Text,
};
use kube::{
    api::{DeleteParams, PatchParams, PostParams, PropagationPolicy},
    client::Body,
    core::{Request, Status, params, request},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

/// How long to wait when the server does not say.
const DEFAULT_WAIT: Duration = Duration::from_secs(1);

/// The verb of a question.
pub(super) const ASK: &str = "dry-run";

/// A call to be made.
pub(super) struct Call<'e> {
    pub(super) verb: &'static str,
    pub(super) resource: Resource,
    pub(super) object: ObjectKey,
    effect: &'e Effect,
    /// Whether nothing is to be stored, also of a create.
    is_trial: bool,
}

/// What the server said.
pub(super) enum Answer {
    /// It happened. What was written is not known where the body of the answer cannot be read.
    Done(Option<Written>),
    /// An object of that name is there.
    Exists,
    /// The object is not as the preconditions want it.
    Conflict,
    /// There is no such object.
    Gone,
    Throttled(Duration),
    Refused {
        code: u16,
        reason: String,
        message: String,
    },
    /// It may or may not have happened.
    Unclear(String),
}

/// What we want to know of an object that was written.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Answered {
    metadata: Written,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Written {
    pub(super) uid: Text,
    #[serde(rename = "resourceVersion")]
    pub(super) version: Text,
    owner_references: Vec<kruise_core::pod::Owner>,
    deletion_timestamp: Option<String>,
}

impl Written {
    /// Whether this is the object and nobody has deleted it.
    pub(super) fn stays(&self, uid: Option<&Text>) -> bool {
        uid.is_none_or(|uid| *uid == self.uid) && self.deletion_timestamp.is_none()
    }

    /// Whether this object belongs to the controller that the wanted one names.
    pub(super) fn has_controller_of(&self, wanted: &Value) -> bool {
        let owners = wanted.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let controller =
            owners.into_iter().flatten().find(|owner| owner.get("controller") == Some(&json!(true)));
        let wanted = controller.and_then(|owner| owner.get("uid")).and_then(Value::as_str);
        let own = self.owner_references.iter().find(|owner| owner.controller).map(|owner| owner.uid.as_str());
        own == wanted
    }
}

impl<'e> Call<'e> {
    /// The call of an effect; an event is none.
    pub(super) fn of(effect: &'e Effect) -> Option<Self> {
        let (verb, resource, object) = match effect {
            Effect::Create { resource, namespace, object } => {
                let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                ("create", *resource, ObjectKey { namespace: namespace.clone(), name: name.into() })
            }
            Effect::Patch { target, .. } => ("patch", target.resource, target.key.clone()),
            Effect::Ask { target, .. } => (ASK, target.resource, target.key.clone()),
            Effect::Delete { target, .. } => ("delete", target.resource, target.key.clone()),
            Effect::Event(_) => return None,
        };
        Some(Self { verb, resource, object, effect, is_trial: false })
    }

    /// The same call, of which nothing is stored.
    pub(super) fn into_trial(self) -> Self {
        Self { is_trial: true, ..self }
    }

    /// Makes the call, once.
    pub(super) async fn send(&self, client: &kube::Client, timeout: Duration) -> Answer {
        let request = match self.request() {
            Ok(request) => request,
            Err(error) => {
                let (reason, message) = ("BadRequest".to_owned(), error.to_string());
                return Answer::Refused { code: 400, reason, message };
            }
        };
        let until = Instant::now() + timeout;
        let response = match timeout_at(until, client.send(request.map(Body::from))).await {
            Err(_) => return Answer::Unclear(format!("no answer within {timeout:?}")),
            Ok(Err(error)) => return Answer::Unclear(error.to_string()),
            Ok(Ok(response)) => response,
        };
        let code = response.status();
        let body = match timeout_at(until, response.into_body().collect()).await {
            Err(_) => Err(format!("the answer {code} did not end within {timeout:?}")),
            Ok(body) => body.map(Collected::to_bytes).map_err(|error| error.to_string()),
        };
        match body {
            // The server has written it, whatever became of the rest of its answer.
            body if code.is_success() => Answer::Done(body.ok().and_then(|body| written(&body))),
            Err(error) => Answer::Unclear(error),
            Ok(body) => self.answer(&refusal(code.as_u16(), &body)),
        }
    }

    fn request(&self) -> Result<http::Request<Vec<u8>>, request::Error> {
        let request = Request::new(self.resource.path(&self.object.namespace));
        let name = self.object.name.as_str();
        match self.effect {
            Effect::Create { resource, object, .. } => {
                let mut object = object.clone();
                if let Value::Object(members) = &mut object {
                    members.entry("apiVersion").or_insert_with(|| json!(resource.api_version()));
                    members.entry("kind").or_insert_with(|| json!(resource.kind));
                }
                let params = PostParams { dry_run: self.is_trial, ..PostParams::default() };
                request.create(&params, object.to_string().into_bytes())
            }
            Effect::Patch { target, subresource, patch } | Effect::Ask { target, subresource, patch } => {
                let dry_run = matches!(self.effect, Effect::Ask { .. });
                let params = PatchParams { dry_run, ..PatchParams::default() };
                let patch = match patch {
                    Patch::Merge(change) => params::Patch::Merge(guarded(change, target)),
                    Patch::Strategic(change) => params::Patch::Strategic(guarded(change, target)),
                    Patch::Json(steps) => return json_patch(&request, target, *subresource, steps, &params),
                };
                match subresource {
                    Some(subresource) => request.patch_subresource(subresource, name, &params, &patch),
                    None => request.patch(name, &params, &patch),
                }
            }
            Effect::Delete { target, grace, .. } => {
                let preconditions = params::Preconditions {
                    uid: target.uid.clone().map(String::from),
                    resource_version: target.resource_version.clone().map(String::from),
                };
                let some = preconditions.uid.is_some() || preconditions.resource_version.is_some();
                let seconds = grace.map(|grace| u32::try_from(grace.as_secs()).unwrap_or(u32::MAX));
                let params = DeleteParams {
                    grace_period_seconds: seconds,
                    preconditions: some.then_some(preconditions),
                    // The server keeps the pods of a deleted Job unless it is asked not to.
                    propagation_policy: (target.resource == JOB).then_some(PropagationPolicy::Background),
                    ..DeleteParams::default()
                };
                request.delete(name, &params)
            }
            Effect::Event(_) => Err(request::Error::Validation("an event is not written here".to_owned())),
        }
    }

    fn answer(&self, status: &Status) -> Answer {
        match status.code {
            404 if self.verb != "create" => Answer::Gone,
            409 if status.is_already_exists() => Answer::Exists,
            409 => Answer::Conflict,
            422 if self.broke_precondition(status) => Answer::Conflict,
            429 => {
                let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
                let wait = Duration::from_secs(seconds.into());
                Answer::Throttled(if wait.is_zero() { DEFAULT_WAIT } else { wait })
            }
            // Whoever has to admit a write is asked before it is stored, so this one did not happen.
            500 if [UNREACHABLE_WEBHOOK, DENIED].iter().any(|words| status.message.contains(words)) => {
                Answer::Refused { code: 500, reason: status.reason.clone(), message: status.message.clone() }
            }
            code @ 400..500 => {
                Answer::Refused { code, reason: status.reason.clone(), message: status.message.clone() }
            }
            _ => Answer::Unclear(status.message.clone()),
        }
    }
}

/// What a body says about the object that was written. Nothing without a version, by which it could be known.
fn written(body: &[u8]) -> Option<Written> {
    let answered: Answered = serde_json::from_slice(body).ok()?;
    Some(answered.metadata).filter(|written| !written.version.is_empty())
}

/// What a body says about a refusal. Proxies do not always answer in the words of the API.
fn refusal(code: u16, body: &[u8]) -> Status {
    serde_json::from_slice(body).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(body);
        Status::failure(text.trim(), "Failed to parse error data").with_code(code)
    })
}

impl Call<'_> {
    /// Whether a patch is called invalid only because our preconditions do not hold: another uid is "immutable", and a
    /// `test` of a JSON patch failed.
    fn broke_precondition(&self, status: &Status) -> bool {
        let (Effect::Patch { target, patch, .. } | Effect::Ask { target, patch, .. }) = self.effect else {
            return false;
        };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let mut told = causes.map(|cause| (cause.field.as_str(), cause.message.as_str()));
        let whole = status.message.as_str();
        match patch {
            // A patch that cannot be applied, as opposed to an object that would be invalid after it.
            Patch::Json(_) => {
                whole.contains("rejected our request") || told.any(|(_, message)| message.contains("test"))
            }
            Patch::Merge(_) | Patch::Strategic(_) => {
                target.uid.is_some()
                    && (whole.contains("metadata.uid") || told.any(|(field, _)| field == "metadata.uid"))
            }
        }
    }
}

/// What a server says when it cannot reach a webhook that must admit a write.
const UNREACHABLE_WEBHOOK: &str = "failed calling webhook";
/// What it says when a webhook refused, also with 500 because it does not know enough to answer.
const DENIED: &str = "denied the request";

/// What is there now, by asking the server.
pub(super) async fn get(
    client: &kube::Client,
    resource: Resource,
    object: &ObjectKey,
    timeout: Duration,
) -> Result<Option<Written>, String> {
    let request = Request::new(resource.path(&object.namespace))
        .get(&object.name, &kube::api::GetParams::default())
        .map_err(|error| error.to_string())?;
    match tokio::time::timeout(timeout, client.request_text(request)).await {
        Err(_) => Err(format!("no answer within {timeout:?}")),
        Ok(Ok(text)) => match crate::decode::lenient::<Answered>(&text) {
            (Ok(answered), _) => Ok(Some(answered.metadata)),
            (Err(unread), _) => Err(unread.to_string()),
        },
        Ok(Err(kube::Error::Api(status))) if status.is_not_found() => Ok(None),
        Ok(Err(error)) => Err(error.to_string()),
    }
}

/// A patch with what must still hold: the server compares both and answers 409 otherwise.
fn guarded(change: &Value, target: &Target) -> Value {
    let mut change = change.clone();
    let Value::Object(members) = &mut change else { return change };
    if target.uid.is_none() && target.resource_version.is_none() {
        return change;
    }
    let metadata = members.entry("metadata").or_insert_with(|| json!({}));
    if let Value::Object(metadata) = metadata {
        if let Some(uid) = &target.uid {
            metadata.insert("uid".to_owned(), json!(uid));
        }
        if let Some(version) = &target.resource_version {
            metadata.insert("resourceVersion".to_owned(), json!(version));
        }
    }
    change
}

/// kube wants typed operations for a JSON patch; ours are data already.
fn json_patch(
    request: &Request,
    target: &Target,
    subresource: Option<&str>,
    steps: &Value,
    params: &PatchParams,
) -> Result<http::Request<Vec<u8>>, request::Error> {
    let mut all = Vec::new();
    let mut test = |path: &str, value: &Option<Text>| {
        all.extend(value.as_ref().map(|value| json!({"op": "test", "path": path, "value": value})));
    };
    test("/metadata/uid", &target.uid);
    test("/metadata/resourceVersion", &target.resource_version);
    all.extend(steps.as_array().into_iter().flatten().cloned());
    let name = target.key.name.as_str();
    // Built as a merge patch and relabelled: path and parameters are the same.
    let merge = params::Patch::Merge(Value::Array(all));
    let mut built = match subresource {
        Some(subresource) => request.patch_subresource(subresource, name, params, &merge)?,
        None => request.patch(name, params, &merge)?,
    };
    let label = http::HeaderValue::from_static("application/json-patch+json");
    built.headers_mut().insert(http::header::CONTENT_TYPE, label);
    Ok(built)
}

#[cfg(test)]
mod tests {
    use kruise_core::object::{NODE, POD};

    use super::*;

    fn sent(effect: &Effect) -> String {
        let request = Call::of(effect).expect("a write").request().expect("valid");
        let body = String::from_utf8(request.body().clone()).expect("text");
        format!("{} {} {body}", request.method(), request.uri())
    }

    #[test]
    fn preconditions_travel_with_the_write() {
        let target = Target::with_uid(POD, ObjectKey::new("ns", "a"), "u1".into()).at_version("7".into());
        let delete =
            Effect::Delete { target: target.clone(), grace: Some(Duration::from_secs(3)), follows: false };
        assert_eq!(
            sent(&delete),
            r#"DELETE /api/v1/namespaces/ns/pods/a? {"gracePeriodSeconds":3,"preconditions":{"resourceVersion":"7","uid":"u1"}}"#
        );
        let patch = |patch| Effect::Patch { target: target.clone(), subresource: Some("status"), patch };
        assert_eq!(
            sent(&patch(Patch::Strategic(json!({"status": {}})))),
            r#"PATCH /api/v1/namespaces/ns/pods/a/status? {"metadata":{"resourceVersion":"7","uid":"u1"},"status":{}}"#
        );
        assert_eq!(
            sent(&patch(Patch::Json(json!([{"op": "remove", "path": "/x"}])))),
            r#"PATCH /api/v1/namespaces/ns/pods/a/status? [{"op":"test","path":"/metadata/uid","value":"u1"},{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"remove","path":"/x"}]"#
        );
    }

    #[test]
    fn a_question_changes_nothing() {
        let target = Target::with_uid(POD, ObjectKey::new("ns", "a"), "u1".into());
        let patch = Patch::Strategic(json!({"spec": {}}));
        let ask = Effect::Ask { target, subresource: Some("resize"), patch };
        assert_eq!(
            sent(&ask),
            r#"PATCH /api/v1/namespaces/ns/pods/a/resize?&dryRun=All {"metadata":{"uid":"u1"},"spec":{}}"#
        );
    }

    #[test]
    fn a_trial_of_a_create_stores_nothing() {
        let create = Effect::Create {
            resource: POD,
            namespace: "ns".into(),
            object: json!({"metadata": {"name": "a"}}),
        };
        let request = Call::of(&create).expect("a write").into_trial().request().expect("valid");
        assert_eq!(request.uri(), "/api/v1/namespaces/ns/pods?&dryRun=All");
    }

    #[test]
    fn a_create_names_its_kind() {
        let object = json!({"metadata": {"name": "n1"}});
        let create = Effect::Create { resource: NODE, namespace: Text::default(), object };
        assert_eq!(
            sent(&create),
            r#"POST /api/v1/nodes? {"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}"#
        );
    }
}

//! `AdmissionReview`: what a webhook is asked and what its answer means.

use serde_json::{Map, Value, json};

use super::base64;
use super::hook::Hook;
use crate::admission::{Attributes, request};
use crate::field::quote;
use crate::registry::Resource;
use crate::status::Status;

/// A request to a webhook.
pub(super) struct Question<'a> {
    pub(super) uid: &'a str,
    /// The version of `AdmissionReview`.
    pub(super) version: &'a str,
    /// The resource in the version that the webhook wants.
    pub(super) resource: &'a Resource,
    pub(super) object: Option<&'a Value>,
    pub(super) old: Option<&'a Value>,
}

impl Question<'_> {
    pub(super) fn to_json(&self, attributes: &Attributes<'_>) -> Value {
        let mut request = request::about(attributes, self.resource, self.object.or(self.old));
        if let Some(map) = request.as_object_mut() {
            map.insert("uid".to_owned(), json!(self.uid));
            map.insert("object".to_owned(), json!(self.object));
            map.insert("oldObject".to_owned(), json!(self.old));
        }
        json!({
            "kind": "AdmissionReview",
            "apiVersion": format!("admission.k8s.io/{}", self.version),
            "request": request,
        })
    }
}

/// What a webhook decided.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) allowed: bool,
    /// A JSON patch, as bytes; empty for none.
    pub(super) patch: Vec<u8>,
    pub(super) status: Option<Value>,
    pub(super) warnings: Vec<String>,
}

/// Checks that the answer is one, and to this question. The error says what is wrong with it.
pub(super) fn answer(review: &Value, uid: &str, version: &str, mutating: bool) -> Result<Answer, String> {
    let response = review.get("response").and_then(Value::as_object).ok_or("webhook response was absent")?;
    let text = |key: &str| response.get(key).and_then(Value::as_str).unwrap_or_default();
    if version == "v1" {
        if text("uid") != uid {
            return Err(format!("expected response.uid={}, got {}", quote(uid), quote(text("uid"))));
        }
        let is = |key: &str| review.get(key).and_then(Value::as_str).unwrap_or_default();
        if (is("apiVersion"), is("kind")) != ("admission.k8s.io/v1", "AdmissionReview") {
            return Err(format!(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {}, Kind={}",
                is("apiVersion"),
                is("kind")
            ));
        }
    }
    let patch = base64::decode(text("patch")).ok_or("illegal base64 data in response.patch")?;
    let patch_type = response.get("patchType").and_then(Value::as_str);
    check_patch(!patch.is_empty(), patch_type, version, mutating)?;
    let warnings = response.get("warnings").and_then(Value::as_array);
    Ok(Answer {
        allowed: response.get("allowed").and_then(Value::as_bool).unwrap_or(false),
        patch: if mutating { patch } else { Vec::new() },
        status: response.get("status").filter(|status| !status.is_null()).cloned(),
        warnings: warnings.into_iter().flatten().filter_map(|w| w.as_str().map(str::to_owned)).collect(),
    })
}

fn check_patch(patched: bool, patch_type: Option<&str>, version: &str, mutating: bool) -> Result<(), String> {
    // The older version never looked.
    if version != "v1" {
        return Ok(());
    }
    if !mutating {
        return match (patched, patch_type) {
            (true, _) => Err("validating webhook may not return response.patch".to_owned()),
            (false, Some(_)) => Err("validating webhook may not return response.patchType".to_owned()),
            (false, None) => Ok(()),
        };
    }
    match (patched, patch_type) {
        (true, None) => Err("webhook returned response.patch but not response.patchType".to_owned()),
        (false, Some(_)) => Err("webhook returned response.patchType but not response.patch".to_owned()),
        (true, Some("")) => Err("webhook returned invalid response.patchType of \"\"".to_owned()),
        (true, Some(kind)) if kind != "JSONPatch" => Err(format!("unsupported patch type {}", quote(kind))),
        _ => Ok(()),
    }
}

/// The refusal that a client sees when a webhook says no.
pub(super) fn denied(hook: &Hook, status: Option<Value>) -> Status {
    let given = match status {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let text = |key: &str| given.get(key).and_then(Value::as_str).unwrap_or_default();
    let by = format!("admission webhook {} denied the request", quote(&hook.name));
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let code = given.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let mut refusal = Status::failure(code.filter(|code| *code >= 400).unwrap_or(400), "", message);
    refusal.reason = text("reason").to_owned().into();
    refusal.details = given.get("details").and_then(|details| serde_json::from_value(details.clone()).ok());
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(response: Value, mutating: bool, expected: &str) {
        let review =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        assert_eq!(answer(&review, "u", "v1", mutating).unwrap_err(), expected);
    }

    #[test]
    fn answers_that_are_none_are_named() {
        check(Value::Null, true, "webhook response was absent");
        check(json!({"uid": "x"}), true, "expected response.uid=\"u\", got \"x\"");
        check(
            json!({"uid": "u", "patch": "W10="}),
            true,
            "webhook returned response.patch but not response.patchType",
        );
        check(
            json!({"uid": "u", "patchType": "JSONPatch"}),
            true,
            "webhook returned response.patchType but not response.patch",
        );
        check(
            json!({"uid": "u", "patch": "W10="}),
            false,
            "validating webhook may not return response.patch",
        );
        let other = json!({"apiVersion": "v1", "kind": "Pod", "response": {"uid": "u"}});
        assert_eq!(
            answer(&other, "u", "v1", true).unwrap_err(),
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got v1, Kind=Pod"
        );
    }
}

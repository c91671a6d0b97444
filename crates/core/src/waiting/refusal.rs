//! What an answer of the API server means: who refuses, and what ends it.

use super::{Reason, text};
use crate::object::{ObjectKey, Resource};

/// Why the server refused a write, with the sentence; nothing for an answer that looking again settles. `missing` is how many
/// pods are missing, where the write is the creation of one.
pub fn refused(
    verb: &str,
    resource: Resource,
    object: &ObjectKey,
    code: u16,
    answer: &str,
    missing: usize,
) -> Option<(Reason, String)> {
    let (plural, kind) = (resource.plural, resource.kind);
    let words = text::foreign(answer);
    if let Some(webhook) = between(answer, "failed calling webhook \"", "\"") {
        let cause = answer.split_once("\": ").map_or(answer, |(_, cause)| cause);
        let cause = text::foreign(cause);
        let sentence =
            format!("webhook {webhook} does not answer ({verb} {plural}): {cause}; it is tried again");
        return Some((Reason::WebhookUnavailable, sentence));
    }
    if let Some(webhook) = between(answer, "admission webhook \"", "\" denied the request") {
        let cause = answer.split_once("denied the request: ").map_or("without a message", |(_, cause)| cause);
        let cause = text::foreign(cause);
        let name = &object.name;
        let sentence = format!("webhook {webhook} refuses to {verb} {kind} {name}: {cause}");
        return Some((Reason::WebhookRefuses, sentence));
    }
    if code == 403 && answer.contains("exceeded quota") {
        let quota = between(answer, "exceeded quota: ", ",").unwrap_or("?");
        let numbers = answer.split_once("requested: ").map_or("", |(_, numbers)| numbers);
        let numbers = text::foreign(&format!("requested: {numbers}"));
        let subject = if resource.kind == "Pod" {
            let are = if missing == 1 { "is" } else { "are" };
            format!("{} {are} missing", text::pods(missing.max(1)))
        } else {
            format!("{kind} {} is missing", object.name)
        };
        return Some((Reason::QuotaExceeded, format!("{subject}: quota {quota} is used up ({numbers})")));
    }
    if code == 403 && answer.contains("is being terminated") {
        let namespace = &object.namespace;
        let sentence = format!("namespace {namespace} is being deleted, nothing is created in it");
        return Some((Reason::NamespaceTerminating, sentence));
    }
    match code {
        401 | 403 if answer.contains("cannot ") => {
            let place = match object.namespace.as_str() {
                "" => "the cluster".to_owned(),
                namespace => namespace.to_owned(),
            };
            let sentence = format!(
                "the manager may not {verb} {plural} in {place}: {words}; grant it to the ServiceAccount kruise-manager"
            );
            Some((Reason::PermissionMissing, sentence))
        }
        409 if answer.contains("belongs to somebody else") => {
            let name = &object.name;
            let sentence = format!("{kind} {name} exists and belongs to somebody else; delete or rename it");
            Some((Reason::NameTaken, sentence))
        }
        _ => None,
    }
}

/// The server calls what a template without revisions describes invalid.
pub fn invalid_template(
    resource: Resource,
    object: &ObjectKey,
    code: u16,
    answer: &str,
) -> Option<(Reason, String)> {
    let (kind, name, text) = (resource.kind, &object.name, text::foreign(answer));
    let sentence = format!("{kind} {name} cannot be created: {text}; correct spec.template");
    (matches!(code, 400 | 422) && !answer.contains("webhook \""))
        .then_some((Reason::RevisionBroken, sentence))
}

/// The server does not carry out an operation.
pub fn unavailable(verb: &str, resource: &str, answer: &str) -> (Reason, String) {
    let text = text::foreign(answer);
    (Reason::ServerUnavailable, format!("the API server cannot {verb} {resource}: {text}; it is tried again"))
}

fn between<'a>(answer: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = answer.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

//! What a BroadcastJob must look like, besides its name and its pod template.

use kruise_api::{
    json,
    kubernetes::validation::Violation,
    labels::{BROADCASTJOB_CONTROLLER_UID, BROADCASTJOB_NAME},
};
use serde_json::{Value, json};

use crate::admission::{
    kinds::{Change, Context},
    rules,
};

const LABELS: &[&str] = &["spec", "template", "metadata", "labels"];

/// Appends what is wrong. Rules that the original does not have look only at what the request changes, so that what is
/// stored can still be worked with.
pub fn rule(change: &Change<'_>, _: &Context<'_>, found: &mut Vec<Violation>) {
    completion(change.new, found);
    let policy = json::text(change.new, &["spec", "template", "spec", "restartPolicy"]);
    let policy = policy.filter(|policy| !policy.is_empty()).unwrap_or("Always");
    if !matches!(policy, "Never" | "OnFailure") {
        let detail = "pod restartPolicy can only be Never or OnFailure";
        found.push(Violation::invalid("spec.template.spec.restartPolicy", policy, detail));
    }
    let preset =
        |key: &str| json::text(change.new, &[LABELS, &[key]].concat()).is_some_and(|value| !value.is_empty());
    if preset(BROADCASTJOB_NAME) || preset(BROADCASTJOB_CONTROLLER_UID) {
        let given = json::at(change.new, LABELS).cloned().unwrap_or_else(|| json!({}));
        let detail = format!(
            "{BROADCASTJOB_NAME:?} and {BROADCASTJOB_CONTROLLER_UID:?} are not allowed to preset in pod labels"
        );
        found.push(Violation::invalid(LABELS.join("."), given, detail));
    }
    if change.touches(&["spec", "parallelism"]) {
        rules::int_or_percent(found, change.new, &["spec", "parallelism"]);
    }
    if change.touches(&["spec", "failurePolicy"]) {
        let path = ["spec", "failurePolicy", "type"];
        one_of(found, change.new, &path, &["FailFast", "Continue", "Pause"]);
        rules::not_negative(found, change.new, &["spec", "failurePolicy", "restartLimit"]);
    }
    if change.touches(&["spec", "completionPolicy"]) {
        let path = |field| ["spec", "completionPolicy", field];
        one_of(found, change.new, &path("type"), &["Always", "Never"]);
        rules::not_negative(found, change.new, &path("ttlSecondsAfterFinished"));
        let deadline = json::at(change.new, &path("activeDeadlineSeconds")).and_then(Value::as_i64);
        if let Some(deadline) = deadline.filter(|deadline| *deadline <= 0) {
            let path = path("activeDeadlineSeconds").join(".");
            found.push(Violation::invalid(path, deadline, "must be greater than 0"));
        }
    }
}

/// A job that never ends has no time after its end.
fn completion(object: &Value, found: &mut Vec<Violation>) {
    if json::text(object, &["spec", "completionPolicy", "type"]) != Some("Never") {
        return;
    }
    for field in ["ttlSecondsAfterFinished", "activeDeadlineSeconds"] {
        if let Some(value) = json::at(object, &["spec", "completionPolicy", field]) {
            let detail = format!("{field} can just work with Always CompletionPolicyType");
            found.push(Violation::invalid(format!("spec.completionPolicy.{field}"), value.clone(), detail));
        }
    }
}

fn one_of(found: &mut Vec<Violation>, object: &Value, path: &[&str], allowed: &[&str]) {
    let given = json::text(object, path).filter(|given| !given.is_empty() && !allowed.contains(given));
    found.extend(given.map(|given| Violation::not_supported(path.join("."), given, allowed)));
}

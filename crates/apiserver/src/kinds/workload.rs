//! Deployments, sets and revisions.

use super::object::{equal, get, integer, same, text};
use super::{errors, not_negative};
use crate::field::{Error, Path};
use crate::selector;
use kruise_api::kubernetes::validation::{self, Options, names};
use serde_json::Value;

const NULL: &Value = &Value::Null;

fn spec_of(object: &Value) -> &Value {
    object.get("spec").unwrap_or(NULL)
}

const UNMATCHED: &str = "`selector` does not match template `labels`";

/// A selector that is there, well formed, not empty, and matches the labels of the template.
fn validate_selector(found: &mut Vec<Error>, spec: &Value, kind: &str) {
    let Some(given) = get(spec, "selector") else {
        if kind != "daemonset" {
            found.push(Error::required("spec.selector", ""));
        }
        // No selector matches no labels, and the real server says that too.
        let labels = spec.pointer("/template/metadata/labels").cloned().unwrap_or_default();
        found.push(Error::invalid("spec.template.metadata.labels", labels, UNMATCHED));
        return;
    };
    let before = found.len();
    found.extend(selector::validate(given, &Path::new("spec.selector")));
    let parsed = selector::Labels::from_object(Some(given));
    if parsed.as_ref().is_ok_and(selector::Labels::is_everything) {
        let detail = format!("empty selector is invalid for {kind}");
        found.push(Error::invalid("spec.selector", given.clone(), detail));
    } else if found.len() == before {
        match parsed {
            Ok(parsed) => template_labels(found, &parsed, spec),
            Err(_) => found.push(Error::invalid("spec.selector", given.clone(), "invalid label selector")),
        }
    }
}

fn template_labels(found: &mut Vec<Error>, selector: &selector::Labels, spec: &Value) {
    let labels = spec.pointer("/template/metadata/labels").and_then(Value::as_object);
    if !selector.matches_json(labels) {
        let labels = labels.cloned().map_or(Value::Null, Value::Object);
        found.push(Error::invalid("spec.template.metadata.labels", labels, UNMATCHED));
    }
}

fn template(found: &mut Vec<Error>, spec: &Value, options: &Options) {
    let template = spec.get("template").unwrap_or(NULL);
    found.extend(errors(validation::pod_template_spec(template, "spec.template", options)));
}

/// Pods of these kinds always restart and have no deadline.
fn always_restarts(found: &mut Vec<Error>, spec: &Value, kind: &str) {
    let pod = spec.pointer("/template/spec").unwrap_or(NULL);
    let policy = text(pod, "restartPolicy");
    if policy != "Always" {
        found.push(Error::not_supported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
    if get(pod, "activeDeadlineSeconds").is_some() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        found.push(Error::forbidden("spec.template.spec.activeDeadlineSeconds", detail));
    }
}

/// The template of a ReplicationController, if it has one.
pub(super) fn validate_replication_template(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = spec_of(object);
    if get(spec, "template").is_some() {
        template(&mut found, spec, &Options::default());
        always_restarts(&mut found, spec, "ReplicationController");
    }
    found
}

pub(super) fn validate_deployment(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = spec_of(object);
    not_negative(&mut found, spec, "replicas", "spec");
    validate_selector(&mut found, spec, "deployment");
    template(&mut found, spec, &Options::default());
    always_restarts(&mut found, spec, "ReplicaSet");
    deployment_strategy(&mut found, spec.get("strategy").unwrap_or(NULL));
    for member in ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        not_negative(&mut found, spec, member, "spec");
    }
    let ready = integer(spec, "minReadySeconds").unwrap_or_default();
    if let Some(deadline) = integer(spec, "progressDeadlineSeconds").filter(|deadline| *deadline <= ready) {
        let detail = "must be greater than minReadySeconds";
        found.push(Error::invalid("spec.progressDeadlineSeconds", deadline, detail));
    }
    found
}

fn deployment_strategy(found: &mut Vec<Error>, strategy: &Value) {
    let path = "spec.strategy";
    match text(strategy, "type") {
        "Recreate" => {
            if get(strategy, "rollingUpdate").is_some() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                found.push(Error::forbidden(format!("{path}.rollingUpdate"), detail));
            }
        }
        "RollingUpdate" => {
            let rolling = strategy.get("rollingUpdate").unwrap_or(NULL);
            let path = format!("{path}.rollingUpdate");
            for member in ["maxUnavailable", "maxSurge"] {
                int_or_percent(found, rolling, member, &path);
            }
            if amount(rolling, "maxUnavailable") == 0 && amount(rolling, "maxSurge") == 0 {
                let value = rolling.get("maxUnavailable").cloned().unwrap_or_default();
                let detail = "may not be 0 when `maxSurge` is 0";
                found.push(Error::invalid(format!("{path}.maxUnavailable"), value, detail));
            }
            at_most_all(found, rolling, "maxUnavailable", &path);
        }
        _ => found.push(Error::not_supported(path, strategy.clone(), &["Recreate", "RollingUpdate"])),
    }
}

/// A number or a percentage, not negative.
pub(super) fn int_or_percent(found: &mut Vec<Error>, owner: &Value, member: &str, path: &str) {
    match owner.get(member) {
        Some(Value::String(text)) if !is_percent(text) => {
            let detail = "a valid percent string must be a numeric string followed by an ending '%' \
                          (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            found.push(Error::invalid(format!("{path}.{member}"), text.as_str(), detail));
        }
        _ => not_negative(found, owner, member, path),
    }
}

/// A percentage of at most 100.
pub(super) fn at_most_all(found: &mut Vec<Error>, owner: &Value, member: &str, path: &str) {
    if let Some(Value::String(text)) = owner.get(member)
        && is_percent(text)
        && amount(owner, member) > 100
    {
        let detail = "must not be greater than 100%";
        found.push(Error::invalid(format!("{path}.{member}"), text.as_str(), detail));
    }
}

fn is_percent(text: &str) -> bool {
    text.strip_suffix('%')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// The number, of percent or of pods.
fn amount(owner: &Value, member: &str) -> i64 {
    match owner.get(member) {
        Some(Value::String(text)) => text.trim_end_matches('%').parse().unwrap_or_default(),
        Some(value) => value.as_i64().unwrap_or_default(),
        None => 0,
    }
}

pub(super) fn validate_replica_set(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = spec_of(object);
    not_negative(&mut found, spec, "replicas", "spec");
    not_negative(&mut found, spec, "minReadySeconds", "spec");
    validate_selector(&mut found, spec, "deployment");
    template(&mut found, spec, &Options::default());
    always_restarts(&mut found, spec, "ReplicaSet");
    found
}

pub(super) fn validate_daemon_set(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = spec_of(object);
    validate_selector(&mut found, spec, "daemonset");
    template(&mut found, spec, &Options::default());
    always_restarts(&mut found, spec, "DaemonSet");
    for member in ["minReadySeconds", "revisionHistoryLimit"] {
        not_negative(&mut found, spec, member, "spec");
    }
    let strategy = spec.get("updateStrategy").unwrap_or(NULL);
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = strategy.get("rollingUpdate").unwrap_or(NULL);
            let path = "spec.updateStrategy.rollingUpdate";
            for member in ["maxUnavailable", "maxSurge"] {
                int_or_percent(&mut found, rolling, member, path);
                at_most_all(&mut found, rolling, member, path);
            }
            let both = (amount(rolling, "maxUnavailable") > 0, amount(rolling, "maxSurge") > 0);
            let value = |member: &str| rolling.get(member).cloned().unwrap_or_default();
            if both == (true, true) {
                let detail = "may not be set when maxUnavailable is non-zero";
                found.push(Error::invalid(format!("{path}.maxSurge"), value("maxSurge"), detail));
            } else if both == (false, false) {
                let detail = "cannot be 0 when maxSurge is 0";
                found.push(Error::required(format!("{path}.maxUnavailable"), detail));
            }
        }
        other => found.push(Error::not_supported(
            "spec.updateStrategy.type",
            other,
            &["RollingUpdate", "OnDelete"],
        )),
    }
    found
}

pub(super) fn validate_stateful_set(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = spec_of(object);
    let policy = text(spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        found.push(Error::invalid("spec.podManagementPolicy", policy, detail));
    }
    stateful_strategy(&mut found, spec.get("updateStrategy").unwrap_or(NULL));
    if let Some(policy) = get(spec, "persistentVolumeClaimRetentionPolicy") {
        for member in ["whenDeleted", "whenScaled"] {
            let value = text(policy, member);
            if !matches!(value, "Retain" | "Delete") {
                let path = format!("spec.persistentVolumeClaimRetentionPolicy.{member}");
                found.push(Error::not_supported(path, value, &["Retain", "Delete"]));
            }
        }
    }
    for member in ["replicas", "minReadySeconds"] {
        not_negative(&mut found, spec, member, "spec");
    }
    if let Some(ordinals) = get(spec, "ordinals") {
        not_negative(&mut found, ordinals, "start", "spec.ordinals");
    }
    let service = text(spec, "serviceName");
    if !service.is_empty() {
        found.extend(
            names::dns_label(service)
                .into_iter()
                .map(|rule| Error::invalid("spec.serviceName", service, rule)),
        );
    }
    validate_selector(&mut found, spec, "statefulset");
    always_restarts(&mut found, spec, "StatefulSet");
    found
}

fn stateful_strategy(found: &mut Vec<Error>, strategy: &Value) {
    match text(strategy, "type") {
        "" => found.push(Error::required("spec.updateStrategy", "")),
        "OnDelete" => {
            if let Some(rolling) = get(strategy, "rollingUpdate") {
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                found.push(Error::invalid("spec.updateStrategy.rollingUpdate", rolling.clone(), detail));
            }
        }
        "RollingUpdate" => {
            if let Some(rolling) = get(strategy, "rollingUpdate") {
                not_negative(found, rolling, "partition", "spec.updateStrategy.rollingUpdate");
            }
        }
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            found.push(Error::invalid("spec.updateStrategy", strategy.clone(), detail));
        }
    }
}

pub(super) fn validate_revision(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    if let Some(revision) = integer(object, "revision").filter(|revision| *revision < 0) {
        found.push(Error::invalid("revision", revision, "must be greater than or equal to 0"));
    }
    match get(object, "data") {
        None => found.push(Error::required("data", "data is mandatory")),
        Some(data) if !data.is_object() => {
            found.push(Error::required("data", "data must be a valid JSON object"));
        }
        Some(_) => {}
    }
    found
}

const STATEFUL_SET_MAY_CHANGE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

pub(super) fn validate_update(kind: &str, object: &Value, old: &Value) -> Vec<Error> {
    let (spec, old_spec) = (spec_of(object), spec_of(old));
    let mut found = super::validate_create("apps", kind, object);
    match kind {
        "Deployment" | "ReplicaSet" | "DaemonSet" => {
            super::immutable(&mut found, spec, old_spec, "selector", "spec");
        }
        "StatefulSet" => {
            let members =
                [spec, old_spec].into_iter().filter_map(Value::as_object).flat_map(serde_json::Map::keys);
            let fixed = members.filter(|member| !STATEFUL_SET_MAY_CHANGE.contains(&member.as_str()));
            if fixed.into_iter().any(|member| !same(spec, old_spec, member)) {
                let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                              'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                              'minReadySeconds' are forbidden";
                found.push(Error::forbidden("spec", detail));
            }
        }
        "ControllerRevision" => {
            let null = Value::Null;
            let (data, old_data) = (object.get("data").unwrap_or(&null), old.get("data").unwrap_or(&null));
            if !equal(data, old_data) {
                found.push(Error::invalid("data", data.clone(), "field is immutable"));
            }
        }
        _ => {}
    }
    found
}

/// Counters of a status are not negative and parts are not greater than the whole.
pub(super) fn validate_status(kind: &str, object: &Value, old: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let status = object.get("status").unwrap_or(NULL);
    let numbers = status.as_object().into_iter().flatten().filter(|(_, value)| value.is_number());
    for (member, _) in numbers {
        not_negative(&mut found, status, member, "status");
    }
    if kind == "DaemonSet" {
        return found;
    }
    let count = |member: &str| integer(status, member).unwrap_or_default();
    let parts: &[&str] = match kind {
        "Deployment" => &["updatedReplicas", "readyReplicas", "availableReplicas"],
        "ReplicaSet" => &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        _ => &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
    };
    for part in parts {
        if count(part) > count("replicas") {
            let detail = "cannot be greater than status.replicas";
            found.push(Error::invalid(format!("status.{part}"), count(part), detail));
        }
    }
    if count("availableReplicas") > count("readyReplicas") {
        let whole = if kind == "StatefulSet" { "status.readyReplicas" } else { "readyReplicas" };
        let detail = format!("cannot be greater than {whole}");
        found.push(Error::invalid("status.availableReplicas", count("availableReplicas"), detail));
    }
    let collisions = |object: &Value| object.pointer("/status/collisionCount").and_then(Value::as_i64);
    if let Some(before) = collisions(old)
        && collisions(object).is_none_or(|now| now < before)
    {
        let now = collisions(object).unwrap_or_default();
        found.push(Error::invalid("status.collisionCount", now, "cannot be decremented"));
    }
    found
}

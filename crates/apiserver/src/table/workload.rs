//! Rows of workloads: deployments, sets, jobs, revisions, budgets and autoscalers.

use super::duration::{between, human_duration, moment};
use super::read::{
    NONE, UNKNOWN, UNSET, age, at, condition, containers, is_terminating, labels, list, name, number, scalar,
    selector, selector_or_none, shortened, since_at, text, text_or,
};
use jiff::Timestamp;
use serde_json::Value;

const TEMPLATE: &str = "/spec/template/spec/containers";

pub(super) fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let (names, images) = containers(object, TEMPLATE);
    vec![
        name(object).into(),
        ready_of_wanted(object).into(),
        number(object, "/status/updatedReplicas").into(),
        number(object, "/status/availableReplicas").into(),
        age(object, now).into(),
        names.into(),
        images.into(),
        selector(object, "/spec/selector").into(),
    ]
}

fn ready_of_wanted(object: &Value) -> String {
    format!("{}/{}", number(object, "/status/readyReplicas"), number(object, "/spec/replicas"))
}

pub(super) fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let (names, images) = containers(object, TEMPLATE);
    vec![
        name(object).into(),
        number(object, "/spec/replicas").into(),
        number(object, "/status/replicas").into(),
        number(object, "/status/readyReplicas").into(),
        age(object, now).into(),
        names.into(),
        images.into(),
        selector_or_none(object, "/spec/selector").into(),
    ]
}

pub(super) fn scale(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object).into(),
        number(object, "/spec/replicas").into(),
        number(object, "/status/replicas").into(),
        age(object, now).into(),
    ]
}

pub(super) fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let (names, images) = containers(object, TEMPLATE);
    vec![
        name(object).into(),
        ready_of_wanted(object).into(),
        age(object, now).into(),
        names.into(),
        images.into(),
    ]
}

pub(super) fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let (names, images) = containers(object, TEMPLATE);
    vec![
        name(object).into(),
        number(object, "/status/desiredNumberScheduled").into(),
        number(object, "/status/currentNumberScheduled").into(),
        number(object, "/status/numberReady").into(),
        number(object, "/status/updatedNumberScheduled").into(),
        number(object, "/status/numberAvailable").into(),
        labels(object, "/spec/template/spec/nodeSelector").into(),
        age(object, now).into(),
        names.into(),
        images.into(),
        selector_or_none(object, "/spec/selector").into(),
    ]
}

pub(super) fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let succeeded = number(object, "/status/succeeded");
    let parallelism = number(object, "/spec/parallelism");
    let completions = match at(object, "/spec/completions") {
        Some(completions) => format!("{succeeded}/{completions}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    };
    let started = moment(object.pointer("/status/startTime"));
    let ended = moment(object.pointer("/status/completionTime"));
    let duration = started.map(|started| human_duration(between(started, ended.unwrap_or(now))));
    let has = |kind| condition(object, kind) == Some("True");
    let status = if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if is_terminating(object) {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else if has("FailureTarget") {
        "FailureTarget"
    } else {
        "Running"
    };
    let (names, images) = containers(object, TEMPLATE);
    vec![
        name(object).into(),
        status.into(),
        completions.into(),
        duration.unwrap_or_default().into(),
        age(object, now).into(),
        names.into(),
        images.into(),
        selector_or_none(object, "/spec/selector").into(),
    ]
}

pub(super) fn cron_job(object: &Value, now: Timestamp) -> Vec<Value> {
    let last = match at(object, "/status/lastScheduleTime") {
        Some(_) => since_at(object, "/status/lastScheduleTime", now),
        None => NONE.to_owned(),
    };
    let suspend = match object.pointer("/spec/suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => UNSET,
    };
    let (names, images) = containers(object, "/spec/jobTemplate/spec/template/spec/containers");
    vec![
        name(object).into(),
        text(object, "/spec/schedule").into(),
        text_or(object, "/spec/timeZone", NONE).into(),
        suspend.into(),
        list(object, "/status/active").len().into(),
        last.into(),
        age(object, now).into(),
        names.into(),
        images.into(),
        selector_or_none(object, "/spec/jobTemplate/spec/selector").into(),
    ]
}

pub(super) fn controller_revision(object: &Value, now: Timestamp) -> Vec<Value> {
    let controller = list(object, "/metadata/ownerReferences")
        .iter()
        .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))
        .map(|owner| {
            let kind = text(owner, "/kind").to_lowercase();
            match text(owner, "/apiVersion").rsplit_once('/') {
                Some((group, _)) => format!("{kind}.{group}/{}", text(owner, "/name")),
                None => format!("{kind}/{}", text(owner, "/name")),
            }
        });
    vec![
        name(object).into(),
        controller.unwrap_or_else(|| NONE.to_owned()).into(),
        number(object, "/revision").into(),
        age(object, now).into(),
    ]
}

pub(super) fn disruption_budget(object: &Value, now: Timestamp) -> Vec<Value> {
    let bound = |pointer| at(object, pointer).map_or_else(|| "N/A".to_owned(), scalar);
    vec![
        name(object).into(),
        bound("/spec/minAvailable").into(),
        bound("/spec/maxUnavailable").into(),
        number(object, "/status/disruptionsAllowed").into(),
        age(object, now).into(),
    ]
}

pub(super) fn autoscaler(object: &Value, now: Timestamp) -> Vec<Value> {
    let target = format!(
        "{}/{}",
        text(object, "/spec/scaleTargetRef/kind"),
        text(object, "/spec/scaleTargetRef/name")
    );
    vec![
        name(object).into(),
        target.into(),
        metrics(object).into(),
        at(object, "/spec/minReplicas").map_or_else(|| UNSET.to_owned(), scalar).into(),
        number(object, "/spec/maxReplicas").into(),
        number(object, "/status/currentReplicas").into(),
        age(object, now).into(),
    ]
}

/// Seen and wanted values of the metrics: `cpu: 12%/80%`.
fn metrics(object: &Value) -> String {
    if let Some(percent) = at(object, "/spec/targetCPUUtilizationPercentage") {
        let seen = at(object, "/status/currentCPUUtilizationPercentage");
        return format!(
            "cpu: {}/{percent}%",
            seen.map_or_else(|| UNKNOWN.to_owned(), |seen| format!("{seen}%"))
        );
    }
    let metrics = list(object, "/spec/metrics");
    if metrics.is_empty() {
        return NONE.to_owned();
    }
    let statuses = list(object, "/status/currentMetrics");
    let parts: Vec<String> =
        metrics.iter().enumerate().map(|(index, metric)| one_metric(metric, statuses.get(index))).collect();
    shortened(&parts, 2, ", ")
}

fn one_metric(metric: &Value, status: Option<&Value>) -> String {
    let (source, prefixed, average_marked) = match text(metric, "/type") {
        "External" => ("external", false, true),
        "Object" => ("object", false, true),
        "Pods" => ("pods", false, false),
        "Resource" => ("resource", true, false),
        "ContainerResource" => ("containerResource", true, false),
        _ => return "<unknown type>".to_owned(),
    };
    let target = metric.get(source).and_then(|source| source.get("target")).unwrap_or(&Value::Null);
    let seen = status.and_then(|status| status.get(source)).and_then(|source| source.get("current"));
    let current = |key: &str| seen.and_then(|seen| seen.get(key)).filter(|value| !value.is_null());
    let unknown = || UNKNOWN.to_owned();
    let text_of_target = if let Some(average) = target.get("averageValue").filter(|value| !value.is_null()) {
        let mark = if average_marked { " (avg)" } else { "" };
        format!("{}/{}{mark}", current("averageValue").map_or_else(unknown, scalar), scalar(average))
    } else if prefixed {
        let percent = |value: &Value| format!("{value}%");
        let wanted = target.get("averageUtilization").filter(|value| !value.is_null());
        let wanted = wanted.map_or_else(|| "<auto>".to_owned(), percent);
        format!("{}/{wanted}", current("averageUtilization").map_or_else(unknown, percent))
    } else {
        let wanted = target.get("value").map(scalar).unwrap_or_default();
        format!("{}/{wanted}", current("value").map_or_else(unknown, scalar))
    };
    if prefixed {
        let name = metric.get(source).map(|source| text(source, "/name")).unwrap_or_default();
        format!("{name}: {text_of_target}")
    } else {
        text_of_target
    }
}

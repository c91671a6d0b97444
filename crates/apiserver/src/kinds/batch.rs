//! Jobs and cron jobs.

use super::object::{equal, get, integer, text};
use super::{errors, immutable, not_negative};
use crate::field::Error;
use crate::selector::Labels;
use kruise_api::cron::{self, Schedule};
use kruise_api::kubernetes::validation::{self, Options};
use serde_json::Value;

const NULL: &Value = &Value::Null;

pub(super) fn validate_job(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = object.get("spec").unwrap_or(NULL);
    job_spec(&mut found, spec, "spec");
    match get(spec, "selector") {
        None => found.push(Error::required("spec.selector", "")),
        Some(selector) => {
            let labels = spec.pointer("/template/metadata/labels").and_then(Value::as_object);
            if !Labels::from_object(Some(selector)).is_ok_and(|selector| selector.matches_json(labels)) {
                let labels = labels.cloned().map_or(Value::Null, Value::Object);
                let detail = "`selector` does not match template `labels`";
                found.push(Error::invalid("spec.template.metadata.labels", labels, detail));
            }
        }
    }
    found
}

fn job_spec(found: &mut Vec<Error>, spec: &Value, path: &str) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    for member in counts {
        not_negative(found, spec, member, path);
    }
    match get(spec, "completionMode").map(|_| text(spec, "completionMode")) {
        Some("Indexed") => {
            if get(spec, "completions").is_none() {
                let detail = "when completion mode is Indexed";
                found.push(Error::required(format!("{path}.completions"), detail));
            }
        }
        mode => {
            if let Some(mode) = mode.filter(|mode| *mode != "NonIndexed") {
                let path = format!("{path}.completionMode");
                found.push(Error::not_supported(path, mode, &["NonIndexed", "Indexed"]));
            }
            for member in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                if let Some(value) = integer(spec, member) {
                    let detail = "requires indexed completion mode";
                    found.push(Error::invalid(format!("{path}.{member}"), value, detail));
                }
            }
        }
    }
    let template = spec.get("template").unwrap_or(NULL);
    let template_path = format!("{path}.template");
    found.extend(errors(validation::pod_template_spec(template, &template_path, &Options::default())));
    let policy = template.get("spec").map_or("", |pod| text(pod, "restartPolicy"));
    let restart = format!("{template_path}.spec.restartPolicy");
    if policy.is_empty() || policy == "Always" {
        let detail = "valid values: \"OnFailure\", \"Never\"";
        found.push(Error::required(restart, detail));
    } else if get(spec, "podFailurePolicy").is_some() && policy != "Never" {
        let detail = "only \"Never\" is supported when podFailurePolicy is specified";
        found.push(Error::invalid(restart, policy, detail));
    }
}

pub(super) fn validate_cron_job(object: &Value) -> Vec<Error> {
    let mut found = cron_job_spec(object, None);
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    // Names of its jobs are eleven letters longer.
    if name.len() > 52 {
        found.push(Error::invalid("metadata.name", name, "must be no more than 52 characters"));
    }
    found
}

pub(super) fn validate_cron_job_update(object: &Value, old: &Value) -> Vec<Error> {
    cron_job_spec(object, old.get("spec"))
}

fn cron_job_spec(object: &Value, old: Option<&Value>) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = object.get("spec").unwrap_or(NULL);
    schedule(&mut found, spec, old);
    not_negative(&mut found, spec, "startingDeadlineSeconds", "spec");
    if old.is_none_or(|old| get(old, "timeZone") != get(spec, "timeZone")) {
        time_zone(&mut found, spec);
    }
    match text(spec, "concurrencyPolicy") {
        "Allow" | "Forbid" | "Replace" => {}
        "" => found.push(Error::required("spec.concurrencyPolicy", "")),
        other => {
            let allowed = ["Allow", "Forbid", "Replace"];
            found.push(Error::not_supported("spec.concurrencyPolicy", other, &allowed));
        }
    }
    let template = spec.pointer("/jobTemplate/spec").unwrap_or(NULL);
    job_spec(&mut found, template, "spec.jobTemplate.spec");
    if let Some(selector) = get(template, "selector") {
        let detail = "`selector` will be auto-generated";
        found.push(Error::invalid("spec.jobTemplate.spec.selector", selector.clone(), detail));
    }
    if template.get("manualSelector").and_then(Value::as_bool) == Some(true) {
        found.push(Error::not_supported("spec.jobTemplate.spec.manualSelector", true, &["nil", "false"]));
    }
    for member in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        not_negative(&mut found, spec, member, "spec");
    }
    found
}

fn schedule(found: &mut Vec<Error>, spec: &Value, old: Option<&Value>) {
    let schedule = text(spec, "schedule");
    if schedule.is_empty() {
        found.push(Error::required("spec.schedule", ""));
        return;
    }
    if let Err(error) = Schedule::parse(schedule) {
        found.push(Error::invalid("spec.schedule", schedule, error.to_string()));
    }
    // A zone inside the schedule is only borne where it was before.
    let borne = old.is_some_and(|old| text(old, "schedule").contains("TZ"));
    let detail = match (schedule.contains("TZ"), borne) {
        (true, true) if get(spec, "timeZone").is_some() => {
            "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        }
        (true, false) => "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        _ => return,
    };
    found.push(Error::invalid("spec.schedule", schedule, detail));
}

fn time_zone(found: &mut Vec<Error>, spec: &Value) {
    let Some(zone) = get(spec, "timeZone").and_then(Value::as_str) else { return };
    let mut wrong = |detail: String| found.push(Error::invalid("spec.timeZone", zone, detail));
    if zone.is_empty() {
        return wrong("timeZone must be nil or non-empty string".to_owned());
    }
    let is_part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && !part.starts_with('-')
            && part.len() <= 14
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte))
    };
    if !zone.split('/').all(is_part) {
        return wrong(format!("unknown time zone {zone}"));
    }
    if zone.eq_ignore_ascii_case("Local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        return wrong(detail.to_owned());
    }
    if cron::time_zone(zone).is_none() {
        wrong(format!("unknown time zone {zone}"));
    }
}

/// Members of the template that may change while the job is suspended and has not started.
const SUSPENDED_MAY_CHANGE: [&str; 4] = ["nodeSelector", "affinity", "tolerations", "schedulingGates"];

pub(super) fn validate_job_update(object: &Value, old: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let (spec, old_spec) = (object.get("spec").unwrap_or(NULL), old.get("spec").unwrap_or(NULL));
    job_spec(&mut found, spec, "spec");
    let indexed = text(spec, "completionMode") == "Indexed";
    let elastic = indexed && integer(spec, "completions") == integer(spec, "parallelism");
    if !elastic {
        immutable(&mut found, spec, old_spec, "completions", "spec");
    }
    immutable(&mut found, spec, old_spec, "selector", "spec");
    let suspended = old_spec.get("suspend").and_then(Value::as_bool) == Some(true)
        && old.get("status").is_none_or(|status| get(status, "startTime").is_none());
    let template = |spec: &Value| {
        let mut template = spec.get("template").cloned().unwrap_or_default();
        if suspended && let Some(pod) = template.get_mut("spec").and_then(Value::as_object_mut) {
            SUSPENDED_MAY_CHANGE.iter().for_each(|member| {
                pod.remove(*member);
            });
        }
        if suspended && let Some(template) = template.as_object_mut() {
            template.remove("metadata");
        }
        template
    };
    if !equal(&template(spec), &template(old_spec)) {
        let value = spec.get("template").cloned().unwrap_or_default();
        found.push(Error::invalid("spec.template", value, "field is immutable"));
    }
    for member in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        immutable(&mut found, spec, old_spec, member, "spec");
    }
    found
}

//! Defaults of jobs, alone and as the template of another object.

use super::{Options, items, member, pod_template_spec, set_absent, set_text};
use serde_json::{Map, Value};

/// Writes the defaults of a Job, with labels from its template when it has none.
pub fn job(value: &mut Value, options: &Options) {
    let Some(job) = value.as_object_mut() else { return };
    let labels = job
        .get("spec")
        .and_then(|spec| spec.get("template"))
        .and_then(|template| template.get("metadata"))
        .and_then(|metadata| metadata.get("labels"))
        .and_then(Value::as_object)
        .filter(|labels| !labels.is_empty())
        .cloned();
    if let (Some(labels), Some(metadata)) = (labels, member(job, "metadata")) {
        let none =
            metadata.get("labels").is_none_or(|own| own.as_object().map_or(own.is_null(), Map::is_empty));
        if none {
            metadata.insert("labels".to_owned(), labels.into());
        }
    }
    if let Some(spec) = job.get_mut("spec") {
        job_spec(spec, options);
    }
}

/// Writes the defaults of the `spec` of a Job object.
pub fn job_spec(value: &mut Value, options: &Options) {
    let Some(spec) = value.as_object_mut() else { return };
    let unset = |spec: &Map<String, Value>, key: &str| spec.get(key).is_none_or(Value::is_null);
    if unset(spec, "completions") && unset(spec, "parallelism") {
        spec.insert("completions".to_owned(), 1.into());
    }
    set_absent(spec, "parallelism", 1);
    let backoff = if unset(spec, "backoffLimitPerIndex") { 6 } else { i32::MAX };
    set_absent(spec, "backoffLimit", backoff);
    set_absent(spec, "completionMode", "NonIndexed");
    set_absent(spec, "suspend", false);
    set_absent(spec, "manualSelector", false);
    let replacement = if unset(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
    set_absent(spec, "podReplacementPolicy", replacement);
    template_parts(spec, options);
}

/// Writes the defaults of a job template in a CronJob. Only its pods get defaults: the numbers of the Job itself are
/// filled when the Job is created.
pub fn job_template_spec(value: &mut Value, options: &Options) {
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        template_parts(spec, options);
    }
}

fn template_parts(spec: &mut Map<String, Value>, options: &Options) {
    if let Some(template) = spec.get_mut("template") {
        pod_template_spec(template, options);
    }
    if let Some(policy) = member(spec, "podFailurePolicy") {
        for rule in items(policy, "rules") {
            items(rule, "onPodConditions").for_each(|pattern| set_text(pattern, "status", "True"));
        }
    }
}

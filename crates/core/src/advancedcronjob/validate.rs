//! What an AdvancedCronJob must look like, besides its name and its pod templates.

use kruise_api::{cron, image_pull::DEFAULT_TIMEOUT_SECONDS, json, kubernetes::validation::Violation};
use serde_json::Value;

use crate::{
    admission::{
        kinds::{Change, Context},
        rules,
    },
    broadcastjob,
    image_pull::validate,
};

const TEMPLATES: [&str; 3] = ["jobTemplate", "broadcastJobTemplate", "imageListPullJobTemplate"];
const CHOICE: &str =
    "either JobTemplate or BroadcastJobTemplate or ImageListPullJobTemplate should be provided";

/// A child has the name of its object, a hyphen, and the time as ten digits.
const LONGEST_NAME: usize = 52;
/// A shorter deadline is taken as this long.
const LEAST_DEADLINE: i64 = 10;
const LONGEST_LIST: i64 = 86_400;

const FORBIDDEN: &str = "updates to advancedcronjob spec for fields other than 'imageListPullJobTemplate', 'schedule', \
                         'concurrencyPolicy', 'successfulJobsHistoryLimit', 'failedJobsHistoryLimit', \
                         'startingDeadlineSeconds', 'timeZone' and 'paused' are forbidden";
/// What may change.
const MUTABLE: [&[&str]; 8] = [
    &["schedule"],
    &["concurrencyPolicy"],
    &["successfulJobsHistoryLimit"],
    &["failedJobsHistoryLimit"],
    &["startingDeadlineSeconds"],
    &["timeZone"],
    &["paused"],
    &["template", "imageListPullJobTemplate"],
];

/// Appends what is wrong.
pub fn rule(change: &Change<'_>, context: &Context<'_>, found: &mut Vec<Violation>) {
    schedule(change.new, found);
    for field in ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        rules::not_negative(found, change.new, &["spec", field]);
    }
    one_template(change.new, found);
    image_list(change.new, found);
    children(change, context, found);
    if change.old.is_some_and(|old| unchanging(old) != unchanging(change.new)) {
        found.push(Violation::forbidden("spec", FORBIDDEN));
    }
}

/// What the writer should know although it is accepted.
pub fn advice(change: &Change<'_>) -> Vec<String> {
    let mut advice = Vec::new();
    let name = json::text(change.new, &["metadata", "name"]).unwrap_or_default();
    if name.len() > LONGEST_NAME {
        advice.push(format!(
            "metadata.name: child names will exceed 63 characters: use at most {LONGEST_NAME} characters"
        ));
    }
    let deadline = json::at(change.new, &["spec", "startingDeadlineSeconds"]).and_then(Value::as_i64);
    if let Some(deadline) = deadline.filter(|deadline| *deadline < LEAST_DEADLINE) {
        advice.push(format!(
            "spec.startingDeadlineSeconds: {deadline} is taken as {LEAST_DEADLINE}: with less, a run would start only if \
             the controller looked at that very moment"
        ));
    }
    advice
}

fn schedule(object: &Value, found: &mut Vec<Violation>) {
    let schedule = json::text(object, &["spec", "schedule"]).unwrap_or_default();
    let zone = json::text(object, &["spec", "timeZone"]);
    if schedule.is_empty() {
        let detail = "schedule cannot be empty, please provide valid cron schedule.";
        found.push(Violation::invalid("spec.schedule", schedule, detail));
    } else if let Err(error) = cron::Schedule::parse(schedule) {
        found.push(Violation::invalid("spec.schedule", schedule, error.to_string()));
    }
    let Some(zone) = zone else { return };
    if schedule.contains("TZ") {
        let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        found.push(Violation::invalid("spec.schedule", schedule, detail));
    }
    if zone.is_empty() {
        let detail = "timeZone must be nil or non-empty string";
        found.push(Violation::invalid("spec.timeZone", zone, detail));
        return;
    }
    let is_local = zone.eq_ignore_ascii_case("Local");
    if is_local {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        found.push(Violation::invalid("spec.timeZone", zone, detail));
    }
    // The zone `Local` is known to the original, another spelling of it is not.
    if zone != "Local" && cron::time_zone(zone).is_none() {
        found.push(Violation::invalid("spec.timeZone", zone, format!("unknown time zone {zone}")));
    }
}

/// The rules of ImageListPullJobs, and two that only schedules have.
fn image_list(object: &Value, found: &mut Vec<Violation>) {
    let path = ["spec", "template", "imageListPullJobTemplate"];
    let Some(template) = json::at(object, &path) else { return };
    let below = |field: &str| format!("{}.spec{field}", path.join("."));
    let given =
        |field: &[&str]| json::at(template, &[&["spec"], field].concat()).cloned().unwrap_or_default();
    if let Err(problem) = validate::nodes(template) {
        found.push(Violation::invalid(below(".selector"), given(&["selector"]), problem));
    }
    if let Err(problem) = validate::images(template) {
        found.push(Violation::invalid(below(".images"), given(&["images"]), problem));
    }
    let completion = |field: &str| given(&["completionPolicy", field]);
    let kind = completion("type").as_str().unwrap_or_default().to_owned();
    let path = |field: &str| below(&format!(".completionPolicy.{field}"));
    if !matches!(kind.as_str(), "" | "Always") {
        let detail = format!("completionPolicy should be Always, but current value is: {kind}");
        found.push(Violation::invalid(path("type"), kind, detail));
    }
    let timeout = given(&["pullPolicy", "timeoutSeconds"]).as_i64();
    let timeout = timeout.unwrap_or(DEFAULT_TIMEOUT_SECONDS.into());
    match completion("activeDeadlineSeconds").as_i64() {
        Some(deadline) if deadline > LONGEST_LIST => {
            let detail = format!(
                "activeDeadlineSeconds must be less than {LONGEST_LIST}, current value is: {deadline}"
            );
            found.push(Violation::invalid(path("activeDeadlineSeconds"), deadline, detail));
        }
        Some(deadline) if deadline < timeout => {
            let detail = format!(
                "completionPolicy.activeDeadlineSeconds must be greater than pullPolicy.timeoutSeconds({timeout})"
            );
            found.push(Violation::invalid(path("activeDeadlineSeconds"), deadline, detail));
        }
        _ => {}
    }
    if let Some(ttl) = completion("ttlSecondsAfterFinished").as_i64() {
        let detail = "ttlSecondsAfterFinished is not supported in advancedCronJob";
        found.push(Violation::invalid(path("ttlSecondsAfterFinished"), ttl, detail));
    }
}

/// The original accepts templates of which every job is refused. Only what the request brings is asked for.
fn children(change: &Change<'_>, context: &Context<'_>, found: &mut Vec<Violation>) {
    let policy = ["spec", "template", "jobTemplate", "spec", "template", "spec", "restartPolicy"];
    let job = ["spec", "template", "jobTemplate"];
    if change.touches(&job) && json::at(change.new, &job).is_some() {
        let given = json::text(change.new, &policy).filter(|given| !given.is_empty()).unwrap_or("Always");
        if !matches!(given, "Never" | "OnFailure") {
            found.push(Violation::not_supported(policy.join("."), given, &["OnFailure", "Never"]));
        }
    }
    let path = ["spec", "template", "broadcastJobTemplate"];
    if let Some(template) = json::at(change.new, &path).filter(|_| change.touches(&path)) {
        let mut below = Vec::new();
        let job = Change { request: change.request, new: template, old: None };
        broadcastjob::validate::rule(&job, context, &mut below);
        found.extend(below.into_iter().map(|mut violation| {
            violation.path = format!("{}.{}", path.join("."), violation.path);
            violation
        }));
    }
}

/// The part of a spec that stays as it is, without what means nothing.
fn unchanging(object: &Value) -> Value {
    let mut spec = json::at(object, &["spec"]).cloned().unwrap_or_default();
    for path in MUTABLE {
        json::take(&mut spec, path);
    }
    without_nulls(&mut spec);
    spec
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

/// The older version does not know image jobs, so this looks at the hub: what a writer of it cannot see counts too.
fn one_template(object: &Value, found: &mut Vec<Violation>) {
    let given: Vec<&str> = TEMPLATES
        .into_iter()
        .filter(|name| json::at(object, &["spec", "template", name]).is_some())
        .collect();
    match given.as_slice() {
        [] => found
            .push(Violation::forbidden("spec.template", format!("spec must have one template, {CHOICE}"))),
        [one] => {
            let policy = json::text(object, &["spec", "concurrencyPolicy"]).unwrap_or("Allow");
            if *one == "imageListPullJobTemplate" && !matches!(policy, "Replace" | "Forbid") {
                let detail =
                    format!("concurrencyPolicy should be Replace or Forbid, but current value is: {policy}");
                found.push(Violation::invalid("spec.concurrencyPolicy", policy, detail));
            }
        }
        _ => {
            let detail = format!("spec can have only one template, {CHOICE}");
            found.push(Violation::forbidden("spec.template", detail));
        }
    }
}

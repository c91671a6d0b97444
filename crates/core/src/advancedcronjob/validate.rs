//! What an AdvancedCronJob must look like, besides its name and its pod templates.

use kruise_api::{json, kubernetes::validation::Violation};
use serde_json::Value;

use crate::admission::{
    kinds::{Change, Context},
    rules,
};

const TEMPLATES: [&str; 3] = ["jobTemplate", "broadcastJobTemplate", "imageListPullJobTemplate"];
const CHOICE: &str =
    "either JobTemplate or BroadcastJobTemplate or ImageListPullJobTemplate should be provided";

/// Appends what is wrong.
pub fn rule(change: &Change<'_>, _: &Context<'_>, found: &mut Vec<Violation>) {
    schedule(change.new, found);
    for field in ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        rules::not_negative(found, change.new, &["spec", field]);
    }
    one_template(change.new, found);
}

fn schedule(object: &Value, found: &mut Vec<Violation>) {
    let schedule = json::text(object, &["spec", "schedule"]).unwrap_or_default();
    let zone = json::text(object, &["spec", "timeZone"]);
    if schedule.is_empty() {
        let detail = "schedule cannot be empty, please provide valid cron schedule.";
        found.push(Violation::invalid("spec.schedule", schedule, detail));
    }
    let Some(zone) = zone else { return };
    if schedule.contains("TZ") {
        let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        found.push(Violation::invalid("spec.schedule", schedule, detail));
    }
    if zone.is_empty() {
        let detail = "timeZone must be nil or non-empty string";
        found.push(Violation::invalid("spec.timeZone", zone, detail));
    } else if zone.eq_ignore_ascii_case("Local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        found.push(Violation::invalid("spec.timeZone", zone, detail));
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

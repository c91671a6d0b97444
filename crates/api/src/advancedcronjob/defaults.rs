//! What an AdvancedCronJob gets for what its author left out.

use serde_json::Value;

use crate::json::{at, default_at, default_text, object_or_insert, text};

const IMAGE_JOB: &[&str] = &["spec", "template", "imageListPullJobTemplate"];

/// Fills in the defaults of either version. What is set stays as it is. Pod templates are defaulted apart from this,
/// because that happens only when they are new; the rest of an embedded Job or BroadcastJob is filled in when it is made.
pub(super) fn apply(object: &mut Value) {
    if object_or_insert(object, &["spec"]).is_none() {
        return;
    }
    let images = at(object, IMAGE_JOB).is_some();
    default_text(object, &["spec", "concurrencyPolicy"], if images { "Replace" } else { "Allow" });
    default_at(object, &["spec", "paused"], false);
    default_at(object, &["spec", "successfulJobsHistoryLimit"], 3);
    default_at(object, &["spec", "failedJobsHistoryLimit"], 1);
    if images {
        image_job(object);
    }
}

/// Who names a completion policy gets nothing filled in: image jobs that were written for the original keep their meaning.
fn image_job(object: &mut Value) {
    let field = |path: &[&'static str]| [IMAGE_JOB, &["spec"], path].concat();
    if text(object, &field(&["completionPolicy", "type"])).is_some_and(|kind| !kind.is_empty()) {
        return;
    }
    default_text(object, &field(&["completionPolicy", "type"]), "Always");
    default_at(object, &field(&["pullPolicy", "timeoutSeconds"]), 600);
    default_at(object, &field(&["pullPolicy", "backoffLimit"]), 3);
    default_text(object, &field(&["imagePullPolicy"]), "IfNotPresent");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(spec: Value, expected: Value) {
        let mut object = json!({"apiVersion": "apps.kruise.io/v1beta1", "spec": spec});
        apply(&mut object);
        assert_eq!(object["spec"], expected);
    }

    #[test]
    fn jobs_may_overlap_and_a_few_are_kept() {
        check(
            json!({"template": {"jobTemplate": {}}}),
            json!({"concurrencyPolicy": "Allow", "paused": false, "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 1, "template": {"jobTemplate": {}}}),
        );
    }

    #[test]
    fn an_image_job_replaces_the_one_before_and_gets_a_whole_policy() {
        check(
            json!({"failedJobsHistoryLimit": 5, "template": {"imageListPullJobTemplate": {"spec":
                {"images": ["nginx:1.27"], "completionPolicy": {}, "pullPolicy": {"backoffLimit": 1}}}}}),
            json!({"concurrencyPolicy": "Replace", "paused": false, "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 5, "template": {"imageListPullJobTemplate": {"spec":
                {"images": ["nginx:1.27"], "completionPolicy": {"type": "Always"}, "imagePullPolicy": "IfNotPresent",
                    "pullPolicy": {"backoffLimit": 1, "timeoutSeconds": 600}}}}}),
        );
    }

    #[test]
    fn an_image_job_with_a_completion_type_stays_as_it_is() {
        let template =
            json!({"imageListPullJobTemplate": {"spec": {"completionPolicy": {"type": "Always"}}}});
        check(
            json!({"concurrencyPolicy": "Forbid", "template": template}),
            json!({"concurrencyPolicy": "Forbid", "paused": false, "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 1, "template": template}),
        );
    }
}

//! AdvancedCronJob between v1alpha1 and v1beta1, which alone knows image jobs.

use serde_json::Value;

use crate::{convert::Error, json::take};

/// v1alpha1 to v1beta1.
pub(super) fn up(_: &mut Value) -> Result<(), Error> {
    Ok(())
}

/// v1beta1 to v1alpha1. An object that makes image jobs is shown without its template: refusing it would break every
/// list in v1alpha1.
pub(super) fn down(object: &mut Value) -> Result<(), Error> {
    take(object, &["spec", "template", "imageListPullJobTemplate"]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::convert::convert;

    const OLD: &str = "apps.kruise.io/v1alpha1";
    const HUB: &str = "apps.kruise.io/v1beta1";

    #[test]
    fn an_image_job_survives_a_write_through_the_older_version() {
        let hub = json!({
            "apiVersion": HUB, "kind": "AdvancedCronJob", "metadata": {"name": "nightly"},
            "spec": {"schedule": "0 3 * * *", "concurrencyPolicy": "Replace", "template":
                {"imageListPullJobTemplate": {"spec": {"images": ["nginx:1.27"], "completionPolicy": {}}}}},
        });
        let mut old = convert(hub.clone(), OLD).unwrap();
        assert_eq!(old["spec"]["template"], json!({}));
        old["spec"]["paused"] = json!(true);
        let mut expected = hub;
        expected["spec"]["paused"] = json!(true);
        assert_eq!(convert(old, HUB).unwrap(), expected);
    }

    #[test]
    fn other_jobs_are_the_same_in_both_versions() {
        let old = json!({
            "apiVersion": OLD, "kind": "AdvancedCronJob", "metadata": {"name": "nightly"},
            "spec": {"schedule": "0 3 * * *", "template": {"jobTemplate": {"spec": {"newField": 1}}}},
            "status": {"type": "Job"},
        });
        let hub = convert(old.clone(), HUB).unwrap();
        assert_eq!((&hub["spec"], &hub["status"]), (&old["spec"], &old["status"]));
        assert_eq!(convert(hub, OLD).unwrap(), old);
    }
}

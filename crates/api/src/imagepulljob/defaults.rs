//! What an ImagePullJob gets for what its author left out.

use serde_json::Value;

use crate::json::{default_text, object_or_insert};

/// Fills in the defaults, which are the same in both versions. `parallelism` stays absent: it is one at use.
pub(super) fn apply(object: &mut Value) {
    if object_or_insert(object, &["spec"]).is_none() {
        return;
    }
    default_text(object, &["spec", "completionPolicy", "type"], "Always");
    crate::image_pull::default_pull_policy(object, &["spec", "pullPolicy"]);
    default_text(object, &["spec", "imagePullPolicy"], "IfNotPresent");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(spec: Value, expected: Value) {
        let mut object = json!({ "spec": spec });
        apply(&mut object);
        assert_eq!(object["spec"], expected);
    }

    #[test]
    fn everything_but_the_parallelism_is_filled_in() {
        check(
            json!({"image": "nginx:1.27"}),
            json!({
                "image": "nginx:1.27",
                "completionPolicy": {"type": "Always"},
                "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3},
                "imagePullPolicy": "IfNotPresent",
            }),
        );
    }

    #[test]
    fn what_the_author_set_stays() {
        let spec = json!({
            "image": "nginx:1.27",
            "completionPolicy": {"type": "Never"},
            "pullPolicy": {"timeoutSeconds": 30, "backoffLimit": 0},
            "imagePullPolicy": "Always",
            "parallelism": 0,
        });
        check(spec.clone(), spec);
    }
}

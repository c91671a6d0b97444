//! What an ImageListPullJob gets for what its author left out. Its children get the rest when they are made.

use serde_json::Value;

use crate::json::{default_text, object_or_insert};

/// Fills in the defaults, which are the same in both versions.
pub(super) fn apply(object: &mut Value) {
    if object_or_insert(object, &["spec"]).is_none() {
        return;
    }
    default_text(object, &["spec", "completionPolicy", "type"], "Always");
    crate::image_pull::default_pull_policy(object, &["spec", "pullPolicy"]);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn completion_and_pull_policy_are_filled_in_and_the_rest_is_left_to_the_children() {
        let mut object = json!({"spec": {"images": ["nginx:1.27"]}});
        apply(&mut object);
        assert_eq!(
            object["spec"],
            json!({
                "images": ["nginx:1.27"],
                "completionPolicy": {"type": "Always"},
                "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3},
            })
        );
    }

    #[test]
    fn what_the_author_set_stays() {
        let spec = json!({
            "images": ["nginx:1.27"],
            "completionPolicy": {"type": "Never"},
            "pullPolicy": {"timeoutSeconds": 30, "backoffLimit": 0},
        });
        let mut object = json!({ "spec": spec.clone() });
        apply(&mut object);
        assert_eq!(object["spec"], spec);
    }
}

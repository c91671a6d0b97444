//! What a BroadcastJob gets for what its author left out.

use serde_json::Value;

use crate::json::{default_at, default_text, object_or_insert};

/// Fills in the defaults of either version. What is set stays as it is. The pod template is defaulted apart from
/// this, because that happens only when the template is new.
///
/// `paused` and `restartLimit` stay unset: unset means false and zero.
pub(super) fn apply(object: &mut Value) {
    if object_or_insert(object, &["spec"]).is_none() {
        return;
    }
    default_at(object, &["spec", "parallelism"], i32::MAX);
    default_text(object, &["spec", "completionPolicy", "type"], "Always");
    default_text(object, &["spec", "failurePolicy", "type"], "FailFast");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(given: Value, expected: Value) {
        for version in ["v1alpha1", "v1beta1"] {
            let mut object = json!({"apiVersion": format!("apps.kruise.io/{version}"), "spec": given});
            apply(&mut object);
            assert_eq!(object["spec"], expected);
        }
    }

    #[test]
    fn an_empty_spec_runs_everywhere_at_once_and_fails_fast() {
        check(
            json!({}),
            json!({"parallelism": 2_147_483_647, "completionPolicy": {"type": "Always"},
                "failurePolicy": {"type": "FailFast"}}),
        );
    }

    #[test]
    fn half_given_policies_are_completed() {
        check(
            json!({"parallelism": "10%", "completionPolicy": {"ttlSecondsAfterFinished": 30},
                "failurePolicy": {"type": "Pause", "restartLimit": 3}, "paused": true}),
            json!({"parallelism": "10%", "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 30},
                "failurePolicy": {"type": "Pause", "restartLimit": 3}, "paused": true}),
        );
    }
}

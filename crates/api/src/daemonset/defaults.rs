//! What a DaemonSet gets for what its author left out.

use serde_json::Value;

use crate::json::{at, default_at, default_text, object_or_insert, set, text};

/// Fills in the defaults of either version. What is set stays as it is, but `Surging` becomes what it is an old name
/// for. The pod template gets no defaults at all.
pub(super) fn apply(object: &mut Value) {
    if object_or_insert(object, &["spec"]).is_none() {
        return;
    }
    default_at(object, &["spec", "burstReplicas"], 250);
    default_at(object, &["spec", "revisionHistoryLimit"], 10);
    default_text(object, &["spec", "updateStrategy", "type"], "RollingUpdate");
    if text(object, &["spec", "updateStrategy", "type"]) == Some("RollingUpdate") {
        let old = text(object, &["apiVersion"]).is_some_and(|version| version.ends_with("/v1alpha1"));
        rolling_update(object, old);
    }
}

fn rolling_update(object: &mut Value, old: bool) {
    let field = |name| ["spec", "updateStrategy", "rollingUpdate", name];
    default_text(object, &field("rollingUpdateType"), "Standard");
    if old && text(object, &field("rollingUpdateType")) == Some("Surging") {
        default_at(object, &field("maxSurge"), 1);
        default_at(object, &field("maxUnavailable"), 0);
        set(object, &field("rollingUpdateType"), "Standard");
    }
    if at(object, &field("maxUnavailable")).is_none() && at(object, &field("maxSurge")).is_none() {
        default_at(object, &field("maxUnavailable"), 1);
        default_at(object, &field("maxSurge"), 0);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(version: &str, strategy: Value, expected: Value) {
        let spec = json!({"updateStrategy": strategy});
        let mut object = json!({"apiVersion": format!("apps.kruise.io/{version}"), "spec": spec});
        apply(&mut object);
        let filled = json!({"burstReplicas": 250, "revisionHistoryLimit": 10, "updateStrategy": expected});
        assert_eq!(object["spec"], filled);
    }

    #[test]
    fn an_empty_strategy_takes_pods_down_one_by_one() {
        let expected = json!({"type": "RollingUpdate", "rollingUpdate":
            {"rollingUpdateType": "Standard", "maxUnavailable": 1, "maxSurge": 0}});
        check("v1alpha1", json!({}), expected.clone());
        check("v1beta1", Value::Null, expected);
    }

    #[test]
    fn one_given_limit_leaves_the_other_unset() {
        check(
            "v1beta1",
            json!({"rollingUpdate": {"maxSurge": "10%"}}),
            json!({"type": "RollingUpdate", "rollingUpdate": {"rollingUpdateType": "Standard", "maxSurge": "10%"}}),
        );
        check(
            "v1beta1",
            json!({"rollingUpdate": {"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 2}}),
            json!({"type": "RollingUpdate", "rollingUpdate":
                {"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 2}}),
        );
    }

    #[test]
    fn surging_in_the_older_version_becomes_standard_with_a_surge() {
        check(
            "v1alpha1",
            json!({"rollingUpdate": {"rollingUpdateType": "Surging"}}),
            json!({"type": "RollingUpdate", "rollingUpdate":
                {"rollingUpdateType": "Standard", "maxSurge": 1, "maxUnavailable": 0}}),
        );
    }

    #[test]
    fn on_delete_needs_no_rolling_update() {
        check("v1beta1", json!({"type": "OnDelete"}), json!({"type": "OnDelete"}));
    }
}

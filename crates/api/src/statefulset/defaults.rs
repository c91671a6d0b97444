//! What a StatefulSet gets for what its author left out.

use serde_json::Value;

use crate::json::{default_at, default_text, object_or_insert, text};

/// Fills in the defaults of either version. What is set stays as it is. The pod template and the claim templates are
/// defaulted apart from this, because that happens only when they are new.
///
/// `volumeClaimUpdateStrategy` stays empty: its default depends on a feature gate, and empty means OnDelete.
pub(super) fn apply(object: &mut Value) {
    if object_or_insert(object, &["spec"]).is_none() {
        return;
    }
    default_at(object, &["spec", "replicas"], 1);
    default_at(object, &["spec", "revisionHistoryLimit"], 10);
    default_text(object, &["spec", "podManagementPolicy"], "OrderedReady");
    default_text(object, &["spec", "updateStrategy", "type"], "RollingUpdate");
    if text(object, &["spec", "updateStrategy", "type"]) == Some("RollingUpdate") {
        rolling_update(object);
    }
    if text(object, &["apiVersion"]).is_some_and(|version| version.ends_with("/v1beta1")) {
        for moment in ["whenDeleted", "whenScaled"] {
            default_text(object, &["spec", "persistentVolumeClaimRetentionPolicy", moment], "Retain");
        }
    }
}

fn rolling_update(object: &mut Value) {
    let field = |name| ["spec", "updateStrategy", "rollingUpdate", name];
    default_at(object, &field("partition"), 0);
    default_at(object, &field("maxUnavailable"), 1);
    default_text(object, &field("podUpdatePolicy"), "ReCreate");
    default_at(object, &field("minReadySeconds"), 0);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(version: &str, spec: Value, expected: Value) {
        let mut object = json!({"apiVersion": format!("apps.kruise.io/{version}"), "spec": spec});
        apply(&mut object);
        assert_eq!(object["spec"], expected);
    }

    #[test]
    fn an_empty_spec_gets_every_default() {
        check(
            "v1beta1",
            json!({}),
            json!({
                "replicas": 1, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                    "partition": 0, "maxUnavailable": 1, "podUpdatePolicy": "ReCreate", "minReadySeconds": 0,
                }},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            }),
        );
    }

    #[test]
    fn the_older_version_has_no_room_for_claim_retention() {
        check(
            "v1alpha1",
            json!({"replicas": 0, "updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%", "partition": 3}}}),
            json!({
                "replicas": 0, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                    "partition": 3, "maxUnavailable": "10%", "podUpdatePolicy": "ReCreate", "minReadySeconds": 0,
                }},
            }),
        );
    }

    #[test]
    fn on_delete_gets_no_rolling_update_and_half_a_retention_policy_is_completed() {
        check(
            "v1beta1",
            json!({"replicas": 2, "podManagementPolicy": "Parallel", "updateStrategy": {"type": "OnDelete"},
                "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}),
            json!({
                "replicas": 2, "revisionHistoryLimit": 10, "podManagementPolicy": "Parallel",
                "updateStrategy": {"type": "OnDelete"},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Delete"},
            }),
        );
    }
}

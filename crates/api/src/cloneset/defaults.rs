//! What a CloneSet gets for what its author left out.

use serde_json::{Value, json};

use crate::json::{default_at, default_text, object_or_insert, text};

/// Fills in the defaults of either version. What is set stays as it is. The pod template is defaulted apart from
/// this, because that happens only when the template is new.
pub(super) fn apply(object: &mut Value) {
    if object_or_insert(object, &["spec"]).is_none() {
        return;
    }
    default_at(object, &["spec", "replicas"], 1);
    default_at(object, &["spec", "revisionHistoryLimit"], 10);
    default_at(object, &["spec", "scaleStrategy"], json!({}));
    if text(object, &["apiVersion"]).is_some_and(|version| version.ends_with("/v1alpha1")) {
        update_strategy(object, &["spec", "updateStrategy"], "type");
        return;
    }
    default_text(object, &["spec", "updateStrategy", "type"], "RollingUpdate");
    if text(object, &["spec", "updateStrategy", "type"]) == Some("RollingUpdate") {
        update_strategy(object, &["spec", "updateStrategy", "rollingUpdate"], "podUpdatePolicy");
    }
}

fn update_strategy(object: &mut Value, path: &[&str], policy: &str) {
    let field = |name| [path, &[name]].concat();
    default_text(object, &field(policy), "ReCreate");
    default_at(object, &field("partition"), 0);
    default_at(object, &field("maxUnavailable"), "20%");
    default_at(object, &field("maxSurge"), 0);
    if text(object, &field(policy)).is_some_and(|policy| policy.starts_with("InPlace")) {
        default_at(object, &field("inPlaceUpdateStrategy"), json!({}));
    }
}

#[cfg(test)]
mod tests {
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
                "replicas": 1, "revisionHistoryLimit": 10, "scaleStrategy": {},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                    "podUpdatePolicy": "ReCreate", "partition": 0, "maxUnavailable": "20%", "maxSurge": 0,
                }},
            }),
        );
        check(
            "v1alpha1",
            json!({}),
            json!({
                "replicas": 1, "revisionHistoryLimit": 10, "scaleStrategy": {},
                "updateStrategy": {"type": "ReCreate", "partition": 0, "maxUnavailable": "20%", "maxSurge": 0},
            }),
        );
    }

    #[test]
    fn on_delete_needs_no_rolling_update() {
        check(
            "v1beta1",
            json!({"replicas": 0, "updateStrategy": {"type": "OnDelete"}}),
            json!({"replicas": 0, "revisionHistoryLimit": 10, "scaleStrategy": {},
                "updateStrategy": {"type": "OnDelete"}}),
        );
    }

    #[test]
    fn in_place_policies_get_an_empty_in_place_strategy() {
        check(
            "v1alpha1",
            json!({"updateStrategy": {"type": "InPlaceOnly", "maxUnavailable": 3}}),
            json!({"replicas": 1, "revisionHistoryLimit": 10, "scaleStrategy": {},
                "updateStrategy": {"type": "InPlaceOnly", "partition": 0, "maxUnavailable": 3, "maxSurge": 0,
                    "inPlaceUpdateStrategy": {}}}),
        );
    }
}

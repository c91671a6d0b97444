//! DaemonSet between v1alpha1 (partitioned scaling as an annotation, surging as a type) and v1beta1.

use serde_json::Value;

use crate::{
    annotations::DAEMONSET_PROGRESSIVE_CREATE_POD,
    convert::{Error, annotation, set_annotation, take_annotation},
    json::{at, object_mut, rename, set, take, text},
};

const ROLLING: &[&str] = &["spec", "updateStrategy", "rollingUpdate"];

/// v1alpha1 to v1beta1.
pub(super) fn up(object: &mut Value) -> Result<(), Error> {
    rename(object, &["status", "daemonSetHash"], &["status", "updateRevision"]);
    if object_mut(object, &["spec"]).is_none() {
        return Ok(());
    }
    if text(object, &rolling("rollingUpdateType")) == Some("Surging") {
        set(object, &rolling("rollingUpdateType"), "Standard");
        // Standard with both limits unset would take old pods down first, which a surge never does.
        if at(object, &rolling("maxSurge")).is_none() && at(object, &rolling("maxUnavailable")).is_none() {
            set(object, &rolling("maxSurge"), 1);
            set(object, &rolling("maxUnavailable"), 0);
        }
    }
    if annotation(object, DAEMONSET_PROGRESSIVE_CREATE_POD) == Some("true") {
        take_annotation(object, DAEMONSET_PROGRESSIVE_CREATE_POD);
        set(object, &["spec", "scaleStrategy", "partitionedScaling"], true);
    }
    Ok(())
}

/// v1beta1 to v1alpha1.
pub(super) fn down(object: &mut Value) -> Result<(), Error> {
    rename(object, &["status", "updateRevision"], &["status", "daemonSetHash"]);
    let partitioned =
        at(object, &["spec", "scaleStrategy", "partitionedScaling"]) == Some(&Value::Bool(true));
    take(object, &["spec", "scaleStrategy"]);
    if partitioned {
        set_annotation(object, DAEMONSET_PROGRESSIVE_CREATE_POD, "true");
    } else if annotation(object, DAEMONSET_PROGRESSIVE_CREATE_POD) == Some("true") {
        // In v1beta1 the annotation alone means nothing; in v1alpha1 it would switch partitioned scaling on.
        take_annotation(object, DAEMONSET_PROGRESSIVE_CREATE_POD);
    }
    Ok(())
}

fn rolling(field: &'static str) -> Vec<&'static str> {
    [ROLLING, &[field]].concat()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::convert::{HUB_FIELDS, convert};

    const OLD: &str = "apps.kruise.io/v1alpha1";
    const HUB: &str = "apps.kruise.io/v1beta1";

    fn object(version: &str, metadata: Value, spec: Value) -> Value {
        json!({"apiVersion": version, "kind": "DaemonSet", "metadata": metadata, "spec": spec})
    }

    #[track_caller]
    fn surging_becomes(given: Value, expected: Value) {
        let spec = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": given}});
        let hub = convert(object(OLD, json!({"name": "agent"}), spec), HUB).unwrap();
        assert_eq!(hub["spec"]["updateStrategy"]["rollingUpdate"], expected);
    }

    #[test]
    fn surging_is_standard_with_a_surge() {
        surging_becomes(
            json!({"rollingUpdateType": "Surging"}),
            json!({"rollingUpdateType": "Standard", "maxSurge": 1, "maxUnavailable": 0}),
        );
        surging_becomes(
            json!({"rollingUpdateType": "Surging", "maxSurge": "30%", "partition": "20%"}),
            json!({"rollingUpdateType": "Standard", "maxSurge": "30%", "partition": "20%"}),
        );
        surging_becomes(
            json!({"rollingUpdateType": "InPlaceIfPossible"}),
            json!({"rollingUpdateType": "InPlaceIfPossible"}),
        );
    }

    #[test]
    fn the_annotation_of_the_older_version_is_a_field_of_the_newer_one() {
        let metadata = json!({"name": "agent", "annotations": {DAEMONSET_PROGRESSIVE_CREATE_POD: "true"}});
        let old = object(OLD, metadata, json!({}));
        let hub = convert(old.clone(), HUB).unwrap();
        let spec = json!({"scaleStrategy": {"partitionedScaling": true}});
        assert_eq!(hub, object(HUB, json!({"name": "agent"}), spec));
        assert_eq!(convert(hub, OLD).unwrap(), old);
    }

    /// The original leaves the annotation behind, so that a later write through v1alpha1 switches it on again.
    #[test]
    fn switching_partitioned_scaling_off_stays_off_through_the_older_version() {
        let metadata = json!({"name": "agent", "annotations": {DAEMONSET_PROGRESSIVE_CREATE_POD: "true"}});
        let spec = json!({"scaleStrategy": {"partitionedScaling": false}});
        let hub = object(HUB, metadata, spec);
        let old = convert(hub.clone(), OLD).unwrap();
        assert_eq!(annotation(&old, DAEMONSET_PROGRESSIVE_CREATE_POD), None);
        assert!(annotation(&old, HUB_FIELDS).is_some());
        assert_eq!(convert(old, HUB).unwrap(), hub);
    }

    #[test]
    fn removing_the_annotation_in_the_older_version_switches_partitioned_scaling_off() {
        let hub =
            object(HUB, json!({"name": "agent"}), json!({"scaleStrategy": {"partitionedScaling": true}}));
        let mut old = convert(hub, OLD).unwrap();
        take_annotation(&mut old, DAEMONSET_PROGRESSIVE_CREATE_POD);
        assert_eq!(convert(old, HUB).unwrap()["spec"], json!({}));
    }

    #[test]
    fn the_newest_revision_has_another_name_in_the_older_version() {
        let mut old = object(OLD, json!({"name": "agent"}), json!({}));
        old["status"] = json!({"daemonSetHash": "5d98"});
        let hub = convert(old.clone(), HUB).unwrap();
        assert_eq!(hub["status"], json!({"updateRevision": "5d98"}));
        assert_eq!(convert(hub, OLD).unwrap(), old);
    }
}

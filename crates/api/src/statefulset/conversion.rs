//! StatefulSet between v1alpha1 and v1beta1: the same names everywhere, v1beta1 has more of them.

use serde_json::Value;

use crate::{convert::Error, json::take};

/// What v1alpha1 has no room for.
const HUB_ONLY: &[[&str; 2]] = &[
    ["spec", "reserveOrdinals"],
    ["spec", "lifecycle"],
    ["spec", "scaleStrategy"],
    ["spec", "persistentVolumeClaimRetentionPolicy"],
    ["spec", "ordinals"],
    ["spec", "volumeClaimUpdateStrategy"],
    ["status", "updatedReadyReplicas"],
    ["status", "updatedAvailableReplicas"],
    ["status", "volumeClaims"],
];

/// v1alpha1 to v1beta1.
pub(super) fn up(_: &mut Value) -> Result<(), Error> {
    Ok(())
}

/// v1beta1 to v1alpha1.
pub(super) fn down(object: &mut Value) -> Result<(), Error> {
    for path in HUB_ONLY {
        take(object, path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::convert::convert;

    const OLD: &str = "apps.kruise.io/v1alpha1";
    const HUB: &str = "apps.kruise.io/v1beta1";

    /// The original loses all of this (seen running): pods of reserved numbers would move.
    #[test]
    fn a_write_through_the_older_version_keeps_what_only_the_newer_one_knows() {
        let hub = json!({
            "apiVersion": HUB, "kind": "StatefulSet", "metadata": {"name": "web"},
            "spec": {
                "replicas": 3, "serviceName": "svc", "reserveOrdinals": [1, "3-5"],
                "lifecycle": {"preDelete": {"labelsHandler": {"a": "b"}}},
                "scaleStrategy": {"maxUnavailable": "20%"},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
                "ordinals": {"start": 2},
                "volumeClaimUpdateStrategy": {"type": "OnPodRollingUpdate"},
            },
        });
        let mut old = convert(hub.clone(), OLD).unwrap();
        assert_eq!(old["spec"], json!({"replicas": 3, "serviceName": "svc"}));
        old["spec"]["replicas"] = json!(4);
        let mut expected = hub;
        expected["spec"]["replicas"] = json!(4);
        assert_eq!(convert(old, HUB).unwrap(), expected);
    }

    #[test]
    fn an_object_born_in_the_older_version_needs_no_annotation() {
        let old = json!({
            "apiVersion": OLD, "kind": "StatefulSet", "metadata": {"name": "web"},
            "spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}},
            "status": {"replicas": 3},
        });
        let hub = convert(old.clone(), HUB).unwrap();
        assert_eq!((&hub["spec"], &hub["status"]), (&old["spec"], &old["status"]));
        assert_eq!(convert(hub, OLD).unwrap(), old);
    }
}

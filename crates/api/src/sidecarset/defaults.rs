//! What a SidecarSet gets for what its author left out.

use serde_json::{Value, json};

use crate::json::{at, default_at, default_text, items_mut, object_or_insert};

/// Fills in the defaults of either version. What is set stays as it is.
///
/// These are the fields that only a SidecarSet has. What Kubernetes itself fills in for containers and volumes comes
/// apart from this, and so do the hashes over the result.
pub(super) fn apply(object: &mut Value) {
    if object_or_insert(object, &["spec"]).is_none() {
        return;
    }
    default_text(object, &["spec", "updateStrategy", "type"], "RollingUpdate");
    default_at(object, &["spec", "updateStrategy", "maxUnavailable"], 1);
    default_at(object, &["spec", "updateStrategy", "partition"], 0);
    default_at(object, &["spec", "injectionStrategy"], json!({}));
    if at(object, &["spec", "injectionStrategy", "revision"]).is_some() {
        default_text(object, &["spec", "injectionStrategy", "revision", "policy"], "Always");
    }
    default_at(object, &["spec", "revisionHistoryLimit"], 10);
    items_mut(object, &["spec", "initContainers"]).for_each(|one| container(one, "AfterAppContainer"));
    items_mut(object, &["spec", "containers"]).for_each(|one| container(one, "BeforeAppContainer"));
    items_mut(object, &["spec", "patchPodMetadata"])
        .for_each(|patch| default_text(patch, &["patchPolicy"], "Retain"));
}

fn container(container: &mut Value, place: &str) {
    default_text(container, &["podInjectPolicy"], place);
    default_text(container, &["upgradeStrategy", "upgradeType"], "ColdUpgrade");
    default_text(container, &["shareVolumePolicy", "type"], "disabled");
    for env in items_mut(container, &["transferEnv"]) {
        let field = ["sourceContainerNameFrom", "fieldRef"];
        if at(env, &field).is_some() {
            default_text(env, &[&field[..], &["apiVersion"]].concat(), "v1");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaulted(version: &str, spec: Value) -> Value {
        let mut object = json!({"apiVersion": format!("apps.kruise.io/{version}"), "spec": spec});
        apply(&mut object);
        object["spec"].take()
    }

    #[test]
    fn an_empty_spec_gets_every_default_in_both_versions() {
        for version in ["v1alpha1", "v1beta1"] {
            let expected = json!({
                "updateStrategy": {"type": "RollingUpdate", "maxUnavailable": 1, "partition": 0},
                "injectionStrategy": {}, "revisionHistoryLimit": 10,
            });
            assert_eq!(defaulted(version, json!({})), expected);
        }
    }

    #[test]
    fn init_containers_go_after_and_containers_before_those_of_the_pod() {
        let spec = defaulted(
            "v1beta1",
            json!({"initContainers": [{"name": "setup"}], "containers": [
                {"name": "log", "image": "log:1"},
                {"name": "proxy", "podInjectPolicy": "AfterAppContainer",
                    "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"},
                    "shareVolumePolicy": {"type": "enabled"}},
            ]}),
        );
        assert_eq!(
            spec["initContainers"],
            json!([{"name": "setup", "podInjectPolicy": "AfterAppContainer",
                "upgradeStrategy": {"upgradeType": "ColdUpgrade"}, "shareVolumePolicy": {"type": "disabled"}}])
        );
        assert_eq!(
            spec["containers"],
            json!([
                {"name": "log", "image": "log:1", "podInjectPolicy": "BeforeAppContainer",
                    "upgradeStrategy": {"upgradeType": "ColdUpgrade"}, "shareVolumePolicy": {"type": "disabled"}},
                {"name": "proxy", "podInjectPolicy": "AfterAppContainer",
                    "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"},
                    "shareVolumePolicy": {"type": "enabled"}},
            ])
        );
    }

    #[test]
    fn references_revisions_and_patches_are_completed_where_they_are_given() {
        let spec = defaulted(
            "v1beta1",
            json!({
                "containers": [{"name": "log", "transferEnv": [
                    {"envName": "A", "sourceContainerNameFrom": {"fieldRef": {"fieldPath": "metadata.labels['x']"}}},
                    {"envName": "B", "sourceContainerName": "main"},
                ]}],
                "injectionStrategy": {"revision": {"customVersion": "v1"}},
                "patchPodMetadata": [{"annotations": {"a": "b"}}, {"patchPolicy": "Overwrite"}],
            }),
        );
        assert_eq!(
            spec["containers"][0]["transferEnv"],
            json!([
                {"envName": "A", "sourceContainerNameFrom":
                    {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels['x']"}}},
                {"envName": "B", "sourceContainerName": "main"},
            ])
        );
        assert_eq!(
            spec["injectionStrategy"],
            json!({"revision": {"customVersion": "v1", "policy": "Always"}})
        );
        assert_eq!(
            spec["patchPodMetadata"],
            json!([{"annotations": {"a": "b"}, "patchPolicy": "Retain"}, {"patchPolicy": "Overwrite"}])
        );
    }
}

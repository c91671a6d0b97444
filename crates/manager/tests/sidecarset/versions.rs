//! Both versions of the API, and what the server makes of a new set.

use k8s_openapi::api::core::v1::Namespace;
use kruise_api::{annotations, labels};
use kruise_testkit::Outcome;
use kube::Api;
use serde_json::{Value, json};

use crate::{
    scene::{Scene, mark},
    stage::{Stage, managed},
    words::injected,
};

/// SIDECARSET-3
async fn a_namespace_and_a_version_are_written_in_another_way_in_each_api(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "convert").await;
    let change = json!({
        "apiVersion": "apps.kruise.io/v1alpha1",
        "metadata": {"labels": {labels::SIDECARSET_CUSTOM_VERSION: "v1", "team": "a"}},
        "spec": {"namespace": scene.app()},
    });
    scene.create_set("s", change).await;
    let read = async |version: &str| {
        serde_json::to_value(scene.sets(version).get(&scene.named("s")).await.unwrap()).unwrap()
    };
    let new = read("v1beta1").await;
    let scope = json!({"matchLabels": {"kubernetes.io/metadata.name": scene.app()}});
    assert_eq!(new["spec"]["namespaceSelector"], scope);
    assert_eq!((&new["spec"]["customVersion"], &new["spec"]["namespace"]), (&json!("v1"), &Value::Null));
    assert_eq!(new["metadata"]["labels"], json!({"team": "a"}));
    let old = read("v1alpha1").await;
    let both = json!({labels::SIDECARSET_CUSTOM_VERSION: "v1", "team": "a"});
    assert_eq!(old["metadata"]["labels"], both);
    assert_eq!((&old["spec"]["customVersion"], &old["spec"]["namespaceSelector"]), (&Value::Null, &scope));
    assert_eq!(new["status"], old["status"]);
    assert_eq!(new["metadata"]["annotations"], old["metadata"]["annotations"]);

    let namespaces: Api<Namespace> = Api::all(scene.cluster.client());
    let namespace = namespaces.get(scene.app()).await.unwrap();
    // Older servers do not label namespaces with their names.
    if namespace.metadata.labels.is_some_and(|labels| labels.contains_key("kubernetes.io/metadata.name")) {
        let pod = scene.create_pod("pod", json!({})).await;
        assert_eq!(injected(&pod), scene.named("s"));
        scene.until_counts("s", [1; 4]).await;
    }
    Ok(())
}
managed!(a_namespace_and_a_version_are_written_in_another_way_in_each_api, []);

/// SIDECARSET-4: the hashes are what the original makes of the same set.
async fn a_new_set_has_its_defaults_and_hashes(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "defaults").await;
    let change = json!({
        "metadata": {"annotations": {annotations::SIDECARSET_HASH: "what a user wrote"}},
        "spec": {
            "containers": [{
                "name": "sidecar1", "image": "busybox:1.36", "command": ["sleep", "999d"],
                "volumeMounts": [{"name": "log-volume", "mountPath": "/var/log"}],
            }],
            "volumes": [{"name": "log-volume"}],
        },
    });
    let set = scene.create_set("s", change).await;
    assert_eq!(
        mark(&set, annotations::SIDECARSET_HASH),
        "54fdxz4f7wx8z48w7z979b6ccfc66bw982bxcw7dv642dwz7z7z9ffx4xc9752c9"
    );
    assert_eq!(
        mark(&set, annotations::SIDECARSET_HASH_WITHOUT_IMAGE),
        "wcv47954b7xv5w4fbw682bbf78cw2449448vbf4fvvwv77947bc7fcv7fw89f98x"
    );
    let spec = &set["spec"];
    let container = &spec["containers"][0];
    let defaults = [
        ("podInjectPolicy", json!("BeforeAppContainer")),
        ("upgradeStrategy", json!({"upgradeType": "ColdUpgrade"})),
        ("shareVolumePolicy", json!({"type": "disabled"})),
        ("shareVolumeDevicePolicy", Value::Null),
        ("imagePullPolicy", json!("IfNotPresent")),
        ("terminationMessagePath", json!("/dev/termination-log")),
        ("terminationMessagePolicy", json!("File")),
    ];
    for (field, expected) in defaults {
        assert_eq!(container[field], expected, "{field}");
    }
    assert_eq!(spec["updateStrategy"], json!({"type": "RollingUpdate", "maxUnavailable": 1, "partition": 0}));
    assert_eq!(spec["injectionStrategy"], json!({}));
    assert_eq!(spec["revisionHistoryLimit"], 10);
    assert_eq!(spec["volumes"], json!([{"name": "log-volume", "emptyDir": {}}]));
    Ok(())
}
managed!(a_new_set_has_its_defaults_and_hashes, []);

//! What sidecars take over from the containers of a pod.

use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    kit::merged,
    scene::Scene,
    stage::{Stage, managed},
    words::{container, variable},
};

/// Paths and volumes of the mounts of a container, without what the server adds for service accounts.
fn mounts(container: &Value) -> Vec<(&str, &str)> {
    let all = container["volumeMounts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named = all.iter().map(|one| (one["mountPath"].as_str().unwrap(), one["name"].as_str().unwrap()));
    named.filter(|(path, _)| !path.starts_with("/var/run/secrets/")).collect()
}

/// SIDECARSET-8: mounts are shared together with the variables that their paths need, and an own mount wins.
async fn mounts_of_the_pod_are_shared(stage: &mut Stage) -> Outcome {
    let scene = Scene::with_real_containers(stage, "mounts").await?;
    let ends = json!({"command": ["true"]});
    let shared = json!({"shareVolumePolicy": {"type": "enabled"}});
    let own = json!({"shareVolumePolicy": {"type": "enabled"}, "volumeMounts": [{"name": "mine", "mountPath": "/a"}]});
    scene
        .create_set(
            "s",
            json!({"spec": {
                "containers": [
                    scene.sidecar("sc", "app:v1", shared.clone()),
                    scene.sidecar("own", "app:v1", own.clone()),
                    scene.sidecar("apart", "app:v1", json!({})),
                ],
                "initContainers": [
                    scene.sidecar("init", "app:v1", merged(ends.clone(), &shared)),
                    scene.sidecar("init-own", "app:v1", merged(ends, &own)),
                ],
                "volumes": [{"name": "mine", "emptyDir": {}}],
            }}),
        )
        .await;
    let pod_name = json!({"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
    let main = json!({
        "name": "main", "image": scene.image("app:v1"), "env": [pod_name, {"name": "OTHER", "value": "x"}],
        "volumeMounts": [
            {"name": "va", "mountPath": "/a"},
            {"name": "vb", "mountPath": "/b", "subPathExpr": "$(POD_NAME)"},
        ],
    });
    let volumes = json!([{"name": "va", "emptyDir": {}}, {"name": "vb", "emptyDir": {}}]);
    scene.create_pod("pod", json!({"spec": {"containers": [main], "volumes": volumes}})).await;
    scene.until_counts("s", [1; 4]).await;
    let pod = scene.pod("pod").await;
    let wanted = variable(&container(&pod, "main"), "POD_NAME");
    for name in ["sc", "init"] {
        let sidecar = container(&pod, name);
        assert_eq!(mounts(&sidecar), [("/a", "va"), ("/b", "vb")], "{name}");
        let expression = &sidecar["volumeMounts"][1]["subPathExpr"];
        assert_eq!(*expression, "$(POD_NAME)", "{name}");
    }
    for name in ["own", "init-own"] {
        assert_eq!(mounts(&container(&pod, name)), [("/a", "mine"), ("/b", "vb")], "{name}");
    }
    for name in ["sc", "init", "own", "init-own"] {
        let sidecar = container(&pod, name);
        assert_eq!(variable(&sidecar, "POD_NAME"), wanted, "{name}");
        assert_eq!(variable(&sidecar, "OTHER"), Value::Null, "{name}");
    }
    let apart = container(&pod, "apart");
    assert!(mounts(&apart).is_empty() && variable(&apart, "POD_NAME").is_null(), "{apart}");
    Ok(())
}
managed!(mounts_of_the_pod_are_shared, []);

/// SIDECARSET-9
async fn devices_of_the_pod_are_shared(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "devices").await;
    let shared = json!({"shareVolumeDevicePolicy": {"type": "enabled"}});
    let mounted = json!({
        "shareVolumeDevicePolicy": {"type": "enabled"},
        "volumeMounts": [{"name": "mine", "mountPath": "/dev/xvda"}],
    });
    scene
        .create_set(
            "s",
            json!({"spec": {
                "containers": [
                    scene.sidecar("sc", "app:v1", shared),
                    scene.sidecar("mounted", "app:v1", mounted),
                    scene.sidecar("apart", "app:v1", json!({"shareVolumeDevicePolicy": {"type": "disabled"}})),
                ],
                "volumes": [{"name": "mine", "emptyDir": {}}],
            }}),
        )
        .await;
    let device = json!([{"name": "disk", "devicePath": "/dev/xvda"}]);
    let main = json!({"name": "main", "image": scene.image("app:v1"), "volumeDevices": device});
    let volumes = json!([{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]);
    // No node could run it: there is no such claim.
    let pod = json!({"spec": {"containers": [main], "volumes": volumes}});
    let pod = scene.imagine_pod(&pod).await.unwrap();
    assert_eq!(container(&pod, "sc")["volumeDevices"], device);
    assert_eq!(container(&pod, "mounted")["volumeDevices"], Value::Null);
    assert_eq!(mounts(&container(&pod, "mounted")), [("/dev/xvda", "mine")]);
    assert_eq!(container(&pod, "apart")["volumeDevices"], Value::Null);
    Ok(())
}
managed!(devices_of_the_pod_are_shared, []);

/// SIDECARSET-10
async fn variables_of_the_pod_are_copied(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "variables").await;
    let from_main = json!([{"sourceContainerName": "main", "envName": "E1", "envNames": ["E2", "E9"]}]);
    let by_label = json!([{
        "sourceContainerName": "main", "envName": "E1",
        "sourceContainerNameFrom": {"fieldRef": {"fieldPath": "metadata.labels['c']"}},
    }]);
    let own = json!({"transferEnv": from_main, "env": [{"name": "E1", "value": "mine"}]});
    scene
        .create_set(
            "s",
            json!({"spec": {"containers": [
                scene.sidecar("sc", "app:v1", json!({"transferEnv": from_main})),
                scene.sidecar("own", "app:v1", own),
                scene.sidecar("by-label", "app:v1", json!({"transferEnv": by_label})),
            ]}}),
        )
        .await;
    let image = scene.image("app:v1");
    let reads =
        json!({"name": "E2", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}});
    let pod = json!({
        "metadata": {"labels": {"c": "second"}},
        "spec": {"containers": [
            {"name": "main", "image": image, "env": [{"name": "E1", "value": "one"}, reads, {"name": "E3", "value": "3"}]},
            {"name": "second", "image": image, "env": [{"name": "E1", "value": "of the second"}]},
        ]},
    });
    scene.create_pod("pod", pod).await;
    scene.until_counts("s", [1; 4]).await;
    let pod = scene.pod("pod").await;
    let value = |container_name: &str, name: &str| variable(&container(&pod, container_name), name);
    assert_eq!(value("sc", "E1"), json!({"name": "E1", "value": "one"}));
    assert_eq!(value("sc", "E2"), reads);
    assert_eq!((value("sc", "E9"), value("sc", "E3")), (Value::Null, Value::Null));
    assert_eq!(value("own", "E1")["value"], "mine");
    assert_eq!(value("own", "E2"), reads);
    assert_eq!(value("by-label", "E1")["value"], "of the second");
    assert_eq!(value("by-label", "E2"), Value::Null);
    Ok(())
}
managed!(variables_of_the_pod_are_copied, []);

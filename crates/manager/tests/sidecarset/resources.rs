//! Resources of sidecars that are computed from those of the pod.

use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    kit::merged,
    scene::Scene,
    stage::{Stage, managed},
    words::{container, require_native_sidecars},
};

/// What a pod is refused with.
const REFUSED: &str = "admission webhook \"mpod.kb.io\" denied the request: ";

fn policy(scene: &Scene, regex: &str, expressions: Value) -> Value {
    let policy = json!({
        "targetContainersMode": "sum", "targetContainersNameRegex": regex, "resourcesExpr": expressions,
    });
    json!({"spec": {"containers": [scene.sidecar("sc", "app:v1", json!({"resourcesPolicy": policy}))]}})
}

fn target(scene: &Scene, name: &str, limit: &str, request: &str) -> Value {
    json!({
        "name": name, "image": scene.image("app:v1"),
        "resources": {
            "limits": {"cpu": limit, "memory": "100Mi"}, "requests": {"cpu": request, "memory": "10Mi"},
        },
    })
}

/// SIDECARSET-17: only containers of the pod count, and of the init containers only those that go on.
async fn resources_follow_those_of_the_pod(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "resources").await;
    let share = "max(cpu*50%, 50m)";
    let expressions = json!({
        "limits": {"cpu": share, "memory": "200Mi"}, "requests": {"cpu": share},
    });
    scene.create_set("s", policy(&scene, "^large.*$", expressions)).await;
    let other = target(&scene, "large-other", "4", "2");
    scene.create_set("other", json!({"spec": {"containers": [other]}})).await;
    let plain = || target(&scene, "large-init", "4", "2");
    let targets = json!([
        target(&scene, "large-a", "200m", "50m"),
        target(&scene, "large-b", "400m", "100m"),
        target(&scene, "small", "1", "1"),
    ]);
    let pod = json!({"spec": {"containers": targets, "initContainers": [plain()]}});
    let resources = |pod| container(&pod, "sc")["resources"].clone();
    let expected = json!({"limits": {"cpu": "300m", "memory": "200Mi"}, "requests": {"cpu": "75m"}});
    let made = scene.imagine_pod(&pod).await.unwrap();
    let mut computed = resources(made);
    // The server fills in requests that are not given from the limits.
    computed["requests"].as_object_mut().unwrap().remove("memory");
    assert_eq!(computed, expected);

    require_native_sidecars(&scene).await?;
    let native = merged(target(&scene, "large-native", "100m", "100m"), &json!({"restartPolicy": "Always"}));
    let pod = merged(pod, &json!({"spec": {"initContainers": [plain(), native]}}));
    let computed = resources(scene.imagine_pod(&pod).await.unwrap());
    assert_eq!((&computed["limits"]["cpu"], &computed["requests"]["cpu"]), (&json!("350m"), &json!("125m")));
    Ok(())
}
managed!(resources_follow_those_of_the_pod, []);

/// SIDECARSET-18
async fn pods_without_a_result_are_refused(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "noresult").await;
    scene.create_set("s", policy(&scene, "^nobody$", json!({"limits": {"cpu": "cpu"}}))).await;
    let pod = json!({"spec": {"containers": [target(&scene, "main", "50m", "50m")]}});
    let refused = scene.try_create_pod("pod", pod.clone()).await.unwrap_err();
    assert!(refused.contains(REFUSED), "{refused}");
    assert!(refused.contains("no containers match the regex pattern \"^nobody$\""), "{refused}");

    let negative = policy(&scene, "^main$", json!({"limits": {"cpu": "cpu-100m"}}));
    scene.publish("s", negative).await;
    let refused = scene.try_create_pod("pod", pod).await.unwrap_err();
    assert!(refused.contains(REFUSED) && refused.contains("calculation result is negative"), "{refused}");
    let enough = json!({"spec": {"containers": [target(&scene, "main", "300m", "50m")]}});
    let pod = scene.create_pod("pod", enough).await;
    assert_eq!(container(&pod, "sc")["resources"]["limits"], json!({"cpu": "200m"}));
    Ok(())
}
managed!(pods_without_a_result_are_refused, []);

/// SIDECARSET-19
async fn expressions_that_mean_nothing_are_refused(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "expressions").await;
    let cases =
        [("memory", "100mi"), ("cpu", "max(cpu)"), ("cpu", "cpu*cpu"), ("cpu", "foo+1"), ("cpu", "(cpu")];
    for (resource, expression) in cases {
        let change = policy(&scene, ".*", json!({"limits": {resource: expression}}));
        let refused = scene.try_create_set("s", change).await.unwrap_err();
        assert!(
            refused.starts_with("422 ") && refused.contains("invalid expression"),
            "{expression}: {refused}"
        );
    }
    let change = policy(&scene, ".*", json!({"limits": {"memory": "memory-100Mi"}}));
    scene.create_set("s", change).await;
    Ok(())
}
managed!(expressions_that_mean_nothing_are_refused, []);

//! What new pods get, and in which order.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    kit::{image_of, merged},
    scene::{MOMENT, Scene, counts},
    stage::{Stage, managed},
    words::{container, containers, init_containers, injected, variable, with_image},
};

/// SIDECARSET-1: the sidecar comes first, with what it mounts, and the counts follow.
async fn pods_of_a_workload_get_the_sidecar(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "inject").await;
    let mounts = json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]});
    let change = json!({"spec": {
        "containers": [scene.sidecar("sc", "app:v1", mounts)],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "unused", "emptyDir": {}}],
    }});
    scene.create_set("s", change).await;
    let labels = json!({"app": scene.app()});
    let _: Deployment = scene
        .sandbox
        .create(json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": scene.pod_spec()},
            },
        }))
        .await;
    scene.rests_at("s", [1, 1, 1, 1]).await;
    let pods = scene.pods().await;
    let [pod] = pods.as_slice() else { panic!("{} pods", pods.len()) };
    assert_eq!(containers(pod), ["sc", "main"]);
    assert_eq!(injected(pod), scene.named("s"));
    let sidecar = container(pod, "sc");
    assert_eq!(variable(&sidecar, "IS_INJECTED")["value"], "true");
    assert_eq!(sidecar["image"], scene.image("app:v1"));
    let volumes = pod.spec.as_ref().unwrap().volumes.clone().unwrap_or_default();
    let has = |name: &str| volumes.iter().any(|volume| volume.name == name && volume.empty_dir.is_some());
    assert!(has("v") && !has("unused"), "{volumes:?}");
    assert_eq!(container(pod, "main")["env"], Value::Null, "the pod's own containers stay as they are");
    Ok(())
}
managed!(pods_of_a_workload_get_the_sidecar, []);

/// SIDECARSET-2: labels of pods and of namespaces choose, at the moment when a pod is made.
async fn pods_that_are_not_chosen_stay_as_they_are(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "choose").await;
    let mark = format!("wants-{}", scene.app());
    let change = json!({"spec": {"namespaceSelector": {"matchLabels": {mark.as_str(): "sidecars"}}}});
    scene.create_set("s", change).await;
    scene.create_pod("before", json!({})).await;
    scene.until("the pod runs", "s", |_, pods| pods.iter().all(crate::kit::is_ready)).await;
    scene.always("no pod counts", "s", MOMENT, |set, _| counts(set) == [0; 4]).await;

    scene.label_namespace(json!({mark: "sidecars"})).await;
    let has_sidecar = |answer: &Result<Pod, String>| {
        answer
            .as_ref()
            .is_ok_and(|pod| containers(pod) == ["sc", "main"] && injected(pod) == scene.named("s"))
    };
    scene.until_pods_would("new pods would get the sidecar", &json!({}), has_sidecar).await;
    scene.create_pod("after", json!({})).await;
    let other = json!({"metadata": {"labels": {"app": "other"}}});
    scene.create_pod("other", other).await;
    scene.rests_at("s", [1, 1, 1, 1]).await;
    for (name, expected) in [("before", vec!["main"]), ("after", vec!["sc", "main"]), ("other", vec!["main"])]
    {
        let pod = scene.pod(name).await;
        assert_eq!(containers(&pod), expected, "{name}");
        assert_eq!(injected(&pod).is_empty(), expected.len() == 1, "{name}");
    }
    Ok(())
}
managed!(pods_that_are_not_chosen_stay_as_they_are, []);

/// Sidecars of which two stand before the containers of a pod, and two init containers.
fn around(scene: &Scene, order: [&str; 3]) -> Value {
    let place = |name: &str| if name == "b" { "AfterAppContainer" } else { "BeforeAppContainer" };
    let sidecar = |name: &str| scene.sidecar(name, "app:v1", json!({"podInjectPolicy": place(name)}));
    let first = json!({"podInjectPolicy": "BeforeAppContainer"});
    json!({"spec": {
        "containers": order.map(sidecar),
        "initContainers": [
            scene.sidecar("z", "job:v1", json!({})),
            scene.sidecar("x", "job:v1", first.clone()),
            scene.sidecar("y", "job:v1", json!({})),
            scene.sidecar("w", "job:v1", first),
        ],
    }})
}

/// A pod with a container and an init container of its own.
fn with_init(scene: &Scene) -> Value {
    json!({"spec": {"initContainers": [{"name": "own", "image": scene.image("job:v1")}]}})
}

/// SIDECARSET-6, gate off
async fn sidecars_stand_where_they_say_in_the_order_of_the_set(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "order").await;
    scene.create_set("s", around(&scene, ["b", "a", "c"])).await;
    let pod = scene.create_pod("pod", with_init(&scene)).await;
    assert_eq!(containers(&pod), ["a", "c", "main", "b"]);
    assert_eq!(init_containers(&pod), ["w", "x", "own", "y", "z"]);

    let other = around(&scene, ["c", "a", "b"]);
    scene.publish("s", other).await;
    let pod = scene.create_pod("next", with_init(&scene)).await;
    assert_eq!(containers(&pod), ["c", "a", "main", "b"]);
    assert_eq!(init_containers(&pod), ["w", "x", "own", "y", "z"]);
    Ok(())
}
managed!(sidecars_stand_where_they_say_in_the_order_of_the_set, []);

/// SIDECARSET-6, gate on
async fn sidecars_are_sorted_by_name_when_asked_for(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "sorted").await;
    scene.create_set("s", around(&scene, ["c", "a", "b"])).await;
    let pod = scene.create_pod("pod", with_init(&scene)).await;
    assert_eq!(containers(&pod), ["a", "c", "main", "b"]);
    assert_eq!(init_containers(&pod), ["w", "x", "own", "y", "z"]);
    Ok(())
}
managed!(
    sidecars_are_sorted_by_name_when_asked_for,
    ["--feature-gates=EnableSortSidecarContainerByName=true"]
);

/// SIDECARSET-7: several sets add their sidecars in the order of their names, to every pod alike.
async fn sidecars_of_several_sets_have_a_fixed_order(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "several").await;
    for (set, sidecar) in [("s2", "first-by-name"), ("s1", "second-by-name")] {
        let change = json!({"spec": {"containers": [scene.sidecar(sidecar, "app:v1", json!({}))]}});
        scene.create_set(set, change).await;
    }
    let list = format!("{},{}", scene.named("s1"), scene.named("s2"));
    for index in 0..10 {
        let pod = scene.create_pod(&format!("pod-{index}"), json!({})).await;
        assert_eq!(containers(&pod), ["second-by-name", "first-by-name", "main"]);
        assert_eq!(injected(&pod), list);
    }
    for set in ["s1", "s2"] {
        scene.until_counts(set, [10; 4]).await;
    }
    Ok(())
}
managed!(sidecars_of_several_sets_have_a_fixed_order, []);

/// SIDECARSET-11
async fn pull_secrets_are_added_once(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "secrets").await;
    let secrets = json!({"spec": {"imagePullSecrets": [{"name": "p1"}, {"name": "p2"}]}});
    scene.create_set("s", secrets).await;
    let own = json!({"spec": {"imagePullSecrets": [{"name": "p1"}]}});
    let pod = scene.create_pod("pod", own).await;
    let secrets = serde_json::to_value(&pod.spec).unwrap()["imagePullSecrets"].clone();
    assert_eq!(secrets, json!([{"name": "p1"}, {"name": "p2"}]));
    Ok(())
}
managed!(pull_secrets_are_added_once, []);

/// SIDECARSET-20: new pods get nothing, and pods that have the sidecar are still updated.
async fn injection_can_be_paused(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "paused").await;
    scene.create_set("s", json!({})).await;
    scene.create_pods(2).await;
    scene.until_counts("s", [2; 4]).await;
    let paused = json!({"spec": {"injectionStrategy": {"paused": true}}});
    scene.publish("s", paused.clone()).await;
    let without = scene.create_pod("without", json!({})).await;
    assert_eq!((containers(&without), injected(&without)), (vec!["main"], ""));
    let change = merged(paused, &scene.with_image("s", "app:v2").await);
    scene.change_set("s", change).await;
    scene.rests_at("s", [2; 4]).await;
    let pods = scene.pods().await;
    assert_eq!(pods.len(), 3);
    assert_eq!(with_image(&pods, "sc", &scene.image("app:v2")), 2);
    assert_eq!(image_of(&scene.pod("without").await, "main"), scene.image("app:v1"));
    Ok(())
}
managed!(injection_can_be_paused, []);

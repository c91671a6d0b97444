//! What daemons tell about containers, and restarts for the sake of labels.

use kruise_sim::machine::Said;
use serde_json::{Value, json};

use crate::world::{CLONESETS, PODS, World, container, is_ready, text};

/// A set with one pod whose container `app` takes the label `v` into its environment.
async fn begin(world: &World) -> String {
    let env = json!([{"name": "V", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['v']"}}}]);
    let template = json!({"metadata": {"labels": {"app": "web", "v": "one"}}, "spec": {"containers": [
        {"name": "sidecar", "image": "sidecar:v1"}, {"name": "app", "image": "app:v1", "env": env}]}});
    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template,
            "updateStrategy": {"type": "InPlaceIfPossible"}}});
    world.post(CLONESETS, set).await;
    let pods = world
        .until(PODS, |pods| pods["items"].as_array().is_some_and(|all| all.len() == 1 && is_ready(&all[0])))
        .await;
    world.live(5).await;
    format!("{PODS}/{}", text(&pods["items"][0]["metadata"]["name"]))
}

fn told(pod: &Value) -> Value {
    let text = text(&pod["metadata"]["annotations"]["apps.kruise.io/runtime-containers-meta"]);
    serde_json::from_str(text).unwrap_or_default()
}

/// Node daemon 4.6-1, 4.6-4 and 4.6-9: each container with its id and its fingerprint, told once and when it changes.
#[tokio::test(start_paused = true)]
async fn containers_are_told_with_their_fingerprints() {
    let world = World::new(1, &[]).await;
    let path = begin(&world).await;
    let pod = world.get(&path).await;
    let entries = told(&pod)["containers"].clone();
    assert_eq!(entries.as_array().unwrap().len(), 2);
    for entry in entries.as_array().unwrap() {
        assert_eq!(entry["containerID"], container(&pod, text(&entry["name"]))["containerID"]);
        assert!(entry["hashes"]["plainHash"].as_u64().unwrap() > 0);
    }
    let version = pod["metadata"]["resourceVersion"].clone();
    world.live(60).await;
    assert_eq!(
        world.get(&path).await["metadata"]["resourceVersion"],
        version,
        "nothing is written without a change"
    );
    world.sim.kill_container("default", text(&pod["metadata"]["name"]), "app");
    world.live(6).await;
    let pod = world.get(&path).await;
    let entry = told(&pod)["containers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "app")
        .cloned()
        .unwrap();
    assert_eq!(entry["containerID"], container(&pod, "app")["containerID"]);
    assert_eq!(entry["restartCount"], 1);
}

/// Node daemon 4.6-5 and 4.6-7: a label that an update in place changes restarts exactly its container; one that somebody
/// changes by hand restarts nothing.
#[tokio::test(start_paused = true)]
async fn a_container_restarts_with_its_new_label() {
    restarts_with_its_new_label(&World::new(1, &[]).await).await;
}

/// Node daemon 4.6-6: the same where the image has no program `env`.
#[tokio::test(start_paused = true)]
async fn a_container_without_the_program_env_restarts_with_its_new_label() {
    let world = World::new(1, &[]).await;
    let absent = Said { code: 127, stderr: "env: not found".to_owned(), ..Said::default() };
    world.sim.machine("node-1").declare_command("env", absent);
    restarts_with_its_new_label(&world).await;
}

async fn restarts_with_its_new_label(world: &World) {
    let path = begin(world).await;
    world
        .patch(
            &format!("{CLONESETS}/web"),
            json!({"spec": {"template": {"metadata": {"labels": {"v": "two"}}}}}),
        )
        .await;
    let updated = world.until(&path, |pod| container(pod, "app")["restartCount"] == 1 && is_ready(pod)).await;
    world.until(&format!("{CLONESETS}/web"), |set| set["status"]["updatedReadyReplicas"] == 1).await;
    assert_eq!(container(&updated, "sidecar")["restartCount"], 0);
    world.live(60).await;
    world.patch(&path, json!({"metadata": {"labels": {"v": "by-hand"}}})).await;
    world.live(60).await;
    let restarts = ["app", "sidecar"];
    let pod = world.get(&path).await;
    assert_eq!(restarts.map(|name| container(&pod, name)["restartCount"].clone()), [json!(1), json!(0)]);
}

/// Node daemon 4.6-2 and 4.6-3: pods of others are told of only when they have a container of ours.
#[tokio::test(start_paused = true)]
async fn a_pod_of_a_deployment_is_told_of_when_it_has_a_sidecar() {
    let world = World::new(1, &[]).await;
    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "agents"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "agent", "image": "agent:v1"}]}});
    world.post("/apis/apps.kruise.io/v1alpha1/sidecarsets", set).await;
    world.live(5).await;
    for name in ["web", "plain"] {
        let template = json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "app", "image": "app:v1"}]}});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}});
        world.post("/apis/apps/v1/namespaces/default/deployments", deployment).await;
    }
    world.live(30).await;
    let pods = world.list(PODS).await;
    assert_eq!(pods.iter().filter(|pod| is_ready(pod)).count(), 2);
    for pod in pods {
        let expected = if pod["metadata"]["labels"]["app"] == "web" { 2 } else { 0 };
        assert_eq!(told(&pod)["containers"].as_array().map_or(0, Vec::len), expected, "{pod}");
    }
}

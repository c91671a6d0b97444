//! Words about pods with sidecars.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kruise_api::{annotations, conditions};
use kruise_testkit::{Skip, pod::container as status_of};
use serde_json::{Value, json};

use crate::{
    kit::{annotation, image_of},
    scene::Scene,
};

/// The names of the containers of a pod, in their order.
pub(crate) fn containers(pod: &Pod) -> Vec<&str> {
    pod.spec.iter().flat_map(|spec| &spec.containers).map(|container| container.name.as_str()).collect()
}

/// The names of the init containers of a pod, in their order.
pub(crate) fn init_containers(pod: &Pod) -> Vec<&str> {
    let all = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    all.map(|container| container.name.as_str()).collect()
}

/// A container or init container of a pod, as it is written.
pub(crate) fn container(pod: &Pod, name: &str) -> Value {
    let spec = serde_json::to_value(&pod.spec).unwrap();
    let lists = [&spec["containers"], &spec["initContainers"]];
    let mut all = lists.into_iter().filter_map(Value::as_array).flatten();
    all.find(|container| container["name"] == name).cloned().unwrap_or(Value::Null)
}

/// A variable of a container, as it is written.
pub(crate) fn variable(container: &Value, name: &str) -> Value {
    let all = container["env"].as_array().cloned().unwrap_or_default();
    let found: Vec<Value> = all.into_iter().filter(|variable| variable["name"] == name).collect();
    assert!(found.len() < 2, "{name} is there more than once: {found:?}");
    found.into_iter().next().unwrap_or(Value::Null)
}

/// The names of the sets that a pod has sidecars of.
pub(crate) fn injected(pod: &Pod) -> &str {
    annotation(pod, annotations::SIDECARSET_INJECTED_LIST)
}

/// What a pod records about its sidecars of a set.
pub(crate) fn record(pod: &Pod, set: &str) -> Value {
    let all: Value = serde_json::from_str(annotation(pod, annotations::SIDECARSET_HASH)).unwrap_or_default();
    all[set].clone()
}

/// The condition about updates of sidecars: status, reason and message.
pub(crate) fn upgradable(pod: &Pod) -> Option<(String, String, Value)> {
    let all = pod.status.as_ref()?.conditions.as_ref()?;
    let found = all.iter().find(|one| one.type_ == conditions::SIDECARSET_UPGRADABLE)?;
    let message = serde_json::from_str(found.message.as_deref()?).unwrap();
    Some((found.status.clone(), found.reason.clone().unwrap_or_default(), message))
}

/// How often a container was started again.
pub(crate) fn restarts(pod: &Pod, container: &str) -> i32 {
    status_of(pod, container).map_or(0, |status| status.restart_count)
}

/// Whether a container is ready.
pub(crate) fn is_container_ready(pod: &Pod, container: &str) -> bool {
    status_of(pod, container).is_some_and(|status: &ContainerStatus| status.ready)
}

/// How many pods are to have this image in a container.
pub(crate) fn with_image(pods: &[Pod], container: &str, image: &str) -> usize {
    pods.iter().filter(|pod| image_of(pod, container) == image).count()
}

/// Everything about pods that an update would change.
pub(crate) fn essence(pods: &[Pod]) -> Vec<Value> {
    let essence = |pod: &Pod| {
        let record = annotation(pod, annotations::SIDECARSET_HASH);
        json!({"name": pod.metadata.name, "uid": pod.metadata.uid, "spec": pod.spec, "record": record})
    };
    pods.iter().map(essence).collect()
}

/// Goes on only where init containers can go on beside the others.
pub(crate) async fn require_native_sidecars(scene: &Scene) -> Result<(), Skip> {
    let native = json!([{"name": "native", "image": "any", "restartPolicy": "Always"}]);
    let change = json!({"metadata": {"labels": {"app": null}}, "spec": {"initContainers": native}});
    let pod = scene.imagine_pod(&change).await.unwrap();
    if container(&pod, "native")["restartPolicy"] == "Always" {
        return Ok(());
    }
    let needs = "restartPolicy of init containers in v1".to_owned();
    Err(Skip { needs, server: scene.cluster.version().to_owned() })
}

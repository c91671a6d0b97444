//! Words about pods that are updated in place.

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::ControllerRevision,
    core::v1::{ContainerStatus, Pod, PodCondition},
};
use kruise_api::{annotations, labels};
use kruise_testkit::{Skip, cluster::REAL_NODES};
use serde_json::{Value, json};

use crate::{
    kit::{Demo, annotation, label, merged},
    stage::Stage,
};

/// What a CloneSet needs for its pods to run real containers and to be updated in place.
pub(crate) fn in_place(replicas: u32, change: &Value) -> Value {
    let base = json!({"spec": {
        "replicas": replicas,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}},
        "template": {"spec": {"nodeSelector": {REAL_NODES.0: REAL_NODES.1}}},
    }});
    merged(base, change)
}

/// The same on nodes where containers are names only, for scenarios with many pods.
pub(crate) fn in_place_on_hollow_nodes(replicas: u32, change: &Value) -> Value {
    let back =
        json!({"spec": {"template": {"spec": {"nodeSelector": {"kruise-rs.io/node-type": "hollow"}}}}});
    merged(in_place(replicas, &back), change)
}

/// `demo` with pods that run real containers, all of them available.
pub(crate) async fn start(stage: &Stage, purpose: &str, replicas: u32, change: Value) -> Result<Demo, Skip> {
    stage.cluster.require_nodes(REAL_NODES).await?;
    Ok(Demo::start(stage, purpose, in_place(replicas, &change)).await)
}

/// The merge patch that gives containers other images, in the order of the template.
pub(crate) async fn with_images(demo: &Demo, images: &[&str]) -> Value {
    let mut template = demo.template().await;
    for (index, image) in images.iter().enumerate() {
        template["spec"]["containers"][index]["image"] = demo.image(image).into();
    }
    json!({"spec": {"template": {"spec": {"containers": template["spec"]["containers"]}}}})
}

/// The status of a container, once there is one.
pub(crate) fn status_of<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == container)
}

/// How often a container was started again.
pub(crate) fn restarts(pod: &Pod, container: &str) -> i32 {
    status_of(pod, container).map_or(0, |status| status.restart_count)
}

/// The id of the image that a container runs.
pub(crate) fn image_id(pod: &Pod, container: &str) -> String {
    status_of(pod, container).map(|status| status.image_id.clone()).unwrap_or_default()
}

/// A condition of a pod.
pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Whether a condition is there and says no.
pub(crate) fn is_false(pod: &Pod, kind: &str) -> bool {
    condition(pod, kind).is_some_and(|condition| condition.status == "False")
}

/// What the annotation says about the last update in place.
pub(crate) fn state(pod: &Pod) -> Value {
    serde_json::from_str(annotation(pod, annotations::IN_PLACE_UPDATE_STATE)).unwrap_or(Value::Null)
}

/// The containers of each batch of the last update in place.
pub(crate) fn batches(pod: &Pod) -> Vec<Value> {
    let state = state(pod);
    let batches = state["containerBatchesRecord"].as_array().cloned().unwrap_or_default();
    batches.iter().map(|batch| batch["containers"].clone()).collect()
}

/// The state between hooks.
pub(crate) fn lifecycle(pod: &Pod) -> &str {
    label(pod, labels::LIFECYCLE_STATE)
}

/// The revision that a pod is labelled with.
pub(crate) fn revision(pod: &Pod) -> &str {
    label(pod, labels::CONTROLLER_REVISION_HASH)
}

/// The only pod.
pub(crate) async fn only_pod(demo: &Demo) -> Pod {
    let pods = demo.pods().await;
    let [pod] = pods.as_slice() else { panic!("{} pods", pods.len()) };
    pod.clone()
}

/// All revisions, by number.
pub(crate) async fn revisions(demo: &Demo) -> Vec<ControllerRevision> {
    let mut all: Vec<ControllerRevision> = demo.sandbox.list().await;
    all.sort_by_key(|one| one.revision);
    all
}

/// A while that is short on any cluster.
pub(crate) const MOMENT: Duration = Duration::from_secs(5);

//! What goes on beside requests and pulls while everything goes wrong: a marker of the same pods, a set whose label is in the
//! environment of a container and changes once, a job of ephemeral containers, a pull in somebody's name with a deadline.

use kruise_sim::machine::Said;
use serde_json::{Value, json};

use crate::{
    images::job,
    world::{
        CLONESETS, IMAGES, JOBS, MARKERS, PODS, REQUESTS, SECRETS, World, condition, container, is_ready,
    },
};

/// Minutes without a write that count as silence, and how many minutes there are for it.
const SILENT_WINDOWS: usize = 3;
const MOST_WINDOWS: usize = 20;
const EPHEMERAL_JOBS: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/ephemeraljobs";
/// Longer than a story lasts, and shorter than the jumps of clocks.
const DEADLINE_SECONDS: u64 = 9000;

pub(super) async fn begin(world: &World) {
    for node in super::NODES {
        world
            .sim
            .machine(node)
            .declare_command("check", Said { stdout: "fine".to_owned(), ..Said::default() });
    }
    let policies = json!([{"state": "Succeeded", "labels": {"fine": "yes"}}, {"state": "Failed", "labels": {"fine": "no"}}]);
    let probe = json!({"name": "check", "containerName": "app", "podConditionType": "game.io/fine", "markerPolicy": policies,
        "probe": {"exec": {"command": ["check"]}, "periodSeconds": 3}});
    let marker = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker", "metadata": {"name": "fine"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "probes": [probe]}});
    world.post(MARKERS, marker).await;

    let env = json!([{"name": "V", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['v']"}}}]);
    let template = json!({"metadata": {"labels": {"app": "env", "v": "one"}}, "spec": {"containers": [
        {"name": "app", "image": "app:v1", "env": env}, {"name": "sidecar", "image": "sidecar:v1"}]}});
    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "env"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "env"}}, "template": template,
            "updateStrategy": {"type": "InPlaceOnly"}}});
    world.post(CLONESETS, set).await;
    // An update of what is not known yet would be no restart.
    world
        .until(PODS, |pods| {
            let of_set = |pod: &&Value| pod["metadata"]["labels"]["app"] == "env";
            let notes = |pod: &Value| {
                pod["metadata"]["annotations"]["apps.kruise.io/runtime-containers-meta"].is_string()
            };
            pods["items"]
                .as_array()
                .unwrap()
                .iter()
                .find(of_set)
                .is_some_and(|pod| is_ready(pod) && notes(pod))
        })
        .await;

    let debug = json!({"name": "debug", "image": "debug:v1", "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "File", "command": ["sleep", "5"]});
    let look = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "EphemeralJob", "metadata": {"name": "look"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "parallelism": 2, "ttlSecondsAfterFinished": 1_000_000,
            "template": {"ephemeralContainers": [debug]}}});
    world.post(EPHEMERAL_JOBS, look).await;

    world.sim.protect_images("private.io/", "me", "secret");
    let config = json!({"auths": {"private.io": {"username": "me", "password": "secret"}}}).to_string();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"},
        "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": config}});
    world.post(SECRETS, secret).await;
    let policy = json!({"backoffLimit": 50, "timeoutSeconds": 600});
    let completion = json!({"type": "Always", "activeDeadlineSeconds": DEADLINE_SECONDS});
    let spec = json!({"image": "private.io/app:v1-slow20", "pullSecrets": ["mine"], "pullPolicy": policy,
        "completionPolicy": completion});
    job(world, "private", spec).await;
}

/// The label changes, and with it the environment.
pub(super) async fn update(world: &World) {
    let label = json!({"spec": {"template": {"metadata": {"labels": {"v": "two"}}}}});
    world.patch(&format!("{CLONESETS}/env"), label).await;
}

pub(super) async fn is_over(world: &World) -> bool {
    let look = world.get(&format!("{EPHEMERAL_JOBS}/look")).await;
    let set = world.get(&format!("{CLONESETS}/env")).await;
    look["status"]["completionTime"].is_string() && set["status"]["updatedReadyReplicas"] == 1
}

/// What is not as it should be in the end.
pub(super) async fn problem(world: &World) -> Option<String> {
    let look = world.get(&format!("{EPHEMERAL_JOBS}/look")).await;
    if look["status"]["phase"] != "Succeeded" {
        return Some(format!("the job of ephemeral containers is not done: {look}"));
    }
    for pod in world.list(PODS).await {
        if pod["metadata"]["labels"]["app"] == "env" {
            let restarts = ["app", "sidecar"].map(|name| container(&pod, name)["restartCount"].clone());
            if restarts != [json!(1), json!(0)] || pod["metadata"]["labels"]["v"] != "two" {
                return Some(format!("a changed label restarts its container once: {restarts:?} {pod}"));
            }
            continue;
        }
        let injected = pod["spec"]["ephemeralContainers"].as_array().map_or(0, Vec::len);
        if injected != 1 {
            return Some(format!("{injected} ephemeral containers: {pod}"));
        }
        let found = condition(&pod, "game.io/fine");
        if found["status"] != "True"
            || found["message"] != "fine"
            || pod["metadata"]["labels"]["fine"] != "yes"
        {
            return Some(format!("the pod does not tell what its probe found: {pod}"));
        }
    }
    None
}

/// Nothing is written any more some time after everything is done: what failed shortly before may be tried once more after its
/// pause. Nodes confirm results of probes now and then, so their lists do not count.
pub(super) async fn silence(world: &World) -> Result<(), String> {
    let mut before = objects(world).await;
    let mut silent = 0;
    let mut last = Vec::new();
    for _ in 0..MOST_WINDOWS {
        world.live(60).await;
        let after = objects(world).await;
        let changed: Vec<&Value> = after.iter().filter(|one| !before.contains(one)).collect();
        silent = if changed.is_empty() { silent + 1 } else { 0 };
        if silent == SILENT_WINDOWS {
            return Ok(());
        }
        if !changed.is_empty() {
            let is_same =
                |one: &&Value| changed.iter().any(|other| other["metadata"]["uid"] == one["metadata"]["uid"]);
            last = before.iter().filter(is_same).chain(changed.iter().copied()).cloned().collect();
        }
        before = after;
    }
    Err(format!("written without end: {last:?}"))
}

async fn objects(world: &World) -> Vec<Value> {
    let mut found = Vec::new();
    for path in [PODS, REQUESTS, JOBS, IMAGES, MARKERS, CLONESETS, EPHEMERAL_JOBS] {
        found.extend(world.list(path).await);
    }
    found
}

//! What the kubelet started.

use super::*;
use crate::cri::Output;

const PODS: &str = "/api/v1/namespaces/default/pods";
const POD: &str = "/api/v1/namespaces/default/pods/p";

fn pod(owner: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "p", "labels": {"v": "foo"}, "ownerReferences": [
        {"apiVersion": owner, "kind": "Some", "name": "c", "uid": "c", "controller": true}]},
    "spec": {"nodeName": "n1", "containers": [
        {"name": "z", "image": "app:v1", "env": [{"name": "e2",
            "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['v']"}}}]},
        {"name": "a", "image": "app:v1"},
    ]}})
}

fn meta(pod: &Value) -> Option<Value> {
    serde_json::from_str(pod["metadata"]["annotations"]["apps.kruise.io/runtime-containers-meta"].as_str()?)
        .ok()
}

impl Stage {
    /// The runtime gets the containers that the status of the pod names.
    async fn mirror(&self) -> Value {
        let pod = self.until(POD, |pod| {
            let statuses = pod["status"]["containerStatuses"].as_array().cloned().unwrap_or_default();
            statuses.len() == 2 && statuses.iter().all(|status| status["state"]["running"].is_object())
        });
        let pod = pod.await;
        let uid = pod["metadata"]["uid"].as_str().unwrap();
        for status in pod["status"]["containerStatuses"].as_array().unwrap() {
            let id = status["containerID"].as_str().unwrap().trim_start_matches("containerd://");
            self.runtime.run(uid, status["name"].as_str().unwrap(), id, self.sim.clock().now());
        }
        pod
    }
}

fn environment(value: &str) -> Option<std::collections::BTreeMap<String, String>> {
    Some([("e2".to_owned(), value.to_owned())].into())
}

/// Node daemon 4.6-1, 4.6-9 and 4.6-11.
#[tokio::test(start_paused = true)]
async fn what_was_started_is_told_once() {
    let mut stage = Stage::new(Flags::default()).await;
    stage.runtime.world().environment = environment("foo");
    stage.post(PODS, pod("apps.kruise.io/v1beta1")).await;
    let started = stage.mirror().await;
    let told = stage
        .until(POD, |pod| meta(pod).is_some_and(|meta| meta["containers"].as_array().unwrap().len() == 2))
        .await;
    let entries = meta(&told).unwrap()["containers"].as_array().unwrap().clone();
    for (entry, status) in entries.iter().zip(started["status"]["containerStatuses"].as_array().unwrap()) {
        assert_eq!((&entry["name"], &entry["containerID"]), (&status["name"], &status["containerID"]));
        assert_eq!(entry["hashes"]["plainHash"], 2_386_939_856_u64);
    }
    let z = entries.iter().find(|entry| entry["name"] == "z").unwrap();
    assert_eq!(z["hashes"]["extractedEnvFromMetadataHash"], 2_053_173_458_u64);
    stage.wait(5).await;
    let version = stage.get(POD).await["metadata"]["resourceVersion"].clone();
    stage.crash_daemon(Flags::default());
    stage.wait(60).await;
    assert_eq!(stage.get(POD).await["metadata"]["resourceVersion"], version);
}

/// Node daemon 4.6-2 and 4.6-10.
#[tokio::test(start_paused = true)]
async fn pods_of_others_and_a_daemon_that_does_not_look_tell_nothing() {
    for (gates, owner) in [("", "apps/v1"), ("DaemonWatchingPod=false", "apps.kruise.io/v1beta1")] {
        let stage = Stage::new(Flags { gates, ..Flags::default() }).await;
        stage.post(PODS, pod(owner)).await;
        stage.mirror().await;
        stage.wait(30).await;
        assert_eq!(meta(&stage.get(POD).await), None, "{owner}");
    }
}

/// Node daemon 4.6-5 and 4.6-7: new values restart a container once, during an update in place only.
#[tokio::test(start_paused = true)]
async fn new_values_restart_exactly_that_container_once() {
    let stage = Stage::new(Flags::default()).await;
    stage.runtime.world().environment = environment("foo");
    stage.post(PODS, pod("apps.kruise.io/v1beta1")).await;
    stage.mirror().await;
    let told = stage.until(POD, |pod| meta(pod).is_some()).await;
    stage.wait(5).await;
    stage.patch(POD, json!({"metadata": {"labels": {"v": "bar"}}})).await;
    stage.wait(30).await;
    assert!(stage.runtime.world().stops.is_empty(), "changed by hand");
    let conditions = told["status"]["conditions"].as_array().unwrap().clone();
    let mut conditions = conditions;
    conditions.push(json!({"type": "InPlaceUpdateReady", "status": "False"}));
    stage.patch(&format!("{POD}/status"), json!({"status": {"conditions": conditions}})).await;
    stage.patch(POD, json!({"metadata": {"labels": {"v": "baz"}}})).await;
    stage.wait(30).await;
    let z = meta(&told).unwrap()["containers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|e| e["name"] == "z")
        .unwrap()
        .clone();
    let id = z["containerID"].as_str().unwrap().trim_start_matches("containerd://").to_owned();
    assert_eq!(stage.runtime.world().stops, [(id, 30)]);
    let expected = ("Pod/p".to_owned(), "Stopping containerID z by container meta restarter".to_owned(), 1);
    assert_eq!(stage.events("Killing").await, [expected]);
}

/// Node daemon 4.6-6: an image without the program `env` is no obstacle where the runtime tells the environment. Where it does
/// not, that program is asked.
#[tokio::test(start_paused = true)]
async fn environments_are_told_by_the_runtime_or_by_a_program_of_the_image() {
    let absent = Output { exit_code: 127, stderr: b"env: not found\n".to_vec(), ..Output::default() };
    let prints = Output { stdout: b"PATH=/bin\ne2=foo\n".to_vec(), ..Output::default() };
    for (told, program, wanted) in [
        (environment("foo"), &absent, json!(2_053_173_458_u64)),
        (None, &prints, json!(2_053_173_458_u64)),
        (None, &absent, Value::Null),
    ] {
        let stage = Stage::new(Flags::default()).await;
        stage.runtime.world().environment = told.clone();
        stage.runtime.world().commands.insert("env".to_owned(), (Duration::ZERO, program.clone()));
        stage.post(PODS, pod("apps.kruise.io/v1beta1")).await;
        stage.mirror().await;
        stage.until(POD, |pod| meta(pod).is_some()).await;
        stage.wait(10).await;
        let entries = meta(&stage.get(POD).await).unwrap()["containers"].as_array().unwrap().clone();
        let z = entries.iter().find(|entry| entry["name"] == "z").unwrap();
        assert_eq!(z["hashes"]["extractedEnvFromMetadataHash"], wanted, "{told:?} {program:?}");
    }
}

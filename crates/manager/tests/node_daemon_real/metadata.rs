//! What the kubelet started is told in the pod, and a container with old labels is started anew.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_testkit::{
    Outcome,
    pod::{is_ready, summary},
    wait::{Look, seen},
};
use kube::api::LogParams;
use serde_json::{Value, json};

use crate::{
    node::on_a_node,
    stage::Stage,
    words::{Room, status},
};

/// What the daemon tells about the containers of a pod.
fn told(pod: &Pod) -> Vec<Value> {
    let annotations = pod.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get("apps.kruise.io/runtime-containers-meta"));
    let parsed: Option<Value> = text.map(|text| serde_json::from_str(text).unwrap());
    parsed.and_then(|value| value["containers"].as_array().cloned()).unwrap_or_default()
}

/// Whether the daemon tells of the containers that run.
fn is_told(pod: &Pod) -> bool {
    let told = told(pod);
    let ids = |name: &str| told.iter().find(|one| one["name"] == name).map(|one| one["containerID"].clone());
    ["app", "sidecar"].iter().all(|name| ids(name) == status(pod, name).container_id.clone().map(Value::from))
}

/// Node daemon 4.6-1, 4.6-2, 4.6-4, 4.6-5, 4.6-7: pods of our workloads tell ids, restarts and hashes; others tell nothing. A
/// label that an update in place changes restarts the container that reads it, once, and no other; one that somebody changes
/// by hand restarts nothing.
async fn a_changed_label_restarts_the_container_that_reads_it(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "metadata").await?;
    let reads = json!({
        "command": ["sh", "-c", "echo version $VERSION; exec sh /run.sh"], "env": [version()],
    });
    restarts_with_its_new_label(stage, &room, &reads).await;
    Ok(())
}
on_a_node!(a_changed_label_restarts_the_container_that_reads_it);

/// Node daemon 4.6-6: the same in a container that finds no program `env`.
async fn a_container_that_finds_no_program_restarts_with_its_new_label(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "no-programs").await?;
    let reads = json!({
        "command": ["/bin/sh", "-c", "echo version $VERSION; exec /bin/sleep 100000"],
        "env": [{"name": "PATH", "value": "/nowhere"}, version()],
    });
    restarts_with_its_new_label(stage, &room, &reads).await;
    Ok(())
}
on_a_node!(a_container_that_finds_no_program_restarts_with_its_new_label);

/// A variable with the label `version` of the pod.
fn version() -> Value {
    json!({"name": "VERSION", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['version']"}}})
}

/// `reads` is the container `app`, which prints its version.
async fn restarts_with_its_new_label(stage: &Stage, room: &Room, reads: &Value) {
    let plain = room.pod("plain", room.two(&json!({}), &json!({})), json!({})).await;
    let set = room.set(&json!({"version": "one"}), room.two(reads, &json!({})));
    stage.create(set.clone()).await.unwrap();
    let only = async |what: &str, is_so: &dyn Fn(&Pod) -> bool| {
        let look = async || {
            let pods: Vec<Pod> = room.sandbox.list().await;
            match pods.into_iter().find(|pod| pod.metadata.name != plain.metadata.name) {
                Some(pod) if is_so(&pod) => Look::Yes(pod),
                Some(pod) => Look::No(format!("{} {:?}", summary(&pod), told(&pod))),
                None => Look::No("no pod".to_owned()),
            }
        };
        room.sandbox.eventually(what, look).await
    };
    let first = only("the pod is ready and told", &|pod| is_ready(pod) && is_told(pod)).await;
    for one in told(&first) {
        assert_eq!(one["restartCount"], 0);
        assert!(one["hashes"]["plainHash"].as_u64().unwrap() > 0, "{one}");
    }
    let hash = |pod: &Pod| told(pod)[0]["hashes"]["extractedEnvFromMetadataHash"].as_u64().unwrap();
    let name = first.metadata.name.clone().unwrap();
    let container = |name: &str, pod: &Pod| status(pod, name).container_id.clone();

    let change = json!({"spec": {"template": {"metadata": {"labels": {"version": "two"}}}}});
    stage.patch(&set, &change).await.unwrap();
    let restarted = |pod: &Pod| is_ready(pod) && status(pod, "app").restart_count == 1 && is_told(pod);
    let second = only("the container was restarted", &restarted).await;
    assert_eq!(second.metadata.uid, first.metadata.uid);
    assert_eq!(container("sidecar", &second), container("sidecar", &first));
    assert_ne!(hash(&second), hash(&first));
    assert_eq!(told(&second)[0]["restartCount"], 1);
    let params = LogParams { container: Some("app".to_owned()), ..LogParams::default() };
    let said = room.sandbox.api::<Pod>().logs(&name, &params).await.unwrap();
    assert!(said.starts_with("version two\n"), "{said}");
    let finished = async || {
        let found = stage.api(&set).get("set").await.unwrap().data["status"].clone();
        seen(found["updatedReadyReplicas"] == 1, found.to_string())
    };
    room.sandbox.eventually("the update is over", finished).await;

    let _: Pod = room.sandbox.merge(&name, json!({"metadata": {"labels": {"version": "three"}}})).await;
    let same = async || {
        let pod: Pod = room.sandbox.get(&name).await;
        seen(container("app", &pod) == container("app", &second), summary(&pod))
    };
    room.sandbox.always("nobody restarts it", Duration::from_secs(5), same).await;
    let plain: Pod = room.sandbox.get("plain").await;
    assert_eq!(told(&plain), Vec::<Value>::new());
}

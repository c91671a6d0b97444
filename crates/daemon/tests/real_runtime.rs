//! The client against a real container runtime, named by `KRUISE_CRI_SOCKET`. One test looks only, the other one makes a
//! pod in the network of the node from the image `KRUISE_CRI_IMAGE` (with `sleep`, `sh` and `env`), and removes it again.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "real_runtime/pod.rs"]
mod pod;

use std::{path::PathBuf, sync::Arc, time::Duration};

use kruise_api::gates::Gates;
use kruise_daemon::{
    cri::{Client, Container, Detail, Runtime as _, Runtimes, State, keys, newest},
    daemon,
    node::{Node, Settings},
    pulling::{Wanted, secrets::Sources},
};
use kruise_runtime::{clock::Clock, random::Random, scope::Scope};
use kruise_sim::Sim;
use pod::Pods;
use serde_json::{Value, json};

fn socket() -> PathBuf {
    PathBuf::from(std::env::var("KRUISE_CRI_SOCKET").unwrap())
}

#[tokio::test]
#[ignore = "needs a container runtime, named by KRUISE_CRI_SOCKET"]
async fn a_real_runtime_tells_its_images_and_its_containers() {
    let client = Client::connect(&socket()).await.unwrap();
    let version = client.version().await.unwrap();
    println!("{version:?}");
    assert_eq!(version.name, client.name());
    let images = client.images().await.unwrap();
    println!("{} images, the first is {:?}", images.len(), images.first());
    assert!(images.iter().all(|image| !image.id.is_empty()));
    let places = client.image_file_systems().await.unwrap();
    println!("{places:?}");
    assert!(places.iter().all(|place| place.mountpoint.starts_with('/')));
    println!("{} containers", client.containers(None).await.unwrap().len());
    assert_eq!(client.inspect("no-such-container", Detail::State).await.unwrap(), None);
}

#[tokio::test]
#[ignore = "needs a container runtime and an image, named by KRUISE_CRI_SOCKET and KRUISE_CRI_IMAGE"]
async fn a_real_container_is_found_asked_and_stopped() {
    let image = std::env::var("KRUISE_CRI_IMAGE").unwrap();
    let client = Client::connect(&socket()).await.unwrap();
    let pods = Pods::connect(&socket()).await;
    let pod = pods.run("u-real", &image).await;
    let containers = client.containers(Some("u-real")).await.unwrap();
    let container: &Container = newest(&containers, "app").unwrap();
    assert_eq!((container.id.as_str(), container.state), (pod.container.as_str(), State::Running));
    assert_eq!((container.hash(), container.restart_count()), (Some(0x1234_abcd), 3));
    assert_eq!(container.labels.get(keys::POD_UID).map(String::as_str), Some("u-real"));
    assert!(client.containers(Some("somebody-else")).await.unwrap().is_empty());
    let inspected = client.inspect(&container.id, Detail::Environment).await.unwrap().unwrap();
    assert!(inspected.started_at.is_some());
    assert_eq!(inspected.environment.unwrap().get("COLOUR").map(String::as_str), Some("blue"));
    assert!(
        client.sandbox_addresses(&container.sandbox).await.unwrap().is_empty(),
        "the network of the node"
    );
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let second = Some(Duration::from_secs(1));
    let said =
        client.exec(&container.id, &words(&["sh", "-c", "echo $COLOUR; echo no >&2; exit 3"]), second).await;
    let said = said.unwrap();
    assert_eq!((said.exit_code, said.stdout, said.stderr), (3, b"blue\n".to_vec(), b"no\n".to_vec()));
    let late = client.exec(&container.id, &words(&["sleep", "20"]), second).await.unwrap_err();
    println!("a command that takes too long: {late}");
    assert!(
        late.kind == kruise_daemon::cri::Kind::TimedOut || late.to_string().contains("timed out"),
        "{late}"
    );
    client.stop(&container.id, Duration::from_secs(2)).await.unwrap();
    let stopped = client.inspect(&container.id, Detail::State).await.unwrap().unwrap();
    assert_eq!(stopped.state, State::Exited);
    pods.remove(&pod).await;
    assert!(client.containers(Some("u-real")).await.unwrap().is_empty());
    assert_eq!(client.inspect(&pod.container, Detail::State).await.unwrap(), None);
}

const REQUESTS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/containerrecreaterequests";

async fn send(sim: &Sim, method: &str, path: &str, body: Value) -> Value {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    sim.client().request(request.body(bytes).unwrap()).await.unwrap()
}

/// Looks at the request until something holds of its status.
async fn until(sim: &Sim, holds: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..200 {
        let request = send(sim, "GET", &format!("{REQUESTS}/r"), Value::Null).await;
        if holds(&request["status"]) {
            return request;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("waited in vain");
}

fn daemon_of(sim: &Sim, client: Client) -> Scope {
    let settings = Settings {
        node: "n1".to_owned(),
        gates: Gates::default(),
        rate: (5.0, 10),
        most_pulls: None,
        space: Wanted::default(),
        clock: Clock::wall(),
        random: Random::seeded(1),
    };
    let node =
        Node::new(sim.client(), Runtimes::new(vec![Arc::new(client)]).unwrap(), Sources::default(), settings);
    let mut scope = Scope::default();
    daemon::start(&node, &mut scope);
    scope
}

/// CRR-1 and CRR-6 on a real runtime: the hook runs in the container, the container ends, and its successor counts.
#[tokio::test]
#[ignore = "needs a container runtime and an image, named by KRUISE_CRI_SOCKET and KRUISE_CRI_IMAGE"]
async fn a_real_container_is_recreated() {
    let image = std::env::var("KRUISE_CRI_IMAGE").unwrap();
    let client = Client::connect(&socket()).await.unwrap();
    let pods = Pods::connect(&socket()).await;
    let mut pod = pods.run("u-crr", &image).await;
    let first = pod.container.clone();
    let sim = Sim::builder().start();
    let definition = kruise_api::containerrecreaterequest::CRD.object();
    send(&sim, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let scope = daemon_of(&sim, client.clone());
    let request = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
        "metadata": {"name": "r", "labels": {"crr.apps.kruise.io/pod-uid": "u-crr",
            "crr.apps.kruise.io/node-name": "n1", "crr.apps.kruise.io/active": "true"}},
        "spec": {"podName": "p", "strategy": {"terminationGracePeriodSeconds": 4}, "containers": [{"name": "app",
            "preStop": {"exec": {"command": ["sleep", "2"]}},
            "statusContext": {"containerID": format!("containerd://{first}"), "restartCount": 3}}]}});
    let began = tokio::time::Instant::now();
    send(&sim, "POST", REQUESTS, request).await;
    until(&sim, |status| status["containerRecreateStates"][0]["isKilled"] == true).await;
    assert!(began.elapsed() >= Duration::from_secs(2), "the hook ran: {:?}", began.elapsed());
    let stopped = client.inspect(&first, Detail::State).await.unwrap().unwrap();
    assert_eq!(stopped.state, State::Exited);
    pods.start(&mut pod, 4).await;
    let seen = json!([{"name": "app", "ready": true, "restartCount": 4,
        "containerID": format!("containerd://{}", pod.container)}]);
    let status = json!({"status": {"containerStatusSnapshot": seen}});
    send(&sim, "PATCH", &format!("{REQUESTS}/r/status"), status).await;
    let done = until(&sim, |status| status["phase"] == "Completed").await;
    assert_eq!(done["status"]["containerRecreateStates"][0]["phase"], "Succeeded");
    let running = client.inspect(&pod.container, Detail::State).await.unwrap().unwrap();
    assert_eq!(running.state, State::Running);
    scope.shutdown(Duration::from_secs(5)).await.unwrap();
    pods.remove(&pod).await;
}

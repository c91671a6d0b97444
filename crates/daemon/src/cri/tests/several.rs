//! A node with several runtimes, of which CRI-O is one.

use std::{path::Path, time::Duration};

use kruise_api::gates::Gates;
use kruise_runtime::{clock::Clock, random::Random, scope::Scope};
use kruise_sim::Sim;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{container, discovery, named};
use crate::{
    cri::fake::{Fake, World},
    daemon,
    node::{Node, Settings},
    pulling::{Wanted, secrets::Sources},
};

const REQUESTS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/containerrecreaterequests";

const PROBES: &str = "/apis/apps.kruise.io/v1alpha1/nodepodprobes";

async fn send(sim: &Sim, method: &str, path: &str, body: Value) -> Value {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    sim.client().request(request.body(bytes).unwrap()).await.unwrap()
}

/// The daemon of a node with the runtimes of a folder.
async fn daemon_of(sim: &Sim, folder: &Path) -> Scope {
    let settings = Settings {
        node: "n1".to_owned(),
        gates: Gates::default(),
        rate: (50.0, 50),
        most_pulls: None,
        space: Wanted::default(),
        clock: Clock::wall(),
        random: Random::seeded(1),
    };
    let runtimes = discovery::discover(folder, None).await.unwrap();
    let mut scope = Scope::default();
    daemon::start(&Node::new(sim.client(), runtimes, Sources::default(), settings), &mut scope);
    scope
}

fn request(name: &str, id: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
        "metadata": {"name": name, "labels": {"crr.apps.kruise.io/pod-uid": "u1",
            "crr.apps.kruise.io/node-name": "n1", "crr.apps.kruise.io/active": "true"}},
        "spec": {"podName": name, "strategy": {"terminationGracePeriodSeconds": 7}, "containers": [
            {"name": "app", "statusContext": {"containerID": id, "restartCount": 2}},
        ]},
    })
}

/// CRR-32: containers are stopped by the runtime that their ids name, though another one is preferred.
#[tokio::test]
async fn the_runtime_that_an_id_names_stops_the_container() {
    let folder = TempDir::new().unwrap();
    let world = |name| World { containers: vec![container("a", "app", 1)], ..named(name) };
    let containerd = Fake::start(&folder.path().join("containerd.sock"), world("containerd"));
    let crio = Fake::start(&folder.path().join("crio/crio.sock"), world("cri-o"));
    let sim = Sim::builder().start();
    let definition = kruise_api::containerrecreaterequest::CRD.object();
    send(&sim, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let scope = daemon_of(&sim, folder.path()).await;
    send(&sim, "POST", REQUESTS, request("r", "cri-o://a")).await;
    for _ in 0..300 {
        if !crio.world().stops.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(crio.world().stops, [("a".to_owned(), 7)]);
    assert!(containerd.world().stops.is_empty());
    scope.shutdown(Duration::from_secs(5)).await.unwrap();
}

/// ND-D3: a runtime that was switched off does not silence the probes in another one.
#[tokio::test]
async fn a_runtime_that_is_gone_does_not_silence_the_probes_of_another() {
    let folder = TempDir::new().unwrap();
    let containerd = Fake::start(&folder.path().join("containerd.sock"), named("containerd"));
    let world = World { containers: vec![container("a", "app", 1)], started_at: 1, ..named("cri-o") };
    let _crio = Fake::start(&folder.path().join("crio/crio.sock"), world);
    let sim = Sim::builder().start();
    let definition = kruise_api::nodepodprobe::CRD.object();
    send(&sim, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let scope = daemon_of(&sim, folder.path()).await;
    drop(containerd);
    let probe = json!({"name": "m#ok", "containerName": "app", "probe": {"exec": {"command": ["true"]}, "periodSeconds": 1}});
    let list = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "NodePodProbe", "metadata": {"name": "n1"},
        "spec": {"podProbes": [{"name": "p", "namespace": "default", "uid": "u1", "IP": "10.0.0.7", "probes": [probe]}]}});
    send(&sim, "POST", PROBES, list).await;
    let path = format!("{PROBES}/n1");
    let mut found = Value::Null;
    for _ in 0..300 {
        found = send(&sim, "GET", &path, Value::Null).await;
        if found["status"]["podProbeStatuses"][0]["probeStates"][0]["state"] == "Succeeded" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(found["status"]["podProbeStatuses"][0]["probeStates"][0]["state"], "Succeeded", "{found}");
    scope.shutdown(Duration::from_secs(5)).await.unwrap();
}

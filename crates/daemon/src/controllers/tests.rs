//! The whole daemon against an API server and a runtime in memory, in virtual time.

mod faults;
mod images;
mod meta;
mod probes;
mod requests;

use std::{sync::Arc, time::Duration};

use kruise_api::gates::{self, Gates};
use kruise_runtime::{clock::Clock, random::Random, scope::Scope};
use kruise_sim::{Node as SimNode, Sim};
use serde_json::{Value, json};

use crate::{
    cri::{Runtimes, simulated::Simulated},
    daemon,
    node::{Node, Settings},
    pulling::{Wanted, secrets::Sources},
};

/// A cluster with one node, its runtime, and its daemon.
struct Stage {
    sim: Sim,
    runtime: Simulated,
    node: Node,
    scope: Option<Scope>,
}

/// What a stage is made with.
#[derive(Clone, Copy, Default)]
struct Flags {
    gates: &'static str,
    most_pulls: Option<usize>,
}

impl Stage {
    async fn new(flags: Flags) -> Self {
        Self::made(Sim::builder().with_nodes(vec![SimNode::named("n1")]).start(), flags).await
    }

    async fn made(sim: Sim, flags: Flags) -> Self {
        let ours = ["ContainerRecreateRequest", "NodeImage", "NodePodProbe"];
        for crd in kruise_api::catalogue::CRDS.iter().filter(|crd| ours.contains(&crd.kind)) {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            send(&sim, "POST", path, crd.object()).await.unwrap();
        }
        sim.advance(Duration::from_secs(2)).await;
        let runtime = Simulated::default();
        let node = node(&sim, &runtime, flags);
        let mut stage = Self { sim, runtime, node, scope: None };
        stage.start_daemon();
        stage
    }

    fn start_daemon(&mut self) {
        let mut scope = Scope::default();
        daemon::start(&self.node, &mut scope);
        self.scope = Some(scope);
    }

    /// The daemon dies at once, and a new one knows nothing.
    fn crash_daemon(&mut self, flags: Flags) {
        self.scope = None;
        self.node = node(&self.sim, &self.runtime, flags);
        self.start_daemon();
    }

    async fn wait(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    async fn post(&self, path: &str, object: Value) -> Value {
        send(&self.sim, "POST", path, object).await.unwrap()
    }

    async fn patch(&self, path: &str, patch: Value) -> Value {
        send(&self.sim, "PATCH", path, patch).await.unwrap()
    }

    async fn get(&self, path: &str) -> Value {
        send(&self.sim, "GET", path, Value::Null).await.unwrap()
    }

    /// Waits until something holds of an object.
    #[track_caller]
    fn until<'a>(
        &'a self,
        path: &'a str,
        holds: impl Fn(&Value) -> bool + 'a,
    ) -> impl Future<Output = Value> + 'a {
        let place = std::panic::Location::caller();
        async move {
            for _ in 0..6000 {
                let object = self.get(path).await;
                if holds(&object) {
                    return object;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            panic!("waited in vain at {place}: {}", self.get(path).await);
        }
    }

    /// Reasons, objects and messages of all events, with their counts.
    async fn events(&self, reason: &str) -> Vec<(String, String, u64)> {
        let list = self.get("/api/v1/events").await;
        let mut found: Vec<(String, String, u64)> = Vec::new();
        for event in list["items"].as_array().unwrap() {
            if event["reason"] == reason {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let object = format!(
                    "{}/{}",
                    text(&event["involvedObject"]["kind"]),
                    text(&event["involvedObject"]["name"])
                );
                found.push((object, text(&event["message"]), event["count"].as_u64().unwrap()));
            }
        }
        found.sort();
        found
    }
}

fn node(sim: &Sim, runtime: &Simulated, flags: Flags) -> Node {
    let clock = *sim.clock();
    let (gates, _) = Gates::parse(flags.gates, &gates::Options::default()).unwrap();
    let settings = Settings {
        node: "n1".to_owned(),
        gates,
        rate: (30.0, 50),
        most_pulls: flags.most_pulls,
        space: Wanted { percent: 0 },
        clock: Clock::from_fn(move || clock.now()),
        random: Random::seeded(7),
    };
    let runtimes = Runtimes::new(vec![Arc::new(runtime.clone())]).unwrap();
    Node::new(sim.faulty_client(), runtimes, Sources::default(), settings)
}

async fn send(sim: &Sim, method: &str, path: &str, body: Value) -> Result<Value, kube::Error> {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    sim.client().request(request.body(bytes).unwrap()).await
}

fn named(kind: &str, version: &str, name: &str) -> Value {
    json!({"apiVersion": format!("apps.kruise.io/{version}"), "kind": kind, "metadata": {"name": name}})
}

/// Node daemon 8.1-6 and 8.1-7.
#[tokio::test(start_paused = true)]
async fn health_follows_the_first_lists_and_metrics_name_all_queues() {
    use kruise_sim::faults::{Answer, Calls, Effect, Rule, WatchFaults, When};

    use crate::endpoints::Pages;
    let mut stage = Stage::new(Flags::default()).await;
    stage.scope = None;
    stage.node = node(&stage.sim, &stage.runtime, Flags::default());
    let pages = Pages::Daemon {
        checks: daemon::checks(&stage.node),
        numbers: kruise_runtime::endpoints::numbers::Numbers::new(stage.node.registry.clone()),
    };
    let answer = pages.at("/healthz");
    assert_eq!(
        (answer.status.as_u16(), &*String::from_utf8_lossy(&answer.body)),
        (500, "check nodeImageInformerSynced failed, err: not synced")
    );
    stage.start_daemon();
    stage.wait(5).await;
    let answer = pages.at("/healthz");
    assert_eq!((answer.status.as_u16(), &*String::from_utf8_lossy(&answer.body)), (200, "ok"));
    let metrics = String::from_utf8_lossy(&pages.at("/metrics").body).into_owned();
    for queue in [
        "imagepuller",
        "crr",
        "runtime_container_meta",
        "runtime_container_meta_restarter",
        "sync_node_pod_probe",
        "update_node_pod_probe_status",
    ] {
        let line = format!("workqueue_depth{{name=\"{queue}\"}}");
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
    assert!(
        metrics.contains("rest_client_requests_total{") && metrics.contains("process_resident_memory_bytes")
    );
    assert_eq!(pages.at("/other").status.as_u16(), 404);
    // A server that is away is no reason to restart the daemon.
    stage.sim.faults().watch(WatchFaults { expire: 1.0, ..WatchFaults::default() });
    let (when, effect, answer) = (When::Chance(1.0), Effect::Before, Answer::Unavailable);
    stage.sim.faults().rule(Rule { calls: Calls::default(), when, effect, answer });
    for _ in 0..60 {
        stage.wait(5).await;
        assert_eq!(pages.at("/healthz").status.as_u16(), 200);
    }
}

/// A feature that is off follows nothing and runs nothing.
#[tokio::test(start_paused = true)]
async fn features_that_are_off_are_not_checked() {
    let stage =
        Stage::new(Flags { gates: "PodProbeMarkerGate=false,DaemonWatchingPod=false", ..Flags::default() })
            .await;
    stage.wait(5).await;
    assert_eq!(daemon::checks(&stage.node).len(), 2);
    assert!(!stage.node.caches.pods.is_synced() && !stage.node.caches.probes.is_synced());
}

//! How long rollouts of large sets take at the usual limits of clients, in virtual time.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use kruise_manager::controllers::{cloneset, pod_readiness};
use kruise_runtime::random::Random;
use kruise_sim::{
    Sim,
    steps::{Step, Steps, Then, When},
};
use kruise_testkit::writes::Writes;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tower::Layer as _;

use crate::{
    process::Process,
    settings,
    user::{install, sets},
};

/// Nodes that look at their containers once a second, as kubelets do.
fn steps() -> Steps {
    let mut steps = Steps::default();
    let rows = [
        (When::Bound, 300, 700, Then::Begin),
        (When::ImageMissing, 100, 200, Then::Pulled),
        (When::Created, 300, 1000, Then::Started),
        (When::DefinitionChanged, 300, 1000, Then::Kill),
        (When::AllEnded, 300, 1000, Then::Remove),
    ];
    for (when, after, jitter, then) in rows {
        let (after, jitter) = (Duration::from_millis(after), Duration::from_millis(jitter));
        steps.set(Step { when, after, jitter, then });
    }
    steps
}

struct Bench {
    sim: Sim,
    writes: Writes,
    shared: kruise_manager::shared::Shared,
    _process: Process,
    replicas: u64,
    /// Whether each second is told.
    verbose: bool,
}

/// What a stage took.
#[derive(Debug, Default)]
struct Cost {
    seconds: f64,
    writes: BTreeMap<String, u64>,
}

fn endpoint(method: &http::Method, path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let place = parts.iter().position(|part| *part == "namespaces").map_or(0, |place| place + 2);
    let kind = parts.get(place).copied().unwrap_or_default();
    let part = parts.get(place + 2).map(|part| format!("/{part}")).unwrap_or_default();
    format!("{method} {kind}{part}")
}

impl Bench {
    /// A cluster whose calls and news take this long.
    async fn start(replicas: u64, latency: Duration) -> Self {
        let sim = Sim::builder().nodes(10).steps(steps()).without_events().start();
        install(&sim).await;
        sim.faults().latency(latency);
        sim.faults().lag_time(latency);
        let writes = Writes::default();
        let client = kube::Client::new(writes.layer(sim.faults().layer(sim.server().clone())), "default");
        let shared = settings::through(client, &sim, &Random::seeded(7), &[]);
        let controllers = vec![cloneset::controller(&shared), pod_readiness::controller(&shared)];
        let process = Process::run_all(&shared, controllers, None);
        let verbose = std::env::var_os("KRUISE_PACE").is_some();
        Self { sim, writes, shared, _process: process, replicas, verbose }
    }

    fn object(&self, replicas: u64, version: &str, policy: &str) -> Value {
        json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": "bench"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "bench"}},
                "updateStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"podUpdatePolicy": policy, "maxUnavailable": 250},
                },
                "template": {
                    "metadata": {"labels": {"app": "bench"}},
                    "spec": {
                        // As the webhook for pods adds it.
                        "readinessGates": [{"conditionType": "KruisePodReady"}],
                        "terminationGracePeriodSeconds": 1,
                        "containers": [{"name": "main", "image": format!("app:{version}")}],
                    },
                },
            },
        })
    }

    async fn is_done(&self) -> bool {
        let set = sets(&self.sim).get("bench").await.unwrap();
        let number = |path: &str| set.data.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let wanted = number("/spec/replicas");
        number("/status/observedGeneration") == set.metadata.generation.unwrap().unsigned_abs()
            && number("/status/replicas") == wanted
            && number("/status/updatedAvailableReplicas") == wanted
            && set.data.pointer("/status/currentRevision") == set.data.pointer("/status/updateRevision")
    }

    fn passes(&self) -> String {
        let text = self.shared.registry.text();
        let lines = text.lines().filter(|line| {
            line.contains("cloneset-controller")
                && (line.starts_with("controller_runtime_reconcile_total")
                    || line.contains("reconcile_time_seconds_sum")
                    || line.contains("reconcile_time_seconds_count")
                    || line.contains("freshness"))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Lets the set become so, and tells what that took.
    async fn stage(&mut self, name: &str, replicas: u64, version: &str, policy: &str) -> Cost {
        let object = self.object(replicas, version, policy);
        let start = tokio::time::Instant::now();
        let sets = sets(&self.sim);
        if sets.get_opt("bench").await.unwrap().is_some() {
            sets.patch("bench", &PatchParams::default(), &Patch::Merge(object)).await.unwrap();
        } else {
            sets.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        }
        let mut cost = Cost::default();
        let mut film = String::new();
        loop {
            for _ in 0..5 {
                self.sim.advance(Duration::from_millis(200)).await;
                if self.is_done().await {
                    break;
                }
            }
            let mut second: BTreeMap<String, u64> = BTreeMap::new();
            for write in self.writes.take() {
                *second.entry(endpoint(&write.method, &write.path)).or_default() += 1;
            }
            let _ = writeln!(film, "{:7.1} {second:?}", start.elapsed().as_secs_f64());
            for (kind, count) in second {
                *cost.writes.entry(kind).or_default() += count;
            }
            if self.is_done().await {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(900), "{name} takes too long\n{film}");
        }
        cost.seconds = start.elapsed().as_secs_f64();
        if self.verbose {
            println!("{film}{}", self.passes());
        }
        println!("{name}: {:.1} s, {:?}", cost.seconds, cost.writes);
        self.sim.advance(Duration::from_secs(20)).await;
        self.writes.take();
        cost
    }

    async fn stages(&mut self) -> [Cost; 4] {
        let replicas = self.replicas;
        [
            self.stage("create", replicas, "v1", "InPlaceIfPossible").await,
            self.stage("in place", replicas, "v2", "InPlaceIfPossible").await,
            self.stage("recreate", replicas, "v3", "ReCreate").await,
            self.stage("scale to zero", 0, "v3", "ReCreate").await,
        ]
    }
}

/// All seconds that it takes to send so many writes through one resource.
fn floor(writes: u64) -> f64 {
    (writes as f64 - 50.0) / 30.0
}

#[tokio::test(start_paused = true)]
#[ignore = "takes a while; `KRUISE_PACE=1` tells of each second"]
async fn a_thousand_pods() {
    for latency in [15, 200, 400] {
        println!("calls take {latency} ms");
        Bench::start(1000, Duration::from_millis(latency)).await.stages().await;
    }
}

/// A slow server does not slow rollouts down: what is written at the usual 30 calls per second decides, and each pod costs
/// as few writes as can be.
#[tokio::test(start_paused = true)]
async fn rollouts_use_what_the_limits_of_clients_allow() {
    let replicas = 200;
    let [create, in_place, recreate, remove] =
        Bench::start(replicas, Duration::from_millis(200)).await.stages().await;
    let count = |cost: &Cost, kind: &str| cost.writes.get(kind).copied().unwrap_or(0);
    assert_eq!(count(&create, "POST pods"), replicas);
    assert_eq!(count(&create, "PATCH pods/status"), replicas, "one write for both conditions and the state");
    assert_eq!(count(&in_place, "PATCH pods"), replicas);
    assert!(count(&in_place, "PATCH pods/status") < replicas * 5 / 2, "few are in vain: {in_place:?}");
    assert_eq!(count(&recreate, "PATCH pods/status"), replicas);
    assert_eq!(count(&remove, "DELETE pods"), replicas);
    // Nodes take a few seconds for the last pods; the rest is room for chance.
    for (cost, writes) in [(create, 1), (in_place, 2), (recreate, 2), (remove, 1)] {
        let bar = floor(replicas * writes) * 1.2 + 6.0;
        assert!(cost.seconds < bar, "{cost:?} takes longer than {bar} s");
    }
}

//! Many CloneSets at once.

use std::time::Duration;

use kruise_runtime::random::Random;
use kruise_sim::Sim;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::{
    process::Process,
    settings,
    user::{install, sets},
};

/// A cluster with sets of ten pods each, not yet managed by anyone.
async fn cluster(count: usize) -> Sim {
    let sim = Sim::builder().nodes(30).without_events().start();
    install(&sim).await;
    for number in 0..count {
        let name = format!("set-{number}");
        let set = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": name},
            "spec": {
                "replicas": 10,
                "selector": {"matchLabels": {"app": name}},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 10}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "app", "image": "app:v1"}]},
                },
            },
        });
        sets(&sim).create(&PostParams::default(), &serde_json::from_value(set).unwrap()).await.unwrap();
    }
    sim
}

async fn are_done(sim: &Sim) -> bool {
    sets(sim).list(&ListParams::default()).await.unwrap().items.iter().all(|set| {
        let number = |name: &str| set.data["status"][name].as_i64().unwrap_or(0);
        number("observedGeneration") == set.metadata.generation.unwrap()
            && number("updatedAvailableReplicas") == 10
    })
}

async fn seconds_until_done(sim: &Sim) -> u64 {
    for second in 0..36_000 {
        if are_done(sim).await {
            return second;
        }
        sim.advance(Duration::from_secs(1)).await;
    }
    panic!("they never come to rest");
}

/// PLATFORM-36, with a tenth of the pods: more workers change all images sooner.
#[tokio::test(start_paused = true)]
async fn more_workers_roll_out_many_sets_sooner() {
    let mut times = Vec::new();
    for workers in [3, 20] {
        let sim = cluster(50).await;
        let flag = format!("--cloneset-workers={workers}");
        let shared = settings::shared(
            &sim,
            &Random::seeded(1),
            &[&flag, "--rest-config-qps=1000", "--rest-config-burst=1000"],
        );
        let _process = Process::run(&shared, None);
        seconds_until_done(&sim).await;
        let told = format!(
            "controller_runtime_max_concurrent_reconciles{{controller=\"cloneset-controller\"}} {workers}"
        );
        assert!(shared.registry.text().contains(&told), "{}", shared.registry.text());
        // Each call takes a moment, as on a real server.
        sim.faults().latency(Duration::from_millis(300));
        for number in 0..50 {
            let image =
                json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "app:v2"}]}}}});
            let name = format!("set-{number}");
            sets(&sim).patch(&name, &PatchParams::default(), &Patch::Merge(image)).await.unwrap();
        }
        times.push(seconds_until_done(&sim).await);
    }
    assert!(times[1] * 2 < times[0], "{times:?} seconds with 3 and 20 workers");
}

/// PLATFORM-37: a cluster where nothing happens is not written to. Its CPU is measured by `cargo xtask bench manager`.
#[tokio::test(start_paused = true)]
async fn a_hundred_sets_at_rest_are_left_alone() {
    let sim = cluster(100).await;
    let shared = settings::shared(&sim, &Random::seeded(2), &["--rest-config-qps=1000"]);
    let _process = Process::run(&shared, None);
    seconds_until_done(&sim).await;
    sim.advance(Duration::from_secs(120)).await;
    let writes = sim.faults().writes();
    sim.advance(Duration::from_secs(600)).await;
    assert_eq!(sim.faults().writes(), writes);
}

//! One seed, one history.

use kruise_sim::Sim;
use serde_json::json;

use super::{create, delete, patch, seconds};

/// A deployment rolls, a node stops, the deployment is scaled and deleted. The digest of everything that happened.
async fn story(seed: u64) -> (String, u64) {
    let mut sim = Sim::builder().seed(seed).nodes(3).build();
    let mut history = sim.history();
    sim.run();
    create(
        &sim,
        "apps/deployments",
        json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "app", "image": "app:1"}]},
                },
            },
        }),
    )
    .await;
    seconds(&sim, 20).await;
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}}});
    patch(&sim, "apps/deployments", "web", None, image).await;
    seconds(&sim, 5).await;
    let node = format!("node-{}", sim.pick(1..4));
    sim.stop_node(&node);
    seconds(&sim, 30).await;
    patch(&sim, "apps/deployments", "web", None, json!({"spec": {"replicas": 5}})).await;
    seconds(&sim, 30).await;
    sim.return_node(&node);
    delete(&sim, "apps/deployments", "web").await;
    seconds(&sim, 60).await;
    let digest = history.digest();
    assert!(!history.lost_events());
    (digest, history.len())
}

fn run(seed: u64) -> (String, u64) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(story(seed))
}

#[test]
fn the_same_seed_gives_the_same_history_and_another_seed_another_one() {
    let mut digests = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let (first, events) = run(seed);
        let (second, _) = run(seed);
        assert_eq!(first, second, "seed {seed}");
        assert!(events > 60, "seed {seed} has only {events} events");
        digests.insert(first);
    }
    assert_eq!(digests.len(), 100);
}

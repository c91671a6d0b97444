//! How little a store keeps for objects that are much alike.

use kruise_apiserver::store::Record;
use kruise_sim::Sim;
use serde_json::json;

use super::{create, seconds};

/// The bytes that the store keeps for the JSON of each object of a table, and the bytes that readers get.
fn kept_and_read(sim: &Sim, table: &str) -> (usize, usize) {
    let (_, records) = sim.server().store().list(table, None);
    let sum = |bytes: fn(&Record) -> usize| -> usize {
        records.iter().map(|record| bytes(record)).sum::<usize>() / records.len()
    };
    (sum(Record::kept), sum(|record| record.json().len()))
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_workload_and_their_events_take_little_more_than_what_sets_them_apart() {
    let sim = Sim::builder().nodes(20).start();
    let labels = json!({"app": "web"});
    create(
        &sim,
        "apps/deployments",
        json!({
            "metadata": {"name": "web"},
            "spec": {"replicas": 200, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "app", "image": "registry.example/web:v1"}]},
            }},
        }),
    )
    .await;
    seconds(&sim, 120).await;
    let pods = kept_and_read(&sim, "/pods");
    assert!(pods.0 < 420 && pods.1 > 2_000, "a pod of {} bytes takes {}", pods.1, pods.0);
    let events = kept_and_read(&sim, "/events");
    assert!(events.0 < 200 && events.1 > 600, "an event of {} bytes takes {}", events.1, events.0);
    let leases = kept_and_read(&sim, "coordination.k8s.io/leases");
    assert!(leases.0 < 200, "a lease of {} bytes takes {}", leases.1, leases.0);
}

//! What a distribution costs, counted: writes, status writes and what is kept in memory.

use std::time::Duration;

use kruise_runtime::random::Random;
use kruise_sim::Sim;
use serde_json::json;

use crate::{
    process::Process,
    world::{
        counts, create, delete, distribution, distributions, get, install, merge, namespace, namespaces,
    },
};

const SPACES: u64 = 300;
const FOREIGN: usize = 2_000;

/// Copies are written once each, a label costs one write, and foreign Secrets are not even known.
#[tokio::test(start_paused = true)]
async fn only_what_is_distributed_is_known_and_a_label_costs_one_write() {
    let sim = Sim::builder().seed(7).nodes(0).without_events().start();
    install(&sim).await;
    for number in 0..SPACES {
        namespace(&sim, &format!("n{number:03}"), json!({"team": "shop"})).await;
    }
    for number in 0..FOREIGN {
        let name = format!("foreign-{number}");
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"a": "b"}});
        create(&sim, "default", secret).await;
    }
    let process = Process::start(&sim, &Random::seeded(1), None);
    let copies = &process.shared.copies;
    sim.advance(Duration::from_secs(5)).await;
    assert_eq!((copies.len(), sim.faults().writes()), (0, 0));
    let resource = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"a": "b"}});
    let targets = json!({"namespaceSelector": {"matchLabels": {"team": "shop"}}});
    create(&sim, "", distribution("token", resource, targets)).await;
    sim.advance(Duration::from_secs(3)).await;
    assert_ne!(counts(&get(&sim, "token").await), "300/300/0", "writes are limited");
    sim.advance(Duration::from_secs(30)).await;
    assert_eq!(counts(&get(&sim, "token").await), "300/300/0");
    assert_eq!((copies.len(), copies.objects()), (1, 300));
    // The status is written every few seconds while copies are made.
    let writes = sim.faults().writes();
    assert!((SPACES..SPACES + 6).contains(&writes), "{writes} writes");
    merge(&namespaces(&sim), "n007", json!({"metadata": {"labels": {"team": "other"}}})).await;
    sim.advance(Duration::from_secs(10)).await;
    assert_eq!(counts(&get(&sim, "token").await), "299/299/0");
    assert_eq!(sim.faults().writes(), writes + 2, "one deletion, one status");
    merge(&namespaces(&sim), "n008", json!({"metadata": {"labels": {"other": "label"}}})).await;
    sim.advance(Duration::from_secs(10)).await;
    assert_eq!(sim.faults().writes(), writes + 2);
    delete(&distributions(&sim), "token").await;
    sim.advance(Duration::from_secs(10)).await;
    assert_eq!((copies.len(), copies.objects()), (0, 0));
}

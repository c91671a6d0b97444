//! Faults that do not heal by themselves: they are reported, the other subsets are not held up, and nobody asks all the time.

use std::time::Duration;

use kruise_api::labels::SUBSET_NAME;
use kruise_runtime::{clock::Clock, random::Random};
use kruise_sim::Sim;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::{
    process::Process,
    world::{adaptive, api, change, close, create, install, is_ready, object, objects, pods, workloads},
};

struct Place {
    sim: Sim,
    _process: Process,
}

fn play(story: impl AsyncFnOnce(Place)) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let sim = Sim::builder().seed(7).nodes(4).without_events().start();
        install(&sim).await;
        let now = *sim.clock();
        let process = Process::timed(&sim, &Random::seeded(7), Clock::from_fn(move || now.now()), None);
        story(Place { sim, _process: process }).await;
    });
}

impl Place {
    /// Replicas by subset, such as `a 2 b 0`.
    async fn shown(&self) -> String {
        let mut all: Vec<String> = workloads(&self.sim)
            .await
            .iter()
            .map(|one| {
                let subset = one["metadata"]["labels"][SUBSET_NAME].as_str().unwrap_or("-");
                format!("{subset} {}", one["spec"]["replicas"])
            })
            .collect();
        all.sort();
        all.join(" ")
    }

    async fn ready(&self) -> usize {
        pods(&self.sim).await.iter().filter(|pod| is_ready(pod)).count()
    }

    async fn status(&self) -> Value {
        objects(&self.sim).get("web").await.unwrap().data["status"].clone()
    }

    async fn condition(&self, kind: &str) -> Value {
        let all = self.status().await["conditions"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|one| one["type"] == kind).unwrap_or_default()
    }

    async fn until(&self, expected: &str) {
        let mut found = String::new();
        for _ in 0..300 {
            found = self.shown().await;
            if found == expected {
                return;
            }
            self.sim.advance(Duration::from_secs(1)).await;
        }
        panic!("{found} is not {expected}: {}", self.status().await);
    }

    /// How much is written in an hour.
    async fn writes_in_an_hour(&self) -> u64 {
        let before = self.sim.faults().writes();
        self.sim.advance(Duration::from_secs(3600)).await;
        self.sim.faults().writes() - before
    }
}

/// UNITED-21: a zone stays full for hours.
#[test]
fn a_zone_that_stays_full_is_reported_and_holds_up_no_other() {
    play(async |place| {
        close(&place.sim, "node-1", true).await;
        create(&place.sim, object("deploymentTemplate", &["a", "b"], &adaptive(false), 4)).await;
        place.until("a 0 b 4").await;
        place.sim.advance(Duration::from_secs(15)).await;
        assert_eq!(place.ready().await, 4);
        // Every 20 s the zone may be tried again, but pods that run stay where they are.
        let writes = place.writes_in_an_hour().await;
        assert!(writes < 400, "{writes} writes in an hour");
        assert_eq!((place.shown().await.as_str(), place.ready().await), ("a 0 b 4", 4));
        change(&place.sim, json!({"replicas": 6})).await;
        place.sim.advance(Duration::from_secs(120)).await;
        assert!(place.ready().await >= 4);
        place.until("a 0 b 6").await;
        close(&place.sim, "node-1", false).await;
        change(&place.sim, json!({"replicas": 8})).await;
        place.sim.advance(Duration::from_secs(120)).await;
        assert_eq!(place.ready().await, 8);
    });
}

/// UNITED-24: the same where pods are kept. They wait, and nothing is written because of them.
#[test]
fn pods_that_wait_for_ever_are_left_alone() {
    play(async |place| {
        close(&place.sim, "node-1", true).await;
        create(&place.sim, object("cloneSetTemplate", &["a", "b"], &adaptive(true), 3)).await;
        place.until("a 3 b 3").await;
        place.sim.advance(Duration::from_secs(120)).await;
        assert_eq!(place.ready().await, 3);
        assert_eq!(place.condition("Waiting").await["reason"], "SubsetUnschedulable");
        assert_eq!(place.writes_in_an_hour().await, 0);
        change(&place.sim, json!({"replicas": 5})).await;
        place.sim.advance(Duration::from_secs(60)).await;
        assert_eq!(place.ready().await, 5);
        close(&place.sim, "node-1", false).await;
        place.until("a 5 b 0").await;
        place.sim.advance(Duration::from_secs(60)).await;
        assert_eq!(place.ready().await, 5);
    });
}

/// UNITED-35: the server refuses to change one workload for ever.
#[test]
fn a_workload_that_stays_refused_is_reported_and_holds_up_no_other() {
    play(async |place| {
        let labels = json!({"app": "web", SUBSET_NAME: "a"});
        let own = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "own", "labels": labels},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web", SUBSET_NAME: "a", "never": "changes"}},
                "template": {"metadata": {"labels": {"app": "web", SUBSET_NAME: "a", "never": "changes"}},
                    "spec": {"containers": [{"name": "app", "image": "app:v0"}]}}}});
        let own: DynamicObject = serde_json::from_value(own).unwrap();
        let deployments = api(&place.sim, "apps", "v1", "Deployment");
        deployments.create(&PostParams::default(), &own).await.unwrap();
        create(&place.sim, object("deploymentTemplate", &["a", "b", "c"], &json!({}), 6)).await;
        place.until("a 1 b 2 c 2").await;
        place.sim.advance(Duration::from_secs(30)).await;
        let updated = place.condition("SubsetUpdated").await;
        assert_eq!((&updated["status"], &updated["reason"]), (&json!("False"), &json!("Error")));
        let writes = place.writes_in_an_hour().await;
        assert!(writes < 100, "{writes} writes in an hour");
        change(&place.sim, json!({"replicas": 9})).await;
        place.until("a 1 b 3 c 3").await;
        deployments.delete("own", &kube::api::DeleteParams::background()).await.unwrap();
        place.until("a 3 b 3 c 3").await;
        place.sim.advance(Duration::from_secs(60)).await;
        assert_eq!(place.ready().await, 9);
        assert_eq!(place.condition("SubsetUpdated").await["status"], "True");
    });
}

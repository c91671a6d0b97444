//! One seed, one history.

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kruise_sim::Sim;
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams, WatchEvent, WatchParams},
};
use serde_json::json;
use tokio::task::JoinSet;

use super::{create, delete, patch, seconds};

/// A deployment rolls, a node stops, the deployment is scaled and deleted, while some controllers with clients of
/// their own write to every pod they see. The digest of everything that happened.
async fn story(seed: u64, controllers: usize) -> (String, u64) {
    let mut sim = Sim::builder().seed(seed).nodes(3).build();
    let mut history = sim.history();
    sim.run();
    let mut tasks = JoinSet::new();
    for number in 0..controllers {
        tasks.spawn(mark_every_pod(sim.client(), format!("controller-{number}")));
    }
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

/// A controller in a task of its own: labels each new pod, so that the order of waking shows in the history.
async fn mark_every_pod(client: Client, label: String) {
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let events = pods.watch(&WatchParams::default().timeout(290), "0").await.unwrap();
    let mut events = std::pin::pin!(events);
    while let Ok(Some(event)) = events.try_next().await {
        if let WatchEvent::Added(pod) = event {
            let patch = Patch::Merge(json!({"metadata": {"labels": {label.clone(): "seen"}}}));
            // The pod may be gone already.
            let _ = pods.patch(&pod.name_any(), &PatchParams::default(), &patch).await;
        }
    }
}

fn run(seed: u64, controllers: usize) -> (String, u64) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(story(seed, controllers))
}

#[test]
fn the_same_seed_gives_the_same_history_and_another_seed_another_one() {
    let mut digests = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let (first, events) = run(seed, 0);
        let (second, _) = run(seed, 0);
        assert_eq!(first, second, "seed {seed}");
        assert!(events > 60, "seed {seed} has only {events} events");
        digests.insert(first);
    }
    assert_eq!(digests.len(), 100);
}

#[test]
fn controllers_in_tasks_of_their_own_wake_in_the_same_order_every_time() {
    for seed in 0..20 {
        let (first, events) = run(seed, 4);
        let (second, _) = run(seed, 4);
        assert_eq!(first, second, "seed {seed}");
        assert!(events > 80, "seed {seed} has only {events} events");
    }
}

/// Daemons, a schedule, a service and an autoscaler live together, and a node comes.
async fn busy_story(seed: u64) -> (String, u64) {
    let mut sim = Sim::builder().seed(seed).nodes(3).build();
    let mut history = sim.history();
    sim.run();
    let template = |app: &str, image: &str| {
        let container = json!({"name": "c", "image": image, "resources": {"requests": {"cpu": "100m"}}});
        json!({
            "metadata": {"labels": {"app": app}, "annotations": {"sim.kruise.io/shared-cpu": "300m"}},
            "spec": {"containers": [container]},
        })
    };
    let set = |name: &str| {
        json!({
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": name}}, "template": template(name, "app:1")},
        })
    };
    create(&sim, "apps/daemonsets", set("agent")).await;
    create(&sim, "apps/deployments", set("web")).await;
    let service =
        json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    create(&sim, "services", service).await;
    let mut job = template("job", "exit0:1");
    job["spec"]["restartPolicy"] = json!("Never");
    let cron = json!({
        "metadata": {"name": "tick"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": job}}},
    });
    create(&sim, "batch/cronjobs", cron).await;
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let scaler = json!({"metadata": {"name": "web"}, "spec": {"maxReplicas": 9, "scaleTargetRef": target}});
    create(&sim, "autoscaling/horizontalpodautoscalers", scaler).await;
    seconds(&sim, 90).await;
    sim.add_node(kruise_sim::Node::named("node-4"));
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "app:2"}]}}}});
    patch(&sim, "apps/daemonsets", "agent", None, image).await;
    seconds(&sim, 120).await;
    (history.digest(), history.len())
}

#[test]
fn all_controllers_together_have_one_history_for_each_seed() {
    let run = |seed: u64| {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(busy_story(seed))
    };
    for seed in 0..10 {
        let (first, events) = run(seed);
        assert_eq!(first, run(seed).0, "seed {seed}");
        assert!(events > 100, "seed {seed} has only {events} events");
    }
}

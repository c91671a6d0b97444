//! Faults that do not heal by themselves: they are reported with the names of nodes, and the other nodes are not held up.

use std::{collections::BTreeMap, time::Duration};

use kruise_runtime::{clock::Clock, random::Random};
use kruise_sim::{Sim, faults::Webhook};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::{
    around::{HOST, install, install_policy},
    process::Process,
    user::{self, sets, taint},
};

struct World {
    sim: Sim,
    _process: Process,
}

fn pods(sim: &Sim) -> Api<DynamicObject> {
    Api::namespaced_with(
        sim.client(),
        "default",
        &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod")),
    )
}

fn play(story: impl AsyncFnOnce(World)) {
    play_on(4, story);
}

fn play_on(nodes: usize, story: impl AsyncFnOnce(World)) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let sim = Sim::builder().seed(7).nodes(nodes).without_events().start();
        user::install(&sim).await;
        let now = *sim.clock();
        let process = Process::timed(&sim, &Random::seeded(7), Clock::from_fn(move || now.now()), None);
        story(World { sim, _process: process }).await;
    });
}

impl World {
    async fn create(&self, max_unavailable: u64) {
        let rolling =
            json!({"rollingUpdateType": "Standard", "maxUnavailable": max_unavailable, "maxSurge": 0});
        user::create(&self.sim, 1, 0, rolling).await;
    }

    async fn status(&self) -> Value {
        sets(&self.sim).get("agent").await.unwrap().data["status"].clone()
    }

    /// The images of ready pods by node, such as `node-1=v1 node-2=v1`.
    async fn images(&self) -> String {
        let mut nodes = BTreeMap::new();
        for pod in pods(&self.sim).list(&ListParams::default().labels("app=agent")).await.unwrap().items {
            let conditions = pod.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let is_ready = conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
            if is_ready && pod.metadata.deletion_timestamp.is_none() {
                let image = pod.data["spec"]["containers"][0]["image"].as_str().unwrap().replace("app:", "");
                nodes.insert(pod.data["spec"]["nodeName"].as_str().unwrap_or_default().to_owned(), image);
            }
        }
        nodes.into_iter().map(|(node, image)| format!("{node}={image}")).collect::<Vec<_>>().join(" ")
    }

    /// Waits until the ready pods are these.
    async fn until(&self, expected: &str, seconds: u32) {
        let mut found = String::new();
        for _ in 0..seconds {
            found = self.images().await;
            if found == expected {
                return;
            }
            self.sim.advance(Duration::from_secs(1)).await;
        }
        panic!("{found} is not {expected}: {}", self.status().await);
    }

    /// Waits until the set says why it waits.
    async fn waits(&self, reason: &str, text: &str) {
        let mut found = Value::Null;
        for _ in 0..180 {
            let status = self.status().await;
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            found = conditions.into_iter().find(|one| one["type"] == "Waiting").unwrap_or_default();
            let message = found["message"].as_str().unwrap_or_default();
            if found["status"] == "True" && found["reason"] == reason && message.contains(text) {
                return;
            }
            self.sim.advance(Duration::from_secs(1)).await;
        }
        panic!("{found} does not say {reason} {text}");
    }
}

#[test]
fn a_node_that_stays_down_holds_up_no_other_where_the_limit_leaves_room_for_it() {
    play(async |world| {
        world.create(2).await;
        world.until("node-1=v1 node-2=v1 node-3=v1 node-4=v1", 120).await;
        world.sim.stop_node("node-2");
        world.sim.advance(Duration::from_secs(90)).await;
        user::set_image(&world.sim, 2).await;
        world.until("node-1=v2 node-3=v2 node-4=v2", 300).await;
        world.waits("NodeNotReady", "node-2").await;
        world.sim.return_node("node-2");
        world.until("node-1=v2 node-2=v2 node-3=v2 node-4=v2", 120).await;
    });
}

#[test]
fn a_node_that_never_comes_up_gets_no_pod_and_holds_up_no_other() {
    play(async |world| {
        world.sim.stop_node("node-2");
        world.sim.advance(Duration::from_secs(120)).await;
        world.create(1).await;
        world.until("node-1=v1 node-3=v1 node-4=v1", 120).await;
        assert_eq!(world.status().await["desiredNumberScheduled"], 3);
        user::set_image(&world.sim, 2).await;
        world.until("node-1=v2 node-3=v2 node-4=v2", 300).await;
        world.sim.return_node("node-2");
        world.until("node-1=v2 node-2=v2 node-3=v2 node-4=v2", 120).await;
    });
}

#[test]
fn a_taint_that_is_not_tolerated_holds_up_no_other_node() {
    play(async |world| {
        world.create(1).await;
        world.until("node-1=v1 node-2=v1 node-3=v1 node-4=v1", 120).await;
        taint(&world.sim, "node-2", json!([{"key": "test", "effect": "NoExecute"}])).await;
        user::set_image(&world.sim, 2).await;
        world.until("node-1=v2 node-3=v2 node-4=v2", 300).await;
        taint(&world.sim, "node-2", json!([])).await;
        world.until("node-1=v2 node-2=v2 node-3=v2 node-4=v2", 60).await;
    });
}

/// WAITING-18
#[test]
fn a_node_that_stays_down_uses_up_the_limit_and_is_named() {
    play(async |world| {
        world.create(1).await;
        world.until("node-1=v1 node-2=v1 node-3=v1 node-4=v1", 120).await;
        world.sim.stop_node("node-2");
        world.sim.advance(Duration::from_secs(90)).await;
        user::set_image(&world.sim, 2).await;
        world.sim.advance(Duration::from_secs(120)).await;
        world.waits("NodeNotReady", "1 pod is on nodes that are not ready (node-2)").await;
        world.waits("NodeNotReady", "1 of at most 1 pod is unavailable (maxUnavailable: 1)").await;
        world.until("node-1=v1 node-3=v1 node-4=v1", 1).await;
        world.sim.return_node("node-2");
        world.until("node-1=v2 node-2=v2 node-3=v2 node-4=v2", 300).await;
    });
}

#[test]
fn a_full_node_is_reported_and_holds_up_no_other_where_the_limit_leaves_room_for_it() {
    play(async |world| {
        let hog = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hog"}, "spec": {
            "nodeName": "node-3", "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "app", "image": "app:v1", "resources": {"requests": {"cpu": "16"}}}]}});
        let hog: DynamicObject = serde_json::from_value(hog).unwrap();
        pods(&world.sim).create(&PostParams::default(), &hog).await.unwrap();
        world.create(2).await;
        let asks = |image: &str| {
            let resources = json!({"requests": {"cpu": "1"}});
            let containers = json!([{"name": "app", "image": image, "resources": resources}]);
            json!({"spec": {"template": {"spec": {"containers": containers}}}})
        };
        user::patch(&world.sim, asks("app:v1")).await;
        world.until("node-1=v1 node-2=v1 node-4=v1", 300).await;
        world.waits("PodUnschedulable", "on node-3").await;
        user::patch(&world.sim, asks("app:v2")).await;
        world.until("node-1=v2 node-2=v2 node-4=v2", 300).await;
        world.waits("PodUnschedulable", "on node-3").await;
        pods(&world.sim).delete("hog", &DeleteParams::default()).await.unwrap();
        world.until("node-1=v2 node-2=v2 node-3=v2 node-4=v2", 120).await;
    });
}

/// The node of a pod that a request is about.
fn node_of(pod: &Value) -> &str {
    let terms =
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    pod.pointer(&format!("{terms}/0/matchFields/0/values/0")).and_then(Value::as_str).unwrap_or_default()
}

/// A policy that refuses new pods of some nodes.
async fn refuse_new_pods(sim: &Sim, refuses: impl Fn(&str) -> bool + Clone + Send + Sync + 'static) {
    let policy = move |request: &Value| {
        let is_new_pod = request["operation"] == "CREATE" && request["kind"]["kind"] == "Pod";
        (is_new_pod && refuses(node_of(&request["object"]))).then(|| "no pods here".to_owned())
    };
    install_policy(sim, policy).await;
}

#[test]
fn nodes_whose_pods_are_refused_do_not_keep_others_waiting() {
    play_on(20, async |world| {
        // The first twelve by name.
        let is_first = |node: &str| node < "node-13";
        refuse_new_pods(&world.sim, is_first).await;
        world.create(1).await;
        let others =
            "node-13=v1 node-14=v1 node-15=v1 node-16=v1 node-17=v1 node-18=v1 node-19=v1 node-20=v1";
        world.until(others, 60).await;
        world.waits("WebhookRefuses", "no pods here").await;
    });
}

#[test]
fn a_deletion_that_is_refused_holds_up_no_other_node() {
    play(async |world| {
        let policy = |request: &Value| {
            let is_kept = request["operation"] == "DELETE" && node_of(&request["oldObject"]) == "node-4";
            is_kept.then(|| "this one stays".to_owned())
        };
        install_policy(&world.sim, policy).await;
        world.create(1).await;
        world.until("node-1=v1 node-2=v1 node-3=v1 node-4=v1", 120).await;
        user::set_image(&world.sim, 2).await;
        world.until("node-1=v2 node-2=v2 node-3=v2 node-4=v1", 300).await;
        world.waits("WebhookRefuses", "this one stays").await;
    });
}

/// It keeps its node from getting another pod, and when it is gone nothing else would wake the set for minutes.
#[test]
fn a_pod_that_cannot_be_adopted_keeps_its_node_only_as_long_as_it_is_there() {
    play(async |world| {
        let policy = |request: &Value| {
            let is_adopted = request["operation"] == "UPDATE" && request["name"] == "stray";
            is_adopted.then(|| "nobody adopts this one".to_owned())
        };
        install_policy(&world.sim, policy).await;
        let stray = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "stray", "labels": {"app": "agent"}},
            "spec": {"nodeName": "node-3", "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "app", "image": "app:v1"}]}});
        let stray: DynamicObject = serde_json::from_value(stray).unwrap();
        pods(&world.sim).create(&PostParams::default(), &stray).await.unwrap();
        world.create(1).await;
        world.until("node-1=v1 node-2=v1 node-3=v1 node-4=v1", 120).await;
        world.sim.advance(Duration::from_secs(400)).await;
        pods(&world.sim).delete("stray", &DeleteParams::default()).await.unwrap();
        world.until("node-1=v1 node-2=v1 node-4=v1", 1).await;
        world.until("node-1=v1 node-2=v1 node-3=v1 node-4=v1", 15).await;
    });
}

/// More pods are refused than can be written at once, and the update in place of the others goes on.
#[test]
fn many_pods_that_are_refused_hold_up_no_update() {
    play_on(112, async |world| {
        let is_allowed = |node: &str| node.starts_with("node-10") || node.starts_with("node-11");
        refuse_new_pods(&world.sim, move |node| !is_allowed(node)).await;
        let rolling =
            json!({"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": "100%", "maxSurge": 0});
        user::create(&world.sim, 1, 0, rolling).await;
        let pods = |image: &str| {
            let mut nodes: Vec<String> = (1..=112).map(|number| format!("node-{number:03}")).collect();
            nodes.retain(|node| is_allowed(node));
            nodes.sort();
            nodes.iter().map(|node| format!("{node}={image}")).collect::<Vec<_>>().join(" ")
        };
        world.until(&pods("v1"), 600).await;
        user::set_image(&world.sim, 2).await;
        world.until(&pods("v2"), 120).await;
        world.waits("WebhookRefuses", "no pods here").await;
    });
}

#[test]
fn a_webhook_that_is_down_is_reported_and_pods_come_when_it_is_back() {
    play(async |world| {
        install(&world.sim).await;
        world.create(1).await;
        world.until("node-1=v1 node-2=v1 node-3=v1 node-4=v1", 120).await;
        world.sim.faults().webhook(HOST, Webhook::Refused);
        user::set_image(&world.sim, 2).await;
        world.waits("WebhookUnavailable", "hook.example.com").await;
        world.sim.faults().webhook(HOST, Webhook::Slow(Duration::ZERO));
        world.until("node-1=v2 node-2=v2 node-3=v2 node-4=v2", 600).await;
    });
}

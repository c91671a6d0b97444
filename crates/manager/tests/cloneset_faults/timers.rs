//! What has to happen at a time happens then, whatever else goes wrong.

use std::time::Duration;

use kruise_runtime::random::Random;
use kruise_sim::{Sim, faults::Webhook};
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::{
    around,
    process::Process,
    user::{api, install, pods, sets},
};

async fn patch(sim: &Sim, change: Value) {
    sets(sim).patch("demo", &PatchParams::default(), &Patch::Merge(json!({"spec": change}))).await.unwrap();
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "demo"}}, "spec": {"containers": [{"name": "app", "image": image}]}})
}

async fn images(sim: &Sim) -> Vec<Value> {
    let all = pods(sim).list(&ListParams::default()).await.unwrap().items;
    all.into_iter().map(|pod| pod.data["spec"]["containers"][0]["image"].clone()).collect()
}

/// INPLACE-14: a set that has failed to make a pod for long is tried again only now and then.
#[tokio::test(start_paused = true)]
async fn a_pause_ends_on_time_while_a_quota_refuses_other_pods() {
    let sim = Sim::builder().nodes(1).without_events().start();
    install(&sim).await;
    let set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": "demo"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "demo"}}, "template": template("app:v1"),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                "podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2,
                "inPlaceUpdateStrategy": {"gracePeriodSeconds": 20},
            }},
        },
    });
    sets(&sim).create(&PostParams::default(), &serde_json::from_value(set).unwrap()).await.unwrap();
    let _process = Process::start(&sim, &Random::seeded(1), None);
    sim.advance(Duration::from_secs(60)).await;
    assert_eq!(images(&sim).await, ["app:v1"]);
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one"}, "spec": {"hard": {"pods": "1"}},
    });
    let quota: DynamicObject = serde_json::from_value(quota).unwrap();
    api(&sim, "", "v1", "ResourceQuota", "resourcequotas")
        .create(&PostParams::default(), &quota)
        .await
        .unwrap();
    sim.advance(Duration::from_secs(5)).await;
    patch(&sim, json!({"replicas": 2})).await;
    sim.advance(Duration::from_secs(3600)).await;
    let told = sets(&sim).get("demo").await.unwrap().data["status"]["conditions"].to_string();
    assert!(told.contains("FailedScale"), "{told}");
    patch(&sim, json!({"template": template("app:v2")})).await;
    sim.advance(Duration::from_secs(15)).await;
    assert_eq!(images(&sim).await, ["app:v1"], "the pause has begun");
    sim.advance(Duration::from_secs(15)).await;
    assert_eq!(images(&sim).await, ["app:v2"]);
}

/// Somebody's webhook for pods is down for an hour. The set says so, goes on with what can be done, and hears what people want
/// meanwhile instead of repeating what it wanted before.
#[tokio::test(start_paused = true)]
async fn a_dead_webhook_is_told_and_does_not_keep_a_set_from_hearing() {
    let sim = Sim::builder().nodes(1).without_events().start();
    install(&sim).await;
    around::install(&sim).await;
    let set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": "demo"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "demo"}}, "template": template("app:v1")},
    });
    sets(&sim).create(&PostParams::default(), &serde_json::from_value(set).unwrap()).await.unwrap();
    let _process = Process::start(&sim, &Random::seeded(1), None);
    sim.advance(Duration::from_secs(60)).await;
    assert_eq!(images(&sim).await, ["app:v1"]);
    sim.faults().webhook(around::HOST, Webhook::Refused);
    patch(&sim, json!({"replicas": 3})).await;
    sim.advance(Duration::from_secs(120)).await;
    let status = async || sets(&sim).get("demo").await.unwrap().data["status"].to_string();
    let told = status().await;
    assert!(told.contains("FailedScale") && told.contains("failed calling webhook"), "{told}");
    patch(&sim, json!({"template": template("app:bad")})).await;
    sim.advance(Duration::from_secs(120)).await;
    assert!(status().await.contains("FailedUpdate"));
    patch(&sim, json!({"replicas": 2, "template": template("app:v2")})).await;
    sim.advance(Duration::from_secs(3600)).await;
    sim.faults().webhook(around::HOST, Webhook::Slow(Duration::ZERO));
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..600 {
        sim.advance(Duration::from_secs(1)).await;
        seen.extend(images(&sim).await.iter().map(Value::to_string));
    }
    assert_eq!(images(&sim).await, ["app:v2", "app:v2"]);
    assert!(!seen.contains("\"app:bad\""), "{seen:?}");
    assert!(!status().await.contains("failed calling webhook"));
}

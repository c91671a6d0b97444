//! Caches, effects and controllers, each against a simulated cluster.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod cache;
mod controller;
mod effects;

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kruise_runtime::{
    clock::Clock,
    controller::Environment,
    effects as runtime_effects,
    events::Events,
    lease::Fence,
    metrics::{Framework, Registry},
    random::Random,
};
use kruise_sim::Sim;
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

fn environment(sim: &Sim) -> Environment {
    let metrics = Framework::new(&Registry::default());
    let now = *sim.clock();
    let clock = Clock::from_fn(move || now.now());
    let random = Random::seeded(1);
    Environment {
        client: sim.faulty_client(),
        clock: clock.clone(),
        random: random.clone(),
        metrics: metrics.clone(),
        events: Events::new(clock, random, metrics),
        fence: Fence::default(),
        patience: Duration::from_secs(300),
        writes: runtime_effects::Options::default(),
    }
}

fn maps(sim: &Sim) -> Api<ConfigMap> {
    Api::namespaced(sim.client(), "default")
}

fn map(name: &str, data: Value) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": data})).unwrap()
}

async fn create(sim: &Sim, name: &str) -> ConfigMap {
    maps(sim).create(&PostParams::default(), &map(name, json!({"a": "1"}))).await.unwrap()
}

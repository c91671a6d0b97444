//! Stories in a simulated cluster.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod autoscalers;
mod connections;
mod cronjobs;
mod daemonsets;
mod determinism;
mod faults;
mod limits;
mod memory;
mod nodes;
mod programs;
mod scheduling;
mod services;
mod volumes;

use std::time::Duration;

use kruise_apiserver::patch::Patch;
use kruise_apiserver::rest::{DeleteOptions, Selection};
use kruise_sim::Sim;
use serde_json::{Value, json};

/// Creates an object by `plural` or `group/plural` in the namespace `default`.
async fn create(sim: &Sim, kind: &str, object: Value) {
    let (group, plural) = kind.split_once('/').unwrap_or(("", kind));
    let local = sim.server().local();
    let resource = local.resource(group, plural).unwrap();
    local.create(&resource, "default", object).await.unwrap();
}

async fn patch(sim: &Sim, kind: &str, name: &str, subresource: Option<&str>, patch: Value) {
    let (group, plural) = kind.split_once('/').unwrap_or(("", kind));
    let local = sim.server().local();
    let resource = local.resource(group, plural).unwrap();
    let Value::Object(map) = patch else { panic!("a patch is an object") };
    local.patch(&resource, "default", name, subresource, &Patch::Strategic(map)).await.unwrap();
}

async fn delete(sim: &Sim, kind: &str, name: &str) {
    let (group, plural) = kind.split_once('/').unwrap_or(("", kind));
    let local = sim.server().local();
    let resource = local.resource(group, plural).unwrap();
    local.delete(&resource, "default", name, &DeleteOptions::default()).await.unwrap();
}

/// An object, or null.
fn get(sim: &Sim, kind: &str, name: &str) -> Value {
    let (group, plural) = kind.split_once('/').unwrap_or(("", kind));
    let local = sim.server().local();
    let resource = local.resource(group, plural).unwrap();
    local.get(&resource, "default", name).map(|record| record.value()).unwrap_or_default()
}

fn list(sim: &Sim, kind: &str) -> Vec<Value> {
    let (group, plural) = kind.split_once('/').unwrap_or(("", kind));
    let local = sim.server().local();
    let resource = local.resource(group, plural).unwrap();
    let page = local.list(&resource, "", Selection::default()).unwrap();
    page.records.iter().map(|record| record.value()).collect()
}

fn pod(name: &str, image: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": image}]},
    })
}

/// Creates a pod made of [`pod`] and changes of it.
async fn create_pod(sim: &Sim, name: &str, image: &str, change: impl FnOnce(&mut Value)) {
    let mut object = pod(name, image);
    change(&mut object);
    create(sim, "pods", object).await;
}

/// `Type=Status` (and the reason, if any) of all conditions.
fn condition(pod: &Value, kind: &str) -> String {
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|c| c["type"] == kind).cloned().unwrap_or_default();
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    format!("{} {}", text("status"), text("reason")).trim().to_owned()
}

/// The reasons and messages of all events about a pod, in order of their versions.
fn events(sim: &Sim, pod: &str) -> Vec<String> {
    let mut all: Vec<(u64, String)> = list(sim, "events")
        .into_iter()
        .filter(|event| event["involvedObject"]["name"] == pod)
        .map(|event| {
            let version = event["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
            (
                version,
                format!("{}: {}", event["reason"].as_str().unwrap(), event["message"].as_str().unwrap()),
            )
        })
        .collect();
    all.sort();
    all.into_iter().map(|(_, text)| text).collect()
}

async fn seconds(sim: &Sim, n: u64) {
    sim.advance(Duration::from_secs(n)).await;
}

//! How long conversion takes: it runs on every read of an object in an older version. Budget: 1 ms for 20 KB.

use std::{hint::black_box, time::Duration};

use anyhow::{Result, ensure};
use kruise_api::convert::convert;
use serde_json::{Value, json};

const ROUNDS: u32 = 2000;

pub(super) fn run() -> Result<Value> {
    let hub = object();
    let bytes = hub.to_string().len();
    let older = convert(hub.clone(), "apps.kruise.io/v1alpha1")?;
    ensure!(convert(older.clone(), "apps.kruise.io/v1beta1")? == hub, "conversion lost something");
    let down = time(&hub, "apps.kruise.io/v1alpha1")?;
    let up = time(&older, "apps.kruise.io/v1beta1")?;
    println!("{bytes} bytes: down {down:?}, up {up:?} on average of {ROUNDS}");
    Ok(json!({ "object_bytes": bytes, "down_microseconds": micros(down), "up_microseconds": micros(up) }))
}

#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock of the machine")]
fn time(object: &Value, to: &str) -> Result<Duration> {
    let start = std::time::Instant::now();
    for _ in 0..ROUNDS {
        black_box(convert(black_box(object.clone()), to)?);
    }
    Ok(start.elapsed() / ROUNDS)
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// A CloneSet with a large template and every part that conversion moves.
fn object() -> Value {
    let containers: Vec<Value> = (0..20)
        .map(|number| {
            let env: Vec<Value> = (0..20).map(|n| json!({ "name": format!("VARIABLE_{n}"), "value": "some value" })).collect();
            json!({ "name": format!("container-{number}"), "image": "registry.example.com/team/app:v1", "env": env })
        })
        .collect();
    json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "CloneSet",
        "metadata": { "name": "large", "labels": { "app": "large" } },
        "spec": {
            "replicas": 10,
            "selector": { "matchLabels": { "app": "large" } },
            "template": { "metadata": { "labels": { "app": "large" } }, "spec": { "containers": containers } },
            "scaleStrategy": { "enablePVCReuse": true, "excludePreparingDelete": true },
            "updateStrategy": { "type": "OnDelete", "rollingUpdate": {
                "podUpdatePolicy": "InPlaceOnly", "partition": "30%",
                "inPlaceUpdateStrategy": { "imagePreDownloadParallelism": 2 },
            } },
        },
    })
}

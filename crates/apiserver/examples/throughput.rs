//! How fast pods go through the server: each is created, bound, started in three status patches, and watched.
//!
//! `cargo run --release -p kruise-apiserver --example throughput -- 10000` prints one JSON object.

use std::error::Error;

use bytes::Bytes;
use futures::StreamExt as _;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kruise_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt as _;

async fn send(
    server: &ApiServer,
    method: &str,
    path: &str,
    content_type: &str,
    body: &Value,
) -> Result<(), Box<dyn Error>> {
    let body = Full::new(Bytes::from(body.to_string()));
    let request =
        Request::builder().method(method).uri(path).header("content-type", content_type).body(body)?;
    let response = server.clone().oneshot(request).await?;
    if !response.status().is_success() {
        return Err(format!("{method} {path}: {:?}", response.into_body().collect().await?.to_bytes()).into());
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let server = ApiServer::builder().seed(1).build();
    let pods = "/api/v1/namespaces/default/pods";
    let mut watches = Vec::new();
    for _ in 0..3 {
        let request =
            Request::get("/api/v1/pods?watch=1&allowWatchBookmarks=true").body(Full::new(Bytes::new()))?;
        watches.push(server.clone().oneshot(request).await?.into_body().into_data_stream());
    }
    let start = Instant::now();
    let mut watched = 0_usize;
    for i in 0..count {
        let name = format!("web-{i}");
        let pod = json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": name, "labels": {"app": "web", "pod-template-hash": "5b67fcd857"}},
            "spec": {"containers": [{
                "name": "main", "image": "registry.example/web:1",
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 8080}],
            }]},
        });
        send(&server, "POST", pods, "application/json", &pod).await?;
        let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": format!("node-{}", i % 100)}});
        send(&server, "POST", &format!("{pods}/{name}/binding"), "application/json", &binding).await?;
        for ready in ["False", "False", "True"] {
            let status = json!({"status": {
                "phase": "Running", "podIP": format!("10.0.{}.{}", i / 250, i % 250),
                "startTime": "2026-01-01T00:00:00Z",
                "conditions": [
                    {"type": "Ready", "status": ready}, {"type": "Initialized", "status": "True"},
                    {"type": "ContainersReady", "status": ready}, {"type": "PodScheduled", "status": "True"},
                ],
                "containerStatuses": [{
                    "name": "main", "image": "registry.example/web:1", "imageID": "sha256:1", "ready": ready == "True",
                    "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                }],
            }});
            let path = format!("{pods}/{name}/status");
            send(&server, "PATCH", &path, "application/strategic-merge-patch+json", &status).await?;
        }
        if i % 50 == 49 {
            for watch in &mut watches {
                if let Some(Ok(bytes)) = watch.next().await {
                    watched += bytes.len();
                }
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let (_, records) = server.store().list("/pods", None);
    let bytes: usize = records.iter().map(|record| record.json().len()).sum();
    let line = json!({
        "pods": count, "seconds": seconds, "requests_per_second": count as f64 * 5.0 / seconds,
        "json_bytes_per_pod": bytes / count.max(1), "watched_mib": watched >> 20,
    });
    writeln(&line.to_string());
    Ok(())
}

#[allow(clippy::print_stdout, reason = "a program that prints its result")]
fn writeln(line: &str) {
    println!("{line}");
}

//! What one Secret in 10,000 namespaces costs the manager, as a process beside an embedded cluster with 50,000 other Secrets.
//!
//! Bars: the time is that of the limit of writes, foreign Secrets change neither memory nor CPU, a copy costs less than 4 KiB of
//! memory whatever is in it, and a label of one namespace costs one write of a copy and one of the status.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use std::{env, thread};

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::local::http::Connection;
use super::local::{Clock, Cluster};
use super::manager::{Manager, configurations};
use crate::test::cargo;

const SPACES: usize = 10_000;
const FOREIGN: usize = 50_000;
/// Writes per second that the manager may make.
const QPS: usize = 200;
/// Bytes of each Secret.
const SIZE: usize = 8 << 10;
const REST: Duration = Duration::from_secs(10);
const ALL: &str = "/apis/apps.kruise.io/v1beta1/resourcedistributions";

pub(super) fn run(root: &Path) -> Result<Value> {
    let build = ["build", "--quiet", "--release", "--package", "kruise-local", "--package", "kruise-manager"];
    cargo(root, &build, None, None)?;
    let program = env::current_exe()?;
    let (cluster, mut connection, _) =
        Cluster::start_with(&program.with_file_name("kruise-local"), 1, &["--no-manager"])?;
    let kubeconfig = cluster.folder.join("kubeconfig");
    for number in 0..SPACES {
        let metadata = json!({"name": space(number), "labels": {"team": "bench"}});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        connection.send("POST", "/api/v1/namespaces", Some(&namespace))?;
    }
    println!("{SPACES} namespaces");
    configurations(root, &mut connection, "POST")?;
    let qps = format!("--rest-config-qps={QPS}");
    let flags = ["--feature-gates=ResourceDistributionGate=true", &qps];
    let program = program.with_file_name("kruise-manager");
    let manager = Manager::start_with(&program, &kubeconfig, &cluster.folder, &flags)?;
    Clock::new().until(|| Ok(manager.is_ready() && manager.leads_with("resourcedistributions", 0.0)))?;
    // The cluster of the benchmark calls no webhooks over the network.
    configurations(root, &mut connection, "DELETE")?;
    let mut figures = Map::new();
    let mut put = |name: &str, value: f64| {
        println!("{name}: {value:.2}");
        figures.insert(name.to_owned(), json!(value));
    };
    thread::sleep(REST);

    let (memory, cpu) = (mib(&manager)?, manager.cpu()?);
    let mut other = Connection::open(&kubeconfig)?;
    for number in 0..FOREIGN {
        other.send(
            "POST",
            "/api/v1/namespaces/default/secrets",
            Some(&secret(&format!("other-{number}"))),
        )?;
    }
    thread::sleep(REST);
    put("foreign_secrets_rss_mib", mib(&manager)? - memory);
    put("foreign_secrets_cpu_seconds", manager.cpu()? - cpu);

    let (memory, cpu, requests) = (mib(&manager)?, manager.cpu()?, manager.requests()?);
    let mut connection = Connection::open(&kubeconfig)?;
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ResourceDistribution", "metadata": {"name": "bench"},
        "spec": {"resource": secret("bench"), "targets": {"namespaceSelector": {"matchLabels": {"team": "bench"}}}},
    });
    connection.send("POST", ALL, Some(&object))?;
    let took = Clock::new().until(|| {
        thread::sleep(Duration::from_secs(1));
        Ok(succeeded(&kubeconfig)? == SPACES as u64)
    })?;
    put("distribution_seconds", took.as_secs_f64());
    put("least_seconds", SPACES as f64 / QPS as f64);
    put("distribution_cpu_seconds", manager.cpu()? - cpu);
    put("distribution_requests", total(&requests, &manager.requests()?) as f64);
    thread::sleep(REST);
    put("copies_rss_mib", mib(&manager)? - memory);
    put("rss_peak_mib", manager.memory("VmHWM")? as f64 / f64::from(1 << 20));

    let (cpu, requests) = (manager.cpu()?, manager.requests()?);
    let mut connection = Connection::open(&kubeconfig)?;
    let change = json!({"metadata": {"labels": {"team": "other"}}});
    connection.send("PATCH", &format!("/api/v1/namespaces/{}", space(7)), Some(&change))?;
    let took = Clock::new().until(|| Ok(succeeded(&kubeconfig)? == SPACES as u64 - 1))?;
    put("label_seconds", took.as_secs_f64());
    thread::sleep(REST);
    put("label_cpu_seconds", manager.cpu()? - cpu);
    let writes: BTreeMap<String, u64> = manager
        .requests()?
        .into_iter()
        .filter(|(call, _)| !call.starts_with("GET") && !call.starts_with("PUT"))
        .map(|(call, count)| (call.clone(), count - requests.get(&call).copied().unwrap_or(0)))
        .collect();
    println!("writes for a label: {writes:?}");
    put("label_writes", writes.values().sum::<u64>() as f64);
    Ok(Value::Object(figures))
}

fn space(number: usize) -> String {
    format!("bench-{number:05}")
}

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"token": "QUFB".repeat(SIZE / 4)}})
}

fn mib(manager: &Manager) -> Result<f64> {
    Ok(manager.memory("VmRSS")? as f64 / f64::from(1 << 20))
}

/// How many namespaces have their copy.
fn succeeded(kubeconfig: &Path) -> Result<u64> {
    let object = Connection::open(kubeconfig)?.get(&format!("{ALL}/bench"))?;
    let count = object.pointer("/status/succeeded").and_then(Value::as_u64);
    Ok(count.unwrap_or_default())
}

fn total(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> u64 {
    let sum = |counts: &BTreeMap<String, u64>| counts.values().sum::<u64>();
    sum(after) - sum(before)
}

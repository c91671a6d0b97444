//! What the admission of a pod's deletion costs under many PodUnavailableBudgets: granted, refused, and of a pod that no budget
//! protects. A grant is a write of the budget's status, so the embedded cluster has a part in its time.
//!
//! Bars, with 500 budgets and 20,000 pods, at 300 per second: 99 of 100 within 5 ms, 0.3 ms of CPU each.

use std::path::Path;
use std::time::Duration;
use std::{env, thread};

use anyhow::{Result, anyhow, ensure};
use serde_json::{Map, Value, json};

use super::local::http::Connection;
use super::local::{Clock, Cluster};
use super::manager::{Manager, available, configurations, template};
use super::webhook::Times;
use crate::test::cargo;

/// A node has room for 110 pods.
const NODES: usize = 200;
const PODS: usize = 20_000;
const CALLERS: usize = 4;
const PER_SECOND: usize = 300;
const COUNT: usize = 6_000;

pub(super) fn run(root: &Path, budgets: usize) -> Result<Value> {
    ensure!((1..=PODS / 2).contains(&budgets), "between 1 and {} budgets", PODS / 2);
    let build = ["build", "--quiet", "--release", "--package", "kruise-local", "--package", "kruise-manager"];
    cargo(root, &build, None, None)?;
    let program = env::current_exe()?;
    let (cluster, mut connection, _) =
        Cluster::start_with(&program.with_file_name("kruise-local"), NODES, &["--no-manager"])?;
    let kubeconfig = cluster.folder.join("kubeconfig");
    // The cluster of the benchmark calls no webhooks over the network, so everything comes while it knows of none.
    configurations(root, &mut connection, "DELETE")?;
    let each = PODS / budgets;
    for number in 0..budgets {
        let name = format!("bench-{number}");
        connection.send(
            "POST",
            "/apis/apps/v1/namespaces/default/deployments",
            Some(&deployment(&name, each)),
        )?;
        let path = "/apis/policy.kruise.io/v1beta1/namespaces/default/podunavailablebudgets";
        connection.send("POST", path, Some(&budget(&name, number)))?;
    }
    for number in 0..budgets {
        let name = format!("bench-{number}");
        Clock::new().until(|| Ok(available(&mut connection, &name)? == each as u64))?;
    }
    println!("{} pods run", each * budgets);
    configurations(root, &mut connection, "POST")?;
    let manager = Manager::start(&program.with_file_name("kruise-manager"), &kubeconfig, &cluster.folder)?;
    Clock::new().until(|| Ok(manager.is_ready() && manager.knows((each * budgets) as f64)))?;
    until_counted(&mut connection, each)?;
    println!("{budgets} budgets are counted");
    let reviews = reviews(&mut connection, budgets)?;
    let mut figures = Map::new();
    let free = reviews.iter().cloned().map(without_budget).collect();
    // The first calls pay for threads and pages.
    let warm = reviews.iter().take(CALLERS * 10).cloned().map(without_budget).collect();
    measure(&manager, "warm", warm, true, &mut Map::new())?;
    measure(&manager, "unprotected", free, true, &mut figures)?;
    measure(&manager, "granted", reviews.clone(), true, &mut figures)?;
    let none = json!({"spec": {"maxUnavailable": 0}});
    for number in 0..budgets {
        let path =
            format!("/apis/policy.kruise.io/v1beta1/namespaces/default/podunavailablebudgets/bench-{number}");
        connection.send("PATCH", &path, Some(&none))?;
    }
    // What was granted counts for 20 s.
    thread::sleep(Duration::from_secs(25));
    until_counted(&mut connection, each)?;
    measure(&manager, "refused", reviews, false, &mut figures)?;
    Ok(Value::Object(figures))
}

/// Times and CPU of these admissions at the rate of the bar.
fn measure(
    manager: &Manager,
    name: &str,
    reviews: Vec<Value>,
    expected: bool,
    figures: &mut Map<String, Value>,
) -> Result<()> {
    let (count, before) = (reviews.len(), manager.cpu()?);
    let mut shares: Vec<Vec<Value>> = vec![Vec::new(); CALLERS];
    for (number, review) in reviews.into_iter().enumerate() {
        if let Some(share) = shares.get_mut(number % CALLERS) {
            share.push(review);
        }
    }
    let callers: Vec<_> = shares
        .into_iter()
        .map(|share| {
            let connection = manager.caller()?;
            Ok(thread::spawn(move || call(connection, &share, expected)))
        })
        .collect::<Result<_>>()?;
    let mut times = Vec::new();
    for caller in callers {
        times.extend(caller.join().map_err(|_| anyhow!("a caller panicked"))??);
    }
    let each = (manager.cpu()? - before) * 1e3 / count as f64;
    let times = Times::of(times);
    println!("{name}: {times}, {each:.3} ms of CPU each");
    figures.insert(format!("{name}_p50_milliseconds"), json!(times.milliseconds(0.5)));
    figures.insert(format!("{name}_p99_milliseconds"), json!(times.milliseconds(0.99)));
    figures.insert(format!("{name}_cpu_milliseconds"), json!(each));
    Ok(())
}

/// The part of one connection.
fn call(mut connection: Connection, reviews: &[Value], expected: bool) -> Result<Vec<Duration>> {
    let every = Duration::from_secs(1) * CALLERS as u32 / PER_SECOND as u32;
    let clock = Clock::new();
    let mut times = Vec::with_capacity(reviews.len());
    for (number, review) in reviews.iter().enumerate() {
        thread::sleep((every * number as u32).saturating_sub(clock.elapsed()));
        let began = clock.elapsed();
        let answer = connection.send("POST", "/validate-pod", Some(review))?;
        times.push(clock.elapsed() - began);
        ensure!(answer.pointer("/response/allowed") == Some(&json!(expected)), "{answer}");
    }
    Ok(times)
}

/// Waits until every budget was counted as it is now, with all of its pods.
fn until_counted(connection: &mut Connection, pods: usize) -> Result<()> {
    Clock::new().until(|| {
        let list = connection.get("/apis/policy.kruise.io/v1beta1/podunavailablebudgets")?;
        let items = list.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        let is_counted = |budget: &Value| {
            let number = |path: &str| budget.pointer(path).and_then(Value::as_u64);
            number("/status/observedGeneration") == number("/metadata/generation")
                && number("/status/currentAvailable") == Some(pods as u64)
        };
        Ok(!items.is_empty() && items.iter().all(is_counted))
    })?;
    Ok(())
}

/// Deletions of running pods: one pod of each budget after the other.
fn reviews(connection: &mut Connection, budgets: usize) -> Result<Vec<Value>> {
    let mut pods = Vec::new();
    for number in 0..budgets {
        let list =
            connection.get(&format!("/api/v1/namespaces/default/pods?labelSelector=app%3Dbench-{number}"))?;
        pods.push(list.get("items").and_then(Value::as_array).cloned().unwrap_or_default());
    }
    let rounds = COUNT.div_ceil(budgets);
    let mut found = Vec::new();
    for round in 0..rounds {
        found.extend(pods.iter().filter_map(|pods| pods.get(round)).map(review));
    }
    found.truncate(COUNT);
    Ok(found)
}

fn review(pod: &Value) -> Value {
    let mut pod = pod.clone();
    if let Some(pod) = pod.as_object_mut() {
        pod.insert("apiVersion".to_owned(), "v1".into());
        pod.insert("kind".to_owned(), "Pod".into());
    }
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "bench", "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"}, "operation": "DELETE",
            "namespace": "default", "name": pod.pointer("/metadata/name"), "oldObject": pod,
            "userInfo": {"username": "bench"},
        },
    })
}

fn without_budget(mut review: Value) -> Value {
    if let Some(metadata) = review.pointer_mut("/request/oldObject/metadata").and_then(Value::as_object_mut) {
        metadata.remove("annotations");
    }
    review
}

fn deployment(name: &str, replicas: usize) -> Value {
    let mut template = template(name);
    if let Some(annotations) = template.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        // The manager would write them, thirty in a second.
        annotations.insert("pub.kruise.io/related-pub".to_owned(), name.into());
        annotations.insert("kruise.io/related-pub".to_owned(), name.into());
    }
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    })
}

/// Half of them name their workload, half of them choose by labels.
fn budget(name: &str, number: usize) -> Value {
    let covers = match number % 2 {
        0 => json!({"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}),
        _ => json!({"selector": {"matchLabels": {"app": name}}}),
    };
    let mut budget = json!({
        "apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget", "metadata": {"name": name},
        "spec": covers,
    });
    if let Some(spec) = budget.get_mut("spec").and_then(Value::as_object_mut) {
        // No grant may be refused: each pod asks once.
        spec.insert("maxUnavailable".to_owned(), "90%".into());
    }
    budget
}

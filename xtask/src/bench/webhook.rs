//! What the admission of a pod costs: the manager as a process beside an embedded cluster, called over connections that are
//! kept, as an API server calls it.
//!
//! Bars, with 200 SidecarSets of which five match, at 500 per second: 99 of 100 within 5 ms, 0.3 ms of CPU each. Memory does
//! not grow with the number of admissions.

use std::fmt;
use std::path::Path;
use std::time::Duration;
use std::{env, thread};

use anyhow::{Context, Result, anyhow, ensure};
use kruise_core::sidecarset;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Map, Value, json};

use super::local::http::Connection;
use super::local::{Clock, Cluster};
use super::manager::{Manager, configurations, template};
use crate::test::cargo;

const NODES: usize = 3;
/// How many connections an API server has.
const CALLERS: u32 = 4;
const SETS: usize = 200;
const MATCHING: usize = 5;
/// How many admissions must not change the memory.
const MANY: u32 = 100_000;

pub(super) fn run(root: &Path) -> Result<Value> {
    let build = ["build", "--quiet", "--release", "--package", "kruise-local", "--package", "kruise-manager"];
    cargo(root, &build, None, None)?;
    let program = env::current_exe()?;
    let (cluster, mut connection, _) =
        Cluster::start_with(&program.with_file_name("kruise-local"), NODES, &["--no-manager"])?;
    let kubeconfig = cluster.folder.join("kubeconfig");
    let mut figures = Map::new();
    for sets in [0, SETS] {
        // The cluster of the benchmark calls no webhooks over the network, so sets come when it knows of none.
        configurations(root, &mut connection, "DELETE")?;
        for number in 0..sets {
            let mut set = sidecar_set(number);
            sidecarset::defaults::apply(&mut set, None);
            connection.send("POST", "/apis/apps.kruise.io/v1beta1/sidecarsets", Some(&set))?;
        }
        configurations(root, &mut connection, "POST")?;
        let manager =
            Manager::start(&program.with_file_name("kruise-manager"), &kubeconfig, &cluster.folder)?;
        let expected = if sets == 0 { 0 } else { MATCHING };
        Clock::new().until(|| Ok(manager.is_ready() && injected(&manager)? == expected))?;
        println!("{sets} SidecarSets are there, {expected} of them match");
        // The first calls pay for threads and pages.
        admissions(&manager, Load { per_second: None, count: MANY / 50 })?;
        paced(&manager, sets, &mut figures)?;
        if sets > 0 {
            many(&manager, &mut figures)?;
        }
    }
    Ok(Value::Object(figures))
}

/// Times and CPU at the rate of the bar.
fn paced(manager: &Manager, sets: usize, figures: &mut Map<String, Value>) -> Result<()> {
    let before = manager.cpu()?;
    let times = admissions(manager, Load::BAR)?;
    let each = (manager.cpu()? - before) * 1e3 / f64::from(Load::BAR.count);
    println!("{sets} SidecarSets, {times}, {each:.3} ms of CPU each");
    figures.insert(format!("sets_{sets}_p50_milliseconds"), json!(times.milliseconds(0.5)));
    figures.insert(format!("sets_{sets}_p99_milliseconds"), json!(times.milliseconds(0.99)));
    figures.insert(format!("sets_{sets}_cpu_milliseconds"), json!(each));
    Ok(())
}

/// The largest rate, and what so many admissions do to the memory.
fn many(manager: &Manager, figures: &mut Map<String, Value>) -> Result<()> {
    let (before, cpu, clock) = (manager.memory("VmRSS")?, manager.cpu()?, Clock::new());
    let times = admissions(manager, Load { per_second: None, count: MANY })?;
    let (took, after) = (clock.elapsed().as_secs_f64(), manager.memory("VmRSS")?);
    let rate = f64::from(MANY) / took;
    let each = (manager.cpu()? - cpu) * 1e3 / f64::from(MANY);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!("{rate:.0} per second, {times}, {each:.3} ms of CPU each");
    println!("{:.1} MiB before, {:.1} MiB after {MANY} admissions", mib(before), mib(after));
    figures.insert("largest_rate_admissions_per_second".to_owned(), json!(rate));
    figures.insert("largest_rate_p99_milliseconds".to_owned(), json!(times.milliseconds(0.99)));
    figures.insert("largest_rate_cpu_milliseconds".to_owned(), json!(each));
    figures.insert("rss_before_mib".to_owned(), json!(mib(before)));
    figures.insert(format!("rss_after_{MANY}_mib"), json!(mib(after)));
    figures.insert("rss_peak_mib".to_owned(), json!(mib(manager.memory("VmHWM")?)));
    Ok(())
}

/// How pods are sent for admission.
#[derive(Clone, Copy)]
pub(super) struct Load {
    /// How many in a second; as many as possible without.
    per_second: Option<u32>,
    /// How many in all.
    count: u32,
}

impl Load {
    /// The rate of the bar, for 20 seconds.
    pub(super) const BAR: Self = Self { per_second: Some(500), count: 10_000 };
}

/// How long each admission took, sorted.
pub(super) struct Times(Vec<Duration>);

impl Times {
    pub(super) fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    /// The time within which this share of the admissions was done.
    pub(super) fn milliseconds(&self, share: f64) -> f64 {
        let at = (self.0.len() as f64 * share) as usize;
        self.0.get(at).copied().unwrap_or_default().as_secs_f64() * 1e3
    }
}

impl fmt::Display for Times {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, most] = [0.5, 0.99].map(|share| self.milliseconds(share));
        let count = self.0.len();
        write!(formatter, "{count} admissions: half within {half:.3} ms, 99 of 100 within {most:.3} ms")
    }
}

/// Sends pods for admission over several connections.
pub(super) fn admissions(manager: &Manager, load: Load) -> Result<Times> {
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let connection = manager.caller()?;
            Ok(thread::spawn(move || call(connection, load)))
        })
        .collect::<Result<_>>()?;
    let mut times = Vec::new();
    for caller in callers {
        times.extend(caller.join().map_err(|_| anyhow!("a caller panicked"))??);
    }
    Ok(Times::of(times))
}

/// The part of one connection.
fn call(mut connection: Connection, load: Load) -> Result<Vec<Duration>> {
    let every = load.per_second.map_or(Duration::ZERO, |rate| Duration::from_secs(1) * CALLERS / rate);
    let review = review();
    let clock = Clock::new();
    let mut times = Vec::new();
    for number in 0..load.count / CALLERS {
        thread::sleep((every * number).saturating_sub(clock.elapsed()));
        let began = clock.elapsed();
        let answer = connection.send("POST", "/mutate-pod", Some(&review))?;
        times.push(clock.elapsed() - began);
        ensure!(answer.pointer("/response/allowed") == Some(&json!(true)), "{answer}");
    }
    Ok(times)
}

/// A pod of usual size.
fn pod() -> Value {
    let mut pod = template("bench");
    if let Some(pod) = pod.as_object_mut() {
        pod.insert("apiVersion".to_owned(), "v1".into());
        pod.insert("kind".to_owned(), "Pod".into());
    }
    if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("name".to_owned(), "bench".into());
        let owner = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "u", "controller": true});
        metadata.insert("ownerReferences".to_owned(), json!([owner]));
    }
    pod
}

/// The admission of a pod of usual size.
pub(crate) fn review() -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "bench", "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "operation": "CREATE", "namespace": "default", "name": "bench", "object": pod(), "userInfo": {"username": "bench"},
        },
    })
}

/// How many sets the pod gets sidecars of: what is measured is really done.
fn injected(manager: &Manager) -> Result<usize> {
    let answer = manager.caller()?.send("POST", "/mutate-pod", Some(&review()))?;
    let Some(patch) = answer.pointer("/response/patch").and_then(Value::as_str) else { return Ok(0) };
    // The body of a PEM is base64, whatever is inside.
    let wrapped = format!("-----BEGIN CERTIFICATE-----\n{patch}\n-----END CERTIFICATE-----\n");
    let patch = CertificateDer::from_pem_slice(wrapped.as_bytes()).context("cannot decode the patch")?;
    let steps: Vec<Value> = serde_json::from_slice(&patch)?;
    let text = |step: &Value, name: &str| step.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
    let is_list =
        |step: &&Value| text(step, "path").is_some_and(|path| path.ends_with("sidecarset-injected-list"));
    let list = steps.iter().find(is_list).and_then(|step| text(step, "value"));
    Ok(list.map_or(0, |list| list.split(',').count()))
}

/// A sidecar of usual size with a volume. The first ones match the pod; the others have selectors of all forms that do not.
fn sidecar_set(number: usize) -> Value {
    let here = json!({"matchLabels": {"app": "bench"}});
    let elsewhere = json!({"matchLabels": {"kubernetes.io/metadata.name": format!("team-{number}")}});
    let [selector, namespaces] = match number % 3 {
        _ if number < MATCHING => [here, Value::Null],
        0 => [json!({"matchLabels": {"app": format!("other-{number}")}}), Value::Null],
        1 => {
            let team = json!({"key": "team", "operator": "NotIn", "values": ["shop", "stock"]});
            [json!({"matchExpressions": [team]}), Value::Null]
        }
        _ => [here, elsewhere],
    };
    let container = json!({
        "name": format!("sidecar-{number}"), "image": format!("registry.example/team/sidecar-{number}:v1.2.3"),
        "env": [{"name": "LEVEL", "value": "info"}, {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "volumeMounts": [{"name": format!("data-{number}"), "mountPath": "/var/data"}],
        "shareVolumePolicy": {"type": "enabled"},
        "transferEnv": [{"sourceContainerName": "main", "envName": "LEVEL"}],
    });
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet",
        "metadata": {"name": format!("bench-{number}")},
        "spec": {
            "selector": selector, "namespaceSelector": namespaces, "updateStrategy": {"type": "NotUpdate"},
            "containers": [container], "volumes": [{"name": format!("data-{number}"), "emptyDir": {}}],
        },
    })
}

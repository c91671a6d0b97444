//! What the manager costs: memory, start, idle CPU and the time of an admission, as a process beside an embedded cluster.
//!
//! Bars: 80 MiB with 10,000 pods and 1 GiB with 150,000, steady within 30 s with 50,000, 5 m of CPU when idle, an
//! admission of a pod within 5 ms (99 of 100) at 500 per second.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use anyhow::{Context, Result};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Map, Value, json};

use super::local::http::Connection;
use super::local::{Clock, Cluster};
use super::webhook;
use crate::test::cargo;

/// Pods in steps: each step adds Deployments of this many.
const STEP: usize = 10_000;
const STEPS: [usize; 3] = [10_000, 50_000, 150_000];
/// A node has room for 110 pods.
const NODES: usize = 1_500;
const IDLE: Duration = Duration::from_secs(30);

pub(super) fn run(root: &Path) -> Result<Value> {
    let build = ["build", "--quiet", "--release", "--package", "kruise-local", "--package", "kruise-manager"];
    cargo(root, &build, None, None)?;
    let program = env::current_exe()?;
    let (cluster, _, _) =
        Cluster::start_with(&program.with_file_name("kruise-local"), NODES, &["--no-manager"])?;
    let mut figures = Map::new();
    let mut pods = 0;
    let largest = env::var("KRUISE_BENCH_PODS").ok().and_then(|text| text.parse().ok()).unwrap_or(usize::MAX);
    let kubeconfig = cluster.folder.join("kubeconfig");
    for goal in STEPS.into_iter().filter(|goal| *goal <= largest) {
        // The last step was longer than a connection may rest.
        let mut connection = Connection::open(&kubeconfig)?;
        configurations(root, &mut connection, "DELETE")?;
        while pods < goal {
            let name = format!("bench-{pods}");
            let path = "/apis/apps/v1/namespaces/default/deployments";
            connection.send("POST", path, Some(&deployment(&name)))?;
            pods += STEP;
            Clock::new().until(|| Ok(available(&mut connection, &name)? == STEP as u64))?;
        }
        println!("{pods} pods run");
        configurations(root, &mut connection, "POST")?;
        let manager =
            Manager::start(&program.with_file_name("kruise-manager"), &kubeconfig, &cluster.folder)?;
        let steady = manager.clock.until(|| Ok(manager.knows(goal as f64)))?;
        thread::sleep(Duration::from_secs(5));
        let memory = manager.memory("VmRSS")?;
        println!("{goal} pods: steady after {steady:?}, {} MiB", memory >> 20);
        figures.insert(format!("pods_{goal}_rss_mib"), json!(memory as f64 / f64::from(1 << 20)));
        figures.insert(format!("pods_{goal}_rss_peak_mib"), json!(manager.memory("VmHWM")? >> 20));
        figures.insert(format!("pods_{goal}_steady_seconds"), json!(steady.as_secs_f64()));
        if goal == STEP {
            // Each node gets its objects once, which is work and not idleness.
            for kind in ["v1beta1/nodeimages", "v1alpha1/nodepodprobes"] {
                Clock::new().until(|| Ok(count(&mut connection, kind)? >= NODES))?;
            }
            thread::sleep(Duration::from_secs(5));
            let before = manager.cpu()?;
            thread::sleep(IDLE);
            let used = (manager.cpu()? - before) / IDLE.as_secs_f64() * 1e3;
            println!("{used:.1} m of CPU when idle");
            figures.insert("idle_cpu_millicores".to_owned(), json!(used));
            let times = webhook::admissions(&manager, webhook::Load::BAR)?;
            println!("{times}");
            figures.insert("admission_p50_milliseconds".to_owned(), json!(times.milliseconds(0.5)));
            figures.insert("admission_p99_milliseconds".to_owned(), json!(times.milliseconds(0.99)));
        }
    }
    Ok(Value::Object(figures))
}

/// How many objects there are of one of our kinds that belong to nodes.
fn count(connection: &mut Connection, kind: &str) -> Result<usize> {
    let path = format!("/apis/apps.kruise.io/{kind}?includeObject=None");
    let table = connection.send("GET", &path, None)?;
    Ok(table.get("rows").and_then(Value::as_array).map_or(0, Vec::len))
}

/// A manager that ends with this value.
pub(crate) struct Manager {
    child: Child,
    folder: PathBuf,
    clock: Clock,
    health: u16,
    metrics: u16,
    webhooks: u16,
}

impl Manager {
    /// Starts it. Its log and its certificates are in the folder.
    pub(crate) fn start(program: &Path, kubeconfig: &Path, folder: &Path) -> Result<Self> {
        Self::start_with(program, kubeconfig, folder, &[])
    }

    /// The same with more flags.
    pub(crate) fn start_with(
        program: &Path,
        kubeconfig: &Path,
        folder: &Path,
        flags: &[&str],
    ) -> Result<Self> {
        let [health, metrics, webhooks] = [free_port()?, free_port()?, free_port()?];
        let certificates = folder.join("certificates");
        let clock = Clock::new();
        let child = Command::new(program)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg(format!("--health-probe-addr=127.0.0.1:{health}"))
            .arg(format!("--metrics-addr=127.0.0.1:{metrics}"))
            .arg("--protection-log-path")
            .arg(folder.join("log"))
            .args(flags)
            .env("WEBHOOK_HOST", "127.0.0.1")
            .env("WEBHOOK_PORT", webhooks.to_string())
            .env("WEBHOOK_CERT_DIR", &certificates)
            .stderr(fs::File::create(folder.join("manager.log"))?)
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child, folder: folder.to_owned(), clock, health, metrics, webhooks })
    }

    /// Whether it leads and has read so many pods.
    pub(crate) fn knows(&self, pods: f64) -> bool {
        self.leads_with("pods", pods)
    }

    /// Whether it leads and has read so many objects of a resource.
    pub(super) fn leads_with(&self, resource: &str, count: f64) -> bool {
        let text = get(self.metrics, "/metrics").unwrap_or_default();
        let value = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok())
                .unwrap_or_default()
        };
        let objects = format!("kruise_cache_objects{{resource=\"{resource}\"}}");
        value("kruise_manager_is_leader") == 1.0 && value(&objects) >= count
    }

    /// A figure of its memory in bytes, such as `VmHWM`.
    pub(crate) fn memory(&self, name: &str) -> Result<u64> {
        super::local::memory(&self.child, name)
    }

    /// Seconds of CPU so far.
    pub(crate) fn cpu(&self) -> Result<f64> {
        let text = get(self.metrics, "/metrics")?;
        let line = text.lines().find_map(|line| line.strip_prefix("process_cpu_seconds_total "));
        Ok(line.context("no CPU time")?.trim().parse()?)
    }

    /// Its requests so far, by verb and code.
    pub(crate) fn requests(&self) -> Result<BTreeMap<String, u64>> {
        self.counts("rest_client_requests_total", &["method", "code"])
    }

    /// Its reconciles so far, by controller.
    pub(super) fn reconciles(&self) -> Result<BTreeMap<String, u64>> {
        self.counts("controller_runtime_reconcile_total", &["controller"])
    }

    /// A counter by some of its labels.
    fn counts(&self, metric: &str, labels: &[&str]) -> Result<BTreeMap<String, u64>> {
        let text = get(self.metrics, "/metrics")?;
        let mut counts = BTreeMap::new();
        for line in text.lines().filter_map(|line| line.strip_prefix(metric)?.strip_prefix('{')) {
            let label = |name: &&str| {
                let after = line.split_once(&format!("{name}=\""))?.1;
                after.split_once('"').map(|(value, _)| value)
            };
            let Some(values) = labels.iter().map(label).collect::<Option<Vec<_>>>() else { continue };
            let count = line.rsplit(' ').next().and_then(|count| count.parse::<f64>().ok()).unwrap_or(0.0);
            *counts.entry(values.join(" ")).or_default() += count as u64;
        }
        Ok(counts)
    }

    /// Whether the webhooks answer.
    pub(crate) fn is_ready(&self) -> bool {
        get(self.health, "/readyz").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
    }

    /// A connection to its webhooks, as an API server has it.
    pub(super) fn caller(&self) -> Result<Connection> {
        Connection::to(&format!("127.0.0.1:{}", self.webhooks), self.authority()?, "")
    }

    /// The authority that has signed its certificate.
    pub(crate) fn authority(&self) -> Result<CertificateDer<'static>> {
        let path = self.folder.join("certificates/ca-cert.pem");
        CertificateDer::from_pem_slice(&fs::read(path)?).context("cannot read the authority")
    }

    /// Its ports on loopback: health, metrics, webhooks.
    pub(crate) fn ports(&self) -> [u16; 3] {
        [self.health, self.metrics, self.webhooks]
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(self.folder.join("certificates"));
    }
}

/// Makes or removes the webhook configurations as `cargo xtask generate` writes them.
pub(crate) fn configurations(root: &Path, connection: &mut Connection, method: &str) -> Result<()> {
    for (file, plural) in
        [("mutating", "mutatingwebhookconfigurations"), ("validating", "validatingwebhookconfigurations")]
    {
        let text = fs::read_to_string(root.join(format!("config/webhook/{file}.yaml")))?;
        let object: Value = serde_saphyr::from_str(&text)?;
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        if method == "POST" {
            connection.send("POST", &path, Some(&object))?;
        } else if let Some(name) = object.pointer("/metadata/name").and_then(Value::as_str) {
            // Not there yet the first time.
            let _ = connection.send("DELETE", &format!("{path}/{name}"), None);
        }
    }
    Ok(())
}

pub(super) fn available(connection: &mut Connection, name: &str) -> Result<u64> {
    let path = format!("/apis/apps/v1/namespaces/default/deployments/{name}");
    let deployment = connection.send("GET", &path, None)?;
    Ok(deployment.pointer("/rows/0/cells/3").and_then(Value::as_u64).unwrap_or(0))
}

/// A template of usual size: two containers, labels, annotations, variables.
pub(super) fn template(name: &str) -> Value {
    let container = |name: &str| {
        json!({
            "name": name, "image": format!("registry.example/team/{name}:v1.2.3"),
            "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}, {"name": "LEVEL", "value": "info"}],
            "ports": [{"containerPort": 8080}],
            "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}},
        })
    };
    json!({
        "metadata": {
            "labels": {"app": name, "team": "shop", "version": "v1.2.3"},
            "annotations": {"example.com/config-hash": "9f86d081884c7d659a2feaa0c55ad015", "example.com/owner": "shop@example.com"},
        },
        "spec": {"containers": [container("main"), container("proxy")]},
    })
}

fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": STEP, "selector": {"matchLabels": {"app": name}}, "template": template(name)},
    })
}

pub(super) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The answer to a GET on loopback.
pub(crate) fn get(port: u16, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

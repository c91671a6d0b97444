//! How fast the cluster of `cargo run --release` is, and how much memory it takes, seen from outside over TLS.
//!
//! Bars: first answer in 150 ms, 5,000 nodes Ready in 5 s, 10,000 pods Running in 10 s, 100,000 pods in 1.5 GiB.

pub(crate) mod http;
mod pages;
mod watchers;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::test::cargo;
use http::Connection;

/// How much is measured.
struct Sizes {
    starts: usize,
    nodes: usize,
    pods: u64,
    many_pods: u64,
    watchers: usize,
    events: usize,
}

const FULL: Sizes =
    Sizes { starts: 5, nodes: 5_000, pods: 10_000, many_pods: 100_000, watchers: 100, events: 200 };
const SMALL: Sizes = Sizes { starts: 1, nodes: 20, pods: 50, many_pods: 200, watchers: 5, events: 10 };
/// The unit of `/proc/PID/stat`, the same on all Linux systems that people use.
const TICKS_PER_SECOND: u64 = 100;
/// Longer than any figure worth having.
const PATIENCE: Duration = Duration::from_secs(900);

pub(super) fn run(root: &Path, small: bool) -> Result<Value> {
    let sizes = if small { SMALL } else { FULL };
    let mut build = vec!["build", "--quiet", "--package", "kruise-local"];
    build.extend((!small).then_some("--release"));
    cargo(root, &build, None, None)?;
    let program = env::current_exe()?.with_file_name("kruise-local");
    let mut starts = Vec::new();
    for _ in 0..sizes.starts {
        let (_cluster, _, took) = Cluster::start(&program, 3)?;
        starts.push(took);
    }
    starts.sort();
    let first = starts.get(sizes.starts / 2).copied().unwrap_or_default();
    println!("first answer after {first:?} (the middle of {} starts)", sizes.starts);

    let (cluster, mut connection, _) = Cluster::start(&program, sizes.nodes)?;
    let nodes = cluster.since_start(|| Ok(ready_nodes(&mut connection)? == sizes.nodes))?;
    println!("{} nodes Ready after {nodes:?}", sizes.nodes);

    let before = cluster.memory("VmRSS")?;
    let worked = cluster.processor_time()?;
    let clock = Clock::new();
    let made = deployment(sizes.pods);
    connection.send("POST", "/apis/apps/v1/namespaces/default/deployments", Some(&made))?;
    let running = clock.until(|| Ok(running_pods(&mut connection)? == sizes.pods))?;
    let worked = cluster.processor_time()?.saturating_sub(worked);
    println!("{} pods Running after {running:?}, with {worked:?} of work", sizes.pods);
    let after = cluster.memory("VmRSS")?;

    let told = watchers::measure(&cluster.folder, sizes.watchers, sizes.events)?;
    println!("{} watchers heard of {} changes within {told:?}", sizes.watchers, sizes.events);

    let worked_before = cluster.processor_time()?;
    let clock = Clock::new();
    let more = json!({"spec": {"replicas": sizes.many_pods}});
    connection.send("PATCH", "/apis/apps/v1/namespaces/default/deployments/bench", Some(&more))?;
    let many = clock.until(|| Ok(running_pods(&mut connection)? == sizes.many_pods))?;
    let many_worked = cluster.processor_time()?.saturating_sub(worked_before);
    let many_memory = cluster.memory("VmRSS")?;
    println!("{} pods Running after {many:?} more, in {} MiB", sizes.many_pods, many_memory >> 20);
    let listed = pages::measure(&mut connection, sizes.many_pods)?;
    println!("they are listed in {} pages within {:?}", listed.pages, listed.took);
    Ok(json!({
        "start_to_first_answer_milliseconds": first.as_secs_f64() * 1e3,
        "nodes_5000_ready_seconds": nodes.as_secs_f64(),
        "pods_10000_running_seconds": running.as_secs_f64(),
        "pods_10000_cpu_seconds": worked.as_secs_f64(),
        "bytes_per_pod": after.saturating_sub(before) / sizes.pods,
        "watchers_100_events_200_seconds": told.as_secs_f64(),
        "pods_100000_running_seconds": many.as_secs_f64(),
        "pods_100000_cpu_seconds": many_worked.as_secs_f64(),
        "pods_100000_rss_mib": many_memory >> 20,
        "pods_100000_list_seconds": listed.took.as_secs_f64(),
        "pods_100000_list_mib": listed.bytes >> 20,
        "slowest_page_milliseconds": listed.slowest.as_secs_f64() * 1e3,
        "rss_peak_mib": cluster.memory("VmHWM")? >> 20,
    }))
}

/// A process that ends with this value.
pub(crate) struct Cluster {
    pub(super) child: Child,
    pub(crate) folder: PathBuf,
    clock: Clock,
}

impl Cluster {
    /// Starts one and waits for its first answer.
    pub(super) fn start(program: &Path, nodes: usize) -> Result<(Self, Connection, Duration)> {
        Self::start_with(program, nodes, &[])
    }

    /// The same with more options.
    pub(crate) fn start_with(
        program: &Path,
        nodes: usize,
        options: &[&str],
    ) -> Result<(Self, Connection, Duration)> {
        let folder = env::temp_dir().join(format!("kruise-rs-bench-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let kubeconfig = folder.join("kubeconfig");
        let _ = fs::remove_file(&kubeconfig);
        let clock = Clock::new();
        let child = Command::new(program)
            .args(["--port", "0", "--nodes", &nodes.to_string(), "--kubeconfig"])
            .arg(&kubeconfig)
            .args(options)
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut cluster = Self { child, folder, clock };
        while !kubeconfig.exists() {
            ensure!(cluster.child.try_wait()?.is_none(), "kruise-local ended before it served");
            thread::sleep(Duration::from_micros(500));
        }
        let mut connection = Connection::open(&kubeconfig)?;
        connection.send("GET", "/version", None)?;
        let took = cluster.clock.elapsed();
        Ok((cluster, connection, took))
    }

    fn since_start(&self, check: impl FnMut() -> Result<bool>) -> Result<Duration> {
        self.clock.until(check)
    }

    /// How long the processors worked for it so far, which depends little on what else the machine does.
    fn processor_time(&self) -> Result<Duration> {
        processor_time(&self.child)
    }

    /// Bytes of memory by a name of `/proc/PID/status`.
    fn memory(&self, name: &str) -> Result<u64> {
        memory(&self.child, name)
    }
}

/// How long the processors worked for a process so far.
pub(super) fn processor_time(process: &Child) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.id()))?;
    // Behind the name, which may contain anything: state, and ten more fields before utime and stime.
    let (_, fields) = stat.rsplit_once(')').context("no name in stat")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    let ticks = ticks.sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND))
}

/// Bytes of memory of a process by a name of `/proc/PID/status`.
pub(super) fn memory(process: &Child, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.split_whitespace().next()).context("no such figure")?;
    Ok(kib.parse::<u64>()? << 10)
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(crate) struct Clock(std::time::Instant);

impl Clock {
    #[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock of the machine")]
    pub(crate) fn new() -> Self {
        Self(std::time::Instant::now())
    }

    /// The time of day.
    #[allow(
        clippy::disallowed_methods,
        reason = "a benchmark plays nodes, whose statuses tell when something happened"
    )]
    pub(super) fn now() -> jiff::Timestamp {
        jiff::Timestamp::now()
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    pub(crate) fn until(&self, mut check: impl FnMut() -> Result<bool>) -> Result<Duration> {
        while !check()? {
            ensure!(self.elapsed() < PATIENCE, "not done after {PATIENCE:?}");
            thread::sleep(Duration::from_millis(100));
        }
        Ok(self.elapsed())
    }
}

/// Nodes whose status reads `Ready`, in the form of `kubectl get nodes`, which is the shortest.
pub(super) fn ready_nodes(connection: &mut Connection) -> Result<usize> {
    let table = connection.send("GET", "/api/v1/nodes?includeObject=None&resourceVersion=0", None)?;
    let rows = table.get("rows").and_then(Value::as_array).context("nodes are no table")?;
    Ok(rows.iter().filter(|row| row.pointer("/cells/1").and_then(Value::as_str) == Some("Ready")).count())
}

fn running_pods(connection: &mut Connection) -> Result<u64> {
    let deployment = connection.send("GET", "/apis/apps/v1/namespaces/default/deployments/bench", None)?;
    // A table here too: name, ready, up to date, available, age.
    let ready = deployment.pointer("/rows/0/cells/3").and_then(Value::as_u64);
    Ok(ready.unwrap_or(0))
}

fn deployment(replicas: u64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "bench" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "bench" } },
            "template": {
                "metadata": { "labels": { "app": "bench" } },
                "spec": { "containers": [{ "name": "main", "image": "registry.example/bench:v1" }] },
            },
        },
    })
}

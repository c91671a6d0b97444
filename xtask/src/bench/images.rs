//! What 198 ImagePullJobs on 989 nodes cost the manager, as a process beside an embedded cluster.
//!
//! Two times are measured. First, jobs have just been made, and ten nodes pull for each of them. Second, as in the cluster in
//! which the original was seen with 887 reconciles per second and 94.6 % of a core: jobs that keep images on all nodes for
//! ever, all of the same image, so that each node has 198 tags of it, and every second two or three of the 195,822 are a day
//! old and begin again.
//!
//! Bars: fewer than 5 reconciles per second in all, and less than 5 % of one core.

mod nodes;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::{env, thread};

use anyhow::{Context, Result};
use jiff::SignedDuration;
use kruise_core::hash;
use serde_json::{Map, Value, json};

use super::local::http::Connection;
use super::local::{Clock, Cluster, ready_nodes};
use super::manager::{Manager, configurations};
use crate::test::cargo;
use nodes::{Nodes, seconds};

const NODES: usize = 989;
const JOBS: usize = 198;
/// How many nodes pull at once for a new job.
const PARALLELISM: usize = 10;
const IMAGE: &str = "registry.example/team/app";
/// How long a tag that is kept for ever stays until it is pulled again.
const DAY: u32 = 86_400;
/// Seconds that the oldest tags are past their day at the start, as some always are.
const OVERDUE: i64 = 240;
/// How long everything gets to come into its swing, and how long it is measured then.
const SWING: Duration = Duration::from_secs(90);
/// Unless `KRUISE_BENCH_SECONDS` says something else.
const MEASURED: u64 = 180;
const ADMISSIONS: u32 = 200;

pub(super) fn run(root: &Path) -> Result<Value> {
    let build = ["build", "--quiet", "--release", "--package", "kruise-local", "--package", "kruise-manager"];
    cargo(root, &build, None, None)?;
    let mut figures = Map::new();
    for stage in [Stage::New, Stage::Kept] {
        stage.run(root, &mut figures)?;
    }
    Ok(Value::Object(figures))
}

#[derive(Clone, Copy)]
enum Stage {
    New,
    Kept,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Kept => "kept",
        }
    }

    fn run(self, root: &Path, figures: &mut Map<String, Value>) -> Result<()> {
        let program = env::current_exe()?;
        let options = ["--no-manager"];
        let (cluster, mut connection, _) =
            Cluster::start_with(&program.with_file_name("kruise-local"), NODES, &options)?;
        let kubeconfig = cluster.folder.join("kubeconfig");
        // Nodes come one after the other.
        Clock::new().until(|| Ok(ready_nodes(&mut connection)? == NODES))?;
        if let Self::Kept = self {
            let owners = self.jobs(&mut connection)?;
            fill(&mut connection, &owners)?;
            println!("{NODES} nodes have {JOBS} tags each");
        }
        configurations(root, &mut connection, "POST")?;
        let flags = ["--feature-gates=ImagePullJobGate=true", "--nodeimage-creation-delay=0s"];
        let program = program.with_file_name("kruise-manager");
        let manager = Manager::start_with(&program, &kubeconfig, &cluster.folder, &flags)?;
        Clock::new().until(|| Ok(manager.is_ready()))?;
        // The cluster of the benchmark calls no webhooks over the network; what they cost is measured apart.
        configurations(root, &mut connection, "DELETE")?;
        Clock::new().until(|| Ok(manager.leads_with("nodeimages", NODES as f64)))?;
        let nodes = Nodes::start(&kubeconfig)?;
        if let Self::New = self {
            // That each node gets its object is over.
            thread::sleep(Duration::from_secs(5));
            Connection::open(&kubeconfig).and_then(|mut connection| self.jobs(&mut connection))?;
        }
        println!("{JOBS} jobs run on {NODES} nodes");
        thread::sleep(SWING);
        self.measure(&manager, &nodes, figures)
    }

    fn measure(self, manager: &Manager, nodes: &Nodes, figures: &mut Map<String, Value>) -> Result<()> {
        let count =
            || (nodes.counts.pulls.load(Ordering::Relaxed), nodes.counts.wishes.load(Ordering::Relaxed));
        let clock = Clock::new();
        let (cpu, passes, requests, (pulls, wishes)) =
            (manager.cpu()?, manager.reconciles()?, manager.requests()?, count());
        let wish = env::var("KRUISE_BENCH_SECONDS").ok().and_then(|text| text.parse().ok());
        thread::sleep(Duration::from_secs(wish.unwrap_or(MEASURED)));
        nodes.check()?;
        let took = clock.elapsed().as_secs_f64();
        let cpu = (manager.cpu()? - cpu) / took * 100.0;
        let passes = rates(&passes, &manager.reconciles()?, took);
        let requests = rates(&requests, &manager.requests()?, took);
        let (more_pulls, more_wishes) = count();
        let [pulls, wishes] = [more_pulls - pulls, more_wishes - wishes].map(|count| count as f64 / took);
        let memory = manager.memory("VmRSS")? as f64 / f64::from(1 << 20);
        let tags = match self {
            Self::New => usize::try_from(more_wishes)? / NODES,
            Self::Kept => JOBS,
        };
        let admission = admission(manager, tags)?;
        let all = passes.values().sum::<f64>();
        let with_admission = cpu + wishes * admission / 10.0;
        let name = self.name();
        println!("{name}: {pulls:.2} pulls end per second, {wishes:.2} wishes of nodes change");
        println!(
            "{name}: {all:.2} reconciles per second ({passes:.2?}), {cpu:.2} % of one core, {memory:.0} MiB"
        );
        println!("{name}: {with_admission:.2} % with its own admission, {admission:.2} ms for each write");
        println!("{name}: requests per second {requests:.2?}");
        let mut put = |unit: &str, value: Value| figures.insert(format!("{name}_{unit}"), value);
        put("reconciles_per_second", json!(all));
        put("reconciles_per_second_by_controller", json!(passes));
        put("cpu_percent", json!(cpu));
        put("cpu_percent_with_admission", json!(with_admission));
        put("rss_mib", json!(memory));
        put("pulls_per_second", json!(pulls));
        put("requests_per_second", json!(requests));
        Ok(())
    }

    /// Makes all jobs; their uids.
    fn jobs(self, connection: &mut Connection) -> Result<Vec<String>> {
        let path = "/apis/apps.kruise.io/v1beta1/namespaces/default/imagepulljobs";
        let completion = match self {
            Self::New => "Always",
            Self::Kept => "Never",
        };
        let make = |number: usize| {
            let job = json!({
                "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": {"name": job_name(number)},
                "spec": {
                    "image": format!("{IMAGE}:{}", tag(number)), "parallelism": PARALLELISM,
                    "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3},
                    "completionPolicy": {"type": completion}, "imagePullPolicy": "IfNotPresent",
                },
            });
            connection.send("POST", path, Some(&job))?;
            let uid = connection.get(&format!("{path}/{}", job_name(number)))?;
            let uid = uid.pointer("/metadata/uid").and_then(Value::as_str);
            uid.map(ToOwned::to_owned).context("a job without a uid")
        };
        (0..JOBS).map(make).collect()
    }
}

/// How much counters grew in a second; only those that did.
fn rates(
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
    seconds: f64,
) -> BTreeMap<String, f64> {
    let grown = |(name, count): (&String, &u64)| {
        let more = count - before.get(name).copied().unwrap_or(0);
        (more > 0).then(|| (name.clone(), more as f64 / seconds))
    };
    after.iter().filter_map(grown).collect()
}

fn job_name(number: usize) -> String {
    format!("job-{number:03}")
}

fn tag(number: usize) -> String {
    format!("v{number:03}")
}

/// Gives each node an object as it is after days: every tag is there, and their days end one after the other.
fn fill(connection: &mut Connection, owners: &[String]) -> Result<()> {
    let all = connection.get("/api/v1/nodes")?;
    for node in all.get("items").and_then(Value::as_array).into_iter().flatten() {
        let name = node.pointer("/metadata/name").and_then(Value::as_str).context("a node without a name")?;
        let labels = node.pointer("/metadata/labels").cloned().unwrap_or_default();
        let (object, status) = node_image(name, &labels, owners);
        connection.send("POST", nodes::PATH, Some(&object))?;
        connection.send(
            "PATCH",
            &format!("{}/{name}/status", nodes::PATH),
            Some(&json!({"status": status})),
        )?;
    }
    Ok(())
}

/// An object with all tags, and its status.
fn node_image(name: &str, labels: &Value, owners: &[String]) -> (Value, Value) {
    let (mut wanted, mut told) = (Vec::new(), Vec::new());
    for (number, uid) in owners.iter().enumerate() {
        let tag = tag(number);
        let luck = hash::fnv1a(name.bytes().chain(tag.bytes()));
        let ttl = DAY - 600 + luck % 1200;
        // Its day ends within the next one, or was over a little while ago: tags may stay for a few minutes.
        let age = i64::from(ttl) - i64::from(luck / 1200 % DAY) + OVERDUE;
        let completed = Clock::now() - SignedDuration::from_secs(age.max(1));
        let owner = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "namespace": "default",
            "name": job_name(number), "uid": uid,
        });
        let policy = json!({
            "timeoutSeconds": 600, "backoffLimit": 3, "activeDeadlineSeconds": 1800, "ttlSecondsAfterFinished": ttl,
        });
        let began = seconds(completed - SignedDuration::from_secs(40));
        wanted.push(json!({
            "tag": tag, "createdAt": began, "pullPolicy": policy, "ownerReferences": [owner],
            "imagePullPolicy": "IfNotPresent", "version": 3,
        }));
        told.push(json!({
            "tag": tag, "phase": "Succeeded", "progress": 100, "startTime": began, "completionTime": seconds(completed),
            "version": 3, "imageID": format!("{IMAGE}@sha256:{luck:064x}"),
        }));
    }
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": name, "labels": labels},
        "spec": {"images": {IMAGE: {"tags": wanted}}},
    });
    let first = json!({"status": "Succeeded", "syncAt": "2026-01-01T00:00:00Z"});
    let status = json!({
        "desired": owners.len(), "succeeded": owners.len(), "failed": 0, "pulling": 0, "waiting": 0,
        "imageStatuses": {IMAGE: {"tags": told}}, "firstSyncStatus": first,
    });
    (object, status)
}

/// Milliseconds of CPU for the admission of one write of a NodeImage with so many tags: the two webhooks that an API server
/// calls.
fn admission(manager: &Manager, tags: usize) -> Result<f64> {
    let owners: Vec<String> =
        (0..tags).map(|number| format!("2a3f0b1c-7d52-4c0e-9a67-5e8f1c{number:06}")).collect();
    let (object, _) = node_image("worker-1", &json!({}), &owners);
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "bench", "kind": {"group": "apps.kruise.io", "version": "v1beta1", "kind": "NodeImage"},
            "resource": {"group": "apps.kruise.io", "version": "v1beta1", "resource": "nodeimages"},
            "operation": "UPDATE", "name": "worker-1", "object": object, "oldObject": object,
            "userInfo": {"username": "bench"},
        },
    });
    let mut caller = manager.caller()?;
    let before = manager.cpu()?;
    for _ in 0..ADMISSIONS {
        for path in ["/mutate-apps-kruise-io-nodeimage", "/validate-apps-kruise-io-nodeimage"] {
            let answer = caller.send("POST", path, Some(&review))?;
            let is_allowed = answer.pointer("/response/allowed") == Some(&json!(true));
            anyhow::ensure!(is_allowed, "{path}: {answer}");
        }
    }
    Ok((manager.cpu()? - before) * 1e3 / f64::from(ADMISSIONS))
}

//! What the daemon costs a full node: memory and CPU with 110 pods of two containers and 60 images, as a process beside an
//! embedded cluster and a container runtime that pretends.
//!
//! Bars: 15 MiB, and 5 m of CPU when idle.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::local::http::Connection;
use super::local::{Clock, Cluster, memory, processor_time, ready_nodes};
use super::manager::{available, free_port, get, template};
use crate::test::cargo;

const PODS: usize = 110;
const IMAGES: usize = 60;
const MEASURED: Duration = Duration::from_secs(60);
/// The profile that daemons are built with.
const SMALL: &str = "small";
const META: &str = "apps.kruise.io/runtime-containers-meta";

pub(super) fn run(root: &Path) -> Result<Value> {
    cargo(root, &["build", "--quiet", "--release", "--package", "kruise-local"], None, None)?;
    cargo(root, &["build", "--quiet", "--profile", SMALL, "--package", "kruise-daemon"], None, None)?;
    let runtime = ["build", "--quiet", "--package", "kruise-daemon", "--example", "fake_runtime"];
    // It is not measured, and what it needs beside the daemon is there since the last test.
    cargo(root, &runtime, None, None)?;
    let program = env::current_exe()?;
    let (cluster, mut connection, _) =
        Cluster::start_with(&program.with_file_name("kruise-local"), 1, &["--no-manager"])?;
    Clock::new().until(|| Ok(ready_nodes(&mut connection)? == 1))?;
    let node = connection.get("/api/v1/nodes")?;
    let node = node.pointer("/items/0/metadata/name").and_then(Value::as_str).context("no node")?.to_owned();
    connection.send("POST", "/apis/apps/v1/namespaces/default/deployments", Some(&deployment()))?;
    Clock::new().until(|| Ok(available(&mut connection, "bench")? == PODS as u64))?;
    node_image(&mut connection, &node)?;
    let pods = connection.get("/api/v1/namespaces/default/pods")?;
    let pods: Vec<Value> = pods.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    println!("{} pods run on {node}", pods.len());

    let socket = cluster.folder.join("run/containerd.sock");
    let file = cluster.folder.join("world.json");
    fs::write(&file, world(&pods).to_string())?;
    let target = program.ancestors().nth(2).context("this program is in no folder of cargo")?;
    let runtime = Command::new(target.join("debug/examples/fake_runtime"))
        .args([&socket, &file])
        .spawn()
        .context("cannot start the runtime that pretends")?;
    let _runtime = Ended(runtime);
    Clock::new().until(|| Ok(socket.exists()))?;
    let port = free_port()?;
    let daemon = Command::new(target.join(SMALL).join("kruise-daemon"))
        .env("NODE_NAME", &node)
        .arg("--kubeconfig")
        .arg(cluster.folder.join("kubeconfig"))
        .arg("--socket-folder")
        .arg(cluster.folder.join("run"))
        .args([format!("--addr=127.0.0.1:{port}"), "--enable-pprof=false".to_owned()])
        .stdout(Stdio::null())
        .stderr(fs::File::create(cluster.folder.join("daemon.log"))?)
        .spawn()
        .context("cannot start the daemon")?;
    let daemon = Ended(daemon);
    Clock::new()
        .until(|| Ok(get(port, "/healthz").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))))?;

    let mut figures = Map::new();
    thread::sleep(Duration::from_secs(10));
    measure("started", &daemon.0, &mut figures)?;
    // A connection may not rest for that long.
    let mut connection = Connection::open(&cluster.folder.join("kubeconfig"))?;
    // A change of a pod makes the daemon look at it and tell what runs.
    for pod in &pods {
        let path = format!("/api/v1/namespaces/default/pods/{}", name(pod)?);
        connection.send("PATCH", &path, Some(&json!({"metadata": {"labels": {"seen": "yes"}}})))?;
    }
    Clock::new().until(|| Ok(reported(&mut connection)? == PODS))?;
    println!("all pods tell what runs in them");
    thread::sleep(Duration::from_secs(10));
    measure("idle", &daemon.0, &mut figures)?;

    let path = "/apis/apps.kruise.io/v1alpha1/nodepodprobes";
    Connection::open(&cluster.folder.join("kubeconfig"))?.send("POST", path, Some(&probes(&node, &pods)))?;
    thread::sleep(Duration::from_secs(20));
    measure("probes", &daemon.0, &mut figures)?;
    let peak = memory(&daemon.0, "VmHWM")? as f64 / f64::from(1 << 20);
    println!("{peak:.1} MiB at the most");
    figures.insert("rss_peak_mib".to_owned(), json!(peak));
    Ok(Value::Object(figures))
}

/// A process that ends with this value.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure(stage: &str, daemon: &Child, figures: &mut Map<String, Value>) -> Result<()> {
    let (clock, before) = (Clock::new(), processor_time(daemon)?);
    thread::sleep(MEASURED);
    let used = (processor_time(daemon)? - before).as_secs_f64() / clock.elapsed().as_secs_f64() * 1e3;
    let mib = |name: &str| Ok::<_, anyhow::Error>(memory(daemon, name)? as f64 / f64::from(1 << 20));
    let [all, own] = [mib("VmRSS")?, mib("RssAnon")?];
    println!(
        "{stage}: {all:.1} MiB, {own:.1} of them its own and not pages of the program, {used:.1} m of CPU"
    );
    figures.insert(format!("{stage}_rss_mib"), json!(all));
    figures.insert(format!("{stage}_rss_anonymous_mib"), json!(own));
    figures.insert(format!("{stage}_cpu_millicores"), json!(used));
    Ok(())
}

fn name(pod: &Value) -> Result<&str> {
    pod.pointer("/metadata/name").and_then(Value::as_str).context("a pod without a name")
}

/// How many pods have the annotation of the daemon.
fn reported(connection: &mut Connection) -> Result<usize> {
    let pods = connection.get("/api/v1/namespaces/default/pods")?;
    let items = pods.get("items").and_then(Value::as_array).into_iter().flatten();
    let annotations = items.filter_map(|pod| pod.pointer("/metadata/annotations")?.get(META));
    Ok(annotations.count())
}

/// Pods that the daemon reports on: they look as if a SidecarSet had put something into them.
fn deployment() -> Value {
    let mut template = template("bench");
    if let Some(annotations) = template.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.insert("kruise.io/sidecarset-hash".to_owned(), "{}".into());
    }
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "bench"},
        "spec": {"replicas": PODS, "selector": {"matchLabels": {"app": "bench"}}, "template": template},
    })
}

fn image(number: usize) -> String {
    format!("registry.example/team/app-{number:02}")
}

/// What the node was asked to pull, all of it done.
fn node_image(connection: &mut Connection, node: &str) -> Result<()> {
    let (mut wanted, mut told) = (BTreeMap::new(), BTreeMap::new());
    for number in 0..IMAGES {
        let policy = json!({"timeoutSeconds": 600, "backoffLimit": 3, "ttlSecondsAfterFinished": 86_400});
        let tag = json!({"tag": "v1", "createdAt": "2026-01-01T00:00:00Z", "pullPolicy": policy});
        wanted.insert(image(number), json!({"tags": [tag]}));
        let done = json!({
            "tag": "v1", "phase": "Succeeded", "progress": 100, "startTime": "2026-01-01T00:00:00Z",
            "completionTime": "2026-01-01T00:00:30Z",
        });
        told.insert(image(number), json!({"tags": [done]}));
    }
    let path = "/apis/apps.kruise.io/v1beta1/nodeimages";
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": node},
        "spec": {"images": wanted},
    });
    connection.send("POST", path, Some(&object))?;
    let status = json!({
        "desired": IMAGES, "succeeded": IMAGES, "failed": 0, "pulling": 0, "waiting": 0, "imageStatuses": told,
        "firstSyncStatus": {"status": "Succeeded", "syncAt": "2026-01-01T00:00:30Z"},
    });
    connection.send("PATCH", &format!("{path}/{node}/status"), Some(&json!({"status": status}))).map(drop)
}

/// What the runtime has: the containers of the pods with what a kubelet writes on them, and images.
fn world(pods: &[Value]) -> Value {
    let text = |value: &Value, path: &str| {
        value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let mut containers = Vec::new();
    for pod in pods {
        let uid = text(pod, "/metadata/uid");
        for status in pod.pointer("/status/containerStatuses").and_then(Value::as_array).into_iter().flatten()
        {
            let id = text(status, "/containerID");
            containers.push(json!({
                "id": id.rsplit('/').next(), "sandbox": format!("sandbox-{uid}"),
                "labels": {
                    "io.kubernetes.pod.uid": uid, "io.kubernetes.pod.name": text(pod, "/metadata/name"),
                    "io.kubernetes.pod.namespace": "default", "io.kubernetes.container.name": text(status, "/name"),
                },
                "annotations": {
                    "io.kubernetes.container.hash": "8e45cbd0", "io.kubernetes.container.restartCount": "0",
                    "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
                    "io.kubernetes.container.terminationMessagePolicy": "File",
                    "io.kubernetes.pod.terminationGracePeriod": "30",
                },
            }));
        }
    }
    let images: Vec<Value> = (0..IMAGES)
        .map(|number| json!({"id": format!("sha256:{number:064x}"), "tags": [format!("{}:v1", image(number))]}))
        .collect();
    json!({"containers": containers, "images": images})
}

/// A probe in one container of each pod, every ten seconds.
fn probes(node: &str, pods: &[Value]) -> Value {
    let probe = json!({"exec": {"command": ["/bin/is-idle"]}, "periodSeconds": 10, "failureThreshold": 3});
    let probes: Vec<Value> = pods
        .iter()
        .map(|pod| {
            json!({
                "name": pod.pointer("/metadata/name"), "namespace": "default", "uid": pod.pointer("/metadata/uid"),
                "IP": pod.pointer("/status/podIP"),
                "probes": [{"name": "bench#idle", "containerName": "main", "probe": probe}],
            })
        })
        .collect();
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "NodePodProbe", "metadata": {"name": node},
        "spec": {"podProbes": probes},
    })
}

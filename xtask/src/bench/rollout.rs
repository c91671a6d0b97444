//! What a CloneSet costs: a thousand pods created, updated in place, replaced and removed, on a cluster with hollow nodes.
//!
//! The original on such a machine (Kubernetes 1.35, 10 hollow nodes, 30 requests per second): create 136 s and 16.3 CPU
//! seconds, in place 160 s and 13.2, recreate 181 s and 17.2, scale to zero 32 s and 4.0, peak memory 142 MB. Bars: a
//! third of its CPU and memory, half of its time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs, io::Write as _, thread};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use super::{local::Clock, manager::Manager};
use crate::test::cargo;

const NAMESPACE: &str = "bench-rollout";
const PATIENCE: Duration = Duration::from_secs(900);

pub(super) fn run(root: &Path, replicas: u32) -> Result<Value> {
    cargo(root, &["build", "--quiet", "--release", "--package", "kruise-manager"], None, None)?;
    let kubectl = Kubectl::find()?;
    let folder = env::temp_dir().join(format!("bench-rollout-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    kubectl.prepare(root)?;
    let program = env::current_exe()?.with_file_name("kruise-manager");
    let manager = Manager::start(&program, &kubectl.kubeconfig, &folder)?;
    Clock::new().until(|| Ok(manager.is_ready() && manager.knows(0.0)))?;
    let mut bench = Bench { kubectl, manager, replicas, figures: Map::new() };
    let outcome = bench.stages();
    bench.kubectl.clean_up(root);
    drop(bench.manager);
    if outcome.is_ok() {
        let _ = fs::remove_dir_all(&folder);
    } else {
        println!("the log of the manager is in {}", folder.display());
    }
    outcome?;
    Ok(Value::Object(bench.figures))
}

struct Bench {
    kubectl: Kubectl,
    manager: Manager,
    replicas: u32,
    figures: Map<String, Value>,
}

impl Bench {
    fn stages(&mut self) -> Result<()> {
        let object = set(self.replicas, "v1", "InPlaceIfPossible");
        self.stage("create", &object)?;
        self.stage("in_place", &set(self.replicas, "v2", "InPlaceIfPossible"))?;
        self.stage("recreate", &set(self.replicas, "v3", "ReCreate"))?;
        self.stage("scale_to_zero", &set(0, "v3", "ReCreate"))?;
        let peak = self.manager.memory("VmHWM")? as f64 / 1e6;
        println!("peak memory {peak:.0} MB");
        self.figures.insert("peak_memory_megabytes".to_owned(), json!(peak));
        Ok(())
    }

    fn stage(&mut self, name: &str, object: &Value) -> Result<()> {
        let (cpu, requests, clock) = (self.manager.cpu()?, self.manager.requests()?, Clock::new());
        self.kubectl.apply(object)?;
        while !self.kubectl.is_done()? {
            ensure!(clock.elapsed() < PATIENCE, "{name} was not done after {PATIENCE:?}");
            thread::sleep(Duration::from_millis(500));
        }
        let seconds = clock.elapsed().as_secs_f64();
        // What is still under way belongs to this stage.
        thread::sleep(Duration::from_secs(3));
        let cpu = self.manager.cpu()? - cpu;
        let after = self.manager.requests()?;
        let made: BTreeMap<&String, u64> = after
            .iter()
            .map(|(kind, count)| (kind, count - requests.get(kind).copied().unwrap_or(0)))
            .filter(|(_, count)| *count > 0)
            .collect();
        println!("{name}: {seconds:.1} s, {cpu:.2} CPU seconds, requests {made:?}");
        self.figures.insert(format!("{name}_seconds"), json!(seconds));
        self.figures.insert(format!("{name}_cpu_seconds"), json!(cpu));
        self.figures.insert(format!("{name}_requests"), json!(made));
        Ok(())
    }
}

fn set(replicas: u32, version: &str, policy: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
        "metadata": {"name": "bench", "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "bench"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": policy, "maxUnavailable": "25%"}},
            "template": {
                "metadata": {"labels": {"app": "bench"}},
                "spec": {
                    "nodeSelector": {"kruise-rs.io/node-type": "hollow"},
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "main", "image": format!("registry.example/app:{version}")}],
                },
            },
        },
    })
}

struct Kubectl {
    kubeconfig: PathBuf,
}

impl Kubectl {
    fn find() -> Result<Self> {
        let own = env::var_os("KUBECONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
        let kubeconfig = own.context("KUBECONFIG names no cluster; `cargo xtask cluster up` starts one")?;
        Ok(Self { kubeconfig })
    }

    fn run(&self, args: &[&str], input: Option<&str>) -> Result<String> {
        let mut child = Command::new("kubectl")
            .env("KUBECONFIG", &self.kubeconfig)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start kubectl")?;
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
            stdin.write_all(input.as_bytes())?;
        }
        let output = child.wait_with_output()?;
        ensure!(output.status.success(), "kubectl {args:?} failed");
        Ok(String::from_utf8(output.stdout)?)
    }

    fn apply(&self, object: &Value) -> Result<()> {
        self.run(&["apply", "-f", "-"], Some(&object.to_string())).map(drop)
    }

    /// Installs what a manager needs, and a namespace for the pods.
    fn prepare(&self, root: &Path) -> Result<()> {
        let path = |folder: &str| root.join(folder).display().to_string();
        self.run(&["apply", "--server-side", "--force-conflicts", "-f", &path("charts/kruise/crds")], None)?;
        for name in [kruise_api::names::NAMESPACE, NAMESPACE] {
            let labels = if name == NAMESPACE { json!({}) } else { json!({"control-plane": "openkruise"}) };
            self.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}))?;
        }
        self.run(&["apply", "-f", &path("config/webhook")], None)?;
        Ok(())
    }

    /// Whether every pod is updated and available, and no other is left.
    fn is_done(&self) -> Result<bool> {
        let text = self.run(&["get", "cloneset", "bench", "-n", NAMESPACE, "-o", "json"], None)?;
        let set: Value = serde_json::from_str(&text)?;
        let number = |path: &str| set.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let wanted = number("/spec/replicas");
        Ok(number("/status/observedGeneration") == number("/metadata/generation")
            && number("/status/replicas") == wanted
            && number("/status/updatedAvailableReplicas") == wanted
            && set.pointer("/status/currentRevision") == set.pointer("/status/updateRevision"))
    }

    /// Nobody must be refused because the manager is gone.
    fn clean_up(&self, root: &Path) {
        let webhooks = root.join("config/webhook").display().to_string();
        let _ = self.run(&["delete", "-f", &webhooks], None);
        let _ = self.run(&["delete", "namespace", NAMESPACE, "--wait=false"], None);
    }
}

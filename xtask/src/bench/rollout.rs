//! What a CloneSet costs: a thousand pods created, updated in place, replaced and removed, on a cluster with hollow nodes.
//!
//! The original on such a machine (Kubernetes 1.35, 10 hollow nodes, 30 requests per second): create 136 s and 16.3 CPU
//! seconds, in place 160 s and 13.2, recreate 181 s and 17.2, scale to zero 32 s and 4.0, peak memory 142 MB. Bars: a
//! third of its CPU and memory, half of its time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, thread};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use super::local::Clock;
use crate::installation::Installation;
use crate::test::cargo;

const NAMESPACE: &str = "bench-rollout";
const PATIENCE: Duration = Duration::from_secs(900);

pub(super) fn run(root: &Path, replicas: u32) -> Result<Value> {
    cargo(root, &["build", "--quiet", "--release", "--package", "kruise-manager"], None, None)?;
    let own = env::var_os("KUBECONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    let kubeconfig = own.context("KUBECONFIG names no cluster; `cargo xtask cluster up` starts one")?;
    let mut bench =
        Bench { installation: Installation::start(root, &kubeconfig)?, replicas, figures: Map::new() };
    let outcome = bench.stages();
    let _ = bench.installation.kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"], None);
    bench.installation.end(outcome.is_ok());
    outcome?;
    Ok(Value::Object(bench.figures))
}

struct Bench {
    installation: Installation,
    replicas: u32,
    figures: Map<String, Value>,
}

impl Bench {
    fn stages(&mut self) -> Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        self.installation.apply(&namespace)?;
        self.stage("create", &set(self.replicas, "v1", "InPlaceIfPossible"))?;
        self.stage("in_place", &set(self.replicas, "v2", "InPlaceIfPossible"))?;
        self.stage("recreate", &set(self.replicas, "v3", "ReCreate"))?;
        self.stage("scale_to_zero", &set(0, "v3", "ReCreate"))?;
        let peak = self.installation.manager.memory("VmHWM")? as f64 / 1e6;
        println!("peak memory {peak:.0} MB");
        self.figures.insert("peak_memory_megabytes".to_owned(), json!(peak));
        Ok(())
    }

    fn stage(&mut self, name: &str, object: &Value) -> Result<()> {
        let (cpu, requests, clock) =
            (self.installation.manager.cpu()?, self.installation.manager.requests()?, Clock::new());
        self.installation.apply(object)?;
        while !self.is_done()? {
            ensure!(clock.elapsed() < PATIENCE, "{name} was not done after {PATIENCE:?}");
            thread::sleep(Duration::from_millis(500));
        }
        let seconds = clock.elapsed().as_secs_f64();
        // What is still under way belongs to this stage.
        thread::sleep(Duration::from_secs(3));
        let cpu = self.installation.manager.cpu()? - cpu;
        let after = self.installation.manager.requests()?;
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

    /// Whether every pod is updated and available, and no other is left.
    fn is_done(&self) -> Result<bool> {
        let text =
            self.installation.kubectl(&["get", "cloneset", "bench", "-n", NAMESPACE, "-o", "json"], None)?;
        let set: Value = serde_json::from_str(&text)?;
        let number = |path: &str| set.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let wanted = number("/spec/replicas");
        Ok(number("/status/observedGeneration") == number("/metadata/generation")
            && number("/status/replicas") == wanted
            && number("/status/updatedAvailableReplicas") == wanted
            && set.pointer("/status/currentRevision") == set.pointer("/status/updateRevision"))
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
                    // Pulled once for each node. By default every pod pulls, and nodes refuse more than a few pulls per
                    // second and then wait for up to minutes, which is their time and not the manager's.
                    "containers": [{
                        "name": "main", "image": format!("registry.example/app:{version}"), "imagePullPolicy": "IfNotPresent",
                    }],
                },
            },
        },
    })
}
